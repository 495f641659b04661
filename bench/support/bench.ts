import type { BenchServer } from './postgres.ts';
import type { Source } from './processes.ts';

/** Figures of one round, or their medians, by name. */
export type Figures = Readonly<Record<string, number>>;

/** What has to be reached: a figure, and the least or the most it may be. */
export type Reach = { readonly figure: string } & (
  | { readonly atLeast: number }
  | { readonly atMost: number }
);

/** One line of the table. */
export interface Bench {
  readonly name: string;
  /** What is done … */
  readonly what: string;
  /** … and beside what, in the same round; null where a figure stands for itself. */
  readonly against: string | null;
  /** The first is the figure that the table shows as measured. */
  readonly reach: readonly [Reach, ...Reach[]];
}

/** Where and how much is measured. */
export interface Site {
  readonly server: BenchServer;
  readonly source: Source;
  readonly records: number;
  readonly rounds: number;
  /** Only counts are checked, on very little. */
  readonly small: boolean;
  /** Keeps a text with the results, for instance the plan of a query. */
  note(bench: string, text: string): void;
}

/** Benches that are measured together, because they begin with the same database. */
export interface Case {
  readonly benches: readonly Bench[];
  /**
   * Measures the wanted benches and yields their figures, once a round.
   *
   * @throws Error where counts, rows or history are not what they should be.
   */
  rounds(site: Site, wanted: ReadonlySet<string>): AsyncIterable<Readonly<Record<string, Figures>>>;
}

/** True if a figure reaches what it should. */
export function isMet(reach: Reach, figures: Figures): boolean {
  const value = figures[reach.figure];
  if (value === undefined) return false;
  return 'atLeast' in reach ? value >= reach.atLeast : value <= reach.atMost;
}

/** Compares what a bench has counted with what it should be, by name. @throws Error that names what differs. */
export function check(
  bench: string,
  counted: Readonly<Record<string, readonly [got: unknown, due: unknown]>>,
) {
  const wrong = Object.entries(counted).filter(([, [got, due]]) => got !== due);
  if (wrong.length === 0) return;
  const deviations = wrong.map(([name, [got, due]]) => `${name} is ${got} and should be ${due}`);
  throw new Error(`${bench}: ${deviations.join('; ')}`);
}
