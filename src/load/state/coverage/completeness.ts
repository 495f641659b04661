import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg, { type ClientBase } from 'pg';
import type { Clock } from '../../../core/clock.ts';
import type { Config } from '../../../core/config.ts';
import { type Day, dayEnd } from '../../../core/days.ts';
import { RANGE_REFUSED_LINE } from '../../../core/errors.ts';
import type { Pair } from '../../../core/pair.ts';
import { settings } from '../../../core/settings.ts';
import { dueMinutes } from '../../../operations/night-times.ts';
import {
  asksInstruments,
  type ExchangeSettings,
  exchangesOf,
  expectedVariants,
  isQuarterly,
  type Operation,
  partsOf,
  partVariant,
  QUARTER_AWAITED_DAYS,
} from '../../../operations/operation.ts';
import { operations } from '../../../operations/registry.ts';
import { SESSIONS, SESSIONS_OF } from '../sessions.ts';
import { COVERAGE } from './coverage.ts';
import { COUNT_MISMATCH, type GapReason } from './gap-reasons.ts';

export type { GapReason };

/** Which sessions to include. */
export interface CompletenessScope {
  /** Sessions of these are expected from the first complete one on, or else as far back as the source reaches. */
  readonly expected: readonly Pair[];
  /** Include whatever else was ever loaded, or what of these was, from its first to its last complete session. */
  readonly others: boolean | readonly Pair[];
  /** First and last day, instead of the range of each pair. */
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  /** Coverage of older days is not read: fast on years of history. */
  readonly since?: Day | undefined;
  /** Coverage of newer days is not read. */
  readonly until?: Day | undefined;
}

const WEEKDAYS = { daily: null, sunday: 0, friday: 5, saturday: 6 } as const;

/** The cases of what is known about an operation and session, the best first, as the query ranks them. */
const RANKS = { loaded: 1, empty: 2, not_published: 3, failed: 4, blocked: 5, partial: 6, unknown: 7 };

/**
 * Every session that an operation should have for an exchange, and whether it is stored: exchange, operation, day,
 * state, reason, detail, records, checked_at. The view etl.completeness and the commands that list gaps share this
 * query.
 *
 * An operation that is asked per instrument is complete with any instrument, unless the data of most is awaited. One
 * without dates has a single row, complete once it was ever loaded and otherwise with its last answer, and none in a
 * range that has an end. So has one that is asked part by part: it is complete if the last answer about each of its
 * parts is. For an operation about quarters, their last days are the sessions.
 *
 * @param now the moment as of which to look, in milliseconds since the epoch; null: when the query runs.
 */
