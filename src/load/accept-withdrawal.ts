import { tables } from '../operations/registry.ts';
import type { Database } from '../postgres/database.ts';
import { transaction } from '../postgres/transaction.ts';
import { sumCoverage } from '../state/coverage/sum-of-facts.ts';
import { insertLoads, nextLoadId } from '../state/loads/loads.ts';
import { locksOfTable, takeLocks } from '../state/loads/locks.ts';
import { readLoadedResponses } from '../state/responses/to-fold.ts';
import { markAccepted, NO_DAY, readWithheld, writeWithdrawals } from '../state/withdrawals.ts';
import { type FoldSettings, settle } from './fold/fold.ts';
import { foldPart, scopeOfPart } from './fold/part.ts';
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
 * Withdraws the rows that a full response no longer listed and whose withdrawal was withheld, because they were too many:
 * notes that it is accepted, and folds the responses of the day. From now on the day is compared with the rows that it
 * has left.
 *
 * @returns null if no withdrawal with this id is withheld.
 */
export async function acceptWithdrawal(
  database: Database,
  id: number,
  { by, ...settings }: FoldSettings & { readonly by: string },
): Promise<AcceptedWithdrawal | null> {
  return transaction(database, async (tx) => {
    const withdrawal = await readWithheld(tx, id);
    const table = tables.find(({ name }) => name === withdrawal?.table);
    if (withdrawal === null || table === undefined) return null;
    const { exchange, day } = withdrawal;
    // First the lock of the day, as in every load; a load that held it may have decided the withdrawal.
    await takeLocks(tx, locksOfTable(table.name, exchange, [day ?? NO_DAY]));
    const withheld = await readWithheld(tx, id);
    if (withheld === null) return null;
    await markAccepted(tx, id, by);
    const { windowId, position } = withheld;
    const load = { ...withheld, loadId: await nextLoadId(tx) };
    const days = day === null ? null : { from: day, to: day };
    const part = { tables: [table], exchange, days, instruments: null };
    const scope = scopeOfPart(part);
    let withdrawn = 0;
    for (const copy of (await foldPart(tx, part, await readLoadedResponses(tx, scope), settings)).copies) {
      const settled = await settle(tx, copy, load);
      withdrawn += settled.withdrawn;
      if (settled.decided !== null) await writeWithdrawals(tx, load, settled.decided);
    }
    await sumCoverage(tx, { operations: scope.operations, exchange, days });
    const counted = await tx.client.query<{ rows: number }>(
      mergeSql(table, day === null ? [] : [day]).countRows,
      [exchange, [day ?? NO_DAY]],
    );
    const written = [{ table: table.name, from: day ?? '-infinity', to: day ?? 'infinity' }];
    const { loadId, fetchedAt } = load;
    const newLoad = { loadId, position, fetchedAt, written, counts: { withdrawn }, requested: days ?? {} };
    await insertLoads(tx, windowId, [newLoad]);
    return { id, table: table.name, exchange, day, withdrawn, left: counted.rows[0]?.rows ?? 0 };
  });
}
