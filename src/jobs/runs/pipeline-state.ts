import { pairName } from '../../core/exchanges.ts';
import { count, momentText, plural } from '../../core/wording.ts';
import { type Freshness, MISSING_OF } from '../../state/coverage/freshness.ts';
import {
  listNightFailures,
  type NightFailure,
  readNewestRequestingRun,
  readRunStoppedByKey,
} from '../../state/runs/outcomes.ts';
import type { OpenRunProgress } from '../../state/runs/reports.ts';
import { readSourceOutage } from '../../state/source/source-state.ts';
import type { WorkersSeen } from '../../state/workers.ts';
import type { Context } from '../context.ts';
import { OPENING_FAILURES } from '../policy/failure-policy.ts';
import { keyHash } from '../policy/quota.ts';
import { nextTicks } from './night-schedules.ts';

/** The worst that is true of the pipeline now: the first thing to know in the morning. */
export interface PipelineState {
  /**
   * `blocked`: the source or the key cannot be used, or nothing can be stored; `failed`: the last night did; `missing`:
   * trading days that are due are.
   */
  readonly state: 'ok' | 'missing' | 'failed' | 'blocked';
  /** Why; null if all is well. */
  readonly cause: string | null;
  /** ISO 8601; null if it is not known. */
  readonly since: string | null;
  /** The run that shows it; null if there is none. */
  readonly runId: number | null;
}

/** What a person can do about it; the dashboard and the command line know the commands. */
type Remedy =
  | 'try_key'
  | 'check_storage'
  | 'follow_run'
  | 'await_source'
  | 'resume'
  | 'fill_gaps'
  | 'import_files';

/** The state, with what can be done about it. */
export interface AdvisedState extends PipelineState {
  readonly remedy: Remedy | null;
  /** What tries a refused key again if nobody does, such as `the night of 2025-09-13 21:15`; else null. */
  readonly nextTry: string | null;
}

/** What it follows from, besides the newest runs. */
interface Facts {
  readonly isUnused: boolean;
  readonly operations: readonly Pick<
    Freshness,
    'operation' | 'exchange' | 'isLate' | 'isScheduled' | 'lastDue' | 'missingSessions'
  >[];
  readonly openRuns: readonly Pick<OpenRunProgress, 'runId' | 'kind' | 'state'>[];
  readonly workers: Pick<WorkersSeen, 'cannotStore' | 'cannotStoreSince'>;
  readonly keyRefused: string | null;
  readonly keyRefusedSince: string | null;
}

/** Determines the worst of: the source or the key cannot be used, the last night failed, data is missing, all is well. */
export async function readPipelineState(context: Context, facts: Facts): Promise<AdvisedState> {
  return (
    (await refusedKey(context, facts)) ??
    refusedStorage(facts) ??
    (await sourceOutage(context)) ??
    (await failedNight(context, facts)) ??
    missingData(facts) ??
    ALL_WELL
  );
}

const ALL_WELL: AdvisedState = {
  state: 'ok',
  cause: null,
  since: null,
  runId: null,
  remedy: null,
  nextTry: null,
};

async function refusedKey(context: Context, facts: Facts): Promise<AdvisedState | null> {
  const { keyRefused, keyRefusedSince: since } = facts;
  if (keyRefused === null) return null;
  const { config, db } = context;
  const runId = await readRunStoppedByKey(db.drizzle, keyHash(config.EOD_ACCESS_KEY ?? ''));
  return {
    state: 'blocked',
    cause: `the source refuses the access key: ${keyRefused}`,
    since,
    runId,
    remedy: 'try_key',
    nextTry: nextKeyTrial(context),
  };
}

/** What tries a refused key next if nobody starts or resumes a run: the next night; null if none is scheduled. */
function nextKeyTrial({ config, clock }: Context): string | null {
  const [first] = nextTicks(config, clock)
    .map(({ next }) => next)
    .sort();
  return first === undefined
    ? null
    : `the night of ${momentText(first, config.EOD_TIMEZONE).slice(0, '2025-11-27 21:15'.length)}`;
}

function refusedStorage({ workers }: Facts): AdvisedState | null {
  if (workers.cannotStore === null) return null;
  const cause = `responses cannot be stored, and no call is made until they can: ${workers.cannotStore}`;
  return { ...ALL_WELL, state: 'blocked', cause, since: workers.cannotStoreSince, remedy: 'check_storage' };
}

async function sourceOutage({ config, db }: Context): Promise<AdvisedState | null> {
  const outage = await readSourceOutage(db.drizzle, keyHash(config.EOD_ACCESS_KEY ?? ''), OPENING_FAILURES);
  if (outage === null) return null;
  const { cause, since } = outage;
  const run = await readNewestRequestingRun(db.drizzle);
  return {
    ...ALL_WELL,
    state: 'blocked',
    cause: `the source does not respond: ${cause}`,
    since,
    runId: run?.runId ?? null,
    remedy: run?.isOpen === true ? 'follow_run' : 'await_source',
  };
}

async function failedNight({ db }: Context, { operations }: Facts): Promise<AdvisedState | null> {
  const sets = new Map(operations.map((operation) => [pairName(operation), operation]));
  // What was imported or requested since is not missing because of the night any more.
  const isOver = ({ operation, exchange, isLoadedSince }: NightFailure) => {
    if (operation === null || exchange === null) return false;
    const dataSet = sets.get(pairName({ operation, exchange }));
    return dataSet === undefined || dataSet.lastDue === null ? isLoadedSince : dataSet.missingSessions === 0;
  };
  const failure = (await listNightFailures(db.drizzle)).find((night) => !isOver(night));
  if (failure === undefined) return null;
  const { runId, since, reason } = failure;
  const cause = `the last night failed: ${reason}`;
  return { ...ALL_WELL, state: 'failed', cause, since, runId, remedy: 'resume' };
}

function missingData(facts: Facts): AdvisedState | null {
  const { operations, isUnused } = facts;
  // Of a new database nothing is missing yet.
  if (isUnused) return null;
  const incomplete = operations.filter(({ missingSessions }) => missingSessions > 0);
  if (incomplete.length === 0) return null;
  const tradingDays = incomplete.reduce((sum, { missingSessions }) => sum + missingSessions, 0);
  // One that works, or waits, and calls the source.
  const run = facts.openRuns.findLast(
    ({ kind, state }) => state === 'running' && kind !== 'import' && kind !== 'replay',
  );
  const canBeRequested = incomplete.some(({ isScheduled }) => isScheduled);
  return {
    ...ALL_WELL,
    state: 'missing',
    cause: `${plural(tradingDays, 'trading day')} of ${plural(incomplete.length, 'data set')} ${tradingDays === 1 ? 'is' : 'are'} missing (of the last ${count(MISSING_OF)} of each)`,
    runId: run?.runId ?? null,
    remedy: run !== undefined ? 'follow_run' : canBeRequested ? 'fill_gaps' : 'import_files',
  };
}
