import type { Job } from 'bullmq';
import { today } from '../core/clock.ts';
import { PipelineError } from '../core/errors.ts';
import type { Extracted } from '../extract/types.ts';
import { writeCoverage } from '../load/coverage.ts';
import { databaseError } from '../load/failures.ts';
import { loadWindow } from '../load/window.ts';
import { operationNamed } from '../operations/registry.ts';
import { advanceRun } from './advance.ts';
import { hand } from './bullmq-errors.ts';
import type { WorkContext } from './context.ts';
import { coverageOf, questionsOf } from './coverage.ts';
import type { WindowJob } from './queue.ts';
import { judge, type Scope, troubleOf, type Verdict } from './verdict.ts';
import {
  type ClaimedWindow,
  claimWindow,
  type EndedWindow,
  endWindows,
  releaseWindow,
  type Selection,
} from './window-store.ts';

/** A window in trouble; only its numbers are known when it could not even be claimed. */
type Troubled = Pick<ClaimedWindow, 'id' | 'runId'> & Partial<Pick<ClaimedWindow, 'operation' | 'exchange'>>;

/** Source keys that were logged already, per run and operation: once is enough. */
const reported = new Set<string>();

/**
 * Does the work of one window: claim, fetch outside any transaction, read, load in one transaction,
 * then move the run on. What goes wrong is judged and handed to BullMQ.
 */
export async function processWindow(
  context: WorkContext,
  job: Job<WindowJob>,
  token: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { windowId, runId } = job.data;
  let window: ClaimedWindow | null = null;
  try {
    window = await claimWindow(context.db.pool, windowId).catch((error) => {
      throw databaseError(error);
    });
    if (window !== null) await fetchAndLoad(context, window, signal);
  } catch (error) {
    const soFar = { attempt: job.attemptsMade + 1, ageMs: window?.ageMs ?? 0 };
    const verdict = judge(error, soFar, context.config);
    context.log.warn({ runId, windowId, err: error, verdict }, 'window did not load');
    await record(context, window ?? { id: windowId, runId }, verdict, error);
    if (verdict.act === 'end') await advanceRun(context, runId);
    await hand(verdict, error, job, token, context.queues.windows, {
      clock: context.clock,
      timeZone: context.config.EOD_TIMEZONE,
    });
  }
  await advanceRun(context, runId);
}

async function fetchAndLoad(context: WorkContext, window: ClaimedWindow, signal: AbortSignal): Promise<void> {
  const { config, source, db, calendar, clock } = context;
  const operation = operationNamed(window.operation);
  const asked = {
    exchange: window.exchange,
    from: window.from,
    to: window.to,
    instruments: window.instruments,
    params: window.params,
    calledOn: today(clock, config.EOD_TIMEZONE),
  };
  const answer = await source.fetch(operation, asked, signal);
  const extracted = source.read(operation, asked, answer);
  reportOddities(context, window, extracted);
  const sessions = calendar.sessions(window.exchange, window.from, window.to);
  const counts = await loadWindow(db, {
    windowId: window.id,
    runId: window.runId,
    operation: window.operation,
    exchange: window.exchange,
    batches: extracted.batches,
    rejects: extracted.rejects,
    coverage: coverageOf(operation, window, sessions, extracted, { clock, config }),
    outcome: outcomeOf(extracted),
    bytes: answer.bytes,
    warnings: extracted.warnings,
  });
  context.log.info(
    { runId: window.runId, windowId: window.id, operation: window.operation, counts },
    counts === null ? 'window had ended already' : 'window loaded',
  );
}

/** A window of nothing but rejects must not look like a day that is in. */
function outcomeOf(extracted: Extracted): { state: 'loaded' | 'empty' | 'failed'; error: string | null } {
  if (extracted.fetched === 0) return { state: 'empty', error: null };
  if (extracted.rejects.length < extracted.fetched) return { state: 'loaded', error: null };
  return { state: 'failed', error: `all ${extracted.fetched} records were rejected; etl.rejects says why` };
}

function reportOddities({ log }: WorkContext, window: ClaimedWindow, extracted: Extracted): void {
  const { runId, operation } = window;
  for (const warning of extracted.warnings) log.warn({ runId, windowId: window.id, operation }, warning);
  const unknown = extracted.unknownFields.filter((field) => !reported.has(`${runId}|${operation}|${field}`));
  if (unknown.length === 0) return;
  for (const field of unknown) reported.add(`${runId}|${operation}|${field}`);
  log.warn(
    { runId, operation, fields: unknown },
    'the source sends fields nobody declared; they are not stored',
  );
}

/** Keeps in etl.* what the verdict means for this window and those it speaks for. */
async function record(
  context: WorkContext,
  window: Troubled,
  verdict: Verdict,
  error: unknown,
): Promise<void> {
  try {
    if (verdict.act === 'end') {
      await giveUp(context, window, verdict, error);
      return;
    }
    const trouble = verdict.act === 'put_back' ? null : troubleOf(error);
    const anew = verdict.act === 'put_back' || verdict.act === 'next_hour';
    await releaseWindow(context.db.pool, window.id, trouble, anew);
  } catch (failure) {
    // Postgres is away: the window stays as it is, and the job comes back for it.
    const problem = databaseError(failure);
    if (!problem.retryable) throw problem;
    context.log.warn({ windowId: window.id, err: problem }, 'could not keep what went wrong');
  }
}

async function giveUp(
  { db, calendar, clock, config }: WorkContext,
  window: Troubled,
  verdict: Extract<Verdict, { act: 'end' }>,
  error: unknown,
): Promise<void> {
  const trouble = troubleOf(error);
  const client = await db.pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin');
    // The run's row before its windows', as everywhere, so that two writers cannot deadlock.
    if (verdict.scope === 'run') {
      await client.query("update etl.runs set error = $2, deferred = '[]' where id = $1", [
        window.runId,
        trouble.error,
      ]);
    }
    const ended = await endWindows(client, selectionOf(window, verdict.scope), verdict.state, trouble);
    for (const one of ended.sort(byKey)) {
      const sessions = calendar.sessions(one.exchange, one.from, one.to);
      const calledOn = today(clock, config.EOD_TIMEZONE);
      await writeCoverage(client, {
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
    await client.query('commit');
  } catch (failure) {
    broken =
      failure instanceof Error
        ? failure
        : new PipelineError(String(failure), { kind: 'database', retryable: true });
    throw failure;
  } finally {
    client.release(broken);
  }
}

function selectionOf(window: Troubled, scope: Scope): Selection {
  const { runId, operation, exchange } = window;
  if (scope === 'run') return { runId };
  if (scope === 'operation' && operation !== undefined) return { runId, operation };
  if (scope === 'operation_exchange' && operation !== undefined && exchange !== undefined) {
    return { runId, operation, exchange };
  }
  return { runId, windowId: window.id };
}

/** Coverage is written in one order everywhere, so that two writers cannot deadlock. */
function byKey(a: EndedWindow, b: EndedWindow): number {
  const key = (one: EndedWindow) =>
    [one.operation, one.exchange, one.from, one.instruments[0] ?? '', one.part].join('|');
  return key(a) < key(b) ? -1 : 1;
}
