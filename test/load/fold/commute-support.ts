import fc from 'fast-check';

// What tests of loads in any order draw their responses from.

export const DAYS = ['2025-08-19', '2025-08-20', '2025-08-21'] as const;
export const SYMBOLS = 14;

/**
 * Which symbols a response lacks, what it says of the others, and how many records it repeats.
 *
 * @param savedTimes between how many times at which a record was saved is chosen.
 */
export const contentOf = (savedTimes: number) => ({
  missing: fc.oneof(
    fc.uniqueArray(fc.nat(SYMBOLS - 1), { maxLength: 4 }),
    fc.uniqueArray(fc.nat(SYMBOLS - 1), { maxLength: 9 }),
    fc.constant(Array.from({ length: SYMBOLS }, (_, at) => at)),
  ),
  cells: fc.array(fc.record({ saved: fc.nat(savedTimes - 1), value: fc.nat(2) }), {
    minLength: SYMBOLS,
    maxLength: SYMBOLS,
  }),
  twice: fc.constantFrom(0, 0, 1, 3),
});

/** SQL that empties the tables named, their history, and what is known of loads. */
export function truncateSql(names: readonly string[]): string {
  const both = names.flatMap((name) => [`market.${name}`, `market_history.${name}`]);
  return `truncate ${both.join(', ')}, etl.loads, etl.withdrawals, etl.observed_aliases, etl.rejected_records,
    etl.responses, etl.response_bodies, etl.coverage`;
}
