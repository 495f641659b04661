import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Row, TableDefinition } from '../../operations/table.ts';
import { encodeRows } from './copy.ts';
import { keepStored, type Standing } from './keep-stored.ts';
import { mergeSql } from './merge-sql.ts';

/** Rows an answer speaks for in full: those it does not list are withdrawn. */
export interface FullSet {
  readonly table: TableDefinition;
  readonly exchange: string;
  /** First and last day; null where the answer is the exchange's whole set, whatever the day. */
  readonly days: { readonly from: string; readonly to: string } | null;
  /** May it list nothing of a session (of the exchange, where there are no days)? Else that is not believed. */
  readonly mayBeEmpty: boolean;
}

/** What became of one table's records. */
export interface Merged {
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly stale: number;
  readonly duplicate: number;
  /** Rows that were not there before, or not any more. */
  readonly arrived: number;
  readonly withdrawn: number;
  /** Why nothing was withdrawn although rows are missing, or null. */
  readonly suspicious: string | null;
}

/** So many missing rows are always believed, whatever the share (issue: "at least 5 rows"). */
const ALWAYS_BELIEVED = 5;

export interface MergeInput {
  readonly table: TableDefinition;
  readonly rows: readonly Row[];
  readonly runId: number;
  readonly fullSet: FullSet | undefined;
  /** Largest share of the rows present that may be withdrawn, as a fraction. */
  readonly maxWithdrawShare: number;
  /** Stored values that stand, because the input knows less; none when not given. */
  readonly standing?: Standing | undefined;
}

/**
 * COPY into the staging table, one statement that touches only rows that differ, one that marks
 * rows no longer listed. To be called inside a transaction, after `ensureStage`.
 */
export async function mergeTable(client: PoolClient, input: MergeInput): Promise<Merged> {
  const { table, rows, fullSet } = input;
  const sql = mergeSql(table);
  if (rows.length > 0) {
    await pipeline(Readable.from(encodeRows(table, rows)), client.query(copyFrom(sql.copy)));
  }
  const exchange = fullSet?.exchange ?? null;
  await client.query(sql.lock, [exchange, fullSet?.days?.from ?? null, fullSet?.days?.to ?? null]);
  if (rows.length > 0 && input.standing !== undefined) {
    await keepStored(client, table, input.standing, daySpan(table, rows));
  }
  const merged = rows.length === 0 ? NOTHING : await merge(client, input);
  return fullSet === undefined
    ? merged
    : { ...merged, ...(await withdraw(client, input, fullSet, merged.arrived)) };
}

const NOTHING: Merged = {
  inserted: 0,
  updated: 0,
  unchanged: 0,
  stale: 0,
  duplicate: 0,
  arrived: 0,
  withdrawn: 0,
  suspicious: null,
};

async function merge(client: PoolClient, { table, runId }: MergeInput): Promise<Merged> {
  const result = await client.query<Record<string, string>>({
    name: `merge_${table.name}`,
    text: mergeSql(table).merge,
    values: [runId],
  });
  const count = (name: string) => Number(result.rows[0]?.[name]);
  return {
    ...NOTHING,
    inserted: count('inserted'),
    updated: count('updated'),
    unchanged: count('unchanged'),
    stale: count('stale'),
    duplicate: count('duplicate'),
    arrived: count('arrived'),
  };
}

async function withdraw(
  client: PoolClient,
  { table, runId, maxWithdrawShare }: MergeInput,
  { exchange, days, mayBeEmpty }: FullSet,
  arrived: number,
): Promise<Pick<Merged, 'withdrawn' | 'suspicious'>> {
  const result = await client.query<Withdrawal>({
    name: `withdraw_${table.name}`,
    text: mergeSql(table).withdraw,
    values: [
      ...[runId, exchange, maxWithdrawShare, ALWAYS_BELIEVED, arrived, mayBeEmpty],
      ...(table.dateColumn === null ? [] : [days?.from, days?.to]),
    ],
  });
  const row = result.rows[0] as Withdrawal;
  return { withdrawn: Number(row.withdrawn), suspicious: row.allowed ? null : suspicionOf(table, row) };
}

interface Withdrawal {
  readonly gone: string;
  readonly present: string;
  /** A session that always has rows would have none left. */
  readonly emptied: boolean;
  readonly allowed: boolean;
  readonly withdrawn: string;
}

function suspicionOf({ name, dateColumn }: TableDefinition, { gone, present, emptied }: Withdrawal): string {
  const missing = `${gone} of ${present} rows of market.${name} were not listed any more`;
  if (!emptied) return `${missing}; more than may be withdrawn (EOD_MAX_WITHDRAW_SHARE), so none was`;
  return `${missing}, ${dateColumn === null ? 'and no other was' : 'and no other of their day was'}; that is not believed, so none was withdrawn`;
}

/** First and last day on which a load may have written rows; empty texts where the table has no days. */
export function touchedDays(
  table: TableDefinition,
  rows: readonly Row[],
  fullSet: FullSet | undefined,
): [from: string, to: string] {
  const days = rows.length === 0 ? [] : daySpan(table, rows);
  if (table.dateColumn !== null && fullSet?.days) days.push(fullSet.days.from, fullSet.days.to);
  days.sort();
  return [days[0] ?? '', days.at(-1) ?? ''];
}

/** First and last day of the rows, where the table has a date column; dates sort as text. */
function daySpan({ dateColumn }: TableDefinition, rows: readonly Row[]): string[] {
  if (dateColumn === null) return [];
  let first = '9999-12-31';
  let last = '0001-01-01';
  for (const row of rows) {
    const day = row[dateColumn] as string;
    if (day < first) first = day;
    if (day > last) last = day;
  }
  return [first, last];
}

const staged = new WeakMap<PoolClient, Set<string>>();

/** The staging table of this connection; made outside the transaction, so that it outlives it. */
export async function ensureStage(client: PoolClient, table: TableDefinition): Promise<void> {
  let known = staged.get(client);
  if (known === undefined) {
    known = new Set();
    staged.set(client, known);
  }
  if (known.has(table.name)) return;
  await client.query(mergeSql(table).createStage);
  known.add(table.name);
}
