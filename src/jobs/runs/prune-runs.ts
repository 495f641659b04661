import { pruneAlerts } from '../../state/alerts.ts';
import { pruneFindings } from '../../state/findings.ts';
import { pruneRejects } from '../../state/rejects.ts';
import { pruneBodies } from '../../state/responses/responses.ts';
import { deleteOldRuns } from '../../state/runs/runs.ts';
import { pruneHours } from '../../state/source/call-budget.ts';
import { countOldRuns, deleteOldWindows } from '../../state/windows/retention.ts';
import { pruneWithdrawals } from '../../state/withdrawals.ts';
import type { Context } from '../context.ts';

/**
 * Deletes what the work of more than EOD_KEEP_RUNS_DAYS ago, by the clock of Postgres, left: ended runs, their windows,
 * alerts, resolved rejects, outdated withdrawals, resolved findings, the counts of calls, and bodies that could not be read.
 * Kept responses stay.
 *
 * @param dryRun only counts.
 */
export async function pruneRuns({ db, config }: Pick<Context, 'db' | 'config'>, dryRun = false) {
  const days = config.EOD_KEEP_RUNS_DAYS;
  return {
    rejects: await pruneRejects(db.drizzle, days, dryRun),
    ...(dryRun
      ? await countOldRuns(db.drizzle, days)
      : { windows: await deleteOldWindows(db, days), runs: await deleteOldRuns(db.drizzle, days) }),
    alerts: await pruneAlerts(db.drizzle, days, dryRun),
    withdrawals: await pruneWithdrawals(db.drizzle, days, dryRun),
    findings: await pruneFindings(db.drizzle, days, dryRun),
    hours: await pruneHours(db.drizzle, days, dryRun),
    ...(await pruneBodies(db, dryRun)),
  };
}
