import { tables } from '../operations/registry.ts';
import type { Database } from '../postgres/database.ts';
import { transaction } from '../postgres/transaction.ts';
import { sumCoverage } from '../state/coverage/sum-of-facts.ts';
import { insertLoad, nextLoadId } from '../state/loads/loads.ts';
import { locksOfTable, takeLocks } from '../state/loads/locks.ts';
import { readLoadedResponses } from '../state/responses/to-fold.ts';
import { markAccepted, NO_DAY, readWithheld, writeWithdrawals } from '../state/withdrawals.ts';
import { keptReader, type ReadAgain, settlePart } from './fold/fold.ts';
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
  {
    by,
    readAgain,
    maxWithdrawShare,
  }: { readonly by: string; readonly readAgain: ReadAgain; readonly maxWithdrawShare: number },
): Promise<AcceptedWithdrawal | null> {
  return transaction(database, async (tx) => {
    const { client } = tx;
    const withdrawal = await readWithheld(tx, id);
    const table = tables.find(({ name }) => name === withdrawal?.table);
    if (withdrawal === null || table === undefined) return null;
    const { exchange, day } = withdrawal;
    // First the lock of the day, as in every load; a load that held it may have decided the withdrawal.
    await takeLocks(tx, locksOfTable(table.name, exchange, [day ?? NO_DAY]));
    const withheld = await readWithheld(tx, id);
    if (withheld === null) return null;
    await markAccepted(tx, id, by);
    const { runId, windowId, operation, position } = withheld;
    const load = { loadId: await nextLoadId(tx), runId };
    const days = day === null ? null : { from: day, to: day };
    const part = { tables: [table], exchange, days, instruments: null };
    const scope = scopeOfPart(part);
    const judging = { read: keptReader(tx, readAgain), maxWithdrawShare };
    let withdrawn = 0;
    for (const copy of (await foldPart(tx, part, await readLoadedResponses(tx, scope), judging)).copies) {
      const settled = await settlePart(tx, copy, load);
      withdrawn += settled.withdrawn;
      if (settled.decided !== null)
        await writeWithdrawals(
          tx,
          { ...load, windowId, operation, exchange },
          settled.decided,
          settled.withdrawals,
        );
    }
    await sumCoverage(tx, { operations: scope.operations, exchange, days });
    const counted = await client.query<{ rows: number }>(
      mergeSql(table, day === null ? [] : [day]).countRows,
      [exchange, [day ?? NO_DAY]],
    );
    const written = [{ table: table.name, from: day ?? '-infinity', to: day ?? 'infinity' }];
    await insertLoad(tx, {
      loadId: load.loadId,
      windowId,
      position,
      fetchedAt: new Date(withheld.fetchedAt),
      written,
      accepted: { withdrawn, day },
    });
    return { id, table: table.name, exchange, day, withdrawn, left: counted.rows[0]?.rows ?? 0 };
  });
}
