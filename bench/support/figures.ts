import { availableParallelism, cpus } from 'node:os';
import Table from 'cli-table3';

/** The middle value; of an even number the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  const low = sorted[Math.ceil(half) - 1] as number;
  const high = sorted[Math.floor(half)] as number;
  return (low + high) / 2;
}

/** What the figures were measured on. */
export function machineFacts(): string {
  const model = cpus()[0]?.model ?? 'unknown processor';
  return `${availableParallelism()} cores (${model}), Node ${process.versions.node}`;
}

/** A plain table for the terminal. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const printed = new Table({
    head: [...head],
    style: { head: [], border: [] },
    colAligns: head.map((_, at) => (at === 0 ? 'left' : 'right')),
  });
  printed.push(...rows.map((row) => [...row]));
  return printed.toString();
}
