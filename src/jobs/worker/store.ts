import type { Clock } from '../../core/clock.ts';
import type { Extracted } from '../../extract/types.ts';
import { databaseError } from '../../load/database/errors.ts';
import { loadWindow } from '../../load/market/load-window.ts';
import type { PreservedColumns } from '../../load/market/merge.ts';
import type { AnswerToKeep } from '../../load/state/responses.ts';
import type { RecordCounts } from '../../load/state/windows.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { observeSessions, provenDays } from '../runs/sessions.ts';
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
  /** May lack rows of its day although nothing was left out on purpose: none is withdrawn. */
  readonly partial?: boolean;
  /** Stored values that stand, because this answer knows less. */
  readonly preserved?: PreservedColumns;
}

/**
 * Stores what an answer holds: rows, rejects, coverage and the end of its window. Fetched just now
 * or kept for years, an answer is judged the same way.
 *
 * @returns null when the window had ended already.
 */
export async function storeAnswer(
  context: Context,
  { window, extracted, calledAt, bytes, preview, answer, rereads = [], ...file }: Answered,
): Promise<RecordCounts | null> {
  const { config, db, calendar } = context;
  const operation = operationNamed(window.operation);
  const clock: Clock = { now: () => calledAt };
  const outcome = outcomeOf(extracted, config.EOD_MAX_REJECT_SHARE);
  const kept =
    outcome.state === 'failed' ? { ...extracted, batches: [], fetched: extracted.rejects.length } : extracted;
  // First, so that a day the calendar was wrong about counts in the coverage.
  if (!preview)
    await observeSessions(context, window.exchange, provenDays(operation, window, kept)).catch((error) => {
      throw databaseError(error);
    });
  const sessions = calendar.sessions(window.exchange, window.from, window.to);
  const coverage = coverageOf(operation, window, sessions, kept, { clock, config });
  return loadWindow(db, {
    windowId: window.id,
    runId: window.runId,
    operation: window.operation,
    exchange: window.exchange,
    batches: kept.batches,
    rejects: kept.rejects,
    fullSets: file.partial === true ? [] : fullSetsOf(operation, window, kept, coverage),
    preserved: file.preserved,
    maxWithdrawShare: config.EOD_MAX_WITHDRAW_SHARE,
    coverage,
    outcome,
    warnings: extracted.warnings,
    ...{ bytes, preview, answer, rereads },
  });
}
