import { eq, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Place } from '../../../core/place.ts';
import { type Preparing, prepareOnce } from '../../database/prepared.ts';
import type { LoadGroup } from '../loads/locks.ts';
import type { CoverageEntry, CoverageState, DayEffect, FoldedDays } from '../registers.ts';
import type { RejectEntry } from '../rejects.ts';
import { placeText } from '../schema/columns.ts';
import { answers, HAS_DAY_EFFECT } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';
import type { SentFields } from './layouts.ts';

// The facts of an answer: what it said of its questions and did with the rows of days, as it is kept with it in
// `etl.answers`. What follows from all of them is in coverage/sum-of-facts.ts.

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
  /** The days whose last row it took, and those whose rows it lacked but which were kept; a null is the day of its call. */
  readonly emptied: readonly (string | null)[] | null;
  readonly heldBack: readonly (string | null)[] | null;
}

/** The value of all these, or null if they differ. */
const common = <Value>(values: readonly (Value | null)[]): Value | null =>
  values.every((value) => value === values[0]) ? (values[0] ?? null) : null;

/** What an answer said, and did with rows, as it is kept with it. All its questions have its variant. */
export function factOf(
  {
    coverage: entries,
    doubted = false,
    effects = [],
  }: {
    readonly coverage: readonly CoverageEntry[];
    readonly doubted?: boolean;
    readonly effects?: readonly DayEffect[];
  },
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
  const daysOf = (effect: DayEffect['effect']) => {
    const days = effects.filter((one) => one.effect === effect).map(({ day }) => day);
    return days.length === 0 ? null : days;
  };
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
    emptied: daysOf('emptied'),
    heldBack: daysOf('held_back'),
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

/** What an answer `a` did with the rows of days, as effect and day. */
const DAY_EFFECTS = sql`lateral (
    select 'emptied' as effect, unnest(a.emptied_days) as day union all select 'held_back', unnest(a.held_back_days))`;

/**
 * A select of the newest answers that took the last row of a day, and of those that were held back, by question.
 *
 * @param condition which answers `a`, and which days `m.day`.
 */
export const dayEffectsSql = (condition: SQL) => sql`
    select a.operation, a.exchange, m.day, a.variant, max(a.place) filter (where m.effect = 'emptied') as emptied_place,
           max(a.place) filter (where m.effect = 'held_back') as held_back_place
      from ${answers} a, ${DAY_EFFECTS} m
     where ${HAS_DAY_EFFECT} and ${condition} group by 1, 2, 3, 4`;

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

/** The days of what an answer did with rows; a table without days has the day of the call. */
export const factDays = (name: 'emptied' | 'heldBack', calledOn: unknown) =>
  sql`array_replace(${sql.placeholder(name)}::date[], null, ${calledOn}::date)`;

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

/** Locks answers until the transaction ends, in the order of their numbers, as everywhere, so that two writers cannot deadlock. */
export async function lockAnswers(tx: NodePgDatabase, ids: readonly number[]): Promise<void> {
  await tx.execute(
    sql`select from ${answers} where id = any(${sql.param(ids)}::bigint[]) order by id for update`,
  );
}

/** What answers did with the rows of some days; with null as days, of a table without days. */
export async function dayEffectsOf(
  tx: NodePgDatabase,
  { operations, exchange }: LoadGroup,
  days: readonly string[] | null,
): Promise<DayEffect[]> {
  const found = await tx.execute<{ effect: DayEffect['effect']; place: Place; day: string | null }>(sql`
    select m.effect, ${placeText(sql`a.place`)} as place, ${days === null ? sql`null` : sql`m.day::text`} as day
      from ${answers} a, ${DAY_EFFECTS} m
     where ${HAS_DAY_EFFECT} and a.exchange = ${exchange} and a.operation = any(${sql.param(operations)}::text[])
       and m.day = any(coalesce(${sql.param(days)}::date[], array[m.day]))`);
  return found.rows;
}

/** Replaces what the answers about folded days did with their rows. */
export async function replaceDayEffects(
  tx: NodePgDatabase,
  {
    exchange,
    folded,
    effects,
  }: { readonly exchange: string; readonly folded: FoldedDays; readonly effects: readonly DayEffect[] },
): Promise<void> {
  const days = sql`${sql.param(folded.days)}::date[]`;
  const isOf = sql`exchange = ${exchange} and operation = any(${sql.param(folded.operations)}::text[]) and ${HAS_DAY_EFFECT}`;
  const now = (column: string) =>
    inOrder(
      sql`array(select day from unnest(a.${sql.identifier(column)}) day where day <> all(${days})) || m.${sql.identifier(column)}`,
    );
  // Locked in the order of their numbers, as everywhere, so that two writers cannot deadlock.
  await tx.execute(sql`
    with effects as (
      select a.id, array_agg(coalesce(m.day, a.called_on)) filter (where m.effect = 'emptied') as emptied_days,
             array_agg(coalesce(m.day, a.called_on)) filter (where m.effect = 'held_back') as held_back_days
        from jsonb_to_recordset(${JSON.stringify(effects)}::jsonb) as m(effect text, place timestamptz, day date)
        join ${answers} a on a.place = m.place group by a.id
    ), touched as materialized (
      select id from ${answers} where ${isOf} and (${days} is null or emptied_days && ${days} or held_back_days && ${days})
          or id in (select id from effects) order by id for update
    )
    update ${answers} a set emptied_days = ${now('emptied_days')}, held_back_days = ${now('held_back_days')}
      from touched t left join effects m using (id)
     where a.id = t.id and (a.emptied_days, a.held_back_days) is distinct from (${now('emptied_days')}, ${now('held_back_days')})`);
}

/** Days of effects, each once and in order: the order in which they were stored or accepted is no difference. */
export const inOrder = (days: SQL): SQL =>
  sql`nullif(array(select distinct day from unnest(${days}) day order by day), '{}')`;

/** Stores that a person has accepted the withdrawal of an answer, and whether that took the last row of the day. */
export async function noteAccepted(
  tx: NodePgDatabase,
  { place, day, isEmpty }: { readonly place: Place; readonly day: string | null; readonly isEmpty: boolean },
): Promise<void> {
  const { called_on, emptied_days, held_back_days } = answers;
  const itsDay = sql`coalesce(${day}::date, ${called_on})`;
  await tx
    .update(answers)
    .set({
      held_back_days: sql`nullif(array_remove(${held_back_days}, ${itsDay}), '{}')`,
      ...(isEmpty && { emptied_days: inOrder(sql`${emptied_days} || ${itsDay}`) }),
    })
    .where(eq(answers.place, place));
}
