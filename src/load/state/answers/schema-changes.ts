import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { FieldType, Kind } from '../../../operations/fields.ts';
import { isoText } from '../schema/columns.ts';
import { answerLayouts, answers } from '../schema/source-tables.ts';
import { declaredColumns } from './layouts.ts';

/** Something that the source has changed about the fields of its answers. */
export interface SchemaChange {
  readonly operation: string;
  readonly exchange: string;
  readonly field: string;
  readonly change: 'new' | 'vanished' | 'type_changed';
  /** The types before and after, of a field whose type has changed. */
  readonly fromType: FieldType | null;
  readonly toType: FieldType | null;
  readonly example: string | null;
  /** The answer that shows it, in ISO 8601, and the run that fetched it. */
  readonly at: string;
  readonly runId: number;
}

/** Changes are shown, and counted by the metric, for so many days. */
export const SHOWN_DAYS = 30;

/** A change in words, e.g. "GetBhavCopyCM NSE: LastPrice is text now, not number". */
export function changeText({ operation, exchange, ...one }: SchemaChange): string {
  return `${operation} ${exchange}: ${one.field} ${predicateOf(one)}`;
}

/** What has become of the field. */
export function predicateOf({
  change,
  fromType,
  toType,
  example,
}: Omit<SchemaChange, 'operation' | 'exchange'>): string {
  const shown = example === null ? '' : ` (${JSON.stringify(example)})`;
  if (change === 'new') return `is new, and no column reads it${shown}`;
  return change === 'vanished' ? 'is no longer sent' : `is ${toType} now, not ${fromType}${shown}`;
}

/** A field of an operation and exchange in the answers in which its values have one type. */
interface SeenType {
  readonly operation: string;
  readonly exchange: string;
  /** The name as it was sent last, and as names are compared. */
  readonly name: string;
  readonly plain: string;
  /** Null where no record has a value. */
  readonly type: FieldType | null;
  readonly example: string | null;
  readonly firstAt: string;
  readonly firstRunId: number;
  /** The run that fetched the first answer of the operation and exchange. */
  readonly baseRunId: number;
}

/** So many answers have to lack a field, after as many that had it. */
const ENOUGH_ANSWERS = 3;

/**
 * What the source has changed, the newest first. The fields of the run that asked an operation and exchange first are
 * what later ones are compared with. Derived from all answers, whatever the order in which they were loaded.
 *
 * - `new`: a field that no declaration reads is in an answer of a later run.
 * - `vanished`: a field that was in at least three answers, and in all between its first and its last, is in none of
 *   three later ones of other runs. A field that whole answers lacked before is optional, and never vanishes.
 * - `type_changed`: the values of a field have a type that they had not before, and that its column does not read as
 *   well as the type before.
 *
 * Answers without records say nothing.
 *
 * @param days only changes of so many days; not given: all.
 */
