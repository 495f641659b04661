import type { Environment } from '../core/environment.ts';
import { PACKAGE } from '../core/package-folders.ts';
import { escapeControls } from '../core/wording.ts';
import { withDemoFlags } from '../web/commands.ts';
import type { Lifecycle } from './lifecycle.ts';
import { wrap } from './output.ts';

/** A stream that a command prints to. */
interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  /** Whether the reader has gone. */
  readonly destroyed?: boolean;
  once?(event: 'drain' | 'close', listener: () => void): unknown;
  off?(event: 'drain' | 'close', listener: () => void): unknown;
}

/**
 * What every command gets: its environment and output streams, what it opens and closes, and where its exit code goes.
 */
export interface Cli {
  /** Environment variables, without those of `.env`. */
  readonly env: Environment;
  /** The folder in which `.env` and `.eod/` are looked for, and which relative paths start from. */
  readonly cwd: string;
  /** The folder of this package: of a checkout, or within `node_modules`. */
  readonly root: string;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Called only by a command that reads stdin: once opened, stdin has to be read to its end. */
  readonly stdin?: () => AsyncIterable<Uint8Array | string>;
  /** Asks the person at the terminal, and gives the line that is typed; undefined without a terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  readonly life: Lifecycle;
  exitCode: number;
  /** Whether the command works on what `eod demo` has loaded. */
  demo?: boolean;
  /** The command that was called, as soon as it is known, with its verb: `runs resume`. */
  command?: string;
  /** How much is reported beside results and errors: nothing (`--quiet`), or also what is done (`--verbose`). */
  verbosity?: 'nothing' | 'everything' | undefined;
  /** False with `--no-color`. */
  color?: boolean;
  /** Whether the JSON document has been printed to stdout. */
  printedJson?: boolean;
}

/** The `Cli` of this process. */
export function processCli(life: Lifecycle): Cli {
  const { env, stdin, stdout, stderr } = process;
  // The question goes to stderr, because only results go to stdout.
  const ask = stdin.isTTY && stderr.isTTY ? (question: string) => askOnTerminal(question, life) : undefined;
  return {
    env,
    cwd: process.cwd(),
    root: PACKAGE,
    stdout,
    stderr,
    stdin: () => stdin,
    ask,
    life,
    exitCode: 0,
  };
}

/** Reads a line from the terminal; nothing if it is closed (Ctrl-D) or a signal comes. */
async function askOnTerminal(question: string, { signal }: Lifecycle): Promise<string> {
  const { createInterface } = await import('node:readline');
  // Not as a terminal, which would take Ctrl-C for itself.
  const lines = createInterface({ input: process.stdin, terminal: false });
  process.stderr.write(escapeControls(question));
  return new Promise((resolve) => {
    const stop = () => lines.close();
    signal.addEventListener('abort', stop);
    lines.once('line', (line) => {
      resolve(line);
      lines.close();
    });
    lines.once('close', () => {
      signal.removeEventListener('abort', stop);
      process.stdin.pause();
      resolve('');
    });
  });
}

/** Exit codes of `eod`: everything was done, some of the work failed, the command line or a setting is wrong. */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/** The escape sequences that `bold` writes, the only ones that `print` lets through. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with this character.
const BOLD = /(\u001b\[(?:1|22)m)/;

/** Commands that are printed work on the demo's data where the command that prints them does. */
const adaptCommands = ({ demo }: Cli, text: string): string => (demo === true ? withDemoFlags(text) : text);

/** Prints a result to stdout, wrapped at PAGE_WIDTH. Bold appears on a terminal only. */
export function print(cli: Cli, text: string): void {
  const isPlain = cli.stdout.isTTY !== true || cli.color === false || (cli.env.NO_COLOR ?? '') !== '';
  const shown = text
    .split(BOLD)
    .map((part, at) => (at % 2 === 0 ? escapeControls(part) : isPlain ? '' : part))
    .join('');
  cli.stdout.write(`${wrap(adaptCommands(cli, shown))}\n`);
}

/** Prints a record as the source sent it: one member a line and never wrapped, so that it can be copied. */
export function printRecord(cli: Cli, record: unknown): void {
  cli.stdout.write(`${escapeControls(adaptCommands(cli, JSON.stringify(record, null, 2)))}\n`);
}

/**
 * Writes part of a result for programs to stdout, and waits while the reader is slow. On a terminal, control characters
 * are escaped.
 *
 * @returns whether there still is a reader.
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

/** Prints the JSON document of a command to stdout; a command prints exactly one. */
export function printJson(cli: Cli, document: unknown): void {
  cli.printedJson = true;
  printRecord(cli, document);
}

/** Prints a note to stderr about what is done; none with `--quiet`. */
export function logNote(cli: Cli, text: string): void {
  if (cli.verbosity !== 'nothing') logStderr(cli, text);
}

/** Prints to stderr what must be known, such as an error: only results go to stdout. */
export function logStderr(cli: Cli, text: string): void {
  cli.stderr.write(`${escapeControls(adaptCommands(cli, text))}\n`);
}

/**
 * Asks on a terminal whether to go on. Without a terminal nobody can confirm, and the command goes on.
 *
 * @param action that is about to be done, as a sentence.
 * @param yes whether `--yes` is given, so that nothing is asked.
 * @returns false if the reply is no, which is then printed.
 */
export async function confirm(cli: Cli, action: string, yes: boolean): Promise<boolean> {
  if (yes || cli.ask === undefined) return true;
  const reply = await cli.ask(`${action}\nGo on? [y/N] `);
  cli.life.signal.throwIfAborted();
  if (/^y(es)?$/i.test(reply.trim())) return true;
  logStderr(cli, 'eod: nothing was changed');
  cli.exitCode = EXIT.failed;
  return false;
}
