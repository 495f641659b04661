import { namesFilling } from '../operations/registry.ts';
import type { Transaction } from '../postgres/transaction.ts';
import { writeCoverage } from '../state/coverage/coverage.ts';
import { sumCoverage } from '../state/coverage/sum-of-facts.ts';
import { writeRejects } from '../state/rejects.ts';
import { buildFact, canResolveRejects } from '../state/responses/response-facts.ts';
import { keepResponse } from '../state/responses/responses.ts';
import { type DayWithdrawal, writeWithdrawals } from '../state/withdrawals.ts';
import type { StoredTable } from './store-table.ts';
import type { Load } from './window-load.ts';

/** Keeps the response, what it said of its entries, and its rejects. */
export async function writeFacts(tx: Transaction, load: Load): Promise<void> {
  const { position, fetchedAt, coverage, response } = load;
  const suspicious = load.suspicions.length > 0;
  if (response !== undefined) {
    const fact = buildFact({ coverage, suspicious }, load);
    const noted = { position, fetchedAt, fact, resolvesRejects: canResolveRejects(load) };
    await keepResponse(tx, load.windowId, { ...response, ...noted });
  }
  await writeRejects(tx, load.exchange, [{ ...load, requested: load }]);
  await writeCoverage(tx, { ...load, suspicious });
}

/**
 * Stores what became of rows that the response does not list, and what follows for the coverage of their days.
 *
 * @returns what is withheld.
 */
export async function writeDecided(
  tx: Transaction,
  load: Load,
  stored: readonly StoredTable[],
): Promise<readonly DayWithdrawal[]> {
  let withheld: readonly DayWithdrawal[] = [];
  for (const { table, decided, withdrawals } of stored) {
    if (decided === null) continue;
    withheld = withheld.concat(await writeWithdrawals(tx, load, decided, withdrawals));
    if (withdrawals.length === 0 && !decided.isFolded) continue;
    const days = decided.days?.toSorted();
    const [from, to] = [days?.[0], days?.at(-1)];
    await sumCoverage(tx, {
      operations: namesFilling([table]),
      exchange: load.exchange,
      days: from === undefined || to === undefined ? null : { from, to },
    });
  }
  return withheld;
}
