import type { Calendar } from '../../calendar/calendar.ts';
import type { Config } from '../../core/config.ts';
import { messageOf } from '../../core/errors.ts';
import { within } from '../../core/waits.ts';
import type { Limitation, ObservedDate, Source } from '../../extract/index.ts';
import type { Database } from '../../load/database/database.ts';
import type { ServerFacts } from '../../load/database/inspect.ts';
import type { Cli } from '../cli.ts';
import type { readRedisFacts } from '../reachable.ts';

/** `skipped`: could not be checked, or does not apply; `found` says why. */
type CheckState = 'ok' | 'warning' | 'failed' | 'skipped';

/** The outcome of a check. */
export interface Outcome {
  readonly state: CheckState;
  /** What was found, in a sentence without secrets. */
  readonly found: string;
  /** What to do about it; null if nothing needs to be done. */
  readonly remedy: string | null;
}

/** A check that was made. */
export type Check = { readonly name: string } & Outcome;

/** What a line of the table results in. An outcome without a name has that of the line. */
type Outcomes = Outcome | Check | readonly (Outcome | Check)[];

/** What checks find out and later ones need. */
export interface Found {
  /** A database that responds, and how far its clock is ahead of ours, in milliseconds. */
  server: { readonly db: Database; readonly facts: ServerFacts; readonly clockAheadMs: number };
  /** The database, if our tables are there in this version and can be used. */
  tables: Database;
  redis: Awaited<ReturnType<typeof readRedisFacts>>;
  /** Whether the queue can be used; there only if it can. */
  queue: true;
  call: CallMade;
  /** The source, which accepts the key. */
  acceptedKey: Source;
}

type Need = keyof Found;

/** An examination with what earlier checks have found. */
export type With<Name extends Need> = Examination & Pick<Found, Name>;

/** What one call to the source showed. */
export interface CallMade {
  readonly source: Source;
  readonly error: unknown;
  readonly ms: number;
  readonly date: ObservedDate | null;
  readonly counted: boolean;
  /** The day of all records of its response, if that is another than the requested one. */
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

/** What this installation requests and the key may not have, by name. */
interface Forbidden {
  readonly operations: readonly string[];
  readonly exchanges: readonly string[];
}

/** What the key may do, and what it forbids this installation. */
export type KeyReport = Limitation & { readonly forbidden: Forbidden };

/** Nothing is wrong. */
export const ok = (found: string): Outcome => ({ state: 'ok', found, remedy: null });

/** The check was not made. */
export const skipped = (found: string): Outcome => ({ state: 'skipped', found, remedy: null });

/** Something works now, but may stop working. */
export const warning = (found: string, remedy: string): Outcome => ({ state: 'warning', found, remedy });

/** There is a reason why the pipeline cannot work. */
export const failed = (found: string, remedy: string): Outcome => ({ state: 'failed', found, remedy });

/**
 * By how much our clock is certainly ahead of another (negative: behind), which was read at some time during a call; 0 if
 * the time that the call took may be all of the difference. Unit: milliseconds.
 */
export function certainLead(
  call: { readonly sentAt: number; readonly receivedAt: number },
  theirs: number,
): number {
  const half = (call.receivedAt - call.sentAt) / 2;
  const lead = call.sentAt + half - theirs;
  return Math.sign(lead) * Math.max(0, Math.abs(lead) - half);
}

/** True if a version is lower than another. */
export function isBelow(version: string, other: string): boolean {
  const [own, least] = [version, other].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const at = least.findIndex((part, position) => part !== (own[position] ?? 0));
  return at !== -1 && (own[at] ?? 0) < (least[at] ?? 0);
}

/**
 * Makes a check within a time limit. What it throws is its outcome, so that no check hides another.
 *
 * @param remedy if it cannot be made.
 */
export async function bounded(
  name: string,
  milliseconds: number,
  remedy: string,
  work: () => Outcomes | Promise<Outcomes>,
): Promise<readonly Check[]> {
  try {
    const outcomes = await within(Promise.resolve(work()), milliseconds);
    return [outcomes].flat().map((outcome) => ({ name, ...outcome }));
  } catch (error) {
    return [{ name, ...failed(messageOf(error) || 'no response', remedy) }];
  }
}

/** One line of the table of checks. */
export interface Row {
  readonly name: string;
  /** What earlier checks must have found; without it this one is skipped. */
  readonly needs: readonly Need[];
  readonly limitMs: number;
  /** What to do if the check cannot be made. */
  readonly remedy: string;
  readonly run: (found: Examination & Found) => Outcomes | Promise<Outcomes>;
}

/** Longer than the time limits of the queries within. */
const SHORT_MS = 10_000;

const SEE_DATABASE = 'see the check of the database';

/** A line of the table. What it needs is there when it is run. */
export function row<const Name extends Need = never>(
  name: string,
  needs: readonly Name[],
  run: (found: With<Name>) => ReturnType<Row['run']>,
  remedy = SEE_DATABASE,
  limitMs = SHORT_MS,
): Row {
  return { name, needs, run, remedy, limitMs };
}
