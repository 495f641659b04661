import type { Clock } from '../../core/clock.ts';
import { dayAt, timeAt } from '../../core/days.ts';
import { MARKET_ZONE } from '../../core/exchanges.ts';
import type { Behaviour } from '../behaviour.ts';
import { Diagnostic } from '../diagnostic.ts';

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
export function createAccessControl(behaviour: Behaviour, clock: Clock, accessKey: string | undefined) {
  const { keyDiesAfter, callsPerHour, notReady } = behaviour;
  let hour = '';
  let callsThisHour = 0;
  let calls = 0;
  const requested: Counts = {};
  return {
    /**
     * Checks the key and counts the call against its quota.
     *
     * @throws Diagnostic with the line to send.
     */
    checkKey(key: string | null): void {
      if (key === null || key === '') throw new Diagnostic('Access Denied. Key unknown or empty.');
      if (accessKey !== undefined && key !== accessKey) throw new Diagnostic('Access Denied. Key not found.');
      calls += 1;
      if (keyDiesAfter !== undefined && calls > keyDiesAfter) throw new Diagnostic('Key Expired.');
      const now = clockHour(clock);
      if (now !== hour) [hour, callsThisHour] = [now, 0];
      if (callsPerHour > 0 && callsThisHour >= callsPerHour)
        throw new Diagnostic('Calls per hour are limited.');
      callsThisHour += 1;
    },
    /**
     * Responds to the first calls of each distinct request that it is not ready.
     *
     * @throws Diagnostic with the line to send.
     */
    checkReady(request: string): void {
      if (notReady > 0 && count(requested, request) <= notReady)
        throw new Diagnostic('Authentication request received. Try request data in next moment.');
    },
  };
}

/** Counts requests and remembers the newest ones. */
export function createRequestLog(clock: Clock) {
  const stats: SandboxStats = { requests: 0, byOperation: {}, byHour: {}, byDiagnostic: {}, byFault: {} };
  const requests: SeenRequest[] = [];
  return {
    begin(operation: string, search: URLSearchParams): void {
      stats.requests += 1;
      count(stats.byOperation, operation);
      count(stats.byHour, clockHour(clock));
      const params = Object.fromEntries([...search].filter(([name]) => name !== 'accessKey'));
      requests.push({ number: stats.requests, operation, params });
      if (requests.length > REMEMBERED_REQUESTS) requests.splice(0, REMEMBERED_REQUESTS / 10);
    },
    countDiagnostic: (line: string) => count(stats.byDiagnostic, line),
    countFault: (kind: string) => count(stats.byFault, kind),
    /** The newest requests, oldest first. */
    recent: (): readonly SeenRequest[] => requests,
    stats: () => structuredClone(stats),
  };
}

/** Counts one more of a name. @returns how many there are now. */
function count(counts: Counts, name: string): number {
  counts[name] = (counts[name] ?? 0) + 1;
  return counts[name];
}
