import { setTimeout as sleep } from 'node:timers/promises';
import type { Calendar } from '../../calendar/calendar.ts';
import type { Config } from '../../core/config.ts';
import { type ErrorKind, messageOf, PipelineError } from '../../core/errors.ts';
import { keyRedactor } from '../../extract/build-request.ts';
import { openResponse } from '../../extract/envelope.ts';
import type { Extracted, Limitation, Source, VariedExchange } from '../../extract/index.ts';
import type { Database } from '../../load/database/database.ts';
import { isByInstrument } from '../../operations/operation.ts';
import type { Cli } from '../cli.ts';
import { countedCall, storeEvidence } from '../counted-call.ts';
import { historyCall, type PlannedCall, type ProbedDays } from './planned-calls.ts';

/** A record as it was sent. */
export type SentRecord = Readonly<Record<string, unknown>>;

/** A call that was made, and what came back. */
export interface MadeCall {
  readonly call: PlannedCall;
  /** Null if no complete response has arrived. */
  readonly response: VariedExchange | null;
  /** Why it has no data; null if it has, or says that there is none. */
  readonly problem: PipelineError | null;
  readonly records: readonly SentRecord[];
  readonly extracted: Extracted | null;
  readonly seconds: number;
}

export type Made = Awaited<ReturnType<typeof makeCalls>>;

/** How the source is called. */
interface Way {
  readonly config: Config;
  readonly source: Source;
  readonly planned: readonly PlannedCall[];
}

interface Probe extends Way {
  readonly cli: Cli;
  readonly db: Database;
  /** The same with the other names of days (EOD_DATE_DIALECT). */
  readonly inOtherDialect: () => Promise<Way>;
  readonly calendar: Calendar;
  readonly days: ProbedDays;
  /** At most so many calls. */
  readonly most: number;
}

/** What ends it: no further call would be served. */
const FINAL: Partial<Record<ErrorKind, string>> = {
  credential: 'the source refuses the access key',
  monthly_quota: 'the monthly quota is used up',
  hourly_quota: 'the quota of this hour is used up',
  wrong_address: 'the address leads to another kind of server',
};

/** After so many calls in a row without a response it ends. */
const MOST_FAILURES = 3;

/** No call begins later than this, because somebody is waiting. */
const LONGEST_MS = 300_000;

const NOT_READY_MS = 3_000;
const NOT_READY_TRIES = 3;

/** Days back that are tried one after the other, until one is not served. */
const REACHES = [30, 365, 1_825, 3_650];

/** Whether the source refuses the request itself, rather than the key, or fails. */
const isRefusal = ({ response, problem }: MadeCall) =>
  response !== null &&
  (problem?.kind === 'bad_request' || problem?.kind === 'unknown_diagnostic' || response.status === 400);

/** What the key may not request, by what was refused. */
class Rights {
  readonly #operations = new Set<string>();
  /** An operation with an exchange. */
  readonly #pairs = new Set<string>();
  /** Refused for some operation: tried last for others. */
  readonly #exchanges = new Set<string>();
  readonly #instruments = new Set<string>();

  note({ call, problem }: MadeCall): void {
    const { operation, requested } = call;
    if (problem?.kind === 'operation_blocked') this.#operations.add(operation.name);
    if (problem?.kind === 'exchange_blocked') {
      this.#pairs.add(`${operation.name} ${requested.exchange}`);
      this.#exchanges.add(requested.exchange);
    }
    if (problem?.kind === 'instrument_blocked')
      for (const one of requested.instruments) this.#instruments.add(one);
  }

