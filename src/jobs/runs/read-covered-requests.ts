import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { type Operation, partsOf } from '../../declaration/operation.ts';
import {
  countResponses,
  listInstrumentsCoveredEachDay,
  listResponses,
  type ResponseCount,
} from '../../state/coverage/coverage.ts';
import type { Context } from '../context.ts';
import {
  areCovered,
  type Covered,
  classifyCount,
  countsAwaited,
  markCovered,
  requestKey,
} from './covered.ts';
import type { PlanInput } from './planned-window.ts';

/** The states in which a request is covered: a day that should have records and was empty is requested again. */
const coveredStates = ({ emptyIsNormal }: Operation) =>
  emptyIsNormal ? (['loaded', 'empty', 'not_published'] as const) : (['loaded'] as const);

/** Reads which requests are covered; only of the planned days and instruments, because coverage grows every night. */
export async function readCoveredRequests({ db }: Context, input: Omit<PlanInput, 'covered'>) {
  const { operation, refetchFrom } = input;
  const { windows } = operation;
  const days =
    windows.per === 'instrument'
      ? windows.requests(input).map(({ to }) => to)
      : windows.per === 'once'
        ? [input.today]
        : partsOf(operation) === undefined
          ? input.tradingDays
          : [...input.tradingDays, input.today];
  const requested = {
    operation: operation.name,
    exchange: input.exchange,
    days: days.filter((day) => refetchFrom === null || day < refetchFrom),
    instruments: operation.request.instruments === 'none' ? [] : input.instruments,
    states: coveredStates(operation),
  };
  const covered = new Map<string, Covered>();
  const some: ResponseCount[] = [];
  for (const count of await countResponses(db.drizzle, requested)) {
    const extent = classifyCount(operation, requested.instruments.length, count);
    if (extent === 'all') covered.set(requestKey(count.day, count.variant), extent);
    if (extent === 'some') some.push(count);
  }
  for (const [key, bits] of await readCoveredInstruments(db.drizzle, operation, requested, some)) {
    covered.set(key, bits);
  }
  return covered;
}

/** How many pairs of an instrument and a day one query lists; the result has a few megabytes. */
const LISTED_PAIRS = 100_000;

/**
 * Reads the instruments for which requests are covered, where these are only some. Most often a few instruments are
 * new among thousands for which everything is covered: one query finds the latter, and only the others are listed day
 * by day.
 */
async function readCoveredInstruments(
  db: NodePgDatabase,
  operation: Operation,
  requested: Parameters<typeof listResponses>[1],
  requests: readonly ResponseCount[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  const days = [...new Set(requests.map(({ day }) => day))].sort();
  if (days.length === 0) return new Map();
  const indexes = new Map(requested.instruments.map((name, index) => [name, index]));
  const findIndexes = (names: readonly string[]) => names.flatMap((name) => indexes.get(name) ?? []);
  const always = new Map<string, Uint8Array>();
  for (const variant of new Set(requests.map((request) => request.variant))) {
    always.set(variant, new Uint8Array((indexes.size + 7) >> 3));
  }
  for (const { variant, instruments } of await listInstrumentsCoveredEachDay(db, { ...requested, days })) {
    markCovered(always.get(variant), findIndexes(instruments));
  }
  const covered = new Map(
    requests.map(({ day, variant }) => [
      requestKey(day, variant),
      Uint8Array.from(always.get(variant) ?? []),
    ]),
  );
  const countingAwaited = new Set(
    requests
      .filter((request) => countsAwaited(operation, request))
      .map(({ day, variant }) => requestKey(day, variant)),
  );
  const rest = requested.instruments.filter((_, index) =>
    [...always.values()].some((bits) => !areCovered(bits, index, index + 1)),
  );
  const atOnce = Math.max(1, Math.floor(LISTED_PAIRS / rest.length));
  for (let at = 0; rest.length > 0 && at < days.length; at += atOnce) {
    const listed = { ...requested, days: days.slice(at, at + atOnce), instruments: rest };
    for (const { day, variant, awaited, instruments } of await listResponses(db, listed)) {
      const key = requestKey(day, variant);
      if (!awaited || countingAwaited.has(key)) markCovered(covered.get(key), findIndexes(instruments));
    }
  }
  return covered;
}
