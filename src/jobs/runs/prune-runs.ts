import { DAY_MS } from '../../core/days.ts';
import { pruneAlerts } from '../../load/state/alerts.ts';
import { pruneFindings } from '../../load/state/findings.ts';
import { deleteOldRuns } from '../../load/state/runs/runs.ts';
import { pruneHours } from '../../load/state/source/call-budget.ts';
import { countOldRuns, deleteOldWindows } from '../../load/state/windows/retention.ts';
import { pruneWithdrawals } from '../../load/state/withdrawals.ts';
import type { Context } from '../context.ts';

/**
 * Deletes what the work of more than EOD_KEEP_RUNS_DAYS ago left: ended runs, their windows, alerts, outdated
 * withdrawals, resolved findings and the counts of calls.
 *
 * @param dryRun only counts.
 */
export async function pruneRuns(
  { db, clock, config }: Pick<Context, 'db' | 'clock' | 'config'>,
  dryRun = false,
) {
  const before = new Date(clock.now() - config.EOD_KEEP_RUNS_DAYS * DAY_MS);
  return {
    ...(dryRun
      ? await countOldRuns(db.drizzle, before)
      : { windows: await deleteOldWindows(db, before), runs: await deleteOldRuns(db.drizzle, before) }),
    alerts: await pruneAlerts(db.drizzle, before, dryRun),
    withdrawals: await pruneWithdrawals(db.drizzle, before, dryRun),
    findings: await pruneFindings(db.drizzle, before, dryRun),
    hours: await pruneHours(db.drizzle, before, dryRun),
  };
}
