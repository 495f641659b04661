import { usageError } from '../../core/errors.ts';
import { groupBy } from '../../core/group-by.ts';
import { windowFacts } from '../../core/log.ts';
import { createSlots, type Slots } from '../../core/slots.ts';
import { type StepTimes, timeStep } from '../../core/steps.ts';
import { workWithSessionLock } from '../../load/database/session-lock.ts';
import { type KeptAnswer, readKeptAnswer } from '../../load/state/answers/kept.ts';
import { readRun } from '../../load/state/runs.ts';
import {
  openReplayWindows,
  type ReplayWindow,
  skipWindow,
  startWindow,
} from '../../load/state/windows/windows.ts';
import { dataSetNamed, tableGroupOf } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import type { ReadAnswer } from '../import/session-answer.ts';
import { closeRun } from '../runs/finish.ts';
import { applyLocalFailure } from '../worker/apply-failure.ts';
import { storeAnswer } from '../worker/store-answer.ts';
import { isOutdated } from './outdated.ts';
import type { ReplayRequest } from './plan-replay.ts';
import { createKeptReader, readKeptSource, readRejectedRecords } from './read-kept.ts';

/** What all windows of a group of operations and an exchange share. */
interface GroupContext {
  /** Were its tables empty? Then every answer is loaded. */
  readonly fresh: boolean;
  readonly read: ReturnType<typeof createKeptReader>;
}

/**
 * Works on a replay in this process, without the queue and the source. EOD_CONCURRENCY answers are loaded at the same
 * time, but those that may be about the same rows one after the other, in the order of their calls. If the signal stops
 * it, the remaining windows stay open, and the run can be resumed.
 *
 * @throws PipelineError `usage` if another process works on the run; `database_away` if Postgres cannot be reached.
 */
export async function workReplay(context: Context, runId: number, signal: AbortSignal): Promise<void> {
  // When this is repeated after an outage, it continues with the remaining windows.
  const worked = await workWithSessionLock(context.db, `eod:replay:${runId}`, async (db) => {
    await workGroups({ ...context, db }, runId, signal);
    await closeRun({ ...context, db }, runId);
  });
  if (!worked) throw usageError(`run ${runId} is being worked on by another process`);
}

async function workGroups(context: Context, runId: number, signal: AbortSignal): Promise<void> {
  const { db, config } = context;
  const request = (await readRun(db.drizzle, runId))?.request as ReplayRequest | undefined;
  const fresh = new Set(request?.fresh ?? []);
  const groups = groupBy(
    await openReplayWindows(db.drizzle, runId),
    ({ operation, exchange }) => `${tableGroupOf(operation).name}|${exchange}`,
  );
  const read = createKeptReader(context);
  const slots = createSlots(config.EOD_CONCURRENCY);
  const waiting = [...groups];
  let broken = false;
  const isStopped = () => broken || signal.aborted;
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [name, windows] = next;
      const facts = { fresh: fresh.has(name), read };
      if (!(await workGroup(context, windows, facts, { slots, isStopped }))) return;
    }
  };
  const workers = Array.from({ length: Math.min(config.EOD_CONCURRENCY, groups.size) }, () =>
    work().catch((error) => {
      broken = true;
      throw error;
    }),
  );
  for (const end of await Promise.allSettled(workers)) if (end.status === 'rejected') throw end.reason;
}

/** A window that is being stored. */
interface Storing {
  readonly window: ReplayWindow;
  /** Must it be stored after all before it and before all after it? */
  readonly alone: boolean;
  readonly done: Promise<unknown>;
}

/**
 * Stores the windows of a group, each once those before it that may be about the same rows are stored. Answers about
 * different days have no row in common and are stored in parallel, as many as there are slots.
 *
 * @returns false if it was stopped, or the run cancelled, before its last window.
 */
