import { usageError } from '../../core/errors.ts';
import { windowFacts } from '../../core/log.ts';
import { inParallel } from '../../core/waits.ts';
import { refoldPart } from '../../load/fold/refold-part.ts';
import { tables } from '../../operations/registry.ts';
import { workWithSessionLock } from '../../postgres/session-lock.ts';
import { listReplayWindows } from '../../state/windows/read-windows.ts';
import { startWindow } from '../../state/windows/windows.ts';
import type { Context } from '../context.ts';
import { buildFoldSettings } from '../responses/store-response.ts';
import { closeRun } from '../runs/finish.ts';
import { applyLocalFailure } from '../worker/apply-failure.ts';

/** A window of a replay that has not ended. */
type ReplayWindow = Awaited<ReturnType<typeof listReplayWindows>>[number];

/**
 * Works on a replay in this process, without the queue and the source. EOD_CONCURRENCY parts are folded at the same time:
 * they have no row in common. If the signal stops it, the remaining windows stay open, and the run can be resumed.
 *
 * @throws PipelineError `usage` if another process works on the run; `database_unreachable` if Postgres cannot be
 * reached.
 */
export async function workReplay(context: Context, runId: number, signal: AbortSignal): Promise<void> {
  // When this is repeated after an outage, it continues with the remaining windows.
  const worked = await workWithSessionLock(context.db, `eod:replay:${runId}`, async (db) => {
    await workWindows({ ...context, db }, runId, signal);
    await closeRun({ ...context, db }, runId);
  });
  if (!worked) throw usageError(`run ${runId} is being worked on by another process`);
}

async function workWindows(context: Context, runId: number, signal: AbortSignal): Promise<void> {
  const { db, config } = context;
  const windows = await listReplayWindows(db.drizzle, runId);
  await inParallel(windows, { width: config.EOD_CONCURRENCY, signal }, async (window) => {
    // Not started: the run was cancelled.
    if (await startWindow(db.drizzle, window.id)) await replayWindow(context, window);
  });
}

async function replayWindow(context: Context, window: ReplayWindow): Promise<void> {
  const { db, log } = context;
  const { tables: names = '', dividedBy } = window.params;
  const part = {
    windowId: window.id,
    runId: window.runId,
    tables: tables.filter(({ name }) => names.split(',').includes(name)),
    exchange: window.exchange,
    days: dividedBy === 'days' ? { from: window.from, to: window.to } : null,
    instruments: dividedBy === 'instruments' ? window.instruments : null,
  };
  try {
    const counts = await refoldPart(db, part, buildFoldSettings(context));
    // At `debug`, because a replay may fold the parts of years.
    log.debug({ ...windowFacts(window), counts }, 'part folded anew');
  } catch (error) {
    await applyLocalFailure(context, window.id, error);
    log.error({ ...windowFacts(window), err: error }, 'could not replay the responses');
  }
}
