import type { Day, DayRange } from '../core/days.ts';
import type { Pair } from '../core/exchanges.ts';

/** One operation of one exchange over one range. */
export interface Target extends Pair, DayRange {
  /** From this day on, days are requested again even if they are covered; null: never. */
  readonly refetchFrom: Day | null;
}

/** `gap_fill` is a backfill of missing days. */
export const RUN_KINDS = ['backfill', 'nightly', 'import', 'replay', 'gap_fill', 'events'] as const;

export type RunKind = (typeof RUN_KINDS)[number];

/** What a run was requested to do; kept with the run, so that any worker can plan the rest of it. */
export interface RunRequest {
  readonly kind: RunKind;
  readonly targets: readonly Target[];
  /** Instruments named by hand; empty: the operation's default. */
  readonly instruments: readonly string[];
  /** Request options set by hand, by the source's parameter name. */
  readonly options: Readonly<Record<string, string>>;
  /** A run of the last night: real-time figures are requested too. */
  readonly live: boolean;
  /** True if it was started in a terminal, whose user sees how it ends: then it raises no alerts. */
  readonly isAttended?: boolean;
}

export const RUN_STATES = ['running', 'paused', 'completed', 'failed', 'cancelled'] as const;

export type RunState = (typeof RUN_STATES)[number];

export const WINDOW_STATES = [
  'pending',
  'running',
  'loaded',
  'empty',
  'skipped',
  'blocked',
  'failed',
  'cancelled',
  'split',
] as const;

export type WindowState = (typeof WINDOW_STATES)[number];

/** All changes of state that are made, each only from one of the states in `from` (none: the row is inserted). */
export type Transitions<State> = Readonly<
  Record<string, { readonly from: readonly State[]; readonly to: readonly State[]; readonly when: string }>
>;
