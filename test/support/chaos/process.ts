import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { waitFor } from '../wait-for.ts';

/** A program in a process of its own, whose output goes to a file. Knows nothing of the test runner. */
export interface Program {
  readonly pid: number;
  readonly name: string;
  /** How it ended; null while it runs. */
  ending(): Ending | null;
  /** All it has printed. */
  printed(): string;
  /** Waits until its output matches. @throws Error when it ends first, or time is up. */
  output(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Ending>;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ProgramOptions {
  readonly name: string;
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly account?: { readonly uid: number; readonly gid: number } | undefined;
}

const running = new Set<Program>();

process.once('exit', () => {
  for (const program of running) program.kill('SIGKILL');
});

export function startProgram(file: string, args: readonly string[], options: ProgramOptions): Program {
  const { name, logFile } = options;
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(file, args, {
    stdio: ['ignore', log, log],
    env: { ...bareEnvironment(), ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...options.account,
  });
  closeSync(log);
  let ending: Ending | null = null;
  const printed = () => readFileSync(logFile, 'utf8');
  const program: Program = {
    pid: child.pid ?? 0,
    name,
    ending: () => ending,
    printed,
    async output(pattern, timeoutMs = 30_000) {
      const look = () => pattern.exec(printed()) ?? (ending === null ? null : 'ended');
      const match = await waitFor(look, { timeoutMs, what: `${pattern} from ${name}` });
      if (typeof match === 'object') return match;
      throw new Error(`${name} ended without printing ${pattern}; it printed:\n${tail(printed())}`);
    },
    kill: (signal) => void child.kill(signal),
    ended: new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code, signal) => {
        ending = { code, signal };
        running.delete(program);
        resolve(ending);
      });
    }),
  };
  running.add(program);
  return program;
}

/** The end of a long text. */
export function tail(text: string, lines = 15): string {
  return text.trim().split('\n').slice(-lines).join('\n');
}

function bareEnvironment(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ'];
  return Object.fromEntries(names.flatMap((name) => [[name, process.env[name] ?? '']].filter(([, v]) => v)));
}
