import type { Pool } from 'pg';
import { today } from '../../core/clock.ts';
import { addDays, type DayRange, daysBetween } from '../../core/days.ts';
import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import { groupBy } from '../../core/iterables.ts';
import type { TableDefinition } from '../../declaration/table.ts';
import { hasRequestedSymbol } from '../../load/fold/fold-sql.ts';
import type { Part } from '../../load/fold/part.ts';
import { isEmptied } from '../../load/stored-values.ts';
import {
  isDataSet,
  listedInFull,
  namesFilling,
  operations,
  tableGroupOf,
  tables,
} from '../../operations/registry.ts';
import { transaction } from '../../postgres/transaction.ts';
import {
  listPairsWithResponses,
  listResponsesToReplay,
  type ResponseFilter,
  type ResponseToReplay,
} from '../../state/responses/to-replay.ts';
import { insertRun, reserveRunId, setRunRange } from '../../state/runs/runs.ts';
import { insertWindows, type PlannedWindow } from '../../state/windows/plan.ts';
import type { Context } from '../context.ts';

/** Tables of an exchange that the same data sets fill, and whose responses can be divided in the same way. */
interface TablesOfExchange {
  readonly exchange: string;
  readonly tables: readonly TableDefinition[];
  readonly dividedBy: 'days' | 'instruments' | 'nothing';
}

/** How the responses about a table can be divided into parts with no row in common. */
function dividedBy(table: TableDefinition): TablesOfExchange['dividedBy'] {
  if (listedInFull(table) === 'days') return 'days';
  return hasRequestedSymbol(table) ? 'instruments' : 'nothing';
}

/**
 * The tables that are filled by the data sets of which a response matches, and by those that share tables with them.
 */
async function tablesToReplay(
  { db }: Context,
  { operations, exchanges }: ResponseFilter,
): Promise<TablesOfExchange[]> {
  const tablesByName = new Map<string, TablesOfExchange[]>();
  for (const { operation, exchange } of await listPairsWithResponses(db.drizzle)) {
    if (!isDataSet(operation) || (exchanges !== undefined && !exchanges.includes(exchange))) continue;
    const { name, members } = tableGroupOf(operation);
    if (operations !== undefined && !members.some((member) => operations.includes(member))) continue;
    const filled = tables.filter((table) => namesFilling([table]).some((name) => members.includes(name)));
    tablesByName.set(
      `${name}|${exchange}`,
      [...groupBy(filled, dividedBy)].map(([by, ofKind]) => ({ exchange, tables: ofKind, dividedBy: by })),
    );
  }
  return [...tablesByName.values()].flat();
}

/** A part has so many bytes of responses, uncompressed, or days, unless one response has more. */
const MOST_BYTES = 20 * 1024 * 1024;
const MOST_DAYS = 92;
/** Days that are further apart are in different parts. */
const MOST_APART = 7;
const MOST_INSTRUMENTS = 200;

/** Divides the days of responses, sorted by their first days, into ranges that are folded one by one. */
function divideDays(responses: readonly Pick<ResponseToReplay, 'from' | 'to' | 'bytes'>[]): DayRange[] {
  const parts: { from: string; to: string; bytes: number }[] = [];
  for (const { from, to, bytes } of responses) {
    const last = parts.at(-1);
    if (last === undefined) parts.push({ from, to, bytes });
    else if (to <= last.to) last.bytes += bytes;
    else if (
      last.bytes + bytes > MOST_BYTES ||
      daysBetween(last.from, to) >= MOST_DAYS ||
      daysBetween(last.to, from) > MOST_APART
    ) {
      parts.push({ from: from > last.to ? from : addDays(last.to, 1), to, bytes });
    } else {
      last.to = to;
      last.bytes += bytes;
    }
  }
  return parts.map(({ from, to }) => ({ from, to }));
}

function divideInstruments(responses: readonly ResponseToReplay[]): string[][] {
  const sizes = new Map<string, number>();
  for (const { instruments, bytes } of responses) {
    for (const instrument of instruments) {
      const name = instrument.toUpperCase();
      sizes.set(name, (sizes.get(name) ?? 0) + bytes);
    }
  }
  const parts: string[][] = [];
  let size = 0;
  for (const [name, bytes] of [...sizes].sort()) {
    const last = parts.at(-1);
    if (last === undefined || size + bytes > MOST_BYTES || last.length === MOST_INSTRUMENTS) {
      parts.push([name]);
      size = bytes;
    } else {
      last.push(name);
      size += bytes;
    }
  }
  return parts;
}

