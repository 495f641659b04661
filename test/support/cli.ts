import { EventEmitter } from 'node:events';
import type { Cli } from '../../src/cli/cli.ts';
import { createLifecycle } from '../../src/cli/lifecycle.ts';
import { runProgram } from '../../src/cli/program.ts';
import { misnamedBooleans } from './boolean-names.ts';
import { closeAfterFile } from './closing.ts';
import { patience, waitFor } from './wait-for.ts';

export interface CliOptions {
  /** Settings on top of nothing: those of the person who runs the tests do not count. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where `.env` and `.eod/` are looked for; give a temporary folder unless the test is about this one. */
  readonly cwd?: string;
  /** The folder of the package; default: `cwd` is the checkout. */
  readonly root?: string;
  /** What is typed when the command asks; without it there is no terminal to ask on. Questions go to stderr. */
  readonly typed?: string;
  /** Whether stdout is a terminal. */
  readonly isTTY?: boolean;
  /** Stop it and fail after this long; default 55 s, below the test timeout. */
  readonly timeoutMs?: number;
}

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CapturedCli {
  readonly cli: Cli;
  /** Everything printed so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Stops the command as a signal to its process would. */
  signal(name: 'SIGINT' | 'SIGTERM'): void;
}

/** Surroundings of a command that keep what it prints. */
export function captureCli(options: CliOptions = {}): CapturedCli {
  const { env = {}, cwd = process.cwd(), root = cwd, isTTY = false, typed } = options;
  const printed = { stdout: '', stderr: '' };
  const keep = (name: 'stdout' | 'stderr') => ({
    write(text: string) {
      printed[name] += text;
    },
  });
  const signals = new EventEmitter();
  const stderr = keep('stderr');
  const life = createLifecycle({
    on: (name, listener) => signals.on(name, listener),
    exit: () => undefined,
    stderr,
  });
  const answer = async (question: string) => {
    stderr.write(`${question}${typed}\n`);
    return typed ?? '';
  };
  const ask = typed === undefined ? undefined : answer;
  return {
    cli: { env, cwd, root, stdout: { ...keep('stdout'), isTTY }, stderr, ask, life, exitCode: 0 },
    stdout: () => printed.stdout,
    stderr: () => printed.stderr,
    signal: (name) => void signals.emit(name),
  };
}

/** Runs a command line in this process, to its end. An exit code that is not 0 is a result, not an error. */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const timeoutMs = (options.timeoutMs ?? 55_000) * patience.times;
  const { cli, stdout, stderr, signal } = captureCli(options);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    signal('SIGTERM');
  }, timeoutMs);
  const code = await runProgram(cli, args);
  clearTimeout(timer);
  if (late) {
    throw new Error(
      `eod ${args.join(' ')} did not end within ${timeoutMs} ms; it printed:\n${stdout()}${stderr()}`,
    );
  }
  const result = { code, stdout: stdout(), stderr: stderr() };
  refuseMisnamedBooleans(args, result);
  return result;
}

/** Names of JSON are a contract: the document and the log of every command that a test runs follow the rule of docs/tables.md. */
function refuseMisnamedBooleans(args: readonly string[], { stdout, stderr }: CliResult): void {
  // Whoever writes a query names its columns.
  const document = args.includes('--json') && args[0] !== 'query' ? [stdout] : [];
  const log = stderr.split('\n').filter((line) => line.startsWith('{"'));
  const misnamed = [...document, ...log].flatMap((text) => misnamedBooleans(parsed(text)));
  if (misnamed.length > 0) throw new Error(`eod ${args.join(' ')}: is or has is missing: ${misnamed}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A test that expects a document says so itself; without one there is nothing to check here.
    return null;
  }
}

/** A text with the lines put together again that were broken to fit the page. */
export function unwrapped(text: string): string {
  return text.replaceAll(/\n {2,}/g, ' ');
}

/** A command that is running in this process. */
export interface RunningCli extends Omit<CapturedCli, 'cli'> {
  /** Waits until stdout and stderr together match, and gives the match. */
  output(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  readonly ended: Promise<CliResult>;
}

/** Starts a command in this process and leaves it running; what still runs is stopped after the test file. */
export function startCli(args: readonly string[], options: CliOptions = {}): RunningCli {
  const { cli, ...captured } = captureCli(options);
  const { stdout, stderr, signal } = captured;
  const name = `eod ${args.join(' ')}`;
  let over = false;
  const ended = runProgram(cli, args).then((code) => {
    over = true;
    return { code, stdout: stdout(), stderr: stderr() };
  });
  closeAfterFile(() => {
    signal('SIGTERM');
    return ended;
  });
  return {
    ...captured,
    async output(pattern, timeoutMs = 20_000) {
      const search = () => pattern.exec(`${stdout()}${stderr()}`) ?? (over ? 'over' : null);
      const match = await waitFor(search, { timeoutMs, what: `${pattern} of ${name}` });
      if (match !== 'over') return match;
      throw new Error(`${name} ended without printing ${pattern}; it printed:\n${stdout()}${stderr()}`);
    },
    ended,
  };
}

/** Runs a command that prints JSON; fails with its stderr when it prints anything else. */
export async function runJson<Document>(
  args: readonly string[],
  options: CliOptions,
): Promise<CliResult & { json: Document }> {
  const result = await runCli([...args, '--json'], options);
  try {
    return { ...result, json: JSON.parse(result.stdout) as Document };
  } catch {
    throw new Error(`eod ${args.join(' ')} did not print JSON:\n${result.stdout}\n${result.stderr}`);
  }
}
