import type { ClientBase } from 'pg';
import { type Config, settings } from '../../core/config.ts';
import { operations } from '../../operations/registry.ts';
import { completenessSql, type Pair } from './completeness-sql.ts';

export type { Pair } from './completeness-sql.ts';

/** Settings the view is made with; `eod migrate` brings it in line when they change. */
export type ViewSettings = Pick<
  Config,
  'EOD_EXCHANGES' | 'EOD_TIMEZONE' | 'EOD_PUBLISHED_AT' | 'EOD_HISTORY_DAYS'
>;

/** As they are where nothing is set. */
export const DEFAULT_VIEW_SETTINGS: ViewSettings = {
  EOD_EXCHANGES: settings.EOD_EXCHANGES.parse(undefined),
  EOD_TIMEZONE: settings.EOD_TIMEZONE.parse(undefined),
  EOD_PUBLISHED_AT: settings.EOD_PUBLISHED_AT.parse(undefined),
  EOD_HISTORY_DAYS: settings.EOD_HISTORY_DAYS.parse(undefined),
};

const COMMENT =
  'Every session an operation should have of an exchange, and whether it is there: what "eod gaps" reports. From the first complete session on; over the last days the source reaches where nothing is loaded.';

const COLUMN_COMMENTS: Readonly<Record<string, string>> = {
  exchange: 'Exchange.',
  operation: 'Operation of the source.',
  day: 'Session day; operations that know no dates have one line, of the last session.',
  state: 'complete; missing: it should be there; pending: it is too early for it.',
  reason:
    'Why it is not there: never_asked, failed, blocked, beyond_history (further back than the source reaches), not_published, empty (the source listed nothing), partial (only some instruments were asked for); null when complete.',
  detail: 'What the source or the failure said, where there was something.',
  records: 'Records of the session in the answers.',
  checked_at: 'When the session was last asked for; null when never.',
};

/** The pairs a schedule asks for: exchanges of each operation as far as EOD_EXCHANGES has them. */
export function scheduledPairs({ EOD_EXCHANGES }: Pick<Config, 'EOD_EXCHANGES'>): Pair[] {
  return operations.flatMap(({ name, exchanges }) =>
    exchanges
      .filter((exchange) => EOD_EXCHANGES.includes(exchange))
      .map((exchange) => ({ operation: name, exchange })),
  );
}

/** Makes, or brings up to date, the view etl.completeness; writes nothing when it is as it should be. */
export async function writeCompletenessView(client: ClientBase, wanted: ViewSettings): Promise<void> {
  const query = completenessSql({
    expected: scheduledPairs(wanted),
    others: true,
    now: null,
    timeZone: wanted.EOD_TIMEZONE,
    publishedAt: wanted.EOD_PUBLISHED_AT,
    historyDays: wanted.EOD_HISTORY_DAYS,
  });
  // Postgres keeps views in words of its own: it is asked to compare them itself.
  await client.query(`create or replace temp view eod_completeness_wanted as ${query}`);
  const compared = await client.query<{ same: boolean }>(
    `select coalesce(pg_get_viewdef(to_regclass('etl.completeness')), '')
       = pg_get_viewdef('pg_temp.eod_completeness_wanted'::regclass) as same`,
  );
  await client.query('drop view pg_temp.eod_completeness_wanted');
  if (compared.rows[0]?.same === true) return;
  await client.query(`create or replace view etl.completeness as ${query}`);
  await client.query(`comment on view etl.completeness is ${client.escapeLiteral(COMMENT)}`);
  for (const [column, comment] of Object.entries(COLUMN_COMMENTS)) {
    await client.query(
      `comment on column etl.completeness.${client.escapeIdentifier(column)} is ${client.escapeLiteral(comment)}`,
    );
  }
}
