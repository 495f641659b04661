import { spanDays } from '../core/days.ts';
import { namesFilling } from '../operations/registry.ts';
import type { Transaction } from '../postgres/transaction.ts';
import { writeCoverage } from '../state/coverage/coverage.ts';
import { sumCoverage } from '../state/coverage/sum-of-facts.ts';
import { writeRejects } from '../state/rejects.ts';
import { buildFact } from '../state/responses/response-facts.ts';
import { keepResponse } from '../state/responses/responses.ts';
import { type DayWithdrawal, type DecidedDays, writeWithdrawals } from '../state/withdrawals.ts';
import type { Load } from './window-load.ts';

/** Keeps the response, what it said of its entries, and its rejects. */
export async function writeFacts(tx: Transaction, load: Load): Promise<void> {
  const { position, fetchedAt, response } = load;
  const fact = buildFact(load, load);
  if (response !== undefined)
    await keepResponse(tx, load.windowId, { ...response, position, fetchedAt, fact });
  await writeRejects(tx, load.exchange, [load]);
  await writeCoverage(tx, { ...load, suspicious: fact.isSuspicious === true });
}

/**
 * Stores what became of rows that the response does not list, and what follows for the coverage of their days.
 *
 * @returns what is withheld.
 */
export async function writeDecided(
  tx: Transaction,
  load: Load,
  decidedDays: readonly DecidedDays[],
): Promise<readonly DayWithdrawal[]> {
  let withheld: readonly DayWithdrawal[] = [];
  for (const decided of decidedDays) {
    const { table, days, isFolded, withdrawals } = decided;
    withheld = withheld.concat(await writeWithdrawals(tx, load, decided));
    if (withdrawals.length === 0 && !isFolded) continue;
    const { exchange } = load;
    await sumCoverage(tx, { operations: namesFilling([table]), exchange, days: spanDays(days ?? []) });
  }
  return withheld;
}
