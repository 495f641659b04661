import { today } from '../../core/clock.ts';
import { transaction } from '../../load/database/transaction.ts';
import type { ClaimedWindow } from '../../load/state/claim.ts';
import { writeCoverage } from '../../load/state/coverage.ts';
import { stopPlanning } from '../../load/state/runs.ts';
import { type EndedWindow, endWindows, type FailureInfo, type Selection } from '../../load/state/windows.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { questionsOf } from './coverage.ts';
import type { Verdict } from './verdict.ts';

/** A window in trouble; only its numbers are known when it could not even be claimed. */
export type Troubled = Pick<ClaimedWindow, 'id' | 'runId'> &
  Partial<Pick<ClaimedWindow, 'operation' | 'exchange'>>;

/**
 * Ends the windows a refusal speaks for, with what it means for the coverage of their days, in one
 * transaction. A refusal of the key ends every open run: they all use the same key.
 */
export async function giveUp(
  { db, calendar, clock, config }: Context,
  window: Troubled,
  verdict: Extract<Verdict, { act: 'end' }>,
  trouble: FailureInfo,
): Promise<number[]> {
  return transaction(db, async (tx) => {
    // The run's row before its windows', as everywhere, so that two writers cannot deadlock.
    if (verdict.scope === 'key') await stopPlanning(tx, trouble.error);
    const ended = await endWindows(tx, selectionOf(window, verdict), verdict.state, trouble);
    const calledOn = today(clock, config.EOD_TIMEZONE);
    for (const one of ended.sort(byKey)) {
      const sessions = calendar.sessions(one.exchange, one.from, one.to);
      await writeCoverage(tx, {
        operation: one.operation,
        exchange: one.exchange,
        runId: one.runId,
        windowId: one.id,
        coverage: questionsOf(operationNamed(one.operation), one, sessions, calledOn).map((question) => ({
          ...question,
          state: verdict.state,
          records: 0,
          diagnostic: trouble.diagnostic ?? trouble.error,
        })),
      });
    }
    return [...new Set([window.runId, ...ended.map((one) => one.runId)])];
  });
}

function selectionOf(window: Troubled, { scope }: Extract<Verdict, { act: 'end' }>): Selection {
  const { runId, operation, exchange } = window;
  if (scope === 'key') return {};
  if (scope === 'operation' && operation !== undefined) return { runId, operation };
  if (scope === 'exchange' && exchange !== undefined) return { runId, exchange };
  return { runId, windowId: window.id };
}

/** Coverage is written in one order everywhere, so that two writers cannot deadlock. */
function byKey(a: EndedWindow, b: EndedWindow): number {
  const key = (one: EndedWindow) =>
    [one.operation, one.exchange, one.from, one.instruments[0] ?? '', one.variant].join('|');
  return key(a) < key(b) ? -1 : 1;
}
