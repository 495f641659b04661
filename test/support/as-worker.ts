import { today } from '../../src/core/clock.ts';
import type { Position } from '../../src/core/position.ts';
import type { Operation } from '../../src/declaration/operation.ts';
import { readResponse } from '../../src/extract/index.ts';
import type { Context } from '../../src/jobs/context.ts';
import { storeResponse } from '../../src/jobs/responses/store-response.ts';
import { packBody } from '../../src/state/responses/responses.ts';
import { newWindow } from '../load/support.ts';

// Reads and stores responses as a worker does.

/** An entry and its response. */
export interface Response {
  readonly operation: Operation;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
  readonly instruments: readonly string[];
  readonly params: Readonly<Record<string, string>>;
  readonly variant: string;
  readonly filtered: boolean;
  readonly position: Position;
  readonly calledAt: number;
  /** The day of the call, if not that of `calledAt`. */
  readonly calledOn?: string;
  readonly body: Buffer;
  readonly count?: 'accept' | undefined;
}

/** Writes the window of an entry, as a plan does. */
export const openWindow = (at: Context, runId: number, response: Response): Promise<number> =>
  newWindow(at.db, runId, 'running', { ...response, operation: response.operation.name });

/** Reads the response to the entry of a window and stores it. */
export async function readAndStore(at: Context, runId: number, id: number, response: Response) {
  const { operation, exchange, from, to, instruments, params, variant, filtered, body, calledAt } = response;
  const { calledOn = today({ now: () => calledAt }, 'Asia/Kolkata') } = response;
  const requested = { exchange, from, to, instruments, params, calledOn };
  const contentType = 'application/json';
  const settings = {
    accessKey: '',
    timeZone: 'Asia/Kolkata',
    ...(response.count && { count: response.count }),
  };
  return storeResponse(at, {
    window: { ...requested, id, runId, operation: operation.name, variant, filtered },
    extracted: readResponse(operation, requested, { body, contentType, bytes: body.length }, settings),
    position: response.position,
    calledAt,
    bytes: 1,
    response: { packed: await packBody(at.db.drizzle, body), contentType, calledOn },
  });
}

/** Both: writes the window of an entry and stores the response. @returns the id of the window. */
export async function loadResponse(at: Context, runId: number, response: Response): Promise<number> {
  const id = await openWindow(at, runId, response);
  await readAndStore(at, runId, id, response);
  return id;
}