/** A part, and the days that its responses are about. */
interface DividedPart extends Part {
  readonly range: DayRange;
  readonly dividedBy: TablesOfExchange['dividedBy'];
}

/** Divides the rows that follow from responses which match into parts, each of which is folded by itself. */
export async function divideRows(
  context: Context,
  filter: ResponseFilter,
  rejectsOnly = false,
): Promise<DividedPart[]> {
  const parts: DividedPart[] = [];
  for (const tablesOfExchange of await tablesToReplay(context, filter)) {
    for (const part of await planParts(context, tablesOfExchange, filter, rejectsOnly)) parts.push(part);
  }
  return parts;
}

/** The parts of some tables whose responses match. */
async function planParts(
  { db }: Context,
  { tables: some, exchange, dividedBy: by }: TablesOfExchange,
  { from, to }: ResponseFilter,
  rejectsOnly: boolean,
): Promise<DividedPart[]> {
  const group = { operations: namesFilling(some), exchange };
  const responses = await listResponsesToReplay(db.drizzle, group, { from, to }, rejectsOnly);
  const [first] = responses;
  if (first === undefined) return [];
  const part = { tables: some, exchange, dividedBy: by, days: null, instruments: null };
  if (by === 'days') return divideDays(responses).map((days) => ({ ...part, range: days, days }));
  const all = by === 'nothing' ? await listResponsesToReplay(db.drizzle, group, {}, false) : responses;
  const lastDays = all.map((response) => response.to).sort();
  const range = { from: all[0]?.from ?? first.from, to: lastDays.at(-1) ?? first.to };
  if (by === 'nothing') return [{ ...part, range }];
  return divideInstruments(responses).map((instruments) => ({ ...part, range, instruments }));
}

/** The window of a part. */
function buildPartWindow({
  tables: some,
  exchange,
  dividedBy: by,
  range,
  instruments,
}: DividedPart): PlannedWindow {
  const filling = namesFilling(some);
  return {
    operation: operations.find(({ name }) => filling.includes(name))?.name ?? filling[0] ?? '',
    exchange,
    ...range,
    instruments: instruments ?? [],
    // What it folds anew.
    params: { tables: some.map(({ name }) => name).join(), dividedBy: by },
    variant: '',
    filtered: false,
    state: 'pending',
    reason: null,
  };
}

/**
 * @throws PipelineError `usage` for an empty table whose history is not empty: somebody emptied it, and each row would get
 *   another first revision.
 */
async function checkNotEmptied(pool: Pool, { tables: some, exchange }: TablesOfExchange): Promise<void> {
  for (const table of some) {
    if (!(await isEmptied(pool, table, exchange))) continue;
    throw usageError(
      `market.${table.name} holds no row of ${exchange}, but market_history.${table.name} does: delete these rows too, and replay again`,
    );
  }
}

/**
 * Writes a run of kind `replay` with a window for each part of the tables whose responses match: it is folded anew.
 *
 * @param options.rejectsOnly only parts of responses with open rejects.
 * @returns the run's number, or null if there is nothing to replay.
 * @throws PipelineError `usage` if the rows of a table were deleted, but not its history.
 */
export async function planReplay(
  context: Context,
  filter: ResponseFilter,
  { rejectsOnly = false }: { readonly rejectsOnly?: boolean } = {},
): Promise<number | null> {
  const parts = await divideRows(context, filter, rejectsOnly);
  if (parts.length === 0) return null;
  for (const part of parts) await checkNotEmptied(context.db.pool, part);
  const runId = await reserveRunId(context.db.drizzle);
  return transaction(context.db, async (tx) => {
    const day = today(context.clock, context.config.EOD_TIMEZONE);
    const kind = 'replay';
    const request = { kind, ...filter, rejectsOnly };
    // Its range is replaced below, when its windows are known.
    const run = { id: runId, kind, requestedBy: requesterName(), request, from: day, to: day } as const;
    // An earlier try has written it, but the connection was lost before it was confirmed.
    if ((await insertRun(tx, run)) === null) return runId;
    await insertWindows(tx, runId, parts.map(buildPartWindow));
    await setRunRange(tx, runId);
    return runId;
  });
}
