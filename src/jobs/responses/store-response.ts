import type { Pair } from '../../core/exchanges.ts';
import type { Position } from '../../core/position.ts';
import type { FoldSettings } from '../../load/fold/fold.ts';
import { loadWindow } from '../../load/load-window.ts';
import type { ResponseOfWindow } from '../../load/window-load.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import type { ResponseToKeep } from '../../state/responses/responses.ts';
import type { Context } from '../context.ts';
import { resolveConflicts } from './conflicting-records.ts';
import { createResponseReader } from './read-response.ts';
import type { CoveredWindow } from './response-coverage.ts';
import { type CallTime, daysOfResponse } from './response-days.ts';
import { type Outcome, storablePart } from './response-outcome.ts';
import type { ReadResponse } from './session-response.ts';
import { noteTradingDays } from './sync-sessions.ts';

/** A window with its response, which has been read. */
interface ReceivedWindow extends ReadResponse {
  readonly window: CoveredWindow & Pair & { readonly id: number; readonly runId: number };
  /** Where the response stands in the order of responses. */
  readonly position: Position;
  readonly positionAmongFiles?: ResponseOfWindow['positionAmongFiles'];
  /** Time of the call in epoch milliseconds: it decides what an empty response means. */
  readonly calledAt: number;
  /** Size of the body as it was sent. */
  readonly bytes: number;
  /** From `digestResponse`, if the response has just come from the source. */
  readonly digest?: string | undefined;
  /** The response as it is noted, and kept for replay. */
  readonly response: ResponseToKeep;
  /** Reads kept responses to fold them; of a file, the function that has read those that it is compared with. */
  readonly readKept?: ReturnType<typeof createResponseReader>;
  /** True if it was computed from stored data. Then it may withdraw any number of rows. */
  readonly trusted?: boolean;
}

/** A response that was stored, the state in which its window ended, and why. */
type StoredResponse = NonNullable<Awaited<ReturnType<typeof loadWindow>>> & { readonly outcome: Outcome };

/**
 * Stores a response: its rows, rejects and coverage, and the end of its window. Kept responses are treated like those
 * just fetched.
 *
 * @returns null if the window had already ended.
 */
export async function storeResponse(
  context: Context,
  received: ReceivedWindow,
): Promise<StoredResponse | null> {
  const { window, calledAt, response, readKept, trusted } = received;
  const reading = await prepareResponse(context, window, received, { calledAt, calledOn: response.calledOn });
  const stored = await loadWindow(context.db, {
    ...describeResponse(received),
    ...reading,
    response,
    ...buildFoldSettings(context, readKept),
    ...(trusted === true && { maxWithdrawShare: 1 }),
  });
  return stored && { ...stored, outcome: reading.outcome };
}

/** A response as it is stored, read or not. */
export function describeResponse({
  window,
  calledAt,
  position,
  positionAmongFiles,
  bytes,
  digest,
}: Omit<ReceivedWindow, 'extracted' | 'response'>): ResponseOfWindow {
  const { id: windowId, runId, operation, exchange, from, to } = window;
  const requested = { windowId, runId, operation, exchange, from, to };
  return { ...requested, position, positionAmongFiles, fetchedAt: new Date(calledAt), bytes, digest };
}

/** How kept responses are read to apply them again, and judged: with the code and the settings of today. */
export const buildFoldSettings = (context: Context, read = createResponseReader(context)): FoldSettings => ({
  maxWithdrawShare: context.config.EOD_MAX_WITHDRAW_SHARE,
  readAgain: async (response) => {
    const call = { calledOn: response.calledOn, calledAt: response.fetchedAt.getTime() };
    return prepareResponse(context, response, await read(response), call);
  },
});

/** What of a response is loaded, and what it says of its days. Stores the trading days that its prices show. */
async function prepareResponse(
  context: Context,
  window: CoveredWindow & Pair,
  { extracted, preserved }: ReadResponse,
  call: CallTime,
) {
  const read = resolveConflicts(extracted, dataSetNamed(window.operation).shapes);
  const { outcome, extracted: storable, warnings } = storablePart(context, read, call.calledAt);
  await noteTradingDays(context, window, storable);
  const days = daysOfResponse(context, window, { extracted: storable, ...call });
  const { batches, rejects, doubts } = storable;
  return {
    ...days,
    batches,
    rejects,
    doubts,
    outcome,
    preserved,
    warnings: [...read.warnings, ...warnings],
  };
}
