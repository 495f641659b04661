import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { usageError } from '../core/errors.ts';
import { planReplay } from '../jobs/replay/plan.ts';
import {
  type OpenReject,
  openRejectIds,
  openRejects,
  type RejectDetail,
  type RejectFilter,
  readReject,
  stillOpen,
  type UnkeptFile,
  unkeptFiles,
} from '../load/state/rejects.ts';
import { parseExchanges, parseOperations } from './args.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { EXIT } from './errors.ts';
import { type Column, plural, print, printJson, say, table } from './output.ts';
import { replayUntilEnd } from './replay-work.ts';
import { exitCodeOf, failuresText } from './run-view.ts';

const COLUMNS: readonly Column<OpenReject>[] = [
  { head: 'reject', cell: (one) => one.id },
  { head: 'operation', cell: (one) => one.operation },
  { head: 'exchange', cell: (one) => one.exchange },
  { head: 'days', cell: (one) => (one.from === one.to ? one.from : `${one.from} to ${one.to}`) },
  { head: 'place', cell: (one) => one.position },
  { head: 'why', cell: (one) => whyText(one) },
];

interface Flags {
  readonly operation?: string;
  readonly exchange?: string;
  readonly limit?: string;
  readonly json?: boolean;
}

export function rejectsCommand(program: Command, cli: Cli): Command {
  const command = program
    .command('rejects')
    .description('Records that were refused and are not settled yet, the newest first.')
    .addHelpText('after', examples('eod rejects', 'eod rejects show 17', 'eod rejects retry'));
  command
    .command('list', { isDefault: true })
    .description('the open rejects')
    .option('--operation <list>', 'only these operations')
    .option('--exchange <list>', 'only these exchanges')
    .option('--limit <n>', 'how many', '50')
    .option('--json', 'print one JSON document: a list of rejects')
    .action((flags: Flags) => listRejects(cli, flags));
  command
    .command('show')
    .description('one reject with the record as it was sent')
    .argument('<id>', 'number of the reject')
    .option('--json', 'print one JSON document')
    .action((id: string, flags: Flags) => showReject(cli, id, flags));
  command
    .command('retry')
    .description('read the refused records again with the code of today; what passes now is loaded')
    .option('--operation <list>', 'only these operations')
    .option('--exchange <list>', 'only these exchanges')
    .option('--json', 'print one JSON document')
    .action((flags: Flags) => retryRejects(cli, flags));
  return command;
}

async function listRejects(cli: Cli, flags: Flags): Promise<void> {
  const limit = wholeNumber('--limit', flags.limit ?? '50');
  const filter = filterOf(flags);
  const context = await openContext(cli.life, loadConfig());
  const found = await openRejects(context.db.drizzle, filter, limit);
  if (flags.json === true) return printJson(found);
  if (found.length === 0) return print('no open rejects');
  const all = (await openRejectIds(context.db.drizzle, filter)).length;
  print(table(COLUMNS, found));
  if (all > found.length)
    print(`\nthe newest ${found.length} of ${plural(all, 'reject')}; --limit shows more`);
}

async function showReject(cli: Cli, id: string, flags: Flags): Promise<void> {
  const number = wholeNumber('reject', id);
  const context = await openContext(cli.life, loadConfig());
  const reject = await readReject(context.db.drizzle, number);
  if (reject === null) throw usageError(`there is no reject ${number} ("eod rejects" lists the open ones)`);
  if (flags.json === true) printJson(reject);
  else print(detailText(reject));
}

async function retryRejects(cli: Cli, flags: Flags): Promise<void> {
  const filter = filterOf(flags);
  const context = await openContext(cli.life, loadConfig(), { wait: 'short' });
  const db = context.db.drizzle;
  const before = await openRejectIds(db, filter);
  const unkept = await unkeptFiles(db, before);
  const runId = before.length === 0 ? null : await planReplay(context, filter, { rejectsOnly: true });
  const done = runId === null ? null : await replayUntilEnd(cli, context, runId);
  const open = await stillOpen(db, before);
  const resolved = before.length - open.length;
  if (flags.json === true)
    printJson({ runId, tried: before.length, resolved, open, unkept, report: done?.report ?? null });
  else if (before.length === 0) print('no open rejects');
  else
    print(
      `${runId === null ? '' : `run ${runId}: `}${resolved} of ${plural(before.length, 'reject')} resolved, ${open.length} still refused`,
    );
  if (unkept.length > 0) say(unkeptText(unkept));
  const failures = done === null ? null : failuresText(done.report);
  if (failures !== null) say(failures);
  const honest = done === null ? EXIT.done : exitCodeOf(done.report);
  const failed = open.length > 0 ? EXIT.failed : honest;
  cli.exitCode = (done?.interrupted === true ? cli.life.cutShort() : null) ?? failed;
}

/** So many files are named. */
const NAMED = 20;

function unkeptText(files: readonly UnkeptFile[]): string {
  return [
    'these imported files are not kept, so they were not read again ("eod import --force" reads them):',
    ...files.slice(0, NAMED).map(({ file, rejects }) => `  ${file}: ${plural(rejects, 'reject')}`),
    ...(files.length > NAMED ? [`  … and ${files.length - NAMED} more`] : []),
  ].join('\n');
}

function filterOf({ operation, exchange }: Flags): RejectFilter {
  return {
    operations:
      operation === undefined ? undefined : parseOperations([operation], false).map((one) => one.name),
    exchanges: parseExchanges(exchange),
  };
}

function wholeNumber(what: string, text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw usageError(`${what}: "${text}" is not a whole number from 1`);
  return Number(text);
}

function whyText({ problems }: Pick<OpenReject, 'problems'>): string {
  return problems.map(({ path, message }) => (path === '' ? message : `${path} ${message}`)).join('; ');
}

function detailText(reject: RejectDetail): string {
  const { id, operation, exchange, from, to, position, runId, windowId, rejectedAt, resolvedAt, file } =
    reject;
  const what = file === null ? 'answer' : 'file';
  return [
    `reject ${id}: ${operation} ${exchange} ${from === to ? from : `${from} to ${to}`}, record ${position} of ${file ?? 'the answer'}`,
    `refused at ${rejectedAt} by run ${runId}, window ${windowId}; ${resolvedAt === null ? 'open' : `resolved at ${resolvedAt}`}`,
    reject.responseId === null ? `its ${what} is not kept` : `its ${what} is kept (${reject.responseId})`,
    '',
    ...reject.problems.map(({ path, message }) => `  ${path === '' ? 'record' : path}: ${message}`),
    '',
    JSON.stringify(reject.record, null, 2),
  ].join('\n');
}
