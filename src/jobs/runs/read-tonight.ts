import { pairName } from '../../core/exchanges.ts';
import { type Freshness, isUnused, readFreshness, readLists } from '../../load/state/coverage/freshness.ts';
import { countOpenRejects } from '../../load/state/rejects.ts';
import { type OpenRunProgress, openRunsProgress } from '../../load/state/runs/reports.ts';
import { readWorkers } from '../../load/state/workers.ts';
import type { Context } from '../context.ts';
import { forecastFinish } from './forecast.ts';
import { type NextTick, nextTicks } from './night-schedules.ts';
import { readKeyStatus, type Status, waitsUntil } from './read-status.ts';

/** The state of a data set. */
interface LatestSession extends Freshness {
  readonly openRejects: number;
}

/** Why a run does not proceed. */
type WaitReason =
  | { readonly why: 'paused' }
  | { readonly why: 'no_worker'; readonly lastSeenAt: string | null }
  | { readonly why: 'calls_used'; readonly until: string }
  | { readonly why: 'key_refused'; readonly line: string }
  | { readonly why: 'lists' };

/** A run that has not ended. */
interface OpenRun extends OpenRunProgress {
  /** When it will probably end, ISO 8601; null if that cannot be estimated. */
  readonly finishAt: string | null;
  readonly waitReasons: readonly WaitReason[];
}

export interface Tonight extends Pick<Status, 'quota' | 'keyRefused' | 'lists'> {
  /** True if nothing was ever requested or imported. */
  readonly isUnused: boolean;
  /** By operation and exchange. */
  readonly sessions: readonly LatestSession[];
  readonly openRuns: readonly OpenRun[];
  readonly workers: Awaited<ReturnType<typeof readWorkers>>;
  readonly ticks: readonly NextTick[];
}

/** Reads the state of the current or last night, with the same few queries however long the history is. */
export async function readTonight(context: Context): Promise<Tonight> {
  const { config, clock, db } = context;
  const [sets, rejects, progress, workers, { quota, keyRefused }] = await Promise.all([
    readFreshness(context),
    countOpenRejects(db.drizzle),
    openRunsProgress(db.drizzle),
    readWorkers(db.drizzle),
    readKeyStatus(context),
  ]);
  const lists = await readLists(context, sets);
  const rejectsOf = new Map(rejects.map((one) => [pairName(one), one.rejects]));
  return {
    isUnused: isUnused(sets, lists),
    sessions: sets.map((set) => ({ ...set, openRejects: rejectsOf.get(pairName(set)) ?? 0 })),
    openRuns: await Promise.all(
      progress.map(async (run) => ({
        ...run,
        finishAt:
          run.state === 'running' && !run.isDeferred && run.retries.length === 0
            ? (await forecastFinish(context, run.kind, run.total - run.ended)).finishAt
            : null,
        waitReasons: waitReasonsOf(run, { workers, quota, keyRefused }),
      })),
    ),
    lists,
    quota,
    keyRefused,
    workers,
    ticks: nextTicks(config, clock),
  };
}

function waitReasonsOf(
  run: OpenRunProgress,
  { workers, quota, keyRefused }: Pick<Tonight, 'workers' | 'quota' | 'keyRefused'>,
): WaitReason[] {
  if (run.state === 'paused') return [{ why: 'paused' }];
  const until = quota === null ? null : waitsUntil(quota, run.kind);
  return [
    ...(workers.seen > 0 ? [] : [{ why: 'no_worker' as const, lastSeenAt: workers.lastSeenAt }]),
    ...(keyRefused === null ? [] : [{ why: 'key_refused' as const, line: keyRefused }]),
    ...(until === null ? [] : [{ why: 'calls_used' as const, until }]),
    ...(run.isDeferred ? [{ why: 'lists' as const }] : []),
  ];
}
