import { type DayRange, eachDay } from '../../core/days.ts';
import type { TableDefinition } from '../../declaration/table.ts';
import { listedInFull, namesFilling } from '../../operations/registry.ts';
import type { Transaction } from '../../postgres/transaction.ts';
import type { ResponseSaid } from '../../state/responses/response-facts.ts';
import { ensureStage } from '../merge/merge.ts';
import {
  type Copy,
  createCopy,
  type FoldedResponse,
  type FoldSettings,
  partAbout,
  readKept,
} from './fold.ts';

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
 * Folds the rows of a part: creates a copy of it for each of its tables, and applies the responses in their order. Each
 * is read once, and forgotten once it is applied.
 *
 * @param responses those about the part, of all of its tables, in their order.
 * @returns the copies, and the responses with what they say.
 */
export async function foldPart<Response extends FoldedResponse & DayRange & { readonly operation: string }>(
  tx: Transaction,
  part: Part,
  responses: readonly Response[],
  settings: FoldSettings,
): Promise<{
  readonly copies: readonly Copy[];
  readonly responses: readonly (Response & { readonly reading: ResponseSaid })[];
}> {
  const copies: Copy[] = [];
  for (const table of part.tables) {
    await ensureStage(tx.client, table);
    copies.push(await createCopy(tx, partOfTable(part, table, responses), settings.maxWithdrawShare));
  }
  const readResponses: (Response & { readonly reading: ResponseSaid })[] = [];
  for (const response of responses) {
    const { batches, fullSets, preserved, ...reading } = await readKept(tx, response.responseId, settings);
    for (const copy of copies)
      if (namesFilling([copy.table]).includes(response.operation))
        await copy.apply(response, partAbout({ batches, fullSets, preserved }, copy.table));
    readResponses.push({ ...response, reading });
  }
  return { copies, responses: readResponses };
}
