import { today } from '../../core/clock.ts';
import { addDays, type Day } from '../../core/days.ts';
import { type Pair, pairName } from '../../core/exchanges.ts';
import { listAlertSubjects } from '../../state/alerts.ts';
import { readCompleteness, type TradingDayState } from '../../state/coverage/completeness.ts';
import { listLoadedPairs } from '../../state/coverage/coverage.ts';
import { readWorkers } from '../../state/workers.ts';
import type { Context } from '../context.ts';
import { tradingDayAlert } from './alert.ts';
import { raiseAlerts, startDelivery } from './send-alerts.ts';

/** How many days back trading days are checked. Alerts about older ones have been raised, or they were not expected. */
const LOOK_BACK_DAYS = 7;

/**
 * Checks periodically for late data, and sends alerts that are due. Every long-running process does this, whatever its
 * role, so that a worker notices when the scheduler is gone, and the other way round.
 */
export function startAlertWatch(opened: Context): { stop(): Promise<void> } {
  // Without retry: what fails is done a minute later.
  const context = { ...opened, db: opened.db.withoutRetry };
  const since = context.clock.now();
  return startDelivery(context, () => checkLateData(context, since));
}

/**
 * Raises an alert for each trading day that was due EOD_LATE_AFTER_MINUTES ago, is not loaded and is not in an earlier
 * alert, whether a nightly run requested it or not. Never throws: errors are logged.
 *
 * @param since when this process began to check, in epoch milliseconds. Of a data set of which nothing was ever loaded,
 *   only trading days that became late after this are reported, so that a new database raises no alert for last week.
 */
export async function checkLateData(context: Context, since: number): Promise<void> {
  try {
    const late = await lateTradingDays(context, since);
    if (late.length === 0) return;
    const { seen: workers } = await readWorkers(context.db.drizzle);
    await raiseAlerts(
      context,
      late.map((tradingDay) => tradingDayAlert('late_data', tradingDay, { workers })),
    );
  } catch (error) {
    context.log.warn({ err: error }, 'could not check for late data');
  }
}

/** Without trading days that the source has refused, which raise other alerts. */
async function lateTradingDays(context: Context, since: number): Promise<TradingDayState[]> {
  const { clock, config } = context;
  const delay = config.EOD_LATE_AFTER_MINUTES * 60_000;
  const from = addDays(today(clock, config.EOD_TIMEZONE), -LOOK_BACK_DAYS);
  // `from` is not set, so that trading days before the first stored one of a pair are not expected.
  const scope = { expected: 'scheduled' as const, others: false, since: from };
  const tradingDays = (await readCompleteness(context, scope)).filter(({ day }) => day >= from);
  const late = tradingDays.filter(
    ({ state, reason, due }) =>
      state === 'missing' &&
      reason !== 'blocked' &&
      reason !== 'beyond_history' &&
      due <= clock.now() - delay,
  );
  if (late.length === 0) return [];
  const alerted = await readAlertedTradingDays(context);
  const loaded = await listLoadedPairs(context.db.drizzle, late);
  return late.filter(
    (tradingDay) =>
      !alerted(tradingDay) && (loaded.has(pairName(tradingDay)) || tradingDay.due > since - delay),
  );
}

/**
 * Reads which trading days recent alerts have reported, as late or as gaps after a nightly run.
 *
 * @returns a function that says whether a trading day is among them.
 */
export async function readAlertedTradingDays({ config, db }: Context) {
  const kinds = config.EOD_ALERT_ON.filter((kind) => kind === 'gaps');
  const subjects = await listAlertSubjects(db.drizzle, ['late_data', ...kinds], LOOK_BACK_DAYS + 1);
  return (tradingDay: Pair & { readonly day: Day }): boolean =>
    subjects.has(`${pairName(tradingDay)} ${tradingDay.day}`);
}
