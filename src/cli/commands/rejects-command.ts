import type { Config } from '../../core/config.ts';
import { usageError } from '../../core/errors.ts';
import type { OpenReject, RejectDetail, RejectFilter, UnkeptFile } from '../../load/state/rejects.ts';
import {
  type Cli,
  type Commands,
  EXIT,
  type JsonFlag,
  loadSettings,
  logStderr,
  print,
  printJson,
  printRecord,
} from '../cli.ts';
import {
  examples,
  exchangeOption,
  jsonOption,
  limitOption,
  listOf,
  parseExchanges,
  parseId,
  parseListed,
} from '../options.ts';
import { type Column, columnsOf, firstLines, momentText, plural, rangeText, table } from '../output.ts';
import { failuresText } from '../run-output.ts';

const COLUMNS: readonly Column<OpenReject>[] = [
  { head: 'reject', cell: (one) => one.id },
  ...columnsOf<OpenReject>('operation', 'exchange'),
  { head: 'days', cell: (one) => rangeText(one) },
  { head: 'place', cell: (one) => one.position },
  { head: 'why', cell: (one) => whyText(one) },
];

/** How many files are named. */
const MOST_LISTED = 20;

interface FilterFlags extends JsonFlag {
  readonly operation?: string;
  readonly exchange?: string;
}

export const commands: Commands = {
  rejects(command, cli) {
    command.addHelpText('after', examples('eod rejects', 'eod rejects 17', 'eod rejects retry'));
    listOf(command, 'the number of a reject')
      .argument('[id]', 'number of a reject, to show the record as the source sent it')
      .option('--operation <list>', 'only rejects of these operations')
      .addOption(exchangeOption())
      .addOption(limitOption(50))
      .addOption(jsonOption('a list of rejects'))
      .action((id: string | undefined, flags: FilterFlags & { readonly limit: number }) =>
        id === undefined
          ? listRejects(cli, flags)
          : showReject(cli, parseListed(command, 'reject', id), flags),
      );
    command
      .command('show', { hidden: true })
      .description('Show one reject: the same as "eod rejects ID".')
      .argument('<id>', 'number of the reject', (text) => parseId('reject', text))
      .addOption(jsonOption())
      .action((id: number, flags: JsonFlag) => showReject(cli, id, flags));
    command
      .command('retry')
      .description('Read the rejected records again with the current code, and load those that pass now.')
      .option('--operation <list>', 'only rejects of these operations')
      .addOption(exchangeOption())
      .addOption(jsonOption())
      .action((flags: FilterFlags) => retryRejects(cli, flags));
  },
};

async function listRejects(cli: Cli, flags: FilterFlags & { readonly limit: number }): Promise<void> {
  const config = await loadSettings(cli);
  const filterOf = await filterOfFlags(flags, config);
  const { openContext } = await import('../open-context.ts');
  const { openRejectIds, openRejects } = await import('../../load/state/rejects.ts');
  const { drizzle } = (await openContext(cli, { config })).db;
  const filter = filterOf();
  const found = await openRejects(drizzle, filter, flags.limit);
  if (flags.json === true) return printJson(cli, found);
  if (found.length === 0) return print(cli, 'no open rejects');
  const all = (await openRejectIds(drizzle, filter)).length;
  const more =
    all > found.length
      ? `\n\nthe newest ${found.length} of ${plural(all, 'reject')}; --limit shows more`
      : '';
  print(cli, `${table(COLUMNS, found)}${more}`);
}

async function showReject(cli: Cli, id: number, flags: JsonFlag): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const { readReject } = await import('../../load/state/rejects.ts');
  const { db, config } = await openContext(cli);
  const reject = await readReject(db.drizzle, id);
  if (reject === null) throw usageError(`there is no reject ${id} ("eod rejects" lists the open ones)`);
  if (flags.json === true) return printJson(cli, reject);
  print(cli, detailText(reject, config.EOD_TIMEZONE));
  printRecord(cli, reject.record);
}

async function retryRejects(cli: Cli, flags: FilterFlags): Promise<void> {
  const config = await loadSettings(cli);
  const filterOf = await filterOfFlags(flags, config);
  const { openContext } = await import('../open-context.ts');
  const { planReplay } = await import('../../jobs/replay/plan-replay.ts');
  const { openRejectIds, unkeptFiles } = await import('../../load/state/rejects.ts');
  const { exitCodeOfEnding, logHowToResume, workOnReplay } = await import('../work-on-run.ts');
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

async function filterOfFlags(
  { operation, exchange }: FilterFlags,
  config: Config,
): Promise<() => RejectFilter> {
  const { parsedLate, parseDataSets } = await import('../parse-request.ts');
  const names = operation === undefined ? [] : [operation];
  return parsedLate(names, config, () => ({
    operations: operation === undefined ? undefined : parseDataSets(names),
    exchanges: parseExchanges(exchange),
  }));
}

function whyText({ problems }: Pick<OpenReject, 'problems'>): string {
  return problems.map(({ path, message }) => (path === '' ? message : `${path} ${message}`)).join('; ');
}

function detailText(reject: RejectDetail, timeZone: string): string {
  const { id, operation, exchange, position, runId, windowId, resolvedAt, file } = reject;
  const what = file === null ? 'answer' : 'file';
  const [first, last] = [reject.firstSeenAt, reject.lastSeenAt].map((iso) => momentText(iso, timeZone));
  return [
    `reject ${id}: ${operation} ${exchange} ${rangeText(reject)}`,
    `record ${position} of ${file ?? 'the answer'}`,
    `first seen at ${first}, last at ${last} (${timeZone})`,
    `by run ${runId}, window ${windowId}; ${resolvedAt === null ? 'open' : `resolved at ${momentText(resolvedAt, timeZone)}`}`,
    reject.responseId === null ? `its ${what} is not kept` : `its ${what} is kept (${reject.responseId})`,
    '',
    ...reject.problems.map(({ path, message }) => `  ${path === '' ? 'record' : path}: ${message}`),
    '',
  ].join('\n');
}
