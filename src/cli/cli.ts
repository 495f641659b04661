import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../core/config.ts';
import { escapeControls } from '../core/controls.ts';
import { type Environment, readEnvironment, redactor, SECRET_SETTINGS } from '../core/environment.ts';
import { usageError } from '../core/errors.ts';
import type { Lifecycle } from './lifecycle.ts';
import { wrap } from './output.ts';

/** Where a command prints to. */
interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  /** Whether nobody reads it any more. */
  readonly destroyed?: boolean;
  once?(event: 'drain' | 'close', listener: () => void): unknown;
  off?(event: 'drain' | 'close', listener: () => void): unknown;
}

/** What every command gets: its surroundings, how to open and close things, and where its exit code goes. */
export interface Cli {
  /** What the shell sets. */
  readonly env: Environment;
  /** Folder of `.env` and `.eod/`, and of relative paths. */
  readonly cwd: string;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Opened when it is asked for: whoever opens it has to read it to its end. */
  readonly stdin?: () => AsyncIterable<Uint8Array | string>;
  readonly life: Lifecycle;
  exitCode: number;
  /** Whether the command works on what `eod demo` has loaded. */
  demo?: boolean;
  /** Whether stdout has its JSON document already. */
  printedJson?: boolean;
}

/**
 * What a file of commands exports: what gives each its arguments, options, examples and action. `load` completes another
 * command of the program in the same way.
 */
export type Commands = Readonly<
  Record<
    string,
    (command: Command, cli: Cli, load: (other: Command) => Promise<void>) => void | Promise<void>
  >
>;

/** The surroundings of this process. */
export function processCli(life: Lifecycle): Cli {
  const { env, stdout, stderr } = process;
  return { env, cwd: process.cwd(), stdout, stderr, stdin: () => process.stdin, life, exitCode: 0 };
}

/** Exit codes of `eod`: the work is done, some of it failed, the command or a setting is wrong. */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/** The flag of all commands that can print a document for programs. */
export interface JsonFlag {
  readonly json?: boolean;
}

/** What `bold` writes around a text: the only sequences for a terminal that are let through. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is how such a sequence begins.
const BOLD = /(\u001b\[(?:1|22)m)/;

/** A result, on stdout, no wider than the page. Bold only on a terminal. */
export function print(cli: Cli, text: string): void {
  const isPlain = cli.stdout.isTTY !== true || (cli.env.NO_COLOR ?? '') !== '';
  const parts = text.split(BOLD).map((part, at) => (at % 2 === 0 ? escapeControls(part) : part));
  const lines = wrap(parts.join(''));
  cli.stdout.write(
    `${
      isPlain
        ? lines
            .split(BOLD)
            .filter((_, at) => at % 2 === 0)
            .join('')
        : lines
    }\n`,
  );
}

/** A record as the source has sent it: each member on a line of its own, however long, so that it can be copied. */
export function printRecord(cli: Cli, record: unknown): void {
  cli.stdout.write(`${escapeControls(JSON.stringify(record, null, 2))}\n`);
}

/**
 * A piece of a result for programs, on stdout; waits for whoever reads it. To a terminal without what could steer it.
 *
 * @returns whether anybody still reads.
 */
export async function writeOut({ stdout }: Cli, text: string): Promise<boolean> {
  const isWritten = stdout.write(stdout.isTTY === true ? escapeControls(text) : text);
  if (isWritten === false && stdout.destroyed !== true) {
    await new Promise<void>((resolve) => {
      const go = () => {
        stdout.off?.('drain', go);
        stdout.off?.('close', go);
        resolve();
      };
      stdout.once?.('drain', go);
      stdout.once?.('close', go);
    });
  }
  return stdout.destroyed !== true;
}

/** Exactly one JSON document, on stdout. */
export function printJson(cli: Cli, document: unknown): void {
  cli.printedJson = true;
  printRecord(cli, document);
}

/** Something to know while waiting, on stderr: stdout is for results. */
export function logStderr(cli: Cli, text: string): void {
  cli.stderr.write(`${escapeControls(text)}\n`);
}

/** Settings of the user that a demo respects; the others are for the real source and database. */
const RESPECTED = [
  'EOD_LOG_LEVEL',
  'EOD_CONCURRENCY',
  'EOD_INSTRUMENT_LIMIT',
  'EOD_HTTP_HOST',
  'EOD_HTTP_PORT',
  'EOD_WEB_ACTIONS',
  'EOD_WEB_PASSWORD',
];

/** The settings of the demo, which has a database of its own. */
export function demoSettings(own: Readonly<Record<string, string>>): Record<string, string> {
  const respected = Object.entries(own).filter(([name]) => RESPECTED.includes(name));
  return {
    EOD_INSTRUMENT_LIMIT: '10',
    ...Object.fromEntries(respected),
    EOD_DATA_DIR: join(own.EOD_DATA_DIR ?? '.eod', 'demo'),
    EOD_CALLS_PER_HOUR: '1000000',
  };
}

/** The settings. @throws PipelineError `usage` that lists every problem. */
export async function loadSettings(cli: Cli): Promise<Config> {
  const { loadConfig, unknownSettings } = await import('../core/config.ts');
  const own = readEnvironment(cli.env, cli.cwd);
  const env = cli.demo === true ? demoSettings(own) : own;
  const config = loadConfig(env);
  if (cli.demo === true && !existsSync(resolve(cli.cwd, config.EOD_DATA_DIR, 'postgres'))) {
    throw usageError('there is no demo to look at yet: "eod demo" makes one');
  }
  for (const { name } of unknownSettings(own)) logStderr(cli, `eod: ${name} is no setting and is ignored`);
  return config;
}

/** Takes the secrets of the settings out of a text: errors of libraries may quote an address or a key. */
export function environmentRedactor({ env, cwd }: Cli): (text: string) => string {
  try {
    const settings = readEnvironment(env, cwd);
    const secrets = SECRET_SETTINGS.map((name) => settings[name]);
    const passwords = secrets.map((text) =>
      text !== undefined && URL.canParse(text) ? decodeURIComponent(new URL(text).password) : undefined,
    );
    return redactor([...secrets, ...passwords]);
  } catch {
    // The unreadable .env is the very error that is being explained.
    return (text) => text;
  }
}
