import { dataSets } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Transaction } from '../database/transaction.ts';
import { forgetLoads } from '../state/loads.ts';
import { forgetWithdrawals } from '../state/withdrawals.ts';
import { quote } from './merge-sql.ts';
import { forgetObservedAliases } from './observed-aliases.ts';

/**
 * Empties the tables of these operations for an exchange, their history, and what is known of their loads, so
 * that the kept answers can be loaded as if none had been loaded before. Other loads of the tables wait.
 */
export async function emptyTables(
  tx: Transaction,
  asked: { readonly operations: readonly string[]; readonly exchange: string; readonly runId: number },
): Promise<void> {
  const { client } = tx;
  const tables = new Set<TableDefinition>();
  for (const { name, shapes } of dataSets) {
    if (asked.operations.includes(name)) for (const { table } of shapes) tables.add(table);
  }
  const names = [...tables].map(({ name }) => name).sort();
  for (const name of names) {
    await client.query(`lock table market.${quote(name)} in share row exclusive mode`);
  }
  for (const name of names) {
    await client.query(`delete from market.${quote(name)} where exchange = $1`, [asked.exchange]);
    await client.query(`delete from market_history.${quote(name)} where exchange = $1`, [asked.exchange]);
  }
  await forgetObservedAliases(tx, names, asked.exchange);
  await forgetWithdrawals(tx, names, asked.exchange);
  await forgetLoads(tx, asked);
}
