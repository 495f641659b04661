import type { Context } from '../context.ts';
import { checkLateData } from './late-data.ts';
import { deliverAlerts } from './send-alerts.ts';

/** How often late data and undelivered alerts are checked. */
const EVERY_MS = 60_000;

/**
 * Checks periodically for late data, and sends alerts that are due. Every long-running process does this, whatever its
 * role, so that a worker notices when the scheduler is gone, and the other way round.
 */
export function startAlertWatch(opened: Context): { stop(): Promise<void> } {
  // Without retry: what fails is done a minute later.
  const context = { ...opened, db: opened.db.withoutRetry };
  const since = context.clock.now();
  const stopping = new AbortController();
  const check = async () => {
    await checkLateData(context, since);
    await deliverAlerts(context, stopping.signal);
  };
  let checking = check();
  const timer = setInterval(() => {
    checking = checking.then(check);
  }, EVERY_MS);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await checking;
    },
  };
}
