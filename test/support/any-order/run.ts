import type { Position } from '../../../src/core/position.ts';
import type { Context } from '../../../src/jobs/context.ts';
import { buildFoldSettings } from '../../../src/jobs/responses/store-response.ts';
import { acceptWithdrawal } from '../../../src/load/accept-withdrawal.ts';
import { operationNamed, tables } from '../../../src/operations/registry.ts';
import { countSuspiciousWindows } from '../../../src/state/windows/suspicious.ts';
import { openWindow, readAndStore } from '../as-worker.ts';
import { differingCoverage } from '../differing-coverage.ts';
import { type Copy, emptyCopy, follow } from '../follower.ts';
import { replay } from '../replay-support.ts';
import type { Step } from './draw.ts';
import { type Accepted, fold, rejectText, type Stored, type Topic } from './model.ts';
import {
  bodyOf,
  calledAt,
  calledOn,
  entryOf,
  KINDS,
  type Kind,
  kindOf,
  positionsOf,
  type Response,
  type TableKind,
} from './responses.ts';

/** A database, and an exchange of it that nothing is known of yet. */
export interface FreshExchange {
  readonly context: Context;
  readonly runId: number;
  readonly exchange: string;
}

/** Makes the loads of windows that are named in the table `killed` fail where all is written but the load itself. */
export const KILL_LOADS = `create table killed (window_id bigint);
  create function kill_load() returns trigger language plpgsql as $$ begin
    if exists (select from killed k where k.window_id = new.window_id) then raise 'killed'; end if;
    return new;
  end $$;
  create trigger kill_load before insert on etl.loads for each row execute function kill_load()`;

/** Loads a response as the worker does; one that is killed, a second time. */
async function load(
  { context, runId, exchange }: FreshExchange,
  response: Response,
  position: string,
  isKilled = false,
): Promise<void> {
  const { operation, ...entry } = entryOf(response);
  const sent = {
    ...entry,
    operation: operationNamed(operation),
    exchange,
    position: position as Position,
    calledAt: calledAt(response),
    calledOn: calledOn(response),
    body: bodyOf(response),
  };
  const id = await openWindow(context, runId, sent);
  if (isKilled) {
    await context.db.pool.query('insert into killed values ($1)', [id]);
    await readAndStore(context, runId, id, sent).catch((error) => {
      if (!String(error).includes('killed')) throw error;
    });
    await context.db.pool.query('delete from killed where window_id = $1', [id]);
  }
  await readAndStore(context, runId, id, sent);
}

/** Accepts one of the withdrawals that were withheld. @returns null if there is none. */
async function accept({ context, exchange }: FreshExchange, which: number): Promise<Accepted | null> {
  const withheld = await context.db.pool.query<{ id: number; table: string; day: string; position: string }>(
    `select id::int, table_name as table, coalesce(day::text, '-') as day, ${POSITION_SQL} as position
       from etl.withdrawals where state = 'withheld' and exchange = $1 order by table_name, day, position`,
    [exchange],
  );
  const withdrawal = withheld.rows[which % Math.max(1, withheld.rows.length)];
  if (withdrawal === undefined) return null;
  await acceptWithdrawal(context.db, withdrawal.id, { by: 'me', ...buildFoldSettings(context) });
  return { position: withdrawal.position, table: withdrawal.table, day: withdrawal.day };
}

/** Deletes the rows and the history of the exchange, as an operator does before a replay into empty tables. */
async function empty({ context, exchange }: FreshExchange, kinds: readonly Kind[]): Promise<void> {
  for (const { name } of kinds.flatMap((kind) => kindOf(kind).tables))
    for (const schema of ['market', 'market_history'])
      await context.db.pool.query(`delete from ${schema}.${name} where exchange = $1`, [exchange]);
}

const isoSql = (column: string, digits: string) =>
  `to_char(${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.${digits}"Z"')`;
const POSITION_SQL = isoSql('position', 'US');
const SAVED_SQL = `coalesce((extract(epoch from source_saved_at) * 1000)::bigint, 0)`;