async function workGroup(
  context: Context,
  windows: readonly ReplayWindow[],
  facts: GroupContext,
  { slots, isStopped }: { readonly slots: Slots; readonly isStopped: () => boolean },
): Promise<boolean> {
  let storing: Storing[] = [];
  const errors: unknown[] = [];
  const failed = (error: unknown) => {
    errors.push(error);
    return false;
  };
  let finished = true;
  let ahead = readAhead(context, windows[0], facts);
  for (const [at, window] of windows.entries()) {
    const answer = ahead;
    const alone = !isOfItsDays(window);
    await Promise.all(
      storing
        .filter((other) => alone || other.alone || overlap(other.window, window))
        .map(({ done }) => done),
    );
    await slots.take();
    const started =
      !isStopped() && errors.length === 0 && (await startWindow(context.db.drizzle, window.id).catch(failed));
    if (!started) {
      slots.release();
      finished = false;
      break;
    }
    ahead = readAhead(context, windows[at + 1], facts);
    const done: Promise<unknown> = replayWindow(context, window, answer, facts)
      .catch(failed)
      .finally(() => {
        slots.release();
        storing = storing.filter((other) => other.window !== window);
      });
    storing = [...storing, { window, alone, done }];
  }
  await Promise.all(storing.map(({ done }) => done));
  if (errors.length > 0) throw errors[0];
  return finished;
}

/** Are all records of an answer of the days it was asked for? Others are rejected then. */
const isOfItsDays = ({ operation }: ReplayWindow) =>
  dataSetNamed(operation).shapes.every(({ dated }) => dated);

const overlap = (one: ReplayWindow, other: ReplayWindow) => one.from <= other.to && other.from <= one.to;

/** A kept answer, and what was read of it. */
interface KeptReading {
  readonly kept: KeptAnswer;
  readonly answered: ReadAnswer;
}

/** Begins to read the answer that a window loads again. @returns null if it has none, or it has been pruned. */
function readAhead(
  context: Context,
  window: ReplayWindow | undefined,
  { read }: GroupContext,
): Promise<KeptReading | null> {
  const reading = async () => {
    const id = window?.answerId ?? null;
    const kept = id === null ? null : await readKeptAnswer(context.db.drizzle, id);
    if (kept === null) return null;
    return { kept, answered: await read(kept) };
  };
  const answer = reading();
  // An error is handled when the answer is stored.
  answer.catch(() => undefined);
  return answer;
}

async function replayWindow(
  context: Context,
  window: ReplayWindow,
  answer: Promise<KeptReading | null>,
  group: GroupContext,
): Promise<void> {
  const { log } = context;
  try {
    if (window.answerId === null) await replayRecords(context, window);
    else await replayAnswer(context, window, window.answerId, await answer, group.fresh);
  } catch (error) {
    await applyLocalFailure(context, window.id, error);
    log.error({ ...windowFacts(window), err: error }, 'could not replay the answer');
  }
}

async function replayAnswer(
  context: Context,
  window: ReplayWindow,
  answerId: number,
  answer: KeptReading | null,
  fresh: boolean,
): Promise<void> {
  const { db } = context;
  if (answer === null) {
    if (fresh) throw usageError('its answer has been pruned, so that rows may be missing');
    await skipWindow(db.drizzle, window.id, 'its answer has been pruned');
    return;
  }
  const { kept, answered } = answer;
  const read = (other: KeptAnswer) => readKeptSource(context, other);
  if (!fresh && (await isOutdated(context, { window, answerId, ...answered, read }))) {
    await skipWindow(db.drizzle, window.id, 'a newer answer that speaks for all of its days is kept');
    return;
  }
  const times: StepTimes = {};
  const counts = await timeStep(times, 'load', () =>
    storeAnswer(context, {
      window,
      ...answered,
      place: kept.place,
      calledAt: kept.fetchedAt.getTime(),
      bytes: 0,
      preview: false,
      fresh,
    }),
  );
  // At `debug`, because a rebuild may load the answers of years.
  context.log.debug({ ...windowFacts(window), counts, ms: times }, 'answer loaded again');
}

async function replayRecords(context: Context, window: ReplayWindow): Promise<void> {
  const { extracted, place, seenAt } = await readRejectedRecords(context, window);
  await storeAnswer(context, {
    window,
    extracted,
    place,
    calledAt: seenAt,
    bytes: 0,
    preview: false,
  });
}
