import type { Calendar } from '../../calendar/calendar.ts';
import type { Config } from '../../core/config.ts';
import type { Limitation, ObservedDate, Source } from '../../extract/index.ts';
import type { Database } from '../../load/database/database.ts';
import type { ServerFacts } from '../../load/database/inspect.ts';
import type { Cli } from '../cli.ts';
import type { Check } from './check.ts';

/** What checks find out and later ones need. */
export interface Found {
  /** A database that answers, and how far its clock is ahead of ours, in milliseconds. */
  server: { readonly db: Database; readonly facts: ServerFacts; readonly clockAheadMs: number };
  /** The database, if our tables are there in this version and can be used. */
  tables: Database;
  redis: RedisFacts;
  /** Whether the queue can be used; there only if it can. */
  queue: true;
  call: Outcome;
  /** The source, which accepts the key. */
  acceptedKey: Source;
}

export type Need = keyof Found;

/** What one call to the source showed. */
export interface Outcome {
  readonly source: Source;
  readonly error: unknown;
  readonly ms: number;
  readonly date: ObservedDate | null;
  readonly counted: boolean;
  /** The other day of which all records of its answer are. */
  readonly trialDay?: string | undefined;
}

/** An examination under way. */
export interface Examination extends Partial<Found> {
  readonly cli: Cli;
  readonly config: Config;
  readonly offline: boolean;
  calendar: Calendar;
  /** The checks that were made so far. */
  readonly checks: Check[];
  /** What the key may do, if the service says so. */
  key: KeyReport | null;
  /** Why something is not there, for the checks that need it. */
  readonly lacks: Record<Need, string>;
}

/** What Redis says about itself. */
export interface RedisFacts {
  readonly version: string;
  /** Bytes it may use; 0 for no limit. */
  readonly maxMemory: number;
  readonly evictionPolicy: string;
  readonly appendOnly: boolean;
  /** Why the last snapshot, or write to the append-only file, failed; null if it did not. */
  readonly saveProblem: string | null;
  /** When snapshots are made, in the server's notation; null if it does not say. */
  readonly snapshots: string | null;
  readonly isReplica: boolean;
}

/** What of that which this installation asks for the key may not have, by name. */
interface Forbidden {
  readonly operations: readonly string[];
  readonly exchanges: readonly string[];
}

/** What the key may do, and what it forbids this installation. */
export type KeyReport = Limitation & { readonly forbidden: Forbidden };