const rowsSql = (tables: readonly TableKind[]) =>
  tables
    .map(({ name, columns }) => {
      const row = (extra: string) => `concat_ws(' ', '${name}', ${columns.join(', ')}, ${SAVED_SQL})${extra}`;
      return `select 'rows' as topic, ${row('')} as text from market.${name} where exchange = $1
    union all select 'revisions', 'now ' || ${row(` || ' r' || revision`)} from market.${name} where exchange = $1
    union all select 'revisions', 'past ' || ${row(` || ' r' || revision || ' ' || withdrawn`)} from market_history.${name} where exchange = $1`;
    })
    .join(' union all ');
const ENTRY_SQL = `concat_ws('|', operation, day, instrument, variant)`;
/** Without the part that names the one other day of which all records are. */
const DIAGNOSTIC_SQL = `regexp_replace(coalesce(diagnostic, ''), '; all are of .*', '')`;
const storedSql = (tables: readonly TableKind[]) => `${rowsSql(tables)}
  union all select topic, ${ENTRY_SQL} || ' ' || value from etl.coverage, lateral (values ('states', state), ('records', records::text),
    ('diagnostics', ${DIAGNOSTIC_SQL})) v(topic, value) where exchange = $1
  union all select 'withdrawals', concat_ws(' ', table_name, coalesce(day::text, '-'), ${POSITION_SQL}, unlisted_rows, max_rows, remaining_rows, state)
    from etl.withdrawals where exchange = $1 and unlisted_rows > 0`;
const REJECTS_SQL = `select r.operation, r.from_date::text as from, r.to_date::text as to, r.record, r.position, r.resolved_at is null as open,
    ${isoSql('r.last_seen_at', 'MS')} as "lastSeen", w.variant, w.instruments
  from etl.rejects r join etl.windows w on w.id = r.window_id where r.exchange = $1`;

/** Responses of which it is not known what they said: the comparison leaves them out. */
const UNKNOWN_SQL = `select 'unknown ' || operation as text from etl.responses where exchange = $1 and said is null and entries is null`;

interface StoredReject {
  readonly operation: string;
  readonly from: string;
  readonly to: string;
  readonly record: Record<string, unknown>;
  readonly position: number;
  readonly open: boolean;
  readonly lastSeen: string;
  readonly variant: string;
  readonly instruments: readonly string[];
}

/** What is stored of an exchange. */
async function storedIn(
  { context, exchange }: FreshExchange,
  kinds: readonly Kind[],
  copies: Map<string, Copy>,
): Promise<Stored> {
  const { pool, drizzle } = context.db;
  const result = await pool.query<{ topic: Topic; text: string }>({
    name: `stored ${kinds.join()}`,
    text: storedSql(kinds.flatMap((kind) => kindOf(kind).tables)),
    values: [exchange],
  });
  const texts = (topic: Topic) =>
    result.rows.flatMap((row) => (row.topic === topic ? [row.text] : [])).sort();
  const rejects = (await pool.query<StoredReject>(REJECTS_SQL, [exchange])).rows.map((row) => ({
    ...row,
    name: rejectText({
      ...row,
      days: row.operation === KINDS.categories.operation ? '' : `${row.from} ${row.to}`,
      instruments: row.operation === KINDS.ratios.operation ? row.instruments : [],
    }),
  }));
  const open = rejects.filter((reject) => reject.open);
  const openNames = open.map(({ name }) => name);
  const suspicious = await countSuspiciousWindows(drizzle);
  const operations = kinds.map((kind) => kindOf(kind).operation);
  const differing = await differingCoverage(drizzle, operations, [exchange]);
  const unknown = await pool.query<{ text: string }>(UNKNOWN_SQL, [exchange]);
  const notFollowed: string[] = [];
  for (const { name } of kinds.flatMap((kind) => kindOf(kind).tables)) {
    const copy = copies.get(name) ?? emptyCopy();
    copies.set(name, copy);
    const { key = [] } = tables.find((table) => table.name === name) ?? {};
    for (const text of await follow(pool, { table: name, key, exchange }, copy)) notFollowed.push(text);
  }
  return {
    rows: texts('rows'),
    revisions: texts('revisions'),
    states: texts('states'),
    records: texts('records'),
    diagnostics: texts('diagnostics'),
    withdrawals: texts('withdrawals'),
    openRejects: openNames.toSorted(),
    resolvedRejects: [
      ...new Set(rejects.map(({ name }) => name).filter((name) => !openNames.includes(name))),
    ].sort(),
    sightings: open.map(({ name, lastSeen, position }) => `${name} ${lastSeen} ${position}`).sort(),
    suspicious: suspicious
      .filter((suspicion) => suspicion.exchange === exchange)
      .map(({ operation, windows }) => `${operation} ${windows}`)
      .sort(),
    notTheSum: [
      ...differing.map(
        (entry) => `${entry.operation} ${entry.day} ${entry.instrument} ${entry.registers.join()}`,
      ),
      ...unknown.rows.map(({ text }) => text),
    ],
    notFollowed,
  };
}

