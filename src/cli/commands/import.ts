import { groupBy } from '../../core/iterables.ts';
import { IMPORTED_BEFORE } from '../../core/wording.ts';
import type { ImportReport } from '../../jobs/import/import-files.ts';
import type { FileReport, FormatReport } from '../../jobs/import/import-sessions.ts';
import { EXIT, logNote, logStderr, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { flag, several } from '../options.ts';
import { type Column, firstLines, memberColumns, plural, table } from '../output.ts';
import type { progressView } from '../progress.ts';
import { runText } from '../run-output.ts';

export default defineCommand({
  path: 'import',
  group: 'Load',
  summary:
    'Load files of the exchanges: bhav copies, deliveries, derivatives, price bands, deals, lists and more, of any age. Files that were imported before are skipped.',
  args: {
    paths: {
      ...several('files, or folders to search for .csv, .dat, .json and .zip files, also with .gz behind'),
      isRequired: true,
    },
  },
  options: {
    force: flag('also read files that were imported before'),
    strict: flag('fail if a file has an unknown form, also where others are imported'),
  },
  examples: [
    'eod import downloads/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv.zip',
    'eod import archive/nse archive/bse --json',
  ],
  async run(cli, { paths, force, strict, json }) {
    const { findFiles } = await import('../../jobs/import/files.ts');
    const { importFiles } = await import('../../jobs/import/import-files.ts');
    const { openContext } = await import('../open-context.ts');
    const { progressView: openView } = await import('../progress.ts');
    // A wrong path is reported before a database is opened, or created.
    await findFiles(paths, cli.cwd);
    const context = await openContext(cli, { wait: 'short' });
    let view: ReturnType<typeof progressView> | undefined;
    const report = await importFiles(context, {
      paths,
      cwd: cli.cwd,
      force,
      strict,
      signal: cli.life.signal,
      onProgress(runId, progress) {
        view ??= openView(cli, runId, 'files');
        view.update(progress);
      },
    }).finally(() => view?.end());
    if (json) printJson(cli, report);
    else print(cli, importText(report, context.config.EOD_TIMEZONE));
    const inState = (state: FileReport['state']) => report.files.filter((file) => file.state === state);
    const idle = reasonsText(
      'with nothing to load',
      inState('skipped').filter(({ error }) => error !== IMPORTED_BEFORE),
    );
    if (idle !== null) logNote(cli, idle);
    for (const text of [unknownText(report.files), reasonsText('refused', inState('failed'))]) {
      if (text !== null) logStderr(cli, text);
    }
    if (report.left > 0) {
      logStderr(cli, `stopped: ${plural(report.left, 'file')} left; import the same files again to go on`);
    }
    const stopCode = report.left > 0 ? cli.life.cutShort() : null;
    cli.exitCode = stopCode ?? (report.state === 'completed' ? EXIT.done : EXIT.failed);
  },
});

/** The run, and how many files were loaded. */
function importText(report: ImportReport, timeZone: string): string {
  const { files } = report;
  const inState = (state: FileReport['state']) => files.filter((file) => file.state === state).length;
  const before = files.filter(({ error }) => error === IMPORTED_BEFORE).length;
  const inArchives = files.reduce((sum, { leftOut }) => sum + leftOut.length, 0);
  const further = (number: number, text: string) => (number === 0 ? '' : ` (${text})`);
  return [
    // Files that failed are named on stderr; the run's own error would name them again.
    runText(report.left > 0 ? report : { ...report, error: null }, timeZone),
    '',
    `${plural(files.length, 'file')}: ${inState('loaded')} loaded, ${inState('skipped')} skipped${further(before, `${before} imported before`)}, ${inState('unknown')} not recognised${further(inArchives, `and ${inArchives} in archives`)}, ${inState('failed')} refused`,
    ...formatsText(files),
  ].join('\n');
}

interface FormatSums extends Omit<FormatReport, 'sessions' | 'tables'> {
  readonly files: number;
  readonly tables: ReadonlySet<string>;
}

const formatColumns: Column<FormatSums>[] = [
  ...memberColumns<FormatSums>('format', 'files', 'records', 'rejected'),
  { head: 'lines skipped', cell: ({ passedOver }) => passedOver },
  { head: 'in market', cell: ({ tables }) => [...tables].join(', ') },
];

/** What came of files of each format. */
function formatsText(files: readonly FileReport[]): string[] {
  const sums = new Map<string, FormatSums>();
  for (const { format, tables, ...counts } of files.flatMap(({ formats }) => formats)) {
    const before = sums.get(format);
    sums.set(format, {
      format,
      files: (before?.files ?? 0) + 1,
      records: (before?.records ?? 0) + counts.records,
      rejected: (before?.rejected ?? 0) + counts.rejected,
      passedOver: (before?.passedOver ?? 0) + counts.passedOver,
      tables: new Set([...(before?.tables ?? []), ...tables]),
    });
  }
  return sums.size === 0 ? [] : [table(formatColumns, [...sums.values()])];
}

/** The files of unknown form, also those in archives, a line for each form. */
function unknownText(files: readonly FileReport[]): string | null {
  const unknown = files.flatMap((file) => [...(file.state === 'unknown' ? [file] : []), ...file.leftOut]);
  if (unknown.length === 0) return null;
  const forms = groupBy(unknown, ({ form }) => form);
  const lines = firstLines([...forms], ([form, [first, ...others]]) => {
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    return `  "${form}": ${first.file}${more}`;
  });
  return [`${plural(unknown.length, 'file')} not recognised:`, ...lines].join('\n');
}

/** Files, each with why it was not loaded. */
function reasonsText(outcome: string, files: readonly FileReport[]): string | null {
  if (files.length === 0) return null;
  const lines = firstLines(files, ({ file, error }) => `  ${file}: ${error}`);
  return [`${plural(files.length, 'file')} ${outcome}:`, ...lines].join('\n');
}
