import type { Clock } from '../../core/clock.ts';
import { clockHour } from './key-access.ts';

/** The requests so far, without those for the sandbox's own pages. */
export interface SandboxStats {
  readonly requests: number;
  readonly byOperation: Readonly<Record<string, number>>;
  /** By clock hour in India, e.g. `2026-11-20T21`. */
  readonly byHour: Readonly<Record<string, number>>;
  /** How often each diagnostic line was answered. */
  readonly byDiagnostic: Readonly<Record<string, number>>;
  /** How often each injected fault occurred. */
  readonly byFault: Readonly<Record<string, number>>;
  /** The most requests that were open at the same time. */
  readonly maxConcurrent: number;
}

/** A request as received, without its key. */
export interface SeenRequest {
  readonly number: number;
  readonly operation: string;
  readonly params: Readonly<Record<string, string>>;
}

const REMEMBERED_REQUESTS = 10_000;

/** Is this the parameter with the key, in any case? */
export const isAccessKey = (name: string) => name.toLowerCase() === 'accesskey';

/** Counts requests and remembers the newest ones. */
export class RequestLog {
  readonly #clock: Clock;
  #requests = 0;
  #concurrent = 0;
  #maxConcurrent = 0;
  readonly #byOperation: Record<string, number> = {};
  readonly #byHour: Record<string, number> = {};
  readonly #byDiagnostic: Record<string, number> = {};
  readonly #byFault: Record<string, number> = {};
  readonly #seen: SeenRequest[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(operation: string, search: URLSearchParams): void {
    this.#requests++;
    this.#concurrent++;
    this.#maxConcurrent = Math.max(this.#maxConcurrent, this.#concurrent);
    count(this.#byOperation, operation);
    count(this.#byHour, clockHour(this.#clock));
    const params = Object.fromEntries([...search].filter(([name]) => !isAccessKey(name)));
    this.#seen.push({ number: this.#requests, operation, params });
    if (this.#seen.length > REMEMBERED_REQUESTS) this.#seen.splice(0, REMEMBERED_REQUESTS / 10);
  }

  end(): void {
    this.#concurrent--;
  }

  countDiagnostic(line: string): void {
    count(this.#byDiagnostic, line);
  }

  countFault(kind: string): void {
    count(this.#byFault, kind);
  }

  /** The newest `last` requests, oldest first. */
  recent(last: number): readonly SeenRequest[] {
    return last < 1 ? [] : this.#seen.slice(-last);
  }

  stats(): SandboxStats {
    return {
      requests: this.#requests,
      byOperation: { ...this.#byOperation },
      byHour: { ...this.#byHour },
      byDiagnostic: { ...this.#byDiagnostic },
      byFault: { ...this.#byFault },
      maxConcurrent: this.#maxConcurrent,
    };
  }
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}