function completenessSql(config: ViewSettings, scope: CompletenessScope, now: number | null): string {
  const { expected, others } = scope;
  const { EOD_TRIAL_DAY: trialDay, EOD_TIMEZONE: zone } = config;
  // At a trial address, its day is always over.
  const at = trialDay === undefined ? now : 1000 * dayEnd(trialDay, zone);
  const moment = at === null ? 'statement_timestamp()' : `${text(new Date(at).toISOString())}::timestamptz`;
  const from = scope.from === undefined ? 'null::date' : `${text(scope.from)}::date`;
  const to = scope.to === undefined ? 'null::date' : `${text(scope.to)}::date`;
  const pairs = others === true ? null : [...expected, ...(others === false ? [] : others)];
  // Coverage of nothing else is read.
  const read = [
    ...(pairs === null ? [] : [isOf(pairs)]),
    ...(scope.since === undefined ? [] : [`c.day >= ${text(scope.since)}`]),
    ...(scope.until === undefined ? [] : [`c.day <= ${text(scope.until)}`]),
  ]
    .map((condition) => ` and ${condition}`)
    .join('');
  const there = `${moment} at time zone ${text(config.EOD_TIMEZONE)}`;
  return `with clock as (
  select ${there} as now_there, (${there})::date as today, ${from} as from_day, ${to} as to_day,
    (${there})::date - ${config.EOD_HISTORY_DAYS} as reach
), operation (operation, variants, parts, of_exchange, quarterly, empty_is_normal, weekday, due_at, awaited_days) as (
  values ${operations.map((one) => operationRow(one, config)).join(',\n    ')}
), expected (operation, exchange) as (
  ${pairRows(expected)}
), answer as (
  select c.operation, c.exchange, c.day, c.state, c.records, c.diagnostic, c.checked_at, o.of_exchange and c.instrument <> '' as part_of_day, o.empty_is_normal,
    case when o.of_exchange and c.instrument <> '' then case c.state when 'loaded' then ${RANKS.partial} else ${RANKS.unknown} end
      else case c.state when 'loaded' then ${RANKS.loaded} when 'empty' then ${RANKS.empty}
        when 'not_published' then ${RANKS.not_published} when 'failed' then ${RANKS.failed}
        when 'blocked' then ${RANKS.blocked} else ${RANKS.unknown} end end as rank
  from ${COVERAGE} c join operation o using (operation)
  where o.parts is null and (o.variants is null or c.variant = any (o.variants))${read}
), known as (
  select operation, exchange, day, case when awaited then ${RANKS.not_published} else rank end as rank,
    not awaited and (rank = ${RANKS.loaded} or (rank = ${RANKS.empty} and empty_is_normal)) as complete,
    records, diagnostic, checked_at
  from (
    select operation, exchange, day, min(rank) as rank, bool_and(empty_is_normal) as empty_is_normal,
      2 * count(*) filter (where rank = ${RANKS.not_published}) > count(*) filter (where rank <= ${RANKS.not_published}) as awaited,
      coalesce(sum(records) filter (where not part_of_day), 0)::bigint as records,
      max(diagnostic) filter (where state in ('failed', 'blocked')) as diagnostic, max(checked_at) as checked_at
    from answer group by operation, exchange, day) a
  union all
  select operation, exchange, day, rank, rank = ${RANKS.loaded}, records, diagnostic, checked_at
  from (
    select p.operation, p.exchange, max(p.day) as day,
      case when bool_or(p.state = 'failed') then ${RANKS.failed} when bool_or(p.state = 'blocked') then ${RANKS.blocked}
        when count(*) filter (where p.variant = any (o.parts)) < cardinality(o.parts) then ${RANKS.partial}
        when bool_or(p.state = 'loaded') then ${RANKS.loaded} else ${RANKS.empty} end as rank,
      sum(p.records)::bigint as records,
      max(p.diagnostic) filter (where p.state in ('failed', 'blocked')) as diagnostic, max(p.checked_at) as checked_at
    from (
      select distinct on (c.operation, c.exchange, c.variant) c.*
        from ${COVERAGE} c join operation o using (operation)
       where o.parts is not null and c.instrument = '' and split_part(c.variant, '/', 1) = split_part(o.parts[1], '/', 1)${read}
       order by c.operation, c.exchange, c.variant, c.day desc) p
    join operation o using (operation)
    group by p.operation, p.exchange, o.parts) parts
), span as (
  select operation, exchange, min(day) as first_day, max(day) as last_day, max(checked_at) as checked_at
  from known where complete group by operation, exchange
), pair as (
  select e.operation, e.exchange,
    coalesce(clock.from_day, case when o.variants is not null then s.first_day end,
      case when o.quarterly then date_trunc('quarter', clock.now_there)::date - 1 else clock.reach end) as from_day,
    least(clock.to_day, clock.today) as to_day
  from clock, expected e join operation o using (operation) left join span s using (operation, exchange)
  union all
  select s.operation, s.exchange, coalesce(clock.from_day, s.first_day), least(clock.to_day, s.last_day)
  from clock, span s
  where ${others !== false} and not exists (
    select from expected e where e.operation = s.operation and e.exchange = s.exchange)
), due as (
  select p.operation, p.exchange, s.day, o.variants is null as undated, o.quarterly,
    o.empty_is_normal and s.day + o.awaited_days + o.due_at > clock.now_there as may_come,
    s.day + (coalesce(o.weekday - extract(dow from s.day)::int, 0) + 7) % 7 + o.due_at <= clock.now_there as is_due
  from clock, pair p join operation o using (operation)
  join lateral (
    select s.day from ${SESSIONS} s
     where not o.quarterly and s.exchange = case p.exchange ${SESSIONS_OF} end and s.day between p.from_day and p.to_day
    union all
    select q.day from (
      select (first_day + interval '3 months')::date - 1 as day
        from generate_series(date_trunc('quarter', p.from_day::timestamp), p.to_day::timestamp, '3 months') first_day) q
     where o.quarterly and q.day <= p.to_day) s on true
), session as (
  select d.exchange, d.operation, d.day,
    d.is_due and not (d.may_come and coalesce(k.rank, ${RANKS.unknown}) = ${RANKS.not_published}) as is_due,
    d.quarterly, coalesce(k.complete, false) as complete,
    coalesce(k.rank, ${RANKS.unknown}) as rank, k.diagnostic, coalesce(k.records, 0) as records, k.checked_at
  from due d left join known k using (operation, exchange, day) where not d.undated
  union all
  -- If the answer depends on no day, one without a record is not too early, but empty.
  select d.exchange, d.operation, d.day, true, false, s.last_day is not null,
    case when k.rank = ${RANKS.not_published} then ${RANKS.empty} else coalesce(k.rank, ${RANKS.unknown}) end,
    k.diagnostic, coalesce(k.records, 0), coalesce(s.checked_at, k.checked_at)
  from clock, (select operation, exchange, max(day) as day from due where undated and is_due group by operation, exchange) d
  left join span s using (operation, exchange)
  left join lateral (
    select * from known k where k.operation = d.operation and k.exchange = d.exchange
       and k.day = coalesce(s.last_day, k.day) order by k.day desc limit 1) k on true
  where clock.to_day is null
)
select exchange, operation, day,
  case when complete then 'complete' when is_due then 'missing' else 'pending' end as state,
  case when complete then null when not is_due then 'not_published'
    when rank = ${RANKS.empty} then 'empty' when rank = ${RANKS.not_published} then 'not_published'
    when rank = ${RANKS.failed} and diagnostic ~ '${COUNT_MISMATCH}: ' then '${COUNT_MISMATCH}'
    when rank = ${RANKS.failed} then 'failed'
    when rank = ${RANKS.blocked} and diagnostic ~* '${RANGE_REFUSED_LINE}' then 'beyond_history'
    when rank = ${RANKS.blocked} then 'blocked' when rank = ${RANKS.partial} then 'partial'
    when day < clock.reach and not quarterly then 'beyond_history' else 'never_asked' end as reason,
  case when complete then null else diagnostic end as detail,
  records, checked_at
from session, clock`;
}

