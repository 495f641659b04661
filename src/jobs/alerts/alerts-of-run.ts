import { timeAt } from '../../core/days.ts';
import { pairName } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { causeOf, listText, plural, rangeText } from '../../core/wording.ts';
import { BHAV_COPY } from '../../declaration/operation.ts';
import { isDataSet, pairTitle } from '../../operations/registry.ts';
import { readCompleteness } from '../../state/coverage/completeness.ts';
import { listRunFailures, readRunRefusal } from '../../state/runs/outcomes.ts';
import { listSuspiciousWindowsOfRuns, reportRun } from '../../state/runs/reports.ts';
import type { FollowedRun } from '../../state/runs/runs.ts';
import type { Context } from '../context.ts';
import { keyHash } from '../policy/quota.ts';
import { type Alert, exampleText, keyAlert, tradingDayAlert } from './alert.ts';
import { readAlertedTradingDays } from './late-data.ts';

/** Determines the alerts of a run that has ended. */
export async function alertsOfRun(context: Context, run: FollowedRun): Promise<Alert[]> {
  if (run.request.isAttended === true) return [];
  const key = await stoppedByKey(context, run);
  const failed =
    run.state === 'failed' ? await listRunFailures(context.db.drizzle, run.id, key?.subject ?? null) : [];
  const alerts = [
    key,
    failure(context, run, failed, key),
    await completion(context, run),
    await suspiciousResponses(context, run),
  ];
  const missing = run.kind === 'nightly' ? await missingTradingDays(context, run, key) : [];
  return [...alerts.filter((alert) => alert !== null), ...missing];
}

/** The alert of the key, if that stopped the run; it is the same for all runs that the key stopped. */
async function stoppedByKey({ db, config }: Context, run: FollowedRun): Promise<Alert | null> {
  if (run.state !== 'failed') return null;
  const hash = keyHash(config.EOD_ACCESS_KEY ?? '');
  const line = await readRunRefusal(db.drizzle, run.id, hash);
  return line === null ? null : keyAlert(hash, line);
}

/** @param key the alert of the key, if that stopped the run: `failed` is without the windows that it blocked. */
function failure({ config }: Context, run: FollowedRun, failed: Failed, key: Alert | null): Alert | null {
  if (run.state !== 'failed' || (key !== null && failed.length === 0)) return null;
  const why = failed.length === 0 && run.error !== null ? run.error : failedText(failed, config.EOD_TIMEZONE);
  return {
    kind: 'run_failed',
    subject: `${run.kind}: ${listSubjects(failed).join(', ')}`,
    message: `${why}; run ${run.id} (${run.kind}, ${rangeText(run)}) failed`,
    facts: { run: run.id, runKind: run.kind, from: run.from, to: run.to, failed },
  };
}

type Failed = Awaited<ReturnType<typeof listRunFailures>>;

/** What the facts of an alert are about, such as `bhavcopy_cm NSE`. */
const listSubjects = (facts: readonly { readonly what: string }[]) => facts.map((fact) => fact.what);

/** Why windows failed, a part for each cause, that of most windows first. */
function failedText(failed: Failed, timeZone: string): string {
  const countWindows = (group: Failed) => group.reduce((sum, { windows }) => sum + windows, 0);
  const groups = [...groupBy(failed, ({ reason }) => causeOf(reason ?? '')).values()];
  const parts = groups
    .sort((a, b) => countWindows(b) - countWindows(a))
    .map((group) => {
      const times = group.flatMap(({ first, last }) => [first, last]).sort();
      const [first = '', last = first] = [times[0], times.at(-1)];
      const [begin, end] = [first, last].map((time) =>
        timeAt(Date.parse(time) / 1_000, timeZone).slice(0, 5),
      );
      const subjects = listText(listSubjects(group), ', ');
      const span = begin === end ? begin : `${begin} to ${end}`;
      const reason = exampleText(group.map((failure) => failure.reason ?? 'no reason is known'));
      return `${reason} (${span}, ${plural(countWindows(group), 'window')} of ${subjects})`;
    });
  return listText(parts);
}

/** Raised only if EOD_ALERT_ON names it. */
async function completion(context: Context, run: FollowedRun): Promise<Alert | null> {
  if (run.state !== 'completed' || !context.config.EOD_ALERT_ON.includes('run_completed')) return null;
  const { windows, requests, fetched, inserted, updated, rejected } = await reportRun(context, run.id);
  const counts = { windows, requests, fetched, inserted, updated, rejected };
  return {
    kind: 'run_completed',
    subject: `run ${run.id}`,
    message: `run ${run.id} (${run.kind}, ${run.from} to ${run.to}) completed: ${fetched} records in ${requests} requests, ${inserted} inserted, ${updated} updated, ${rejected} rejected`,
    facts: { run: run.id, runKind: run.kind, from: run.from, to: run.to, ...counts },
  };
}

/** The alert of suspicious responses; without those that were rejected, if the alert that the run failed is sent for them. */
async function suspiciousResponses({ config, db }: Context, run: FollowedRun): Promise<Alert | null> {
  const areFailuresSent = config.EOD_ALERT_ON.includes('run_failed');
  const windows = (await listSuspiciousWindowsOfRuns(db.drizzle, [run.id])).filter(
    ({ state }) => !(areFailuresSent && state === 'failed'),
  );
  if (windows.length === 0) return null;
  const windowFacts = windows.map((window) => ({
    what: `${window.operation} ${window.exchange} ${window.from}`,
    window: window.windowId,
    suspicious: window.reason,
  }));
  return {
    kind: 'suspicious',
    subject: listSubjects(windowFacts).join(', '),
    message: `run ${run.id} has suspicious windows: ${listText(windows.map((window) => `${pairTitle(window)} ${window.from}: ${window.reason}`))}`,
    facts: { run: run.id, windows: windowFacts },
  };
}

/**
 * The trading days that a nightly run requested and that are still missing. The bhav copy of its day is late then: it
 * does not wait for EOD_LATE_AFTER_MINUTES.
 *
 * @param key the alert of the key, if that stopped the run: what it has caused is not reported, because the key has to
 *   be replaced first.
 */
async function missingTradingDays(context: Context, run: FollowedRun, key: Alert | null): Promise<Alert[]> {
  const requested = (run.request.targets ?? []).filter(({ operation }) => isDataSet(operation));
  const scope = { expected: requested, others: false, from: run.from, to: run.to };
  const missing = (await readCompleteness(context, scope)).filter(
    (tradingDay) =>
      tradingDay.state === 'missing' &&
      requested.some(
        ({ from, to, ...pair }) =>
          pairName(pair) === pairName(tradingDay) && from <= tradingDay.day && tradingDay.day <= to,
      ),
  );
  const wasAlerted = await readAlertedTradingDays(context);
  const late = missing.filter(
    ({ operation, day, reason, ...tradingDay }) =>
      operation === BHAV_COPY &&
      day === run.to &&
      (reason === 'not_published' || reason === 'empty') &&
      !wasAlerted({ operation, day, ...tradingDay }),
  );
  return [
    ...late.map((tradingDay) => tradingDayAlert('late_data', tradingDay, { run: run.id })),
    ...(key === null
      ? missing.map((tradingDay) => tradingDayAlert('gaps', tradingDay, { run: run.id }))
      : []),
  ];
}
