import { findRowsOfNoResponse, type TableDifference, verifyPart } from '../../load/fold/verify-part.ts';
import { dataSetsFilling, tables } from '../../operations/registry.ts';
import type { ResponseFilter } from '../../state/responses/to-replay.ts';
import type { Context } from '../context.ts';
import { buildFoldSettings } from '../responses/store-response.ts';
import { divideRows } from './plan-replay.ts';

/** A stored row that is not what the kept responses say. */
interface Difference extends TableDifference {
  readonly exchange: string;
  /** Null where the table has no day. */
  readonly day: string | null;
}

interface Verification {
  /** Null if it was interrupted before anything was found that differs. */
  readonly isEqual: boolean | null;
  /** How many parts were folded. */
  readonly parts: number;
  /** Of how many. */
  readonly of: number;
  /** The first day that was not verified; null if all were. */
  readonly continueFrom: string | null;
  /** How many rows differ, and the first of them. */
  readonly differing: number;
  readonly differences: readonly Difference[];
}

/** At most this many differences are listed. */
const MOST_DIFFERENCES = 100;

/**
 * Verifies that the rows are what the kept responses say: folds them part by part, the earliest days first, and compares.
 * Writes nothing.
 *
 * @param signal ends it after a part.
 * @param onPart called after each part.
 * @throws PipelineError `unreadable` if a response cannot be read any more; `database` if one is not kept.
 */
export async function verifyRows(
  context: Context,
  filter: ResponseFilter,
  signal: AbortSignal,
  onPart: (progress: Pick<Verification, 'parts' | 'of'>) => void,
): Promise<Verification> {
  const { db } = context;
  const settings = buildFoldSettings(context);
  const parts = (await divideRows(context, filter)).sort((a, b) => (a.range.from < b.range.from ? -1 : 1));
  const differences: Difference[] = [];
  let differing = 0;
  const list = (exchange: string, some: readonly TableDifference[]) => {
    for (const difference of some.slice(0, MOST_DIFFERENCES - differences.length))
      differences.push({ ...difference, exchange, day: readDay(difference) });
  };
  let done = 0;
  for (const part of parts) {
    if (signal.aborted) break;
    const differencesOfPart = await verifyPart(db, part, settings);
    differing += differencesOfPart.length;
    list(part.exchange, differencesOfPart);
    done += 1;
    onPart({ parts: done, of: parts.length });
  }
  const operations = filter.operations;
  const verified = tables.filter(
    (table) =>
      operations === undefined || dataSetsFilling([table]).some(({ name }) => operations.includes(name)),
  );
  for (const table of signal.aborted ? [] : verified) {
    const { rows, total } = await findRowsOfNoResponse(db, table, filter, MOST_DIFFERENCES);
    differing += total;
    for (const { exchange, ...row } of rows) list(exchange, [row]);
  }
  return {
    isEqual: differing > 0 ? false : signal.aborted ? null : true,
    parts: done,
    of: parts.length,
    continueFrom: parts[done]?.range.from ?? null,
    differing,
    differences,
  };
}

function readDay({ table, key }: TableDifference): string | null {
  const { dateColumn } = tables.find(({ name }) => name === table) ?? {};
  return dateColumn ? (key[dateColumn] ?? null) : null;
}
