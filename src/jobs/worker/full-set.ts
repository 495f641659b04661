import type { Extracted } from '../../extract/types.ts';
import type { FullSet } from '../../load/market/merge.ts';
import type { CoverageEntry } from '../../load/state/coverage.ts';
import type { Operation } from '../../operations/operation.ts';
import type { CoveredWindow } from './coverage.ts';

/**
 * What an answer is the full set of, so that rows it does not list any more can be withdrawn
 * (pure). Nothing is, when it was asked for certain instruments or a part of the day, when records
 * were refused (one of them may be the missing row), when the answer counts more records than it holds,
 * or when it is too early for the day.
 */
export function fullSetsOf(
  operation: Operation,
  window: CoveredWindow & { readonly exchange: string },
  extracted: Pick<Extracted, 'batches' | 'rejects' | 'lacksRecords'>,
  coverage: readonly CoverageEntry[],
): FullSet[] {
  if (window.instruments.length > 0 || window.filtered || extracted.rejects.length > 0) return [];
  if (extracted.lacksRecords === true) return [];
  if (coverage.some((entry) => entry.state === 'not_published')) return [];
  const filled = extracted.batches.filter((batch) => batch.rows.length > 0).map((batch) => batch.table);
  return (
    operation.shapes
      // An answer in one shape says nothing of the rows that came in another.
      .filter((shape) => shape.fullSet !== 'none' && (filled.length === 0 || filled.includes(shape.table)))
      .map((shape) => ({
        table: shape.table,
        exchange: window.exchange,
        days: shape.fullSet === 'days' ? { from: window.from, to: window.to } : null,
        mayBeEmpty: operation.emptyIsNormal,
      }))
  );
}
