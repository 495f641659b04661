import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Config } from '../../core/config.ts';
import { unknownRunError, usageError } from '../../core/errors.ts';
import { compareVersions, type VersionAndTime, type Versions } from '../../load/market/differences.ts';
import { readMoment, readVersion, versionAt, versionsOfRuns } from '../../load/state/loads/versions.ts';
import { readRunEnd } from '../../load/state/runs/outcomes.ts';
import type { RowDifference } from '../../load/state/runs/reports.ts';
import { findDataSet, titleOf } from '../../operations/registry.ts';
import { type Cli, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { LISTED, parseId, parseMoment } from '../options.ts';
import { bold, type Column, count, momentText, plural, table } from '../output.ts';
import { parsedLate } from '../parse-request.ts';
import { changedColumns } from '../run-output.ts';

interface Flags extends JsonFlag {
  readonly operation?: string;
  readonly between?: readonly string[];
  readonly since?: string;
  readonly limit?: number;
}

/** Two versions compared. */
export type VersionDifference = Awaited<ReturnType<typeof compareVersions>>;

export async function diff(cli: Cli, flags: Flags): Promise<void> {
  if (flags.operation === undefined) throw usageError('name an operation with --operation');
  const { operation: name } = flags;
  const config = await loadSettings(cli);
  const operation = await parsedLate([name], config, () => findDataSet(name));
  const readVersions = parseVersions(flags, config);
  const { db } = await openContext(cli, { config });
  const versions = await readVersions(db.drizzle);
  const limit = flags.limit ?? (flags.json === true ? LISTED.differencesAsJson : LISTED.differences);
  const result = await compareVersions(db.pool, operation(), versions, limit);
  if (flags.json === true) printJson(cli, result);
  else print(cli, differenceText(result, config.EOD_TIMEZONE));
}

/**
 * Reads from the flags which two versions (for users: states) to compare. The database is needed to find them: it knows
 * when a run ended, and what time it is.
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
  if (/^\d/.test(text)) return { kind: 'run', name: `run ${parseId('run', text)}`, value: text };
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
  const { now } = await readMoment(db, 'now');
  return { at: now, version: (await versionAt(db, null)).version };
}

async function readNamed(
  db: NodePgDatabase,
  { kind, name, value }: NamedMoment,
  { EOD_TIMEZONE }: Config,
): Promise<VersionAndTime & { readonly isOpen: boolean }> {
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
    `${titleOf(result.operation)}, ${from} to ${to} (${timeZone})`,
    counts.join(', ') || 'nothing changed',
    ...(rows.length === 0 ? [] : ['', differencesText(rows, timeZone)]),
    ...(notListed === 0 ? [] : ['', `${plural(notListed, 'more row')}; --limit shows more`]),
  ].join('\n');
}

/** Rows that differ: one table for each market table, with a column for each column of its key. */
function differencesText(rows: readonly RowDifference[], timeZone: string): string {
  const names = [...new Set(rows.map((row) => row.table))];
  return names
    .map((name) => {
      const own = rows.filter((row) => row.table === name);
      return `${bold(name)}\n${table(differenceColumns(own, timeZone), own)}`;
    })
    .join('\n\n');
}

function differenceColumns(rows: readonly RowDifference[], timeZone: string): Column<RowDifference>[] {
  const keys = Object.keys(rows[0]?.key ?? {});
  return [
    { head: 'change', cell: (row) => row.change },
    ...keys.map((key) => ({ head: key, cell: (row: RowDifference) => row.key[key] ?? '' })),
    // Rows of a first load have no old values.
    ...(rows.some(({ columns }) => Object.keys(columns).length > 0)
      ? [{ head: 'columns, old → new', cell: (row: RowDifference) => changedColumns(row, timeZone) }]
      : []),
  ];
}
