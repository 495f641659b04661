import { isDay } from '../../core/days.ts';
import { type Preparing, statement } from '../../postgres/prepared.ts';

// A server has room for a few thousand locks in all (max_locks_per_transaction times max_connections), and where there is
// none left, any transaction may fail. So a load about many days locks their months instead, or all days at once.

/** An advisory lock, held until the transaction ends. */
export interface Lock {
  readonly name: string;
  readonly shared: boolean;
}

/** Data sets that fill the same tables, and an exchange. */
export interface LoadGroup {
  readonly operations: readonly string[];
  readonly exchange: string;
}

/** At most so many locks for the parts of one thing: enough for 31 days in a row, their months, and what has the parts. */
const MOST = 40;

/**
 * The locks on parts of a whole, such as days of a table. Of two transactions that name the same part, one waits for the
 * other, however many parts each of them names: a transaction that locks parts also takes shared locks on their months and
 * on the whole, and one that names too many parts locks their months, or the whole, exclusively.
 *
 * @param parts days, or names of another kind, which belong to no month; null: the whole, whatever parts it has.
 */
function locksOn(whole: string, parts: Iterable<string> | null): Lock[] {
  if (parts === null) return [{ name: whole, shared: false }];
  const partNames = new Set(parts);
  if (partNames.size === 0) return [];
  const months = new Set<string>();
  let undated = 0;
  for (const partName of partNames) {
    if (isDay(partName)) months.add(partName.slice(0, 7));
    else undated += 1;
  }
  const named = (names: ReadonlySet<string>, isShared: boolean): Lock[] =>
    Array.from(names, (name) => ({ name: `${whole}|${name}`, shared: isShared }));
  const sharedWhole = { name: whole, shared: true };
  if (partNames.size + months.size < MOST)
    return [sharedWhole, ...named(months, true), ...named(partNames, false)];
  if (undated === 0 && months.size < MOST) return [sharedWhole, ...named(months, false)];
  return [{ name: whole, shared: false }];
}

const lockAll = statement<{ locks: string }, Record<string, unknown>>`
  select etl.take_locks(${'locks'}::jsonb)`;

/** Takes locks until the transaction ends; waits while others hold them. */
export async function takeLocks(tx: Preparing, locks: readonly Lock[]): Promise<void> {
  await lockAll(tx, { locks: JSON.stringify(locks) });
}

/**
 * The locks on parts of a table of `market`, days (NO_DAY if it has none) or entries; null: on all rows of the
 * exchange.
 */
export const locksOfTable = (table: string, exchange: string, parts: Iterable<string> | null): Lock[] =>
  locksOn(`eod|${table}|${exchange}`, parts);
