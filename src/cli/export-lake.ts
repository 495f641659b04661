import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { environmentOfCommand } from '../core/environment.ts';
import { usageError } from '../core/errors.ts';
import { parseChoice } from '../core/input.ts';
import { type LakeResult, writeLake } from '../load/export/lake.ts';
import {
  filesOfTables,
  HANDLED,
  readHandled,
  readManifest,
  writeWhole,
} from '../load/export/lake-manifest.ts';
import { progressLine } from './bytes-read.ts';
import { type Cli, EXIT, type JsonFlag, logNote, logStderr, print, printJson } from './cli.ts';
import { openForUser } from './open-context.ts';
import type { RangeFlags } from './options.ts';
import { count, plural } from './output.ts';

export interface ExportFlags extends RangeFlags, JsonFlag {
  readonly symbol?: string;
  readonly series?: string;
  readonly exchange?: string;
  readonly format?: string;
  readonly out?: string;
  readonly partition?: string;
  readonly decimals?: boolean;
  readonly lake?: string;
  readonly all?: boolean;
  readonly onChange?: string;
}

/** Flags that choose rows or another form, which a lake has not. */
const OF_FILES = ['from', 'to', 'symbol', 'series', 'exchange', 'format', 'out'] as const;

/** `eod export --lake DIR`: brings the lake up to date, and runs a command unless it has succeeded with these files. */
export async function exportLake(
  cli: Cli,
  tables: readonly string[],
  folder: string,
  flags: ExportFlags,
): Promise<void> {
  for (const name of OF_FILES)
    if (flags[name] !== undefined)
      throw usageError(`--${name} cannot be used with --lake, which has all rows`);
  if (flags.all === true && tables.length > 0) throw usageError('name tables, or give --all, but not both');
  if (flags.all !== true && tables.length === 0)
    throw usageError('name the tables and views of the lake, or give --all');
  const by =
    flags.partition === undefined
      ? undefined
      : parseChoice('--partition', flags.partition, ['month', 'year']);
  if (folder.trim() === '') throw usageError('--lake needs the path of a folder');
  if (flags.onChange?.trim() === '') throw usageError('--on-change needs a command');
  const { db } = await openForUser(cli, 'tables');
  const progress = progressLine(cli, 'lake');
  const result = await writeLake(
    db,
    {
      folder: resolve(cli.cwd, folder),
      tables: flags.all === true ? null : tables,
      by,
      doubles: flags.decimals !== true,
    },
    { timeoutMs: 0, signal: cli.life.signal },
    progress.add,
  ).finally(progress.end);
  for (const notice of result.notices) logNote(cli, `eod: ${notice}`);
  if (flags.json === true) printJson(cli, result);
  else print(cli, linesOf(result).join('\n'));
  if (flags.onChange !== undefined) await onChange(cli, flags.onChange, result);
}

function linesOf({ tables, state, isChanged }: LakeResult): string[] {
  if (!isChanged) return [`state ${state}: nothing has changed`];
  const lines = tables
    .filter(({ written, replaced }) => written + replaced > 0)
    .map(({ table, files, rows, written, writtenRows }) =>
      files === 0
        ? `${table}  is not part of the lake any more`
        : `${table}  ${written} of ${plural(files, 'file')} written with ${count(writtenRows)} of ${plural(rows, 'row')}`,
    );
  return [...lines, `state ${state}`];
}

/** Runs the command of --on-change for the tables whose files it has not succeeded with. */
async function onChange(cli: Cli, command: string, { lake, manifest, state }: LakeResult): Promise<void> {
  const handled = join(lake, HANDLED);
  const found = readManifest(lake);
  const [before, now] = [readHandled(handled), found === null ? {} : filesOfTables(found)];
  const changed = Object.keys({ ...before, ...now }).filter((table) => before[table] !== now[table]);
  if (changed.length === 0) return;
  const { env, cwd, life } = cli;
  const kill = (child: ChildProcess, signal: NodeJS.Signals) => {
    const { pid, exitCode, signalCode } = child;
    // The shell and what it has started are a group of processes.
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
  };
  const child = await life.open(
    async () =>
      spawn(command, {
        cwd,
        shell: true,
        detached: true,
        stdio: ['ignore', 2, 2],
        env: {
          ...environmentOfCommand(env),
          EOD_LAKE: lake,
          EOD_LAKE_MANIFEST: manifest,
          EOD_LAKE_STATE: String(state),
          EOD_LAKE_TABLES: changed.sort().join(' '),
        },
      }),
    undefined,
    (child) => kill(child, 'SIGKILL'),
  );
  const stop = () => kill(child, 'SIGTERM');
  life.signal.addEventListener('abort', stop);
  const [code, signal] = await (once(child, 'close') as Promise<[number | null, string | null]>);
  life.signal.removeEventListener('abort', stop);
  if (code === 0) return writeWhole(handled, JSON.stringify(now));
  const how = signal === null ? `exit code ${code}` : signal;
  cli.exitCode = life.cutShort() ?? EXIT.failed;
  logStderr(
    cli,
    `eod: the lake has state ${state}, but the command of --on-change ended with ${how}; the next export with --on-change runs it again`,
  );
}
