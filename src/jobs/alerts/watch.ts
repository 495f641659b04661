import type { Context } from '../context.ts';
import { checkLateData } from './late-data.ts';
import { deliverAlerts } from './send-alerts.ts';

/** How often data that is late and alerts that could not be delivered are looked for. */
const EVERY_MS = 60_000;

/**
 * Looks from now on for data that is late, and sends the alerts that are due. Every process that keeps running does, whatever
 * its role: where the scheduler is gone a worker says so, and the other way round.
 */
export function startAlertWatch(opened: Context): { stop(): Promise<void> } {
  // What cannot be done now is done a minute later.
  const context = { ...opened, db: opened.db.withoutRetry };
  const since = context.clock.now();
  const stopping = new AbortController();
  const look = async () => {
    await checkLateData(context, since);
    await deliverAlerts(context, stopping.signal);
  };
  let looking = look();
  const timer = setInterval(() => {
    looking = looking.then(look);
  }, EVERY_MS);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await looking;
    },
  };
}
