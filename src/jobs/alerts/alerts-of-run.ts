import { epochOf, secondsOfDay } from '../../core/days.ts';
import { changeText, readSchemaChanges } from '../../load/state/answers/schema-changes.ts';
import { exchangesWithoutData } from '../../load/state/coverage/coverage.ts';
import { failuresOfRun, refusalInRun } from '../../load/state/runs/outcomes.ts';
import { doubtedWindowsOfRuns, reportRun } from '../../load/state/runs/reports.ts';
import type { RunRequest } from '../../load/state/runs/request.ts';
import { type EndedRun, readRun } from '../../load/state/runs/runs.ts';
import { BHAV_COPY } from '../../operations/operation.ts';
import { isInUse, operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { type Gap, readGaps } from '../runs/read-gaps.ts';
import { keyHash } from '../worker/quota.ts';
import { readAlertedSessions } from './late-data.ts';
import { type Alert, keyAlert, listText } from './send-alerts.ts';

/** Determines the alerts of a run that has ended. */
export async function alertsOfRun(context: Context, run: EndedRun): Promise<Alert[]> {
  if (run.kind === 'preview') return [];
  const key = await stoppedByKey(context, run);
  const alerts = [
    key,
    await failure(context, run, key),
    await doubtedAnswers(context, run),
    await schemaChanged(context, run),
    await completion(context, run),
  ];
  if (run.kind === 'nightly') alerts.push(await lateness(context, run));
  // Gaps that a refused key has caused are not reported: the key has to be replaced first.
  if (run.kind === 'nightly' && key === null) alerts.push(await gaps(context, run));
  return alerts.filter((alert) => alert !== null);
}

/** The alert of the key, if that stopped the run; it is the same for all runs that the key stopped. */
async function stoppedByKey({ db, config }: Context, run: EndedRun): Promise<Alert | null> {
  if (run.state !== 'failed') return null;
  const hash = keyHash(config.EOD_ACCESS_KEY ?? '');
  const line = await refusalInRun(db.drizzle, run.id, hash);
  return line === null ? null : keyAlert(hash, line);
}

/** @param key the alert of the key, if that stopped the run: the windows that it blocked are left out. */
async function failure({ db }: Context, run: EndedRun, key: Alert | null): Promise<Alert | null> {
  if (run.state !== 'failed') return null;
  const failed = await failuresOfRun(db.drizzle, run.id, key?.subject ?? null);
  if (key !== null && failed.length === 0) return null;
  const { error } = await reportRun(db.drizzle, run.id);
  const why =
    failed.length === 0 && error !== null
      ? error
      : listText(failed.map(({ what, windows, reason }) => `${what} (${windows}: ${reason})`));
  return {
    kind: 'run_failed',
    subject: `${run.kind}: ${failed.map(({ what }) => what).join(', ')}`,
    message: `run ${run.id} (${run.kind}, ${run.from} to ${run.to}) failed: ${why}`,
    facts: { run: run.id, runKind: run.kind, from: run.from, to: run.to, failed },
  };
}

/** Raised only if EOD_ALERT_ON names it. */
async function completion({ db, config }: Context, run: EndedRun): Promise<Alert | null> {
  if (run.state !== 'completed' || !config.EOD_ALERT_ON.includes('run_completed')) return null;
  const { windows, requests, fetched, inserted, updated, rejected } = await reportRun(db.drizzle, run.id);
  return {
    kind: 'run_completed',
    subject: `run ${run.id}`,
    message: `run ${run.id} (${run.kind}, ${run.from} to ${run.to}) completed: ${fetched} records in ${requests} requests, ${inserted} inserted, ${updated} updated, ${rejected} rejected`,
    facts: {
      run: run.id,
      runKind: run.kind,
      from: run.from,
      to: run.to,
      windows,
      requests,
      fetched,
      inserted,
      updated,
      rejected,
    },
  };
}

async function doubtedAnswers({ db }: Context, run: EndedRun): Promise<Alert | null> {
  const found = (await doubtedWindowsOfRuns(db.drizzle, [run.id])).map((window) => ({
    what: `${window.operation} ${window.exchange} ${window.from}`,
    window: window.windowId,
    suspicious: window.reason,
  }));
  if (found.length === 0) return null;
  return {
    kind: 'suspicious',
    subject: found.map(({ what }) => what).join(', '),
    message: `run ${run.id} got answers that somebody should look at: ${listText(found.map(({ what, suspicious }) => `${what}: ${suspicious}`))}`,
    facts: { run: run.id, windows: found },
  };
}

/** Each change is of the run whose answer shows it first, so it is told once. */
async function schemaChanged({ db }: Context, run: EndedRun): Promise<Alert | null> {
  const changes = await readSchemaChanges(db.drizzle, { runId: run.id });
  if (changes.length === 0) return null;
  const texts = changes.map(changeText).sort();
  return {
    kind: 'schema_changed',
    subject: changes
      .map(({ operation, exchange, field, change }) => `${operation} ${exchange} ${field} ${change}`)
      .sort()
      .join(', '),
    message: `the source has changed the fields of its answers: ${listText(texts)}`,
    facts: { run: run.id, changes: changes.map(({ runId: _, ...change }) => change) },
  };
}

/** The nightly run has ended after EOD_PUBLISHED_AT, and the bhav copy of the day is not loaded. */
async function lateness(context: Context, run: EndedRun): Promise<Alert | null> {
  const { db, config, clock, calendar } = context;
  const due = epochOf(run.to, secondsOfDay(config.EOD_PUBLISHED_AT), config.EOD_TIMEZONE) * 1_000;
  if (clock.now() < due) return null;
  const asked = { runId: run.id, operation: BHAV_COPY, day: run.to };
  const wasAlerted = await readAlertedSessions(context);
  const late = (await exchangesWithoutData(db.drizzle, asked)).filter(
    (exchange) =>
      calendar.sessions(exchange, run.to, run.to).length > 0 && !wasAlerted({ ...asked, exchange }),
  );
  if (late.length === 0) return null;
  return {
    kind: 'late_data',
    subject: `${late.join(', ')} ${run.to}`,
    message: `the bhav copy of ${run.to} is not there yet: ${late.join(', ')} (due ${config.EOD_PUBLISHED_AT} ${config.EOD_TIMEZONE})`,
    facts: {
      run: run.id,
      day: run.to,
      exchanges: late,
      sessions: late.map((exchange) => ({ operation: asked.operation, exchange, day: run.to })),
    },
  };
}

/** The sessions that the nightly run asked for and that are still missing. */
async function gaps(context: Context, run: EndedRun): Promise<Alert | null> {
  const request = (await readRun(context.db.drizzle, run.id))?.request as RunRequest | undefined;
  const asked = request?.targets ?? [];
  if (asked.length === 0) return null;
  const found = await readGaps(context, {
    operations: [...new Set(asked.map(({ operation }) => operation))].filter(isInUse).map(operationNamed),
    exchanges: [...new Set(asked.map(({ exchange }) => exchange))],
    from: run.from,
    to: run.to,
  });
  const missing = found.gaps.filter((gap) =>
    asked.some(
      ({ operation, exchange, from, to }) =>
        gap.operation === operation && gap.exchange === exchange && gap.from <= to && gap.to >= from,
    ),
  );
  if (missing.length === 0) return null;
  return {
    kind: 'gaps',
    subject: missing.map(gapName).join(', '),
    message: `sessions are missing after the night: ${listText(missing.map(gapName))}`,
    facts: { run: run.id, gaps: missing },
  };
}

const gapName = ({ operation, exchange, from, to, reason }: Gap) =>
  `${operation} ${exchange} ${from === to ? from : `${from} to ${to}`} (${reason})`;
