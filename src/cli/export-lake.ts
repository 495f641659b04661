import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { messageOf, usageError } from '../core/errors.ts';
import { parseChoice } from '../core/input.ts';
import type { LakeResult } from '../load/export/lake.ts';
import { progressLine } from './bytes-read.ts';
import { type Cli, EXIT, type JsonFlag, logNote, logStderr, print, printJson } from './cli.ts';
import type { RangeFlags } from './options.ts';
import { count, plural } from './output.ts';

export interface ExportFlags extends RangeFlags, JsonFlag {
  readonly symbol?: string;
  readonly exchange?: string;
  readonly format?: string;
  readonly out?: string;
  readonly partition?: string;
  readonly doubles?: boolean;
  readonly lake?: string;
  readonly all?: boolean;
  readonly sinceState?: number;
  readonly onChange?: string;
}

/** Flags that choose rows or another form, which a lake has not. */
const OF_FILES = ['from', 'to', 'symbol', 'exchange', 'format', 'out'] as const;

/** There while the command of --on-change has not succeeded since files of the lake changed; has the id of the change. */
const UNHANDLED = '_change_not_handled';

/**
 * `eod export --lake DIR`: brings the lake up to date, and runs a command if that changed files. One that fails is run
 * again by the next export, also if nothing else has changed by then.
 */
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
  const path = resolve(cli.cwd, folder);
  await mkdir(path, { recursive: true }).catch((error) => {
    throw usageError(`--lake: ${path} cannot be used: ${messageOf(error)}`);
  });
  const { openForUser } = await import('./open-context.ts');
  const { writeLake } = await import('../load/export/lake.ts');
  const { db } = await openForUser(cli, 'tables');
  const progress = progressLine(cli, 'lake');
  const id = randomUUID();
  const result = await writeLake(
    db,
    {
      folder: path,
      tables: flags.all === true ? null : tables,
      by,
      sinceState: flags.sinceState,
      doubles: flags.doubles === true,
      ...(flags.onChange !== undefined && { beforeChange: { file: UNHANDLED, text: id } }),
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
    .map(
      ({ table, files, rows, written, writtenRows }) =>
        `${table}  ${written} of ${plural(files, 'file')} written with ${count(writtenRows)} of ${plural(rows, 'row')}`,
    );
  return [...lines, `state ${state}`];
}

/** Runs the command of --on-change if files changed, or if it has not succeeded since they did. */
async function onChange(cli: Cli, command: string, result: LakeResult): Promise<void> {
  const { env, cwd, life } = cli;
  const marker = join(result.lake, UNHANDLED);
  if (!existsSync(marker)) return;
  const id = readFileSync(marker, 'utf8');
  const changed = result.tables.filter(({ written, replaced }) => written + replaced > 0);
  const child = spawn(command, {
    cwd,
    shell: true,
    stdio: ['ignore', 2, 2],
    env: {
      ...env,
      EOD_LAKE: result.lake,
      EOD_LAKE_MANIFEST: result.manifest,
      EOD_LAKE_STATE: String(result.state),
      EOD_LAKE_TABLES: changed.map(({ table }) => table).join(' '),
    },
  });
  const stop = () => void child.kill();
  life.signal.addEventListener('abort', stop);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
  life.signal.removeEventListener('abort', stop);
  if (code !== 0) {
    cli.exitCode = EXIT.failed;
    return logStderr(
      cli,
      `eod: the lake has state ${result.state}, but the command of --on-change ended with exit code ${code}; the next export runs it again`,
    );
  }
  // Another export may have changed files meanwhile.
  if (existsSync(marker) && readFileSync(marker, 'utf8') === id) rmSync(marker);
}