/** Where what is stored deviates from the model. */
export interface Deviation {
  readonly topic: Topic;
  /** After which step. */
  readonly step: number;
  readonly missing: readonly string[];
  readonly unexpected: readonly string[];
}

/** Does what the steps say, and compares what is stored with the model after each. @returns the first deviation of each topic. */
export async function run(target: FreshExchange, steps: readonly Step[]): Promise<Deviation[]> {
  const positions = positionsOf(
    steps.flatMap((step) => (step.act === 'load' ? [step.response] : [])),
    Number(target.exchange.slice(1)),
  );
  const kinds = [...new Set([...positions.keys()].map(({ kind }) => kind))].sort();
  const loaded = new Map<Response, string>();
  const accepted: Accepted[] = [];
  const deviations = new Map<Topic, Deviation>();
  const copies = new Map<string, Copy>();
  const newest = () => [...loaded.values()].sort().at(-1) ?? '';
  // Revisions are those of the order of the responses only as long as that is the order of the loads.
  let inOrder = true;
  for (let at = 0; at < steps.length; at += 1) {
    const step = steps[at] as Step;
    if (step.act === 'load') {
      const together = [step];
      for (let next = steps[at + 1]; next?.act === 'load' && next.together; next = steps[at + 1]) {
        together.push(next);
        at += 1;
      }
      inOrder &&= together.length === 1 && (positions.get(step.response) ?? '') >= newest();
      for (const { response } of together) loaded.set(response, positions.get(response) ?? '');
      const done = await Promise.allSettled(
        together.map(({ response, killed }) => load(target, response, positions.get(response) ?? '', killed)),
      );
      for (const outcome of done) if (outcome.status === 'rejected') throw outcome.reason;
      for (const { response, again } of together)
        if (again) await load(target, response, positions.get(response) ?? '');
    } else if (step.act === 'accept') {
      const withdrawal = await accept(target, step.which);
      if (withdrawal === null) continue;
      inOrder &&= withdrawal.position === newest();
      accepted.push(withdrawal);
    } else {
      if (loaded.size === 0) continue;
      if (step.act === 'empty') {
        await empty(target, kinds);
        copies.clear();
        inOrder = true;
      }
      await replay(target.context, { exchanges: [target.exchange] });
    }
    const model = fold(loaded, accepted);
    const stored = await storedIn(target, kinds, copies);
    for (const topic of Object.keys(model) as Topic[]) {
      if (deviations.has(topic) || (topic === 'revisions' && !inOrder)) continue;
      const missing = without(model[topic], stored[topic]);
      const unexpected = without(stored[topic], model[topic]);
      if (missing.length + unexpected.length > 0)
        deviations.set(topic, { topic, step: at, missing, unexpected });
    }
  }
  return [...deviations.values()];
}

/** The texts of a list that another one lacks, each as often as it does. */
function without(list: readonly string[], other: readonly string[]): string[] {
  const left = [...other];
  return list.filter((text) => {
    const at = left.indexOf(text);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}
