const RECORD_COUNTS = [
  'fetched',
  'inserted',
  'updated',
  'unchanged',
  'stale',
  'duplicate',
  'rejected',
  'withdrawn',
] as const;

/** What became of the records of a response. `fetched` is the sum of all the others but `withdrawn`. */
export type RecordCounts = Readonly<Record<(typeof RECORD_COUNTS)[number], number>>;

/** Something for each of the counts. */
export const forEachCount = <Value>(of: (name: keyof RecordCounts) => Value) =>
  Object.fromEntries(RECORD_COUNTS.map((name) => [name, of(name)])) as Record<keyof RecordCounts, Value>;

/** The counts of a response without records. */
export const NO_COUNTS: RecordCounts = forEachCount(() => 0);

/** The sums of counts. */
export const sumCounts = (counts: readonly RecordCounts[]): RecordCounts =>
  forEachCount((name) => counts.reduce((sum, each) => sum + each[name], 0));
