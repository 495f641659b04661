import { tables } from '../../operations/registry.ts';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';
import { sumCoverage } from '../state/coverage/sum-of-facts.ts';
import { insertLoad, nextLoadId } from '../state/loads/loads.ts';
import { locksOfTable, takeLocks } from '../state/loads/locks.ts';
import {
  markAccepted,
  NO_DAY,
  readWithheld,
  restartDayRows,
  writeWithdrawals,
} from '../state/withdrawals.ts';
import type { ReadAgain } from './fold/fold.ts';
import { foldIfLate } from './fold/merge-or-fold.ts';
import { ensureStage } from './merge/merge.ts';
import { mergeSql } from './merge/merge-sql.ts';

/** The result of accepting a withheld withdrawal. */
interface AcceptedWithdrawal {
  readonly id: number;
  readonly table: string;
  readonly exchange: string;
  readonly day: string | null;
  /** How many rows were withdrawn now. */
  readonly withdrawn: number;
  /** How many rows the day has left. */
  readonly left: number;
}

/**
 * Withdraws the rows that a full response no longer listed and whose withdrawal was withheld, because they were too many. From now on
 * the day is compared with the rows that it has left.
 *
 * @returns null if no withdrawal with this id is withheld.
 */
export async function acceptWithdrawal(
  database: Database,
  id: number,
  {
    by,
    ...judging
  }: { readonly by: string; readonly readAgain: ReadAgain; readonly maxWithdrawShare: number },
): Promise<AcceptedWithdrawal | null> {
  return transaction(database, async (tx) => {
    const { client } = tx;
    const found = await readWithheld(tx, id);
    const table = tables.find(({ name }) => name === found?.table);
    if (found === null || table === undefined) return null;
    const { exchange, day } = found;
    const sql = mergeSql(table, day === null ? [] : [day]);
    await ensureStage(client, table);
    // First the lock of the day, as in every load; a load that held it may have decided the withdrawal.
    await takeLocks(tx, locksOfTable(table.name, exchange, [day ?? NO_DAY]));
    const withheld = await readWithheld(tx, id);
    if (withheld === null) return null;
    const loadId = await nextLoadId(tx);
    const { runId, windowId, operation, position } = withheld;
    const fetchedAt = new Date(withheld.fetchedAt);
    const days = day === null ? null : { from: day, to: day };
    // Responses fetched later may have listed some of the rows: then all are folded again, with this withdrawal
    // accepted.
    await markAccepted(tx, id, by);
    const load = { table, exchange, runId, loadId, windowId, position, fetchedAt, ...judging };
    const folded = await foldIfLate(tx, { ...load, fullSet: { table, exchange, days, mayBeEmpty: true } });
    let gone = folded?.withdrawn;
    if (gone === undefined) {
      const keys = JSON.stringify(withheld.rows);
      const { rows } = await client.query<{ withdrawn: number }>(sql.withdrawKeys, [loadId, keys, position]);
      gone = rows[0]?.withdrawn ?? 0;
    }
    const counted = await client.query<{ rows: number }>(sql.countRows, [exchange, [day ?? NO_DAY]]);
    const left = counted.rows[0]?.rows ?? 0;
    const others = folded?.folded ?? null;
    if (folded === null || others === null)
      await restartDayRows(tx, id, { table: table.name, exchange, day, position, rows: left });
    else await writeWithdrawals(tx, { ...load, operation }, others, folded.withdrawals);
    const operations = others?.operations ?? [operation];
    await sumCoverage(tx, { operations, exchange, days });
    const written = [{ table: table.name, from: day ?? '-infinity', to: day ?? 'infinity' }];
    await insertLoad(tx, {
      loadId,
      windowId,
      position,
      fetchedAt,
      written,
      accepted: { withdrawn: gone, day },
    });
    return { id, table: table.name, exchange, day, withdrawn: gone, left };
  });
}
