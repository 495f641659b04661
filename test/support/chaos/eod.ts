import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Program, startProgram, tail } from './process.ts';

const LAUNCHER = fileURLToPath(new URL('../../../bin/eod.mjs', import.meta.url));

/** Where the commands of a suite run, and the environment that they get. */
export interface Surroundings {
  /** Folder for the logs; also the working directory, so that no `.env` is found. */
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
}

let started = 0;

/** Starts `eod …` and leaves it running. */
export function startEod(surroundings: Surroundings, args: readonly string[]): Program {
  started += 1;
  const name = `${String(started).padStart(3, '0')}-eod-${args.slice(0, 1)}`;
  const logFile = join(surroundings.home, `${name}.log`);
  return startProgram(process.execPath, [LAUNCHER, ...args], {
    name,
    logFile,
    env: surroundings.env,
    cwd: surroundings.home,
  });
}

/** Runs `eod …` to its end. @throws Error with its output unless it ends with code 0. */
export async function eod(surroundings: Surroundings, args: readonly string[]): Promise<string> {
  const program = startEod(surroundings, args);
  const { code, signal } = await program.ended;
  if (code === 0) return program.printed();
  throw new Error(`eod ${args.join(' ')} ended with ${signal ?? code}:\n${tail(program.printed())}`);
}

export interface SandboxProcess {
  readonly url: string;
  stats(): Promise<SandboxFigures>;
  stop(): Promise<void>;
}

export interface SandboxFigures {
  readonly requests: number;
  readonly byHour: Readonly<Record<string, number>>;
  readonly byDiagnostic: Readonly<Record<string, number>>;
  readonly byFault: Readonly<Record<string, number>>;
}

/** The source in a process of its own. */
export async function startSandboxProcess(
  surroundings: Surroundings,
  flags: readonly string[],
): Promise<SandboxProcess> {
  const program = startEod(surroundings, ['sandbox', '--port', '0', '--instruments', '60', ...flags]);
  const [, url = ''] = await program.output(/listening on (\S+)/);
  return {
    url,
    async stats() {
      const response = await fetch(`${url}/_sandbox/stats`);
      return (await response.json()) as SandboxFigures;
    },
    async stop() {
      program.kill('SIGTERM');
      await program.ended;
    },
  };
}
