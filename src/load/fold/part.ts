import { type DayRange, eachDay } from '../../core/days.ts';
import type { TableDefinition } from '../../declaration/table.ts';
import { listedInFull, namesFilling } from '../../operations/registry.ts';
import { type Folding, type ReadKept, tableReader } from './fold.ts';

/** The part of some tables of an exchange that one fold is about. */
export interface Part {
  readonly tables: readonly TableDefinition[];
  readonly exchange: string;
  /** The days, if responses list days of these tables in full. */
  readonly days: DayRange | null;
  /** Responses about these instruments only, in upper case; null: about any. */
  readonly instruments: readonly string[] | null;
}

/** The condition that responses are about a part. */
export const scopeOfPart = ({ tables, exchange, days, instruments }: Part) => ({
  operations: namesFilling(tables),
  exchange,
  days,
  instruments,
});

/** How kept responses are read and judged. */
export interface Judging {
  readonly read: ReadKept;
  /** Largest share of the rows present that may be withdrawn, as a fraction (EOD_MAX_WITHDRAW_SHARE). */
  readonly maxWithdrawShare: number;
}

/** What of a table is in a part: its days about which there are responses, or its instruments. */
export function partOfTable(
  { exchange, days, instruments }: Part,
  table: TableDefinition,
  responses: readonly DayRange[],
) {
  const isAbout = (day: string) => responses.some(({ from, to }) => from <= day && day <= to);
  const hasDays = days !== null && listedInFull(table) === 'days';
  return { table, exchange, days: hasDays ? eachDay(days.from, days.to).filter(isAbout) : null, instruments };
}

/**
 * What is folded of a table in a part.
 *
 * @param responses those about the part, of all of its tables, in their order.
 */
export function buildFolding(
  part: Part,
  table: TableDefinition,
  responses: readonly (Folding['responses'][number] & DayRange & { readonly operation: string })[],
  { read, maxWithdrawShare }: Judging,
): Folding {
  const filling = namesFilling([table]);
  return {
    ...partOfTable(part, table, responses),
    maxWithdrawShare,
    responses: responses.filter(({ operation }) => filling.includes(operation)),
    read: tableReader(read, table),
  };
}
