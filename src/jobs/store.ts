import type { Clock } from '../core/clock.ts';
import type { Extracted } from '../extract/types.ts';
import type { AnswerToKeep } from '../load/responses.ts';
import { loadWindow, type RecordCounts } from '../load/window.ts';
import { operationNamed } from '../operations/registry.ts';
import type { Context } from './context.ts';
import { type CoveredWindow, coverageOf } from './coverage.ts';
import { fullSetsOf } from './full-set.ts';
import { outcomeOf } from './outcome.ts';

/** A window with its answer, read. */
export interface Answered {
  readonly window: CoveredWindow & {
    readonly id: number;
    readonly runId: number;
    readonly operation: string;
    readonly exchange: string;
  };
  readonly extracted: Extracted;
  /** The time of the call: what an empty answer means depends on it. */
  readonly calledAt: number;
  /** Bytes that travelled. */
  readonly bytes: number;
  readonly preview: boolean;
  /** Kept for replay; left out where nothing is to be kept. */
  readonly answer?: AnswerToKeep | undefined;
  readonly rereads?: readonly number[];
}

/**
 * Stores what an answer holds: rows, rejects, coverage and the end of its window. Fetched just now
 * or kept for years, an answer is judged the same way.
 *
 * @returns null when the window had ended already.
 */
export async function storeAnswer(
  { config, db, calendar }: Pick<Context, 'config' | 'db' | 'calendar'>,
  { window, extracted, calledAt, bytes, preview, answer, rereads = [] }: Answered,
): Promise<RecordCounts | null> {
  const operation = operationNamed(window.operation);
  const clock: Clock = { now: () => calledAt };
  const sessions = calendar.sessions(window.exchange, window.from, window.to);
  const outcome = outcomeOf(extracted, config.EOD_MAX_REJECT_SHARE);
  const kept =
    outcome.state === 'failed' ? { ...extracted, batches: [], fetched: extracted.rejects.length } : extracted;
  const coverage = coverageOf(operation, window, sessions, kept, { clock, config });
  return loadWindow(db, {
    windowId: window.id,
    runId: window.runId,
    operation: window.operation,
    exchange: window.exchange,
    batches: kept.batches,
    rejects: kept.rejects,
    fullSets: fullSetsOf(operation, window, kept, coverage),
    maxWithdrawShare: config.EOD_MAX_WITHDRAW_SHARE,
    coverage,
    outcome,
    warnings: extracted.warnings,
    ...{ bytes, preview, answer, rereads },
  });
}
