import type { Clock } from '../../core/clock.ts';
import { dayAt, timeAt } from '../../core/days.ts';
import { MARKET_ZONE } from '../../core/exchanges.ts';
import type { Behaviour } from '../behaviour.ts';
import { Diagnostic } from '../request-query.ts';

type Counts = Record<string, number>;

/** The requests so far, without those for the sandbox's own pages. */
export interface SandboxStats {
  requests: number;
  readonly byOperation: Counts;
  /** By clock hour in India, e.g. `2026-11-20T21`. */
  readonly byHour: Counts;
  /** How often each diagnostic line was sent. */
  readonly byDiagnostic: Counts;
  /** How often each injected fault occurred. */
  readonly byFault: Counts;
}

/** A request as received, without its key. */
export interface SeenRequest {
  readonly number: number;
  readonly operation: string;
  readonly params: Readonly<Record<string, string>>;
}

const REMEMBERED_REQUESTS = 10_000;

/** The clock hour in India, e.g. `2026-11-20T21`. The hourly quota is reset at its end. */
function clockHour(clock: Clock): string {
  const seconds = Math.floor(clock.now() / 1000);
  return `${dayAt(seconds, MARKET_ZONE)}T${timeAt(seconds, MARKET_ZONE).slice(0, 2)}`;
}

/** Checks keys and their hourly quota, and whether a request is ready. */
export class AccessControl {
  readonly #behaviour: Behaviour;
  readonly #clock: Clock;
  readonly #accessKey: string | undefined;
  #hour = '';
  #callsThisHour = 0;
  #calls = 0;
  readonly #requested = new Map<string, number>();

  constructor(behaviour: Behaviour, clock: Clock, accessKey: string | undefined) {
    this.#behaviour = behaviour;
    this.#clock = clock;
    this.#accessKey = accessKey;
  }

  /**
   * Checks the key and counts the call against its quota.
   *
   * @throws Diagnostic with the line to send.
   */
  checkKey(key: string | null): void {
    if (key === null || key === '') throw new Diagnostic('Access Denied. Key unknown or empty.');
    if (this.#accessKey !== undefined && key !== this.#accessKey)
      throw new Diagnostic('Access Denied. Key not found.');
    this.#calls++;
    const { keyDiesAfter, callsPerHour } = this.#behaviour;
    if (keyDiesAfter !== undefined && this.#calls > keyDiesAfter) throw new Diagnostic('Key Expired.');
    const hour = clockHour(this.#clock);
    if (hour !== this.#hour) {
      this.#hour = hour;
      this.#callsThisHour = 0;
    }
    if (callsPerHour > 0 && this.#callsThisHour >= callsPerHour)
      throw new Diagnostic('Calls per hour are limited.');
    this.#callsThisHour++;
  }

  /**
   * Responds to the first calls of each distinct request that it is not ready.
   *
   * @throws Diagnostic with the line to send.
   */
  checkReady(request: string): void {
    if (this.#behaviour.notReady === 0) return;
    const count = (this.#requested.get(request) ?? 0) + 1;
    this.#requested.set(request, count);
    if (count <= this.#behaviour.notReady) {
      throw new Diagnostic('Authentication request received. Try request data in next moment.');
    }
  }
}

/** Counts requests and remembers the newest ones. */
export class RequestLog {
  readonly #clock: Clock;
  readonly #stats: SandboxStats = { requests: 0, byOperation: {}, byHour: {}, byDiagnostic: {}, byFault: {} };
  readonly #requests: SeenRequest[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(operation: string, search: URLSearchParams): void {
    const stats = this.#stats;
    stats.requests++;
    count(stats.byOperation, operation);
    count(stats.byHour, clockHour(this.#clock));
    const params = Object.fromEntries([...search].filter(([name]) => name !== 'accessKey'));
    this.#requests.push({ number: stats.requests, operation, params });
    if (this.#requests.length > REMEMBERED_REQUESTS) this.#requests.splice(0, REMEMBERED_REQUESTS / 10);
  }

  countDiagnostic(line: string): void {
    count(this.#stats.byDiagnostic, line);
  }

  countFault(kind: string): void {
    count(this.#stats.byFault, kind);
  }

  /** The newest requests, oldest first. */
  recent(): readonly SeenRequest[] {
    return this.#requests;
  }

  stats(): SandboxStats {
    return structuredClone(this.#stats);
  }
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}
