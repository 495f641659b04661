import type { Job } from 'bullmq';
import { today } from '../core/clock.ts';
import { daysBetween } from '../core/days.ts';
import { PipelineError } from '../core/errors.ts';
import type { Extracted } from '../extract/types.ts';
import { databaseError } from '../load/failures.ts';
import { loadWindow } from '../load/window.ts';
import { operationNamed } from '../operations/registry.ts';
import { keyAccepted, probeFailed } from './access-key.ts';
import { advanceRun } from './advance.ts';
import type { Breaker } from './breaker.ts';
import { hand } from './bullmq-errors.ts';
import type { WorkContext } from './context.ts';
import { coverageOf } from './coverage.ts';
import { fullSetsOf } from './full-set.ts';
import { outcomeOf } from './outcome.ts';
import type { JobQueue, WindowJob } from './queue.ts';
import { type Permit, permitOf, turnWait, untilNextHour } from './quota.ts';
import type { RunKind } from './request.ts';
import { settle } from './settle.ts';
import { Hold, judge, type Verdict } from './verdict.ts';
import { type Claim, type ClaimedWindow, claimWindow } from './window-store.ts';

/** What a worker brings along for its windows. */
export interface Bench {
  /** The queue the job came from: waits are announced there. */
  readonly queue: JobQueue<WindowJob>;
  readonly kind: RunKind;
  readonly breaker: Breaker;
  readonly signal: AbortSignal;
}

/** Others look again after this long while one worker tries an unproven key. */
const PROBE_WAIT_MS = 250;

/** A backfill, where somebody is watching, gives up on a silent source this much sooner than a night. */
const BACKFILL_IMPATIENCE = 60;

/** Source keys that were logged already, per run and operation: once is enough. */
const reported = new Set<string>();

/**
 * Does the work of one window: claim, fetch outside any transaction, read, load in one transaction,
 * then move the run on. What goes wrong is judged and handed to BullMQ.
 */
export async function processWindow(
  context: WorkContext,
  bench: Bench,
  job: Job<WindowJob>,
  token: string | undefined,
): Promise<void> {
  const { windowId, runId } = job.data;
  const permit = permitOf(context.config, context.clock);
  let claim: Claim | null = null;
  try {
    admit(context, bench, permit);
    claim = await claimWindow(context.db.pool, windowId, permit).catch((error) => {
      throw databaseError(error);
    });
    if (claim.outcome === 'claimed') await fetchAndLoad(context, bench, claim, permit);
    else bench.breaker.abandoned();
    if (claim.outcome === 'spent') throw new Hold(untilNextHour(permit.now, context.config.EOD_TIMEZONE));
    if (claim.outcome === 'probing') throw new Hold(PROBE_WAIT_MS);
    if (claim.outcome === 'refused') throw refusedKey(claim.diagnostic);
  } catch (error) {
    const window = claim?.outcome === 'claimed' ? claim.window : null;
    const verdict = verdictOn(context, error, job, window, permit);
    await settle(context, { error, verdict, window, permit, job });
    if (verdict.act === 'split') return;
    await hand(verdict, error, job, token, bench.queue);
  }
  await advanceRun(context, runId);
}

function refusedKey(diagnostic: string): PipelineError {
  return new PipelineError(`the access key was refused: ${diagnostic}`, {
    kind: 'credential',
    retryable: false,
    diagnostic,
  });
}

/** May a call start now, as far as the clock and the source's health go? */
function admit({ config }: WorkContext, { breaker, kind }: Bench, permit: Permit): void {
  const turn = turnWait(permit.now, config.EOD_TIMEZONE);
  if (turn > 0) throw new Hold(turn);
  const admission = breaker.admit();
  if (admission.admitted) return;
  const patience = config.EOD_OUTAGE_PATIENCE_MS / (kind === 'nightly' ? 1 : BACKFILL_IMPATIENCE);
  if (admission.downMs <= patience) throw new Hold(admission.waitMs);
  throw new PipelineError(
    `the source has not answered for ${Math.round(admission.downMs / 1000)} s; nothing more is asked of it`,
    { kind: 'network', retryable: false },
  );
}

function verdictOn(
  { config }: WorkContext,
  error: unknown,
  job: Job<WindowJob>,
  window: ClaimedWindow | null,
  permit: Permit,
): Verdict {
  return judge(
    error,
    {
      attempt: job.attemptsMade + 1,
      ageMs: window?.ageMs ?? 0,
      days: window === null ? 1 : splittableDays(window),
      nextHourMs: untilNextHour(permit.now, config.EOD_TIMEZONE),
    },
    config,
  );
}

/** Only windows that ask for a range of days can be asked in parts. */
function splittableDays(window: ClaimedWindow): number {
  return operationNamed(window.operation).windows.per === 'range'
    ? daysBetween(window.from, window.to) + 1
    : 1;
}

async function fetchAndLoad(
  context: WorkContext,
  { breaker, signal }: Bench,
  claim: Extract<Claim, { outcome: 'claimed' }>,
  permit: Permit,
): Promise<void> {
  const { config, source, db, calendar, clock } = context;
  const { window, probe } = claim;
  const operation = operationNamed(window.operation);
  const asked = {
    exchange: window.exchange,
    from: window.from,
    to: window.to,
    instruments: window.instruments,
    params: window.params,
    calledOn: today(clock, config.EOD_TIMEZONE),
  };
  const answer = await source.fetch(operation, asked, signal).catch(async (error) => {
    tellBreaker(breaker, error);
    if (probe) await whatTheProbeSays(context, permit, error);
    throw error;
  });
  breaker.succeeded();
  await keyAccepted(db.pool, permit, probe);
  const extracted = source.read(operation, asked, answer);
  reportOddities(context, window, extracted);
  const sessions = calendar.sessions(window.exchange, window.from, window.to);
  const outcome = outcomeOf(extracted, config.EOD_MAX_REJECT_SHARE);
  const kept =
    outcome.state === 'failed' ? { ...extracted, batches: [], fetched: extracted.rejects.length } : extracted;
  const coverage = coverageOf(operation, window, sessions, kept, { clock, config });
  const counts = await loadWindow(db, {
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
    bytes: answer.bytes,
    warnings: extracted.warnings,
  });
  context.log.info(
    { runId: window.runId, windowId: window.id, operation: window.operation, counts },
    counts === null ? 'window had ended already' : 'window loaded',
  );
}

/** Kinds that say the source itself is in trouble, not the question. */
const SILENCE = ['network', 'timeout', 'http_status'];

function tellBreaker(breaker: Breaker, error: unknown): void {
  const facts = error instanceof PipelineError ? error : null;
  if (facts === null || facts.kind === 'aborted') breaker.abandoned();
  else if (SILENCE.includes(facts.kind) && facts.retryable) breaker.failed();
  else breaker.succeeded();
}

/** Any line but a refusal of the key itself shows that the key is good. */
async function whatTheProbeSays({ db }: WorkContext, permit: Permit, error: unknown): Promise<void> {
  const facts = error instanceof PipelineError ? error : null;
  if (facts?.kind === 'credential') return;
  if (facts?.diagnostic !== undefined && facts.kind !== 'unknown_diagnostic')
    await keyAccepted(db.pool, permit, true);
  else await probeFailed(db.pool, permit);
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
