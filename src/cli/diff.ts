import type { Command } from 'commander';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { type Config, loadConfig } from '../core/config.ts';
import { dayAt, timeAt } from '../core/days.ts';
import { usageError } from '../core/errors.ts';
import { compareMoments, type MomentDifference, type Moments } from '../load/market/differences.ts';
import { readMoment, readRunEnd } from '../load/state/run-facts.ts';
import { operationNamed } from '../operations/registry.ts';
import { parseMoment, parseRunId } from './args.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { differencesText } from './difference-view.ts';
import { count, plural, print, printJson } from './output.ts';

interface Flags {
  readonly operation?: string;
  readonly between?: readonly string[];
  readonly since?: string;
  readonly limit?: string;
  readonly json?: boolean;
}

const LISTED = 100;
/** A day of every exchange fits many times; years of first loads would not fit in memory. */
const LISTED_AS_JSON = 100_000;
const MOST = 9_999_999;

export function diffCommand(program: Command, cli: Cli): Command {
  return program
    .command('diff')
    .description('What changed in an operation’s tables: rows inserted, changed, withdrawn and listed again.')
    .option('--operation <name>', 'the operation whose tables are compared, in any case')
    .option('--between <runs...>', 'two runs, the older first: the tables when each had ended')
    .option('--since <time>', 'the tables then and now; a day, or a time with its zone')
    .option(
      '--limit <n>',
      `rows to list at most (default: ${LISTED}; with --json ${LISTED_AS_JSON}); all are counted`,
    )
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      examples(
        'eod diff --operation GetBhavCopyCM --between 12 15',
        'eod diff --operation GetBhavCopyCM --since 2025-02-27',
        'eod diff --operation GetBhavCopyCM --since 2025-02-27T21:00:00+05:30 --json',
      ),
    )
    .action((flags: Flags) => diff(cli, flags));
}

async function diff(cli: Cli, flags: Flags): Promise<void> {
  if (flags.operation === undefined) throw usageError('name an operation with --operation');
  const operation = operationNamed(flags.operation);
  if (flags.limit !== undefined && !/^[1-9]\d{0,6}$/.test(flags.limit)) {
    throw usageError(`--limit: "${flags.limit}" is not a whole number from 1 to ${MOST}`);
  }
  const config = loadConfig();
  const readMoments = momentsOf(flags, config);
  const { db } = await openContext(cli.life, config);
  const moments = await readMoments(db.drizzle);
  const result = await compareMoments(db.pool, operation, moments, limitOf(flags));
  if (flags.json === true) printJson(result);
  else print(text(result, config.EOD_TIMEZONE));
}

/** People read the first rows, programs all there are. */
function limitOf({ limit, json }: Flags): number {
  if (limit !== undefined) return Number(limit);
  return json === true ? LISTED_AS_JSON : LISTED;
}

/** What the flags say of the two moments; only the database knows when a run ended, and what time it is. */
function momentsOf({ between, since }: Flags, config: Config): (db: NodePgDatabase) => Promise<Moments> {
  if (between !== undefined && since === undefined) {
    if (between.length !== 2) throw usageError('--between takes two runs, e.g. --between 12 15');
    const [first, second] = between.map(parseRunId) as [number, number];
    return (db) => betweenRuns(db, first, second);
  }
  if (since !== undefined && between === undefined) {
    const then = parseMoment('--since', since, { config });
    return (db) => sinceThen(db, then);
  }
  throw usageError('give either --between RUN RUN or --since TIME');
}

/** From the end of one run to the end of another, or to now where that one is still open. */
async function betweenRuns(db: NodePgDatabase, first: number, second: number): Promise<Moments> {
  if (first === second) throw usageError(`--between names run ${first} twice; name two runs`);
  const endOf = async (runId: number) => {
    const end = await readRunEnd(db, runId);
    if (end === null) throw usageError(`there is no run ${runId} ("eod runs" lists them)`);
    return end;
  };
  const [from, to] = [await endOf(first), await endOf(second)];
  if (from.isOpen) throw usageError(`run ${first} has not ended: nothing can be compared with its end`);
  if (from.at > to.at) {
    throw usageError(`run ${first} ended after run ${second}: use --between ${second} ${first}`);
  }
  return { from: from.at, to: to.at };
}

async function sinceThen(db: NodePgDatabase, then: string): Promise<Moments> {
  const { at, now, isFuture } = await readMoment(db, then);
  if (isFuture) throw usageError(`--since: ${at} is in the future`);
  return { from: at, to: now };
}

function text(result: MomentDifference, timeZone: string): string {
  const { inserted, changed, withdrawn, relisted, rows, notListed } = result;
  const counts = Object.entries({ changed, withdrawn, 'listed again': relisted, inserted })
    .filter(([, rows]) => rows > 0)
    .map(([what, rows]) => `${count(rows)} ${what}`);
  const [from, to] = [result.from, result.to].map((iso) => momentText(iso, timeZone));
  return [
    `${result.operation}, ${from} to ${to} (${timeZone}): ${counts.join(', ') || 'nothing changed'}`,
    ...(rows.length === 0 ? [] : ['', differencesText(rows)]),
    ...(notListed === 0 ? [] : ['', `${plural(notListed, 'more row')}; --limit shows more`]),
  ].join('\n');
}

function momentText(iso: string, timeZone: string): string {
  const seconds = Math.floor(Date.parse(iso) / 1000);
  return `${dayAt(seconds, timeZone)} ${timeAt(seconds, timeZone)}`;
}
