import { EXIT, logStderr, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { plural } from '../output.ts';
import { failuresText } from '../run-output.ts';
import { readRejectFilter, rejectFilterOptions } from './rejects.ts';

export default defineCommand({
  path: 'rejects retry',
  summary: 'Read the rejected records again with the current code, and load those that pass now.',
  options: rejectFilterOptions,
  async run(cli, { json, ...values }) {
    const { planReplay } = await import('../../jobs/replay/plan-replay.ts');
    const { listOpenRejectIds } = await import('../../state/rejects.ts');
    const { openContext } = await import('../open-context.ts');
    const { concludeRun, workOnReplay } = await import('../work-on-run.ts');
    const filter = readRejectFilter(values);
    const context = await openContext(cli, { wait: 'short' });
    const { drizzle } = context.db;
    const before = await listOpenRejectIds(drizzle, filter);
    const runId = before.length === 0 ? null : await planReplay(context, filter, { rejectsOnly: true });
    const ending = runId === null ? null : await workOnReplay(cli, context, runId);
    const report = ending?.report ?? null;
    const open = await listOpenRejectIds(drizzle, { ids: before });
    const tried = before.length;
    const resolved = tried - open.length;
    if (json) {
      printJson(cli, { runId, tried, resolved, open, report });
    } else if (tried === 0) {
      print(cli, 'no open rejects');
    } else {
      const run = runId === null ? '' : `run ${runId}: `;
      print(cli, `${run}${resolved} of ${plural(tried, 'reject')} resolved, ${open.length} still rejected`);
    }
    const failures = report === null ? null : failuresText(report);
    if (failures !== null) logStderr(cli, failures);
    const code = ending === null ? EXIT.done : concludeRun(cli, ending);
    cli.exitCode = ending?.isInterrupted !== true && open.length > 0 ? EXIT.failed : code;
  },
});