  /** The call as the key may make it, in another exchange or without the instrument; null if it may not. */
  fitting(call: PlannedCall): PlannedCall | null {
    const { operation, requested, otherExchanges } = call;
    if (this.#operations.has(operation.name)) return null;
    const exchanges = [requested.exchange, ...otherExchanges].filter(
      (one) => !this.#pairs.has(`${operation.name} ${one}`),
    );
    const exchange = exchanges.find((one) => !this.#exchanges.has(one)) ?? exchanges[0];
    const instruments = requested.instruments.filter((one) => !this.#instruments.has(one));
    const lacksIts = instruments.length < requested.instruments.length && isByInstrument(operation);
    if (exchange === undefined || lacksIts) return null;
    return { ...call, requested: { ...requested, exchange, instruments } };
  }
}

/**
 * Makes the calls one after the other, and ends with what it has.
 *
 * @returns the settings with which the source responds: the days may be requested in the other dialect than the one set;
 *   how many calls were counted, which planned ones were not made, and why it ended before its plan, if it did.
 */
export async function makeCalls(probe: Probe) {
  const { cli, db, most } = probe;
  let { config, source } = probe;
  const { signal } = cli.life;
  const started = performance.now();
  const calls: MadeCall[] = [];
  const rights = new Rights();
  let counted = 0;
  let failures = 0;
  let stopped: string | null = null;
  let limitation: Limitation | null = null;
  let history: Awaited<ReturnType<typeof findHistory>> = null;

  /** Counts a call; false if none may be made any more. */
  async function begin() {
    if (counted >= most) {
      stopped = `${most} calls were made, as many as allowed`;
    } else if (performance.now() - started > LONGEST_MS) {
      stopped = `the source is slow: ${counted} calls took ${Math.round((performance.now() - started) / 1000)} s`;
    } else {
      const callLimit = await countedCall(cli, config, db);
      if (callLimit === null) stopped = 'the calls of this hour are used up (EOD_CALLS_PER_HOUR)';
      else counted += 1;
      return callLimit;
    }
    return null;
  }

  async function end(callLimit: Parameters<typeof storeEvidence>[1], problem: PipelineError | null) {
    await storeEvidence(db, callLimit, problem);
    const kind = problem?.kind ?? null;
    const isSilent = kind === 'network' || kind === 'timeout' || (problem?.status ?? 0) >= 500;
    failures = isSilent ? failures + 1 : 0;
    if (kind !== null && FINAL[kind] !== undefined) stopped = `${FINAL[kind]}: ${problem?.message}`;
    else if (problem?.status === 429) stopped = `the source limits the rate of calls: ${problem.message}`;
    else if (failures >= MOST_FAILURES)
      stopped = `${MOST_FAILURES} calls in a row had no response: ${problem?.message}`;
  }

  async function make(call: PlannedCall): Promise<MadeCall | null> {
    for (let tries = 1; ; tries += 1) {
      const callLimit = await begin();
      if (callLimit === null) return null;
      const made = await request(source, call, config, signal);
      await end(callLimit, made.problem);
      if (made.problem?.kind !== 'not_ready' || tries >= NOT_READY_TRIES || counted >= most) return made;
      await sleep(NOT_READY_MS, undefined, { signal });
    }
  }

  const makeFitting = async (call: PlannedCall) => {
    const fitting = rights.fitting(call);
    return fitting === null ? null : make(fitting);
  };

  /** If the first call is refused, its days may have the other names for this source. */
  async function tryOtherDialect(): Promise<PlannedCall[] | null> {
    const other = await probe.inOtherDialect();
    const own = { config, source };
    ({ config, source } = other);
    const made = other.planned[0] === undefined ? null : await make(other.planned[0]);
    if (made === null || isRefusal(made)) {
      ({ config, source } = own);
      return null;
    }
    calls.push(made);
    rights.note(made);
    return other.planned.slice(made.problem === null ? 1 : 0);
  }

  let waiting = [...probe.planned];
  try {
    while (waiting.length > 0 && stopped === null) {
      const [first] = waiting as [PlannedCall];
      const call = rights.fitting(first);
      const made = call === null ? null : await make(call);
      if (call !== null && made === null) break;
      if (made !== null) calls.push(made);
      if (made !== null && calls.length === 1 && isRefusal(made)) {
        const others = await tryOtherDialect();
        if (others !== null) {
          waiting = others;
          continue;
        }
      }
      if (made !== null) rights.note(made);
      // Where the key has no right to it, another call fits now; the same one is not made again.
      const again = rights.fitting(first);
      if (again === null || JSON.stringify(again.requested) === JSON.stringify(call?.requested))
        waiting.shift();
    }
    if (stopped === null && counted < most) {
      const callLimit = await begin();
      if (callLimit !== null) {
        const found = await source.limitation(signal).catch((error: unknown) => error);
        if (signal.aborted) throw found;
        await storeEvidence(db, callLimit, found instanceof Error ? found : null);
        if (found !== null && !(found instanceof Error)) limitation = found as Limitation;
      }
    }
    if (stopped === null && counted < most)
      history = await findHistory({ ...probe, config }, calls, makeFitting, () => counted < most);
  } catch (error) {
    if (!signal.aborted) throw error;
    stopped = 'it was interrupted';
  }
  return { config, calls, notMade: waiting, counted, stopped, limitation, history };
}

/** Makes one call, and reads its response. @throws PipelineError `aborted` */
async function request(
  source: Source,
  call: PlannedCall,
  config: Config,
  signal: AbortSignal,
): Promise<MadeCall> {
  const { operation, requested, variation } = call;
  const started = performance.now();
  const none = { call, records: [], extracted: null };
  const seconds = () => Math.round(performance.now() - started) / 1000;
  let response: VariedExchange;
  try {
    response = await source.vary(operation, requested, variation, signal);
  } catch (error) {
    if (!(error instanceof PipelineError) || error.kind === 'aborted') throw error;
    return { ...none, response: null, problem: error, seconds: seconds() };
  }
  const took = seconds();
  const { problem } = response;
  // Where no data is said with an error status, there still is none.
  if (problem !== null)
    return { ...none, response, problem: problem.kind === 'no_data' ? null : problem, seconds: took };
  try {
    const context = { operation, count: 'ignore', redact: keyRedactor(config.EOD_ACCESS_KEY ?? '') } as const;
    const { records } = openResponse(response.body, context);
    // Whichever day its records are of, they are read.
    const anyDay = { ...requested, params: { ...requested.params, trialDay: requested.to } };
    const extracted = source.read(operation, anyDay, response, 'ignore');
    const isRecord = (one: unknown): one is SentRecord => typeof one === 'object' && one !== null;
    return { call, response, problem: null, records: records.filter(isRecord), extracted, seconds: took };
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    return { ...none, response, problem: error, seconds: took };
  }
}

/**
 * Finds how far back sessions are served, in days before the requested one: first in large steps, then between the last
 * two.
 */
async function findHistory(
  { config, days, calendar }: Probe,
  calls: readonly MadeCall[],
  make: (call: PlannedCall) => Promise<MadeCall | null>,
  mayGoOn: () => boolean,
): Promise<{ readonly served: number; readonly refused: number | null } | null> {
  const of = (name: string) => calls.findLast(({ call }) => call.name === name);
  const [now, before] = [of('prices'), of('prices before')];
  if (now === undefined || now.records.length === 0 || before === undefined) return null;
  // At a trial address every day is served.
  if (JSON.stringify(now.records) === JSON.stringify(before.records)) return null;
  let served = 0;
  let refused: number | null = null;
  const steps = [...REACHES];
  while (mayGoOn()) {
    const age: number | undefined = refused === null ? steps.shift() : Math.floor((served + refused) / 2);
    if (age === undefined || age === served) break;
    const [call] = historyCall(config, days, calendar, age);
    const made = call === undefined ? null : await make(call);
    if (made === null) break;
    if (made.problem !== null && made.problem.kind !== 'range_refused') break;
    if (made.records.length > 0) served = age;
    else refused = age;
  }
  return served === 0 && refused === null ? null : { served, refused };
}

/** What went wrong, for people. */
export const problemText = (problem: PipelineError): string => `${problem.kind}: ${messageOf(problem)}`;