/** For this many days after a session, nightly runs ask for it again; those of weekly operations once more. */
const awaitedDays = (lookback: number, weekly: boolean) => Math.max(7, 2 * lookback) + (weekly ? 7 : 0);

function operationRow(operation: Operation, settings: ViewSettings): string {
  const { name, emptyIsNormal, schedule } = operation;
  const quarterly = isQuarterly(operation);
  const variants = expectedVariants(operation);
  const parts = partsOf(operation);
  const cells = [
    text(name),
    textArray(variants),
    textArray(parts === undefined ? null : parts.values.map((value) => partVariant(parts, value))),
    String(!asksInstruments(operation)),
    String(quarterly),
    String(emptyIsNormal),
    `${WEEKDAYS[schedule.on] ?? 'null'}::int`,
    // Data is not late before the schedule asks for it, which weekly operations do on their weekday.
    `${text(`${dueMinutes(operation, settings)} minutes`)}::interval`,
    String(
      quarterly ? QUARTER_AWAITED_DAYS : awaitedDays(settings.EOD_LOOKBACK_SESSIONS, schedule.on !== 'daily'),
    ),
  ];
  return `(${cells.join(', ')})`;
}

const textArray = (values: readonly string[] | null) =>
  values === null ? 'null::text[]' : `array[${values.map(text).join(', ')}]::text[]`;

function pairRows(pairs: readonly Pair[]): string {
  if (pairs.length === 0) return 'select null::text, null::text where false';
  return `values ${pairs.map((pair) => `(${text(pair.operation)}, ${text(pair.exchange)})`).join(',\n    ')}`;
}

/** The condition that coverage `c` is of these pairs, in a form that its index can use. */
function isOf(pairs: readonly Pair[]): string {
  const list = (values: readonly string[]) => `array[${[...new Set(values)].map(text).join(', ')}]::text[]`;
  return `c.operation = any (${list(pairs.map((pair) => pair.operation))}) and c.exchange = any (${list(pairs.map((pair) => pair.exchange))})`;
}

const text = (value: string): string => pg.escapeLiteral(value);

