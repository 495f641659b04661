import type { Job } from 'bullmq';
import { dayAt, daysBetween } from '../../core/days.ts';
import { PipelineError } from '../../core/errors.ts';
import type { Extracted } from '../../extract/types.ts';
import { endKeyTrial, markKeyAccepted } from '../../load/state/access-keys.ts';
import type { Permit } from '../../load/state/call-budget.ts';
import type { ClaimedWindow } from '../../load/state/claim.ts';
import { packBody } from '../../load/state/responses.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { WorkContext } from '../context.ts';
import { advanceRun } from '../runs/advance.ts';
import type { Breaker } from './breaker.ts';
import { hand } from './bullmq-errors.ts';
import type { WindowJob } from './queue.ts';
import { permitOf, untilNextHour } from './quota.ts';
import { settle } from './settle.ts';
import { storeAnswer } from './store.ts';
import { type Bench, patienceMs, type Taken, takeOn } from './take-on.ts';
import { judge, type Verdict } from './verdict.ts';

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
  let taken: Taken | null = null;
  try {
    taken = await takeOn(context, bench, windowId);
    if (taken !== null) await fetchAndLoad(context, bench, taken);
  } catch (error) {
    const window = taken?.claim.window ?? null;
    const permit = taken?.permit ?? permitOf(context.config, context.clock);
    const verdict = patient(context, bench, error, verdictOn(context, error, job, window, permit));
    await settle(context, { error, verdict, window, permit, job });
    if (verdict.act === 'split') return;
    await hand(verdict, error, job, token, bench.queue);
  }
  await advanceRun(context, runId);
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
  { claim, permit }: Taken,
): Promise<void> {
  const { config, source, db } = context;
  // An answer is read as of its call: so it can be read again at any time, with the same result.
  const calledAt = context.clock.now();
  const { window, probe } = claim;
  const operation = operationNamed(window.operation);
  const asked = {
    exchange: window.exchange,
    from: window.from,
    to: window.to,
    instruments: window.instruments,
    params: window.params,
    calledOn: dayAt(Math.floor(calledAt / 1000), config.EOD_TIMEZONE),
  };
  const answer = await source.fetch(operation, asked, signal).catch(async (error) => {
    tellBreaker(breaker, error, splittableDays(window));
    if (probe) await whatTheProbeSays(context, permit, error);
    throw error;
  });
  breaker.succeeded();
  // Compressed beside the reading: a load that waited for it would be later than a refusal of the key.
  const packed = config.EOD_KEEP_RAW ? packBody(answer.body) : null;
  packed?.catch(() => undefined);
  await markKeyAccepted(db.drizzle, permit, claim);
  const extracted = source.read(operation, asked, answer);
  reportOddities(context, window, extracted);
  const counts = await storeAnswer(context, {
    ...{ window, extracted, calledAt, bytes: answer.bytes, preview: window.runKind === 'preview' },
    answer:
      packed === null
        ? undefined
        : {
            ...{ packed, contentType: answer.contentType },
            ...{ calledOn: asked.calledOn, fetchedAt: new Date(calledAt) },
          },
  });
  context.log.info(
    { runId: window.runId, windowId: window.id, operation: window.operation, counts },
    counts === null ? 'window had ended already' : 'window loaded',
  );
}

/** Kinds that say the source itself is in trouble, not the question. */
const SILENCE = ['network', 'timeout', 'http_status'];

function isSilence(error: unknown): boolean {
  return error instanceof PipelineError && SILENCE.includes(error.kind) && error.retryable && !error.cutShort;
}

function tellBreaker(breaker: Breaker, error: unknown, days: number): void {
  if (!(error instanceof PipelineError) || error.kind === 'aborted') breaker.abandoned();
  // Asked for less, it may answer in time: not its health is in doubt yet.
  else if (error.kind === 'timeout' && days > 1) breaker.abandoned();
  else if (isSilence(error)) breaker.failed();
  else breaker.succeeded();
}

/** While the source is away no try counts: how long to wait for it is not a matter of attempts. */
function patient(
  { config }: WorkContext,
  { breaker, kind }: Bench,
  error: unknown,
  verdict: Verdict,
): Verdict {
  const outage = isSilence(error) && verdict.act !== 'split' ? breaker.outage() : null;
  if (outage === null) return verdict;
  return outage.downMs <= patienceMs(config, kind)
    ? { act: 'postpone', delayMs: outage.waitMs }
    : { act: 'end', state: 'failed', scope: 'window' };
}

/** Any line but a refusal of the key itself shows that the key is good. */
async function whatTheProbeSays({ db }: WorkContext, permit: Permit, error: unknown): Promise<void> {
  const facts = error instanceof PipelineError ? error : null;
  if (facts?.kind === 'credential') return;
  if (facts?.diagnostic !== undefined && facts.kind !== 'unknown_diagnostic')
    await markKeyAccepted(db.drizzle, permit, { probe: true, keyGoodAt: null });
  else await endKeyTrial(db.drizzle, permit.keyHash);
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
