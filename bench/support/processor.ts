import { readdirSync, readFileSync } from 'node:fs';
import type pg from 'pg';

/** Processor time since the start, in seconds. */
export interface ProcessorTimes {
  /** Of all processes of the Postgres server. */
  readonly postgres: number;
  /** Of all processes of the machine, and of all its processors. */
  readonly busy: number;
  readonly idle: number;
}

/** Linux counts in hundredths of a second. */
const TICKS = 100;

/** Reads what Linux has counted so far; null on other systems. */
export async function processorTimes(client: pg.Client): Promise<ProcessorTimes | null> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  try {
    const postmaster = processStat(rows[0]?.pid ?? 0).parent;
    const [, ...ticks] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/\s+/).map(Number);
    const [user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0] = ticks;
    return {
      postgres: serverTicks(postmaster) / TICKS,
      busy: (user + nice + system + irq + softirq) / TICKS,
      idle: (idle + wait) / TICKS,
    };
  } catch {
    return null;
  }
}

/** Processor time between two readings. */
export function processorTimeBetween(
  before: ProcessorTimes | null,
  after: ProcessorTimes | null,
): ProcessorTimes | null {
  if (before === null || after === null) return null;
  return {
    postgres: after.postgres - before.postgres,
    busy: after.busy - before.busy,
    idle: after.idle - before.idle,
  };
}

/** Figures of a bench beside those of its COPY, in seconds of one processor; none where they are not known. */
export function processorFigures(ours: ProcessorTimes | null, copy: ProcessorTimes | null) {
  if (ours === null || copy === null) return {};
  return {
    postgresCpuSeconds: ours.postgres,
    allCpuSeconds: ours.busy,
    idleCpuSeconds: ours.idle,
    copyPostgresCpuSeconds: copy.postgres,
  };
}

function processStat(pid: number): { parent: number; own: number; ended: number } {
  // The name of the program, in parentheses, may have blanks.
  const fields = (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1) ?? '').split(' ').map(Number);
  const at = (field: number) => fields[field - 3] ?? 0;
  return { parent: at(4), own: at(14) + at(15), ended: at(16) + at(17) };
}

/** The ticks of the server's processes, those that have ended among them. */
function serverTicks(postmaster: number): number {
  const { own, ended } = processStat(postmaster);
  let sum = own + ended;
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const { parent, own: ticks } = processStat(Number(name));
      if (parent === postmaster) sum += ticks;
    } catch {
      // It has ended since the folder was read.
    }
  }
  return sum;
}
