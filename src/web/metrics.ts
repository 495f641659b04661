import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { dayStart } from '../core/days.ts';
import { responsesWaiting, sourceCallEnded, windowEnded } from '../core/events.ts';
import { commit, packageVersion } from '../core/version.ts';
import { endsWithin, oneAtATime, within } from '../core/waits.ts';
import type { QueueContext } from '../jobs/context.ts';
import { WINDOW_QUEUES } from '../jobs/queue/queue.ts';
import { callsLeft, readKeyStatus } from '../jobs/runs/read-status.ts';
import { readFreshness } from '../state/coverage/freshness.ts';
import { countOpenFindings } from '../state/findings.ts';
import { countOpenRejects } from '../state/rejects.ts';
import { countOpenWindowsByState, readLastCompletedRuns } from '../state/runs/outcomes.ts';
import { readWorkers } from '../state/workers.ts';

/** Years of history take seconds to read. A scrape waits for so long, and then gets what was read before. */
const SCRAPE_WAITS_MS = 2_000;

/** After reading, the database is left alone for so many times as long, so that reading takes at most a tenth of the time. */
const REST = 9;

/** Reading that takes longer has failed. */
const READ_WITHIN_MS = 60_000;

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * The metrics of a process: starts counting what it does itself, and reads what the database and the queue know.
 *
 * @param roles what the process does, e.g. scheduler and worker.
 */
export function createMetrics(context: QueueContext, roles: readonly string[]) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const build = new Gauge({
    name: 'eod_build_info',
    help: '1; the labels say which version runs, of which git revision, and of Node.',
    labelNames: ['version', 'revision', 'node'],
    registers,
  });
  const revision = commit() ?? 'unknown';
  build.set({ version: packageVersion(), revision, node: process.versions.node }, 1);
  const role = new Gauge({
    name: 'eod_role',
    help: '1 for each role of this process: scheduler, worker, web.',
    labelNames: ['role'],
    registers,
  });
  for (const name of roles) role.set({ role: name }, 1);
  const stopCounting = countOwnWork(registers);
  const up = new Gauge({
    name: 'eod_database_up',
    help: '1 if the database and the queue respond; if 0, the metrics from them are absent.',
    registers,
  });
  // A worker alone leaves the facts of the installation out: there may be many workers, each of which would read and
  // export the same. The scheduler and the dashboard, one each, both have them, so that either may be missing.
  const hasFacts = roles.some((name) => name !== 'worker');
  let facts = new Registry();
  let restsUntil = 0;
  const readAgain = oneAtATime(async () => {
    const begunAt = performance.now();
    try {
      await within(checkServers(context));
      if (hasFacts) facts = await within(readFacts(context), READ_WITHIN_MS);
      up.set(1);
    } catch (error) {
      up.set(0);
      facts = new Registry();
      context.log.warn({ err: error }, 'metrics: the database or the queue does not respond');
    }
    restsUntil = performance.now() + REST * (performance.now() - begunAt);
  });
  let first: Promise<void> | undefined;
  return {
    contentType: registry.contentType,
    async text() {
      first ??= readAgain();
      await first;
      if (performance.now() >= restsUntil) await endsWithin(readAgain(), SCRAPE_WAITS_MS);
      return Registry.merge([registry, facts]).metrics();
    },
    close() {
      stopCounting();
      registry.clear();
    },
  };
}