export async function readSchemaChanges(
  db: NodePgDatabase,
  filter: { readonly days?: number; readonly runId?: number } = {},
): Promise<SchemaChange[]> {
  const { days, runId } = filter;
  const kinds = new Map<string, Set<Kind>>();
  for (const { operation, field, kind } of declaredColumns()) {
    const key = `${operation} ${field}`;
    kinds.set(key, (kinds.get(key) ?? new Set()).add(kind));
  }
  const groups = new Map<string, SeenType[]>();
  for (const one of await readSeenTypes(db)) {
    const key = `${one.exchange} ${one.operation} ${one.plain}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const found = [...groups.values()].flatMap((seen) => {
    const { operation, plain } = seen[0] as SeenType;
    return changesOfField(seen, kinds.get(`${operation} ${plain}`) ?? null);
  });
  const since = days === undefined ? '' : new Date(Date.now() - days * 86_400_000).toISOString();
  return [...found, ...(await readVanished(db))]
    .filter((one) => one.at >= since && (runId === undefined || one.runId === runId))
    .sort((a, b) => (a.at > b.at ? -1 : Number(a.at < b.at)) || (a.field < b.field ? -1 : 1));
}

/**
 * Is a field new, and which types of its values are (pure)?
 *
 * @param seen of one field, those with the earliest first answer first.
 * @param kinds of the columns that it is read into; null if there are none.
 */
export function changesOfField(seen: readonly SeenType[], kinds: ReadonlySet<Kind> | null): SchemaChange[] {
  const [first] = seen;
  if (first === undefined) return [];
  const changes: SchemaChange[] = [];
  const change = (one: SeenType, what: Pick<SchemaChange, 'change' | 'fromType' | 'toType'>) => {
    const { operation, exchange, name: field, example, firstAt: at, firstRunId: runId } = one;
    if (runId !== one.baseRunId) changes.push({ operation, exchange, field, example, at, runId, ...what });
  };
  if (kinds === null) change(first, { change: 'new', fromType: null, toType: first.type });
  const before: FieldType[] = [];
  for (const one of seen) {
    const { type } = one;
    if (type === null || before.includes(type)) continue;
    const differing = before.filter((earlier) => !areAlike(earlier, type, kinds));
    const isKnown = before.some((earlier) => INCLUDES[earlier]?.includes(type));
    const fromType = differing.at(-1);
    if (fromType !== undefined && !isKnown) change(one, { change: 'type_changed', fromType, toType: type });
    before.push(type);
  }
  return changes;
}

/** Types whose values a field of that type may have anyway. */
const INCLUDES: Readonly<Partial<Record<FieldType, readonly FieldType[]>>> = {
  number: ['digits'],
  text: ['digits'],
  mixed: ['number', 'digits', 'text', 'boolean'],
};

const NUMBERS: readonly FieldType[] = ['number', 'digits'];
const SCALARS: readonly FieldType[] = [...NUMBERS, 'text', 'mixed'];

/** Types that a column of a kind reads equally well, if the values are what the kind is. */
const READ_ALIKE: Readonly<Record<Kind, readonly FieldType[]>> = {
  text: SCALARS,
  date: SCALARS,
  datetime: SCALARS,
  int2: NUMBERS,
  int4: NUMBERS,
  int8: NUMBERS,
  numeric: NUMBERS,
  boolean: [...SCALARS, 'boolean'],
};

function areAlike(a: FieldType, b: FieldType, kinds: ReadonlySet<Kind> | null): boolean {
  if (kinds !== null)
    return [...kinds].every((kind) => [a, b].every((one) => READ_ALIKE[kind].includes(one)));
  return INCLUDES[a]?.includes(b) === true || (b !== 'mixed' && INCLUDES[b]?.includes(a) === true);
}

async function readSeenTypes(db: NodePgDatabase): Promise<SeenType[]> {
  const found = await db.execute<{ [Name in keyof SeenType]: SeenType[Name] }>(sql`
    with sent as (
      select l.*, f.field ->> 'name' as name, f.field ->> 'plain' as plain, f.field ->> 'type' as type, f.field ->> 'example' as example
        from ${answerLayouts} l, jsonb_array_elements(l.fields) as f(field)
    ), bases as (
      select distinct on (operation, exchange) operation, exchange, first_run_id from ${answerLayouts} order by operation, exchange, first_place
    )
    select s.operation, s.exchange, s.plain, s.type, (array_agg(s.name order by s.last_place desc, s.name))[1] as name,
           (array_agg(s.example order by s.first_place, s.example))[1] as example, ${isoText(sql`min(s.first_place)`)} as "firstAt",
           (array_agg(s.first_run_id order by s.first_place))[1]::float8 as "firstRunId", b.first_run_id::float8 as "baseRunId"
      from sent s join bases b using (operation, exchange)
     group by s.operation, s.exchange, s.plain, s.type, b.first_run_id order by min(s.first_place), s.type`);
  return found.rows;
}

/** The fields that have vanished. Which answers lack them is nearly always known from the layouts alone. */
async function readVanished(db: NodePgDatabase): Promise<SchemaChange[]> {
  const found = await db.execute<{ [Name in keyof SchemaChange]: SchemaChange[Name] }>(sql`
    with fields as materialized (
      select l.operation, l.exchange, f.field ->> 'plain' as plain, min(l.first_place) as first_place, max(l.last_place) as last_place,
             (array_agg(l.last_run_id order by l.last_place desc))[1] as last_run_id, array_agg(distinct l.layout) as layouts,
             (array_agg(f.field ->> 'name' order by l.last_place desc))[1] as name,
             (array_agg(f.field ->> 'example' order by l.last_place desc) filter (where f.field ->> 'example' is not null))[1] as example,
             sum(l.answers) as answers
        from ${answerLayouts} l, jsonb_array_elements(l.fields) as f(field) group by 1, 2, 3
    ), newest as (
      select operation, exchange, max(last_place) as place from ${answerLayouts} group by 1, 2
    )
    select f.operation, f.exchange, f.name as field, 'vanished' as change, null as "fromType", null as "toType", f.example,
           ${isoText(sql`third.place`)} as at, third.run_id::float8 as "runId"
      from fields f join newest n using (operation, exchange)
      cross join lateral (
        select a.place, a.run_id from ${answers} a
         where a.operation = f.operation and a.exchange = f.exchange and a.layout is not null
           and a.place > f.last_place and a.run_id <> f.last_run_id
         order by a.place offset ${ENOUGH_ANSWERS - 1} limit 1) as third
     where f.last_place < n.place and f.answers >= ${ENOUGH_ANSWERS}
       and not exists (
         select from ${answerLayouts} l
          where l.operation = f.operation and l.exchange = f.exchange and l.layout <> all(f.layouts)
            and l.first_place < f.last_place and l.last_place > f.first_place
            and (l.first_place > f.first_place or l.last_place < f.last_place or exists (
              select from ${answers} a where a.operation = l.operation and a.exchange = l.exchange and a.layout = l.layout
                 and a.place > f.first_place and a.place < f.last_place)))`);
  return found.rows;
}

/** How many kept answers show what a field is like. */
const SHOWING = 3;

/**
 * The fields of an operation's answers that no column reads, as names are compared, and the newest kept answers that have
 * them.
 */
export async function readUnreadFields(db: NodePgDatabase, operation: string) {
  const read = declaredColumns().flatMap((one) => (one.operation === operation ? [one.field] : []));
  const found = await db.execute<{ field: string; answerIds: readonly number[] }>(sql`
    with fields as materialized (
      select f.field ->> 'plain' as plain, array_agg(l.layout) as layouts from ${answerLayouts} l, jsonb_array_elements(l.fields) as f(field)
       where l.operation = ${operation} and f.field ->> 'plain' <> all(${sql.param(read)}::text[]) group by 1
    )
    select f.plain as field, array(
        select a.id::float8 from ${answers} a where a.operation = ${operation} and a.layout = any(f.layouts) and a.hash is not null
         order by a.place desc limit ${SHOWING}) as "answerIds"
      from fields f order by 1`);
  return {
    fields: found.rows.map(({ field }) => field),
    answerIds: [...new Set(found.rows.flatMap(({ answerIds }) => answerIds))].sort((a, b) => a - b),
  };
}
