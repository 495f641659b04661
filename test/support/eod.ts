import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { closeAfterFile } from './closing.ts';
import { patience, waitFor } from './wait-for.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/eod.mjs', import.meta.url));

export interface EodOptions {
  /** Settings on top of a bare environment: those of the person who runs the tests do not count. */
  readonly env?: Readonly<Record<string, string>>;
  /** Also where `.env` and `.eod/` are looked for; give a temporary folder unless the test is about this one. */
  readonly cwd?: string;
  /** Kill it and fail after this long; default 55 s, below the test timeout. For `runEod` only. */
  readonly timeoutMs?: number;
}

export interface EodResult {
  /** Exit code, or null when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningEod {
  readonly pid: number;
  /** Everything printed so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Waits until stdout and stderr together match, and gives the match. */
  output(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  /** Signals the eod process alone, as `kill` and Docker do. */
  kill(signal?: NodeJS.Signals): void;
  /** Resolves when it has ended and all its output is read. */
  readonly ended: Promise<EodResult>;
}

const running = new Set<ChildProcess>();

/** Runs `node bin/eod.mjs …` to its end. A non-zero exit code is a result, not an error. */
export async function runEod(args: readonly string[], options: EodOptions = {}): Promise<EodResult> {
  const timeoutMs = (options.timeoutMs ?? 55_000) * patience.times;
  const eod = spawnEod(args, options);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    eod.kill('SIGKILL');
  }, timeoutMs);
  const result = await eod.ended;
  clearTimeout(timer);
  if (late) {
    const printed = `${result.stdout}${result.stderr}`;
    throw new Error(`eod ${args.join(' ')} did not end within ${timeoutMs} ms; it printed:\n${printed}`);
  }
  return result;
}

/** Starts `node bin/eod.mjs …` and leaves it running; whatever is left is killed after the test file. */
export function spawnEod(args: readonly string[], options: EodOptions = {}): RunningEod {
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    // A process group of its own: at the end its children can be killed with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...bareEnvironment(), ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  running.add(child);
  closeAfterFile(() => killGroup(child));
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  let over = false;
  const ended = new Promise<EodResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      over = true;
      running.delete(child);
      resolve({ code, signal, stdout, stderr });
    });
  });
  return {
    pid: child.pid ?? 0,
    stdout: () => stdout,
    stderr: () => stderr,
    async output(pattern, timeoutMs = 20_000) {
      const search = () => pattern.exec(`${stdout}${stderr}`) ?? (over ? 'over' : null);
      const match = await waitFor(search, { timeoutMs }).catch(() => 'late');
      if (typeof match !== 'string') return match;
      const how = match === 'over' ? 'ended without printing' : `did not within ${timeoutMs} ms print`;
      throw new Error(`eod ${args.join(' ')} ${how} ${pattern}; it printed:\n${stdout}${stderr}`);
    },
    kill: (signal = 'SIGTERM') => child.kill(signal),
    ended,
  };
}

/** What any program needs, and of our settings the folder of the data: that of this checkout is not for tests. */
function bareEnvironment(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ'];
  return Object.fromEntries([
    ['EOD_DATA_DIR', '.eod'],
    ...names.map((name) => [name, process.env[name] ?? '']).filter(([, value]) => value),
  ]);
}

function killGroup(child: ChildProcess): void {
  if (!running.delete(child) || child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function killAll(): void {
  for (const child of running) killGroup(child);
}

process.once('exit', killAll);
// The run was broken off and has left this test process behind.
process.once('disconnect', killAll);

/**
 * Runs a command with a terminal, and types this when it asks whether to continue.
 *
 * @returns what the terminal showed.
 */
export async function typeOnTerminal(
  args: readonly string[],
  typed: string,
  { cwd, env = {} }: EodOptions,
): Promise<string> {
  const command = [process.execPath, LAUNCHER, ...args].map((word) => `'${word}'`).join(' ');
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env.PATH, TERM: 'dumb', EOD_DATA_DIR: '.eod', ...env },
  });
  let shown = '';
  child.stdout.on('data', (chunk: Buffer) => {
    shown += chunk;
    if (typed !== '' && shown.endsWith('[y/N] ')) child.stdin.write(typed);
  });
  await once(child, 'close');
  return shown;
}
