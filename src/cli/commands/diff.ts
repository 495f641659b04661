import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Config } from '../../core/config.ts';
import { unknownRunError, usageError } from '../../core/errors.ts';
import type { MomentDifference, Moments } from '../../load/market/differences.ts';
import { type Cli, type Commands, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { examples, jsonOption, limitOption, parseMoment, parseRunId } from '../options.ts';
import { count, momentText, plural } from '../output.ts';
import { differencesText } from '../run-output.ts';

interface Flags extends JsonFlag {
  readonly operation?: string;
  readonly between?: readonly string[];
  readonly since?: string;
  readonly limit?: number;
}

/** People read the first rows, … */
const LISTED = 100;
/** … programs all there are. A day of every exchange fits many times; years of first loads would not fit in memory. */
const LISTED_AS_JSON = 100_000;

export const commands: Commands = {
  diff(command, cli) {
    command
      .option('--operation <name>', 'the operation whose tables are compared, in any case')
      .option('--between <runs...>', 'two runs, the older first: the tables when each had ended')
      .option('--since <time>', 'the tables then and now; a day, or a time with its zone')
      .addOption(
        limitOption(
          { most: 9_999_999 },
          `rows to list at most (default: ${LISTED}; with --json ${LISTED_AS_JSON}); all are counted`,
        ),
      )
      .addOption(jsonOption())
      .addHelpText(
        'after',
        examples(
          'eod diff --operation GetBhavCopyCM --between 12 15',
          'eod diff --operation GetBhavCopyCM --since 2025-02-27',
          'eod diff --operation GetBhavCopyCM --since 2025-02-27T21:00:00+05:30 --json',
        ),
      )
      .action((flags: Flags) => diff(cli, flags));
  },
};

async function diff(cli: Cli, flags: Flags): Promise<void> {
  if (flags.operation === undefined) throw usageError('name an operation with --operation');
  const { operationNamed } = await import('../../operations/registry.ts');
  const operation = operationNamed(flags.operation);
  const config = await loadSettings(cli);
  const readMoments = momentsOf(flags, config);
  const { openContext } = await import('../context.ts');
  const { compareMoments } = await import('../../load/market/differences.ts');
  const { db } = await openContext(cli, { config });
  const moments = await readMoments(db.drizzle);
  const limit = flags.limit ?? (flags.json === true ? LISTED_AS_JSON : LISTED);
  const result = await compareMoments(db.pool, operation, moments, limit);
  if (flags.json === true) printJson(cli, result);
  else print(cli, differenceText(result, config.EOD_TIMEZONE));
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
  const { readRunEnd } = await import('../../load/state/run-facts.ts');
  const endOf = async (runId: number) => {
    const end = await readRunEnd(db, runId);
    if (end === null) throw unknownRunError(runId);
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
  const { readMoment } = await import('../../load/state/run-facts.ts');
  const { at, now, isFuture } = await readMoment(db, then);
  if (isFuture) throw usageError(`--since: ${at} is in the future`);
  return { from: at, to: now };
}

function differenceText(result: MomentDifference, timeZone: string): string {
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
