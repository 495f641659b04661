import { type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { type Preparing, prepareOnce } from '../../database/prepared.ts';
import type { CoverageEntry, CoverageState } from '../registers.ts';
import type { RejectEntry } from '../rejects.ts';
import { answers } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';
import type { SentFields } from './layouts.ts';

// The facts of an answer: what it said of its questions, as it is kept with it in `etl.answers`. What it did with the rows
// of days is in `etl.withdrawals`; what follows from all of it is in coverage/sum-of-facts.ts.

/** What an answer says, but for its rows. */
export interface AnswerSaid {
  readonly outcome: { readonly state: 'loaded' | 'empty' | 'failed' };
  readonly coverage: readonly CoverageEntry[];
  readonly rejects: readonly RejectEntry[];
  /** Reasons to doubt it. */
  readonly doubts: readonly string[];
  /** Those of them for which no reject stands, so that only a later good answer settles them. */
  readonly doubtsWithoutReject: readonly string[];
  /** The fields of its records; undefined if they were not observed. */
  readonly sent?: SentFields | undefined;
}

/** Can it show that a record is no longer sent (`is_believed`)? One without records may have come too early. */
export const canResolveRejects = ({ outcome, coverage }: Pick<AnswerSaid, 'outcome' | 'coverage'>): boolean =>
  outcome.state === 'loaded' ||
  (outcome.state === 'empty' && coverage.every(({ state }) => state === 'empty'));

/** What an answer said of its questions, as it is kept: in a few bytes where it said the same of all of them. */
export interface AnswerFact {
  /** What it said of all its questions; each is null where that differs, or where it has no question. */
  readonly said: CoverageState | null;
  readonly records: number | null;
  readonly diagnostic: string | null;
  /** Its questions, with what differs; null if they are its last day, for each of its instruments. */
  readonly questions: readonly (Partial<CoverageEntry> & Pick<CoverageEntry, 'day'>)[] | null;
  readonly doubted: true | null;
}

/** The value of all these, or null if they differ. */
const common = <Value>(values: readonly (Value | null)[]): Value | null =>
  values.every((value) => value === values[0]) ? (values[0] ?? null) : null;

/** What an answer said, as it is kept with it. All its questions have its variant. */
export function factOf(
  {
    coverage: entries,
    doubted = false,
  }: { readonly coverage: readonly CoverageEntry[]; readonly doubted?: boolean },
  { to, instruments }: { readonly to: string; readonly instruments: readonly string[] },
): AnswerFact {
  const said = common(entries.map(({ state }) => state));
  const records = common(entries.map((entry) => entry.records));
  const diagnostic = common(entries.map((entry) => entry.diagnostic ?? null));
  const asked = instruments.length === 0 ? [''] : instruments;
  const isSameOfAll =
    entries.length === asked.length &&
    entries.every(
      (entry, at) =>
        entry.day === to &&
        entry.instrument === asked[at] &&
        entry.state === said &&
        entry.records === records &&
        (entry.diagnostic ?? null) === diagnostic,
    );
  return {
    said,
    records,
    diagnostic,
    questions: isSameOfAll
      ? null
      : entries.map((entry) => ({
          day: entry.day,
          ...(entry.instrument !== '' && { instrument: entry.instrument }),
          ...(said === null && { state: entry.state }),
          ...(records === null && { records: entry.records }),
          ...(diagnostic === null && entry.diagnostic !== undefined && { diagnostic: entry.diagnostic }),
        })),
    doubted: doubted ? true : null,
  };
}

/** What an answer `a` said of each of its questions, as `q`. */
export const SAID = sql`lateral (
    select a.to_date as day, i.instrument, a.said, a.records::bigint, a.diagnostic
      from unnest(case when a.instruments = '{}' then '{""}' else a.instruments end) as i(instrument)
     where a.said is not null and a.questions is null
    union all
    select o.day, coalesce(o.instrument, ''), coalesce(o.state, a.said), coalesce(o.records, a.records), coalesce(o.diagnostic, a.diagnostic)
      from jsonb_to_recordset(a.questions) as o(day date, instrument text, state text, records bigint, diagnostic text)) as q`;

/** What some answers said of each of their questions, by answer. */
export async function readSaid(
  db: NodePgDatabase,
  ids: readonly number[],
): Promise<ReadonlyMap<number, CoverageEntry[]>> {
  const said = new Map<number, CoverageEntry[]>();
  if (ids.length === 0) return said;
  const found = await db.execute<{ id: number; entry: CoverageEntry }>(sql`
    select a.id::float8 as id, jsonb_strip_nulls(jsonb_build_object('day', q.day, 'instrument', q.instrument, 'variant', a.variant,
             'state', q.said, 'records', q.records, 'diagnostic', q.diagnostic)) as entry
      from ${answers} a, ${SAID} where a.id = any(${sql.param(ids)}::bigint[])`);
  for (const { id, entry } of found.rows) said.set(id, [...(said.get(id) ?? []), entry]);
  return said;
}

/** The table's name, for SQL that is built as text. */
export const ANSWERS = 'etl.answers';

const TYPES = {
  said: 'text',
  records: 'integer',
  diagnostic: 'text',
  questions: 'jsonb',
  is_doubted: 'boolean',
};
const listed = (name: (column: string) => SQL) => sql.join(Object.keys(TYPES).map(name), sql`, `);

/** The columns of what an answer said, and their values. */
export const factColumns = {
  names: listed((column) => sql`${sql.identifier(column)}`),
  of: (row: SQL) => listed((column) => sql`${row}.${sql.identifier(column)}`),
  values: sql.join(
    Object.entries(TYPES).map(([column, type]) => sql`${sql.placeholder(column)}::${sql.raw(type)}`),
    sql`, `,
  ),
};

/** What the statements that keep a fact are given. */
export const factValues = ({ questions, doubted, ...fact }: AnswerFact) => ({
  ...fact,
  is_doubted: doubted,
  questions: questions === null ? null : JSON.stringify(questions),
});

/**
 * Replaces what an answer said that was read again, and whether it can resolve rejects; what it did with rows changes only
 * with a fold. A copied answer, which belongs to no window yet, becomes one of the window that has read it.
 */
export async function replaceFact(
  tx: Preparing,
  read: {
    readonly answerId: number;
    readonly windowId: number;
    readonly fact: AnswerFact;
    /** Null: that stays as it is. */
    readonly resolvesRejects: boolean | null;
  },
): Promise<void> {
  const { fact, ...rest } = read;
  await updateFact(tx, { ...rest, ...factValues(fact) });
}

const updateFact = prepareOnce<Record<string, unknown>, Record<string, unknown>>(() => {
  const { names, of, values } = factColumns;
  const resolvesRejects = sql`coalesce(${sql.placeholder('resolvesRejects')}::boolean, a.is_believed)`;
  return sql`
    update ${answers} a
       set (${names}) = row(${of(sql`v`)}), is_believed = ${resolvesRejects},
           window_id = case a.window_id when 0 then w.id else a.window_id end, run_id = case a.window_id when 0 then w.run_id else a.run_id end
      from (select ${values}) v (${names}), ${windows} w
     where a.id = ${sql.placeholder('answerId')} and w.id = ${sql.placeholder('windowId')}
       and (a.window_id = 0 or (${of(sql`a`)}, a.is_believed) is distinct from (${of(sql`v`)}, ${resolvesRejects}))`;
});