/** Settings that the view is created with; a migration brings it up to date when they change. */
export type ViewSettings = Pick<
  Config,
  | 'EOD_EXCHANGES'
  | 'EOD_OPERATION_EXCHANGES'
  | 'EOD_TIMEZONE'
  | 'EOD_TRIAL_DAY'
  | 'EOD_PUBLISHED_AT'
  | 'EOD_HISTORY_DAYS'
  | 'EOD_LOOKBACK_SESSIONS'
> &
  Partial<Pick<Config, 'EOD_OPERATIONS_DIR' | 'EOD_NIGHT_TIMES'>>;

/** The defaults. */
export const DEFAULT_VIEW_SETTINGS: ViewSettings = {
  EOD_EXCHANGES: settings.EOD_EXCHANGES.parse(undefined),
  EOD_OPERATION_EXCHANGES: settings.EOD_OPERATION_EXCHANGES.parse(undefined),
  EOD_TIMEZONE: settings.EOD_TIMEZONE.parse(undefined),
  EOD_TRIAL_DAY: undefined,
  EOD_PUBLISHED_AT: settings.EOD_PUBLISHED_AT.parse(undefined),
  EOD_HISTORY_DAYS: settings.EOD_HISTORY_DAYS.parse(undefined),
  EOD_LOOKBACK_SESSIONS: settings.EOD_LOOKBACK_SESSIONS.parse(undefined),
};

const COMMENT =
  'Every session that an operation should have for an exchange, and whether it is stored: from the first complete session on, or, if there is none, as far back as the source reaches.';

const COLUMN_COMMENTS: Readonly<Record<string, string>> = {
  exchange: 'Exchange.',
  operation: 'Operation of the source.',
  day: 'Session day; operations without dates, and those that are asked part by part, have one row, of the last session.',
  state: 'complete; missing: it should be stored; pending: it is too early for it.',
  reason:
    'Why it is not complete: never_asked, failed, count_mismatch (the answer states more records than it has), blocked, beyond_history (further back than the source reaches), not_published, empty (the source listed nothing), partial (only some instruments or parts were asked for); null when complete.',
  detail: 'What the source or the failure said, if anything.',
  records: 'Records of the session in the answers.',
  checked_at: 'When the session was last asked for; null when never.',
};

/** The pairs that the schedules ask for: each operation with the exchanges of the settings. */
export function scheduledPairs(config: ExchangeSettings): Pair[] {
  return operations.flatMap((operation) =>
    exchangesOf(operation, config).map((exchange) => ({ operation: operation.name, exchange })),
  );
}

/** Creates the view etl.completeness or brings it up to date; writes nothing if it is up to date. */
export async function writeCompletenessView(client: ClientBase, wanted: ViewSettings): Promise<void> {
  const query = completenessSql(wanted, { expected: scheduledPairs(wanted), others: true }, null);
  // Postgres stores views in a normalized form, so the comparison is done in SQL.
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

/** One session of one operation and exchange, as the view shows it. */
export interface SessionState extends Pair {
  readonly day: Day;
  /** `pending`: it is too early for it. */
  readonly state: 'complete' | 'missing' | 'pending';
  readonly reason: GapReason | null;
  readonly detail: string | null;
  readonly records: number;
}

/** The clock and settings of the query, and the database. */
export interface CompletenessContext {
  readonly config: ViewSettings;
  readonly clock: Clock;
  readonly db: { readonly drizzle: NodePgDatabase };
}

/** The query for a scope, as of the context's clock and settings. */
export const completenessQuery = ({ config, clock }: CompletenessContext, scope: CompletenessScope) =>
  sql.raw(completenessSql(config, scope, clock.now()));

/** Every session of a scope, by operation, exchange and day. */
export async function readCompleteness(
  context: CompletenessContext,
  scope: CompletenessScope,
): Promise<SessionState[]> {
  // Not a drizzle select: years of history are tens of thousands of rows, and mapping them one by one would triple the
  // processor time that this takes here.
  const found = await context.db.drizzle.execute<Record<string, unknown> & SessionState>(sql`
    select operation, exchange, to_char(day, 'YYYY-MM-DD') as day, state, reason, detail, records::float8 as records
       from (${completenessQuery(context, scope)}) c order by operation, exchange, c.day`);
  return found.rows;
}
