import { tables } from '../../operations/registry.ts';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { forgetFacts } from '../state/answers/facts.ts';
import { prunedUpTo } from '../state/answers/pruned.ts';
import { forgetCoverage } from '../state/coverage.ts';
import { forgetLoads, LOADS } from '../state/loads/loads.ts';
import { tablesOf } from '../state/loads/locks.ts';
import { forgetWithdrawals } from '../state/withdrawals.ts';
import { list, partsOf, quote } from './merge-sql.ts';
import { forgetObservedAliases } from './observed-aliases/observed-aliases.ts';

/** Operations that fill the same tables, and an exchange. */
interface TableGroup {
  readonly operations: readonly string[];
  readonly exchange: string;
}

/**
 * Empties the tables of these operations for an exchange, with their history and what is known about their loads, so
 * that the kept answers can be loaded as if none had been loaded before. Where answers are pruned, the tables return to
 * the state that they left instead, with the history up to it. Call it with the tables locked.
 */
export async function emptyTables(
  tx: Transaction,
  asked: TableGroup & { readonly runId: number },
): Promise<void> {
  const { client } = tx;
  const names = tablesOf(asked.operations);
  const pruned = await prunedUpTo(tx, asked);
  for (const table of tables.filter(({ name }) => names.includes(name))) {
    const { target, history, columns } = partsOf(table, { years: null });
    if (pruned === null) {
      await client.query(`delete from ${target} where exchange = $1`, [asked.exchange]);
      await client.query(`delete from ${history} where exchange = $1`, [asked.exchange]);
      continue;
    }
    const isKnown = (load: string) =>
      `exists (select from ${LOADS} l where l.id = ${load} and l.state <= $2)`;
    const values = [asked.exchange, pruned.state];
    await client.query(`delete from ${target} t where exchange = $1 and not ${isKnown('t.load_id')}`, values);
    const copied = [...columns, 'first_loaded_at', 'revision', 'run_id', 'load_id'];
    await client.query(
      `with past as (delete from ${history} h where exchange = $1 and not ${isKnown('h.replaced_by_load_id')} returning h.*)
       insert into ${target} (${list(copied)}, last_changed_at) select ${list(copied)}, valid_from from past p where ${isKnown('p.load_id')}`,
      values,
    );
  }
  await forgetObservedAliases(tx, names, asked.exchange);
  await forgetWithdrawals(tx, names, asked.exchange, pruned?.place ?? null);
  await forgetCoverage(tx, asked, pruned?.place ?? null);
  await forgetFacts(tx, asked, pruned?.place ?? null);
  await forgetLoads(tx, asked, pruned?.state ?? 0);
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
