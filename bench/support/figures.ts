import { availableParallelism, cpus } from 'node:os';

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

/** A plain table for the terminal: the first column to the left, figures to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows];
  const widths = head.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  return lines
    .map((line) =>
      widths
        .map((width, at) => (at === 0 ? (line[at] ?? '').padEnd(width) : (line[at] ?? '').padStart(width)))
        .join('  '),
    )
    .join('\n');
}
