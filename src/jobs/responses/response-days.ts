import type { Day } from '../../core/days.ts';
import type { Pair } from '../../core/exchanges.ts';
import type { DataSet } from '../../declaration/operation.ts';
import type { Extracted } from '../../extract/types.ts';
import type { FullSet } from '../../load/merge/merge.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import type { CoverageEntry } from '../../state/registers.ts';
import type { Context } from '../context.ts';
import { type CoveredWindow, computeCoverage } from './response-coverage.ts';

/** When a response was requested. */
export interface CallTime {
  /** In epoch milliseconds. */
  readonly calledAt: number;
  /** The trading day of the call. */
  readonly calledOn: Day;
}

/** What a response means for the coverage of its days, and what it lists in full. */
export function daysOfResponse(
  { config, calendar }: Pick<Context, 'config' | 'calendar'>,
  window: CoveredWindow & Pair,
  { extracted, calledAt, calledOn }: CallTime & { readonly extracted: Extracted },
) {
  const dataSet = dataSetNamed(window.operation);
  const doubts = extracted.doubts.map(({ message }) => message);
  const tradingDays = calendar.tradingDays(window.exchange, window.from, window.to);
  const when = { calledAt, calledOn, calendar, config };
  const requested = computeCoverage(dataSet, window, tradingDays, extracted, when);
  const coverage = requested.map((entry) =>
    // Some records are not what was requested, so the others cannot be trusted to be complete.
    doubts.length === 0 ? entry : { ...entry, state: 'failed' as const, diagnostic: doubts.join('; ') },
  );
  return {
    coverage,
    fullSets: extracted.listsAll ? findFullSets(dataSet, window, extracted, coverage, calledOn) : [],
  };
}

/**
 * What a response lists in full, so that stored rows that it does not list can be withdrawn (pure). That is nothing if
 * the request named instruments or filters, if records were rejected (a missing row may be among them), or if the data
 * of a day may still be published.
 */
export function findFullSets(
  dataSet: DataSet,
  window: CoveredWindow & { readonly exchange: string },
  extracted: Pick<Extracted, 'batches' | 'rejects'>,
  coverage: readonly CoverageEntry[],
  calledOn: Day,
): FullSet[] {
  if (window.instruments.length > 0 || window.filtered || extracted.rejects.length > 0) return [];
  if (coverage.some(({ state, day }) => state === 'not_published' && day >= calledOn)) return [];
  const filled = extracted.batches.filter((batch) => batch.rows.length > 0).map((batch) => batch.table);
  return (
    dataSet.shapes
      // A response in one shape does not list the rows that came in another.
      .filter((shape) => shape.fullSet !== 'none' && (filled.length === 0 || filled.includes(shape.table)))
      .map((shape) => ({
        table: shape.table,
        exchange: window.exchange,
        days: shape.fullSet === 'days' ? { from: window.from, to: window.to } : null,
        mayBeEmpty: dataSet.emptyIsNormal,
      }))
  );
}
