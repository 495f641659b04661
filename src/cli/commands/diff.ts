import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Config } from '../../core/config.ts';
import { unknownRunError, usageError } from '../../core/errors.ts';
import type { VersionAndTime, VersionDifference, Versions } from '../../load/market/differences.ts';
import { type Cli, type Commands, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { exampleDays, examples, jsonOption, limitOption, parseMoment, parseRunId } from '../options.ts';
import { count, momentText, plural } from '../output.ts';
import { differencesText } from '../run-output.ts';

interface Flags extends JsonFlag {
  readonly operation?: string;
  readonly between?: readonly string[];
  readonly since?: string;
  readonly limit?: number;
}

/** How many rows are listed for people, … */
const LISTED = 100;
/** … and for programs: several days of every exchange. Years of first loads would not fit in memory. */
const LISTED_AS_JSON = 100_000;

export const commands: Commands = {
  diff(command, cli) {
    const { to } = exampleDays();
    command
      .option('--operation <name>', 'the operation, or data set of imported files, whose tables are compared')
      .option(
        '--between <moments...>',
        'two of these, the older first: a run (12, as it ended), a state (state:812), a time',
      )
      .option('--since <time>', 'compare the tables then and now; a day, or a time with its zone')
      .addOption(
        limitOption(
          undefined,
          `rows to list at most (default: ${LISTED}; with --json ${LISTED_AS_JSON}); the counts include all`,
        ),
      )
      .addOption(jsonOption())
      .addHelpText(
        'after',
        examples(
          'eod diff --operation GetBhavCopyCM --between 12 15',
          'eod diff --operation GetBhavCopyCM --between state:812 state:840',
          'eod diff --operation CorporateEvents --between 12 15',
          `eod diff --operation GetBhavCopyCM --since ${to}`,
          `eod diff --operation GetBhavCopyCM --since ${to}T21:00:00+05:30 --json`,
        ),
      )
      .action((flags: Flags) => diff(cli, flags));
  },
};

async function diff(cli: Cli, flags: Flags): Promise<void> {
  if (flags.operation === undefined) throw usageError('which operation? Name it with --operation');
  const { operation: name } = flags;
  const { findDataSet } = await import('../../operations/registry.ts');
  const { parsedLate } = await import('../parse-request.ts');
  const config = await loadSettings(cli);
  const operation = parsedLate([name], config, () => findDataSet(name));
  const readVersions = parseVersions(flags, config);
  const { openContext } = await import('../open-context.ts');
  const { compareVersions } = await import('../../load/market/differences.ts');
  const { db } = await openContext(cli, { config });
  const versions = await readVersions(db.drizzle);
  const limit = flags.limit ?? (flags.json === true ? LISTED_AS_JSON : LISTED);
  const result = await compareVersions(db.pool, operation(), versions, limit);
  if (flags.json === true) printJson(cli, result);
  else print(cli, differenceText(result, config.EOD_TIMEZONE));
}

/**
 * Reads from the flags which two versions (for users: states) to compare. Finding them takes the database: it knows when a run ended, and
 * what time it is.
 */
function parseVersions({ between, since }: Flags, config: Config): (db: NodePgDatabase) => Promise<Versions> {
  if (between !== undefined && since === undefined) {
    const [first, second, ...more] = between;
    if (first === undefined || second === undefined || more.length > 0) {
      throw usageError('--between takes two runs, states or times, e.g. --between 12 15');
    }
    const named = [namedMoment(first, config), namedMoment(second, config)] as const;
    if (first === second) throw usageError(`--between names ${named[0].name} twice; name two`);
    return (db) => betweenMoments(db, named, config);
  }
  if (since !== undefined && between === undefined) {
    const then: NamedMoment = {
      kind: 'time',
      name: '--since:',
      value: parseMoment('--since', since, { config }),
    };
    return async (db) => ({ from: await readNamed(db, then, config), to: await readNow(db) });
  }
  throw usageError('give either --between A B (runs, states or times) or --since TIME');
}

/** A run, a version (`state:812`) or a time, as given on the command line. */
interface NamedMoment {
  readonly kind: 'run' | 'state' | 'time';
  /** For messages. */
  readonly name: string;
  readonly value: string;
}

function namedMoment(text: string, config: Config): NamedMoment {
  const version = /^state:(\d{1,15})$/.exec(text)?.[1];
  if (version !== undefined) return { kind: 'state', name: `state ${version}`, value: version };
  if (/^\d{4}-/.test(text)) {
    return { kind: 'time', name: text, value: parseMoment('--between', text, { config }) };
  }
  if (/^\d/.test(text)) return { kind: 'run', name: `run ${parseRunId(text)}`, value: text };
  throw usageError(
    `--between: "${text}" is not a run (12), a state (state:812), nor a day or time with its zone`,
  );
}

/** The versions at two moments; where the second is a run that has not ended, its version is that of now. */
async function betweenMoments(
  db: NodePgDatabase,
  [first, second]: readonly [NamedMoment, NamedMoment],
  config: Config,
): Promise<Versions> {
  const [from, to] = [await readNamed(db, first, config), await readNamed(db, second, config)];
  if (from.isOpen) throw usageError(`${first.name} has not ended: nothing can be compared with its end`);
  if (from.at > to.at || from.version > to.version) {
    const verb = first.kind === 'run' && second.kind === 'run' ? 'ended' : 'is';
    const inOrder = [second, first].map(({ kind, value }) => (kind === 'state' ? `state:${value}` : value));
    throw usageError(`${first.name} ${verb} after ${second.name}: use --between ${inOrder.join(' ')}`);
  }
  return { from, to };
}

async function readNow(db: NodePgDatabase): Promise<VersionAndTime> {
  const { readMoment, versionAt } = await import('../../load/state/loads/versions.ts');
  const { now } = await readMoment(db, 'now');
  return { at: now, version: (await versionAt(db, null)).version };
}

async function readNamed(
  db: NodePgDatabase,
  { kind, name, value }: NamedMoment,
  { EOD_TIMEZONE }: Config,
): Promise<VersionAndTime & { readonly isOpen: boolean }> {
  const { readRunEnd } = await import('../../load/state/runs/outcomes.ts');
  const { readMoment, readVersion, versionAt, versionsOfRuns } = await import(
    '../../load/state/loads/versions.ts'
  );
  if (kind === 'state') {
    const found = await readVersion(db, Number(value));
    if (found === null) throw usageError(`there is no ${name} ("eod state" shows the current one)`);
    return { at: found.committedAt ?? '', version: found.version, isOpen: false };
  }
  if (kind === 'run') {
    const end = await readRunEnd(db, Number(value));
    if (end === null) throw unknownRunError(Number(value));
    if (end.isOpen) return { at: end.at, version: (await versionAt(db, null)).version, isOpen: true };
    const [versions] = await versionsOfRuns(db, [Number(value)]);
    return { at: end.at, version: versions?.after ?? 0, isOpen: false };
  }
  const { at, isFuture } = await readMoment(db, value);
  if (isFuture) {
    throw usageError(`${name} ${momentText(at, EOD_TIMEZONE)} (${EOD_TIMEZONE}) is in the future`);
  }
  return { at, version: (await versionAt(db, at)).version, isOpen: false };
}

function differenceText(result: VersionDifference, timeZone: string): string {
  const { inserted, updated, withdrawn, relisted, rows, notListed } = result;
  const counts = Object.entries({ updated, withdrawn, 'listed again': relisted, inserted })
    .filter(([, rows]) => rows > 0)
    .map(([what, rows]) => `${count(rows)} ${what}`);
  const [from, to] = [result.from, result.to].map((iso) =>
    iso === '' ? 'the beginning' : momentText(iso, timeZone),
  );
  return [
    `${result.operation}, ${from} to ${to} (${timeZone})`,
    counts.join(', ') || 'nothing changed',
    ...(rows.length === 0 ? [] : ['', differencesText(rows, timeZone)]),
    ...(notListed === 0 ? [] : ['', `${plural(notListed, 'more row')}; --limit shows more`]),
  ].join('\n');
}
