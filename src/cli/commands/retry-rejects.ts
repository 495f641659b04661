import { planReplay } from '../../jobs/replay/plan-replay.ts';
import { openRejectIds, type UnkeptFile, unkeptFiles } from '../../load/state/rejects.ts';
import { type Cli, EXIT, loadSettings, logStderr, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { firstLines, plural } from '../output.ts';
import { failuresText } from '../run-output.ts';
import { exitCodeOfEnding, logHowToResume, workOnReplay } from '../work-on-run.ts';
import { type FilterFlags, filterOfFlags } from './rejects-command.ts';

/** How many files are named. */
const MOST_LISTED = 20;

export async function retryRejects(cli: Cli, flags: FilterFlags): Promise<void> {
  const config = await loadSettings(cli);
  const filterOf = await filterOfFlags(flags, config);
  const context = await openContext(cli, { config, wait: 'short' });
  const filter = filterOf();
  const { drizzle } = context.db;
  const before = await openRejectIds(drizzle, filter);
  const unkept = await unkeptFiles(drizzle, before);
  const runId = before.length === 0 ? null : await planReplay(context, filter, { rejectsOnly: true });
  const ending = runId === null ? null : await workOnReplay(cli, context, runId);
  const report = ending?.report ?? null;
  const open = await openRejectIds(drizzle, { ids: before });
  const tried = before.length;
  const resolved = tried - open.length;
  if (flags.json === true) {
    printJson(cli, { runId, tried, resolved, open, unkept, report });
  } else if (tried === 0) {
    print(cli, 'no open rejects');
  } else {
    const run = runId === null ? '' : `run ${runId}: `;
    print(cli, `${run}${resolved} of ${plural(tried, 'reject')} resolved, ${open.length} still rejected`);
  }
  if (unkept.length > 0) logStderr(cli, unkeptText(unkept));
  const failures = report === null ? null : failuresText(report);
  if (failures !== null) logStderr(cli, failures);
  if (ending?.interrupted === true) logHowToResume(cli, ending.report);
  const code = ending === null ? EXIT.done : exitCodeOfEnding(cli, ending);
  cli.exitCode = ending?.interrupted !== true && open.length > 0 ? EXIT.failed : code;
}

function unkeptText(files: readonly UnkeptFile[]): string {
  return [
    'these imported files were not kept, so they could not be read again ("eod import --force" can):',
    ...firstLines(files, MOST_LISTED, ({ file, rejects }) => `  ${file}: ${plural(rejects, 'reject')}`),
  ].join('\n');
}
