import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { type ImportReport, importFiles } from '../jobs/import/import-files.ts';
import type { FileDifference, FileReport } from '../jobs/import/sessions.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { EXIT } from './errors.ts';
import { type Column, count, plural, print, printJson, say, table } from './output.ts';
import { type ProgressView, progressView } from './progress.ts';
import { runText } from './run-view.ts';

/** So many files and differences are printed for people; the JSON document has more. */
const NAMED = 20;

const DIFFERENCES: readonly Column<FileDifference>[] = [
  { head: 'file', cell: (row) => row.file },
  { head: 'change', cell: (row) => row.change },
  { head: 'row', cell: (row) => Object.values(row.key).join(' ') },
  {
    head: 'columns, stored → file',
    cell: (row) =>
      Object.entries(row.columns)
        .map(([column, value]) => `${column}: ${String(value.old)} → ${String(value.new)}`)
        .join(', '),
  },
];

export function importCommand(program: Command, cli: Cli): Command {
  return program
    .command('import')
    .description('Load the exchanges’ own bhav copy files, of any age. Files imported before are skipped.')
    .argument('<paths...>', 'files, or folders that are searched for .csv and .zip')
    .option('--force', 'read files again that were imported before')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      examples(
        'eod import downloads/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv.zip',
        'eod import archive/nse archive/bse --json',
      ),
    )
    .action((paths: string[], flags: { readonly force?: boolean; readonly json?: boolean }) =>
      importPaths(cli, paths, flags),
    );
}

async function importPaths(
  cli: Cli,
  paths: readonly string[],
  flags: { readonly force?: boolean; readonly json?: boolean },
): Promise<void> {
  const context = await openContext(cli.life, loadConfig(), { wait: 'short' });
  let view: ProgressView | undefined;
  const report = await importFiles(context, {
    paths,
    force: flags.force === true,
    signal: cli.life.signal,
    onProgress(runId, progress) {
      view ??= progressView(runId, 'files');
      view.update(progress);
    },
  }).finally(() => view?.end());
  if (flags.json === true) printJson(report);
  else print(importText(report));
  const failures = failuresText(report.files);
  if (failures !== null) say(failures);
  if (report.left > 0)
    say(`stopped: ${plural(report.left, 'file')} left; import the same files again to go on`);
  cli.exitCode = (report.left > 0 ? cli.life.cutShort() : null) ?? exitCodeOf(report);
}

function exitCodeOf({ files, left }: ImportReport): number {
  return left === 0 && files.every((file) => file.state !== 'failed') ? EXIT.done : EXIT.failed;
}

/** The run, what became of its files, and where they disagree with what was stored. */
function importText(report: ImportReport): string {
  const { files, differences, updated, withdrawn } = report;
  const of = (state: FileReport['state']) => files.filter((file) => file.state === state).length;
  const shown = differences.slice(0, NAMED);
  return [
    // Bad files are named on stderr; the run's own error would only name them again.
    runText(report.left > 0 ? report : { ...report, error: null }),
    '',
    `${plural(files.length, 'file')}: ${of('loaded')} loaded, ${of('skipped')} skipped, ${of('failed')} not imported`,
    ...(shown.length === 0
      ? []
      : [
          '',
          `The files differ from what was stored before: ${count(updated)} changed, ${count(withdrawn)} withdrawn; some of the rows:`,
          table(DIFFERENCES, shown),
        ]),
  ].join('\n');
}

function failuresText(files: readonly FileReport[]): string | null {
  const bad = files.filter((file) => file.state === 'failed');
  if (bad.length === 0) return null;
  return [
    `${plural(bad.length, 'file')} not imported:`,
    ...bad.slice(0, NAMED).map(({ file, error }) => `  ${file}: ${error}`),
    ...(bad.length > NAMED ? [`  … and ${bad.length - NAMED} more`] : []),
  ].join('\n');
}
