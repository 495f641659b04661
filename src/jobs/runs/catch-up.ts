import { today } from '../../core/clock.ts';
import { HOUR_MS } from '../../core/days.ts';
import { pairName } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { takeSessionLock } from '../../postgres/session-lock.ts';
import { readCompleteness, type TradingDayState } from '../../state/coverage/completeness.ts';
import { listLoadedPairs } from '../../state/coverage/coverage.ts';
import { listPairsWithOpenWindows } from '../../state/windows/read-windows.ts';
import type { QueueContext } from '../context.ts';
import { syncTradingDays } from '../responses/sync-sessions.ts';
import { gapRequest, groupGaps } from './read-gaps.ts';
import { startRun } from './run-control.ts';

/**
 * Requests what is due and missing of the last EOD_LOOKBACK_SESSIONS trading days, because the times of these nights
 * may have passed while no scheduler ran. However many processes start, there is one such run an hour.
 *
 * Nothing is requested of a data set of which nothing was ever loaded, or of which a run has windows left.
 *
 * @returns the run; null if there is none.
 */
export async function catchUp(opened: QueueContext): Promise<number | null> {
  const { clock, config, db, log } = opened;
  if (config.EOD_LOOKBACK_SESSIONS === 0) return null;
  let runId: number | null = null;
  // A process that starts at the same time finds the windows of this one.
  const lock = await takeSessionLock(db, `eod:catch-up:${config.EOD_QUEUE_PREFIX}`, async (withoutRetry) => {
    const context = { ...opened, db: withoutRetry };
    const tradingDays = await missedTradingDays(context);
    if (tradingDays.length === 0) return;
    const hour = new Date(Math.floor(clock.now() / HOUR_MS) * HOUR_MS).toISOString();
    runId = await startRun(context, gapRequest(groupGaps(tradingDays, 'missing')), {
      tick: `catch-up-${config.EOD_QUEUE_PREFIX}-${hour}`,
      requestedBy: 'schedule',
    });
    if (runId !== null)
      log.info({ runId, sessions: tradingDays.length }, 'requests what became due while no scheduler ran');
  });
  await lock.release();
  return runId;
}

/** What is missing of the last trading days of each data set, in the order of the data sets. */
async function missedTradingDays(context: QueueContext): Promise<TradingDayState[]> {
  const { calendar, clock, config, db } = context;
  const { EOD_EXCHANGES: exchanges, EOD_LOOKBACK_SESSIONS: lookback, EOD_TIMEZONE: timeZone } = config;
  await syncTradingDays(context);
  const day = today(clock, timeZone);
  // That of today may not be due.
  const first = exchanges.map((exchange) => calendar.lastTradingDays(exchange, day, lookback + 1)[0] ?? day);
  const scope = { expected: 'scheduled' as const, others: false, since: first.sort()[0] ?? day };
  const due = (await readCompleteness(context, scope)).filter(({ state }) => state !== 'pending');
  const missed = [...groupBy(due, pairName).values()].flatMap((tradingDays) =>
    tradingDays
      .slice(-lookback)
      .filter(
        ({ state, reason }) => state === 'missing' && reason !== 'blocked' && reason !== 'beyond_history',
      ),
  );
  const loaded = await listLoadedPairs(db.drizzle, missed);
  const open = await listPairsWithOpenWindows(db.drizzle);
  return missed.filter((tradingDay) => loaded.has(pairName(tradingDay)) && !open.has(pairName(tradingDay)));
}