/** Counts the calls and windows of this process. @returns a function that stops this. */
function countOwnWork(registers: Registry[]): () => void {
  const pair = ['operation', 'exchange'];
  const calls = new Histogram({
    name: 'eod_source_call_duration_seconds',
    help: 'How long calls to the source took, by outcome: success or the kind of the error.',
    labelNames: [...pair, 'outcome'],
    buckets: SECONDS,
    registers,
  });
  const windows = new Counter({
    name: 'eod_windows_ended_total',
    help: 'Windows that ended in this process: loaded, failed, blocked or skipped.',
    labelNames: [...pair, 'state'],
    registers,
  });
  const rows = new Counter({
    name: 'eod_rows_total',
    help: 'Rows of windows that this process loaded, by outcome: inserted, updated, unchanged, stale, duplicate, rejected, withdrawn.',
    labelNames: [...pair, 'outcome'],
    registers,
  });
  const unknownFields = new Counter({
    name: 'eod_responses_with_unknown_fields_total',
    help: 'Responses that this process loaded with fields that no column reads.',
    labelNames: pair,
    registers,
  });
  const waiting = new Gauge({
    name: 'eod_responses_waiting',
    help: 'Responses of the source that this process holds because Postgres cannot store them; it makes no call until they are stored.',
    registers,
  });
  const ends = [
    responsesWaiting.subscribe(({ responses }) => waiting.set(responses)),
    sourceCallEnded.subscribe(({ seconds, ...labels }) => calls.observe(labels, seconds)),
    windowEnded.subscribe(({ rows: counts, hasUnknownFields, ...labels }) => {
      windows.inc(labels);
      const { operation, exchange } = labels;
      if (hasUnknownFields) unknownFields.inc({ operation, exchange });
      for (const [outcome, number] of Object.entries(counts)) {
        rows.inc({ operation, exchange, outcome }, number);
      }
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

/** @throws Error if the database or the queue does not respond. */
async function checkServers({ db, queues }: QueueContext): Promise<void> {
  await Promise.all([db.withoutRetry.pool.query('select'), queues.ticks.getJobCounts()]);
}

/** Reads what the database and the queue know, whichever process did it, as gauges of a registry of their own. */
async function readFacts(context: QueueContext): Promise<Registry> {
  const { config, queues } = context;
  const db = context.db.withoutRetry.drizzle;
  const [sets, runs, { quota, keyRefused }, windows, rejected, findings, workers] = await Promise.all([
    readFreshness({ ...context, db: { drizzle: db } }),
    readLastCompletedRuns(db),
    readKeyStatus({ ...context, db: context.db.withoutRetry }),
    countOpenWindowsByState(db),
    countOpenRejects(db),
    countOpenFindings(db),
    readWorkers(db),
  ]);
  const jobs = await Promise.all(
    [...WINDOW_QUEUES, 'ticks' as const].map(async (queue) => ({
      queue,
      states: await (queue === 'ticks' ? queues.ticks : queues.windows[queue]).getJobCounts(),
    })),
  );
  const registry = new Registry();
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] });
  const complete = gauge(
    'eod_last_complete_session_timestamp_seconds',
    'Midnight of the last complete trading day; absent if none is complete.',
    'operation',
    'exchange',
  );
  const late = gauge(
    'eod_late_sessions',
    'How many trading days in a row, up to the last one, should be there and are not; 0 if the last one is there.',
    'operation',
    'exchange',
  );
  const missing = gauge(
    'eod_missing_sessions',
    'Trading days that should be there and are not, by reason: those that the status and the gaps count.',
    'operation',
    'exchange',
    'reason',
  );
  for (const { operation, exchange, ...set } of sets) {
    if (set.lastComplete === null && set.lastDue === null) continue;
    if (set.lastComplete !== null) {
      complete.set({ operation, exchange }, dayStart(set.lastComplete, config.EOD_TIMEZONE));
    }
    late.set({ operation, exchange }, set.missingInARow);
    for (const [reason, tradingDays] of Object.entries(set.missing)) {
      missing.set({ operation, exchange, reason }, tradingDays);
    }
  }
  const lastRun = gauge(
    'eod_last_completed_run_timestamp_seconds',
    'When the last completed run of each kind ended.',
    'kind',
  );
  for (const { kind, endedAt } of runs) lastRun.set({ kind }, endedAt);
  if (quota !== null) {
    gauge('eod_calls_used', 'Calls counted in this clock hour.').set(quota.calls);
    gauge(
      'eod_key_refused',
      '1 while the source refuses the access key, or the month is used up; else 0.',
    ).set(keyRefused === null ? 0 : 1);
    const ofHour = callsLeft(quota);
    const left = gauge(
      'eod_calls_left',
      'Calls that may still be made in this clock hour, by queue.',
      'queue',
    );
    left.set({ queue: 'nightly' }, ofHour.left);
    left.set({ queue: 'backfill' }, ofHour.forBackfills);
  }
  const queued = gauge('eod_queue_jobs', 'Jobs of the queues by state.', 'queue', 'state');
  for (const { queue, states } of jobs) {
    for (const [state, number] of Object.entries(states)) queued.set({ queue, state }, number);
  }
  const open = gauge('eod_open_windows', 'Windows that have not ended, by state.', 'state');
  for (const state of ['pending', 'running'] as const) {
    open.set({ state }, windows.find((entry) => entry.state === state)?.windows ?? 0);
  }
  const openRejects = gauge(
    'eod_open_rejects',
    'Records that were rejected and are not resolved.',
    'operation',
    'exchange',
  );
  for (const { operation, exchange, rejects } of rejected) openRejects.set({ operation, exchange }, rejects);
  const openFindings = gauge('eod_open_findings', 'Findings that are open.', 'check', 'severity');
  for (const { check, severity, findings: number } of findings) openFindings.set({ check, severity }, number);
  gauge('eod_workers', 'Workers that were seen within the last minute.').set(workers.seen);
  return registry;
}
