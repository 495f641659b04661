import fc from 'fast-check';
import { today } from '../../src/core/clock.ts';
import type { Position } from '../../src/core/position.ts';
import { readResponse } from '../../src/extract/index.ts';
import type { Context } from '../../src/jobs/context.ts';
import { storeResponse } from '../../src/jobs/responses/store-response.ts';
import { packBody } from '../../src/load/state/responses/responses.ts';
import type { Operation } from '../../src/operations/operation.ts';

// What tests of loads in any order draw their responses from.

export const DAYS = ['2025-08-19', '2025-08-20', '2025-08-21'] as const;
export const SYMBOLS = 14;

/**
 * Which symbols a response lacks, what it says of the others, and how many records it repeats.
 *
 * @param savedTimes between how many times at which a record was saved is chosen.
 */
export const contentOf = (savedTimes: number) => ({
  missing: fc.oneof(
    fc.uniqueArray(fc.nat(SYMBOLS - 1), { maxLength: 4 }),
    fc.uniqueArray(fc.nat(SYMBOLS - 1), { maxLength: 9 }),
    fc.constant(Array.from({ length: SYMBOLS }, (_, at) => at)),
  ),
  cells: fc.array(fc.record({ saved: fc.nat(savedTimes - 1), value: fc.nat(2) }), {
    minLength: SYMBOLS,
    maxLength: SYMBOLS,
  }),
  twice: fc.constantFrom(0, 0, 1, 3),
});

/** SQL that empties the tables named, their history, and what is known of loads. */
export function truncateSql(names: readonly string[]): string {
  const both = names.flatMap((name) => [`market.${name}`, `market_history.${name}`]);
  return `truncate ${both.join(', ')}, etl.loads, etl.day_rows, etl.withdrawals, etl.observed_aliases, etl.rejected_records,
    etl.responses, etl.response_layouts, etl.response_bodies, etl.coverage, etl.past_begins`;
}

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
  readonly body: Buffer;
}

/** Writes the window of an entry, as a plan does. */
export async function openWindow(at: Context, runId: number, response: Response): Promise<number> {
  const { operation, exchange, from, to, instruments, params, variant, filtered } = response;
  const found = await at.db.pool.query<{ id: number }>(
    `insert into etl.windows (run_id, operation, exchange, from_date, to_date, instruments, params, variant, is_filtered, state)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'running') returning id::int`,
    [runId, operation.name, exchange, from, to, instruments, params, variant, filtered],
  );
  return found.rows[0]?.id ?? 0;
}

/** Reads the response to the entry of a window and stores it, as a worker does. */
export async function responseWindow(
  at: Context,
  runId: number,
  id: number,
  response: Response,
): Promise<void> {
  const { operation, exchange, from, to, instruments, params, variant, filtered, body, calledAt } = response;
  const calledOn = today({ now: () => calledAt }, 'Asia/Kolkata');
  const requested = { exchange, from, to, instruments, params, calledOn };
  const contentType = 'application/json';
  await storeResponse(at, {
    window: { ...requested, id, runId, operation: operation.name, variant, filtered },
    extracted: readResponse(
      operation,
      requested,
      { body, contentType, bytes: body.length },
      { accessKey: '', timeZone: 'Asia/Kolkata' },
    ),
    position: response.position,
    calledAt,
    bytes: 1,
    response: { packed: await packBody(at.db.drizzle, body), contentType, calledOn },
  });
}

/** Both: makes a request and stores its response. */
export async function loadResponse(at: Context, runId: number, response: Response): Promise<void> {
  await responseWindow(at, runId, await openWindow(at, runId, response), response);
}
