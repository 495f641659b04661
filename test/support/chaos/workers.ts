import { readFileSync } from 'node:fs';
import { waitFor } from '../wait-for.ts';
import { type Surroundings, startEod } from './eod.ts';
import { type Program, tail } from './process.ts';
import { pick } from './random.ts';

const SAMPLE_EVERY_MS = 250;

interface Worker {
  readonly program: Program;
  /** Stays alive from the first to the last moment: its memory is watched. */
  readonly longLived: boolean;
  /** We have ended it, or asked it to stop. */
  stopped: boolean;
}

/** Worker processes of which one may be killed at any time; another follows at once. */
export interface WorkerGroup {
  /** Waits until every worker has started. */
  ready(): Promise<void>;
  /** kill -9 for a worker that is at work. */
  killOne(random: () => number): Promise<void>;
  /** Asks all to stop, and waits for it. */
  stop(): Promise<void>;
  figures(): WorkerFigures;
  /** Workers that ended though nobody asked them to. */
  problems(): readonly string[];
}

export interface WorkerFigures {
  readonly started: number;
  readonly killed: number;
  /** Memory of the long-lived worker (resident set), one sample after the other. Unit: MB. */
  readonly memory: readonly number[];
}

/** @param size workers at any time, the long-lived one included. */
export function startWorkers(surroundings: Surroundings, size: number): WorkerGroup {
  const workers = new Set<Worker>();
  const problems: string[] = [];
  const memory: number[] = [];
  let started = 0;
  let killed = 0;

  function startOne(longLived: boolean): void {
    const program = startEod(surroundings, ['up', '--roles', 'worker']);
    const worker: Worker = { program, longLived, stopped: false };
    workers.add(worker);
    started += 1;
    void program.ended.then(({ code, signal }) => {
      workers.delete(worker);
      if (worker.stopped) return;
      // Before it was up too: a server that is unreachable is waited for.
      const how = `ended on its own (${signal ?? code})`;
      problems.push(`${program.name} ${how}; it printed:\n${tail(program.printed())}`);
      startOne(longLived);
    });
  }

  for (let number = 0; number < size; number += 1) startOne(number === 0);
  const sampler = setInterval(() => {
    for (const worker of workers) {
      if (!worker.longLived || !isUp(worker)) continue;
      const size = residentMegabytes(worker.program.pid);
      if (size !== null) memory.push(size);
    }
  }, SAMPLE_EVERY_MS);

  return {
    async ready() {
      await waitFor(() => [...workers].every(isUp), { timeoutMs: 60_000, what: 'the workers' });
    },
    async killOne(random) {
      const candidates = await waitFor(
        () => {
          const up = [...workers].filter((worker) => !worker.longLived && !worker.stopped && isUp(worker));
          return up.length > 0 ? up : null;
        },
        { timeoutMs: 60_000, what: 'a worker that can be killed' },
      );
      const chosen = pick(random, candidates);
      chosen.stopped = true;
      chosen.program.kill('SIGKILL');
      await chosen.program.ended;
      killed += 1;
      startOne(false);
    },
    async stop() {
      clearInterval(sampler);
      const stopped = [...workers];
      for (const worker of stopped) {
        worker.stopped = true;
        worker.program.kill('SIGTERM');
      }
      for (const { program } of stopped) {
        const { signal } = await program.ended;
        if (signal === 'SIGKILL') problems.push(`${program.name} did not stop when it was asked to`);
      }
    },
    figures: () => ({ started, killed, memory }),
    problems: () => problems,
  };
}

function isUp({ program }: Worker): boolean {
  return program.printed().includes('eod is up');
}

/** Resident set of a process, or null when it has just ended. */
function residentMegabytes(pid: number): number | null {
  try {
    const match = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return match === null ? null : Number(match[1]) / 1024;
  } catch {
    return null;
  }
}
