import { tablesFilledBy } from '../../operations/operation.ts';
import { dataSets } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { forgetFacts } from '../state/answers/facts.ts';
import { forgetCoverage } from '../state/coverage.ts';
import { forgetLoads } from '../state/loads/loads.ts';
import { takeLocks } from '../state/loads/locks.ts';
import { forgetWithdrawals } from '../state/withdrawals.ts';
import { locksOf } from './merge.ts';
import { quote } from './merge-sql.ts';
import { forgetObservedAliases } from './observed-aliases/observed-aliases.ts';

/** Operations that fill the same tables, and an exchange. */
interface TableGroup {
  readonly operations: readonly string[];
  readonly exchange: string;
}

/** Waits for the loads into the tables of these groups that are under way; others wait until the transaction ends. */
export async function lockTables(tx: Transaction, groups: readonly TableGroup[]): Promise<void> {
  const locks = groups.flatMap(({ operations, exchange }) =>
    tablesOf(operations).flatMap((name) => locksOf({ name }, exchange, null)),
  );
  await takeLocks(tx, locks);
}

/**
 * Empties the tables of these operations for an exchange, with their history and what is known about their loads, so
 * that the kept answers can be loaded as if none had been loaded before. Call it with the tables locked.
 */
export async function emptyTables(
  tx: Transaction,
  asked: TableGroup & { readonly runId: number },
): Promise<void> {
  const { client } = tx;
  const names = tablesOf(asked.operations);
  for (const name of names) {
    await client.query(`delete from market.${quote(name)} where exchange = $1`, [asked.exchange]);
    await client.query(`delete from market_history.${quote(name)} where exchange = $1`, [asked.exchange]);
  }
  await forgetObservedAliases(tx, names, asked.exchange);
  await forgetWithdrawals(tx, names, asked.exchange);
  await forgetCoverage(tx, asked);
  await forgetFacts(tx, asked);
  await forgetLoads(tx, asked);
}

/** Frees the space of the deleted rows, because otherwise the tables would be twice as large after loading again. */
export async function vacuumTables({ pool }: Database, operations: readonly string[]): Promise<void> {
  const names = tablesOf(operations).flatMap((name) => [
    `market.${quote(name)}`,
    `market_history.${quote(name)}`,
  ]);
  // For a role that does not own the tables, Postgres only sends a notice and does nothing.
  await pool.query(`vacuum ${names.join(', ')}`);
}

/** Names of the tables that these operations fill, sorted. */
function tablesOf(operations: readonly string[]): string[] {
  const tables = new Set<TableDefinition>();
  for (const dataSet of dataSets) {
    if (!operations.includes(dataSet.name)) continue;
    for (const table of tablesFilledBy(dataSet)) tables.add(table);
  }
  return [...tables].map(({ name }) => name).sort();
}
