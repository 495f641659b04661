import type { OpenRunProgress } from '../../state/runs/reports.ts';
import type { Context } from '../context.ts';
import { forecastFinish } from './forecast.ts';
import { type NextTick, nextTicks } from './night-schedules.ts';
import { type Current, readCurrent, usedUpText, waitsUntil } from './read-status.ts';

/** Why a run does not proceed. */
type WaitReason =
  | { readonly why: 'paused'; readonly error: string | null }
  | { readonly why: 'no_worker'; readonly lastSeenAt: string | null }
  | { readonly why: 'calls_used'; readonly until: string; readonly usedUp: string }
  | { readonly why: 'key_refused'; readonly line: string }
  | { readonly why: 'lists' };

/** A run that has not ended. */
interface OpenRun extends OpenRunProgress {
  /** When it will probably end, ISO 8601; null if that cannot be estimated. */
  readonly finishAt: string | null;
  readonly waitReasons: readonly WaitReason[];
}

export interface Tonight extends Current {
  readonly openRuns: readonly OpenRun[];
  readonly ticks: readonly NextTick[];
}

/** Reads the state of the current or last night, with the same few queries however long the history is. */
export async function readTonight(context: Context): Promise<Tonight> {
  const current = await readCurrent(context);
  return {
    ...current,
    openRuns: await Promise.all(
      current.openRuns.map(async (run) => ({
        ...run,
        finishAt:
          run.state === 'running' && !run.isDeferred && run.retries.length === 0
            ? (await forecastFinish(context, run.kind, run.total - run.ended)).finishAt
            : null,
        waitReasons: listWaitReasons(run, current),
      })),
    ),
    ticks: nextTicks(context.config, context.clock),
  };
}

function listWaitReasons(
  run: OpenRunProgress,
  { workers, quota, keyRefused }: Pick<Current, 'workers' | 'quota' | 'keyRefused'>,
): WaitReason[] {
  if (run.state === 'paused') return [{ why: 'paused', error: run.error }];
  const until = quota === null ? null : waitsUntil(quota, run.kind);
  return [
    ...(workers.seen > 0 ? [] : [{ why: 'no_worker' as const, lastSeenAt: workers.lastSeenAt }]),
    ...(keyRefused === null ? [] : [{ why: 'key_refused' as const, line: keyRefused }]),
    ...(quota === null || until === null
      ? []
      : [{ why: 'calls_used' as const, until, usedUp: usedUpText(quota, run.kind) }]),
    ...(run.isDeferred ? [{ why: 'lists' as const }] : []),
  ];
}
