import { planReplay } from '../../jobs/replay/plan-replay.ts';
import { openRejectIds } from '../../state/rejects.ts';
import { type Cli, EXIT, logStderr, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { plural } from '../output.ts';
import { failuresText } from '../run-output.ts';
import { concluded, workOnReplay } from '../work-on-run.ts';
import { type FilterFlags, filterOfFlags } from './rejects-command.ts';

export async function retryRejects(cli: Cli, flags: FilterFlags): Promise<void> {
  const filter = filterOfFlags(flags);
  const context = await openContext(cli, { wait: 'short' });
  const { drizzle } = context.db;
  const before = await openRejectIds(drizzle, filter);
  const runId = before.length === 0 ? null : await planReplay(context, filter, { rejectsOnly: true });
  const ending = runId === null ? null : await workOnReplay(cli, context, runId);
  const report = ending?.report ?? null;
  const open = await openRejectIds(drizzle, { ids: before });
  const tried = before.length;
  const resolved = tried - open.length;
  if (flags.json === true) {
    printJson(cli, { runId, tried, resolved, open, report });
  } else if (tried === 0) {
    print(cli, 'no open rejects');
  } else {
    const run = runId === null ? '' : `run ${runId}: `;
    print(cli, `${run}${resolved} of ${plural(tried, 'reject')} resolved, ${open.length} still rejected`);
  }
  const failures = report === null ? null : failuresText(report);
  if (failures !== null) logStderr(cli, failures);
  const code = ending === null ? EXIT.done : concluded(cli, ending);
  cli.exitCode = ending?.interrupted !== true && open.length > 0 ? EXIT.failed : code;
}
