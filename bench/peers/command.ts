// Runs a peer as a process of its own and watches how much memory it takes with all the processes it starts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A file for its standard input. */
  readonly input?: string;
  /** Where to run; peers leave files behind. */
  readonly folder: string;
}

const SAMPLE_EVERY_MS = 100;
/** Longer than any peer takes for a million rows; one that hangs must not hang the run. */
const LIMIT_MS = 60 * 60_000;

/**
 * Runs a command to its end and returns the peak of the resident memory of its process tree, sampled; 0 where
 * the system has no /proc. Pages that processes share count for each of them.
 *
 * @throws Error with the end of what it printed when it fails.
 */
export async function runCommand(command: Command): Promise<number> {
  const log = `${command.folder}/log`;
  const output = openSync(log, 'w');
  const input = command.input === undefined ? ('ignore' as const) : openSync(command.input, 'r');
  const child = spawn(command.program, command.args, {
    cwd: command.folder,
    env: { ...process.env, ...command.env },
    stdio: [input, output, output],
  });
  const stop = () => child.kill();
  process.once('exit', stop);
  let peak = 0;
  const sample = () => {
    peak = Math.max(peak, treeMemory(child.pid as number));
  };
  const timer = setInterval(sample, SAMPLE_EVERY_MS);
  const limit = setTimeout(stop, LIMIT_MS);
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    if (code !== 0) {
      const lastLines = readFileSync(log, 'utf8').trim().split('\n').slice(-15).join('\n');
      throw new Error(`${command.program} ended with ${code ?? signal}:\n${lastLines}`);
    }
    return peak;
  } finally {
    clearInterval(timer);
    clearTimeout(limit);
    process.off('exit', stop);
    closeSync(output);
    if (typeof input === 'number') closeSync(input);
  }
}

function treeMemory(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    // It compiles TypeScript for our own programs and is no part of a peer.
    if (/^Name:\s+esbuild/m.test(status)) return 0;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    const residentBytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024;
    return children.reduce((sum, child) => sum + treeMemory(Number(child)), residentBytes);
  } catch {
    // It has ended meanwhile.
    return 0;
  }
}
