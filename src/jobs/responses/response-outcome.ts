import { countValues } from '../../declaration/rows.ts';
import type { Extracted } from '../../extract/types.ts';
import { listUnsettled } from '../../state/responses/response-facts.ts';
import type { Context } from '../context.ts';

/** The state in which a covered window ends. */
export interface Outcome {
  readonly state: 'loaded' | 'empty' | 'failed';
  readonly error: string | null;
}

/**
 * Decides the state of a covered window. If more records than the allowed share were rejected, the window fails and
 * no row is stored, so that half a day cannot look like a whole one.
 */
export function decideOutcome(extracted: Extracted, allowedShare: number): Outcome {
  const { fetched, rejects } = extracted;
  if (fetched === 0) {
    const [error = null] = listUnsettled(extracted);
    return { state: error === null ? 'empty' : 'failed', error };
  }
  if (rejects.length / fetched <= allowedShare && rejects.length < fetched)
    return { state: 'loaded', error: null };
  const percent = Math.round(allowedShare * 100);
  return {
    state: 'failed',
    error: `${rejects.length} of ${fetched} records were rejected (allowed: ${percent} %, EOD_MAX_REJECT_SHARE); none of them was stored, and each is kept as a reject${firstProblem(rejects)}`,
  };
}

/** What is wrong with the first of some rejects, which is often what is wrong with all. */
function firstProblem([first]: Extracted['rejects']): string {
  const { path, message } = first?.problems[0] ?? { path: '', message: '' };
  return message === '' ? '' : `: ${path === '' ? '' : `${path} `}${message}`;
}

/** The part of a response that is stored: no rows if too many records were rejected. */
export function storablePart({ config }: Pick<Context, 'config'>, extracted: Extracted, calledAt: number) {
  const outcome = decideOutcome(extracted, config.EOD_MAX_REJECT_SHARE);
  const { batches, warnings } = limitSavedAt(extracted, calledAt);
  const failed = outcome.state === 'failed';
  return {
    outcome,
    warnings,
    extracted: {
      ...extracted,
      batches: failed ? [] : batches,
      fetched: failed ? extracted.rejects.length : extracted.fetched,
    },
  };
}

/** The source's clock may be this far ahead of ours. */
const CLOCK_TOLERANCE_MS = 3_600_000;

/**
 * Replaces times at which records were saved by the time of the call if they are later than that: they must be wrong,
 * and would make every later correction look older than the record.
 */
function limitSavedAt(
  { batches }: Extracted,
  calledAt: number,
): { readonly batches: Extracted['batches']; readonly warnings: readonly string[] } {
  const latest = calledAt + CLOCK_TOLERANCE_MS;
  const call = new Date(calledAt).toISOString();
  const tooLate = new Map<unknown, number>();
  for (const { rows } of batches) {
    for (const [saved, records] of countValues(rows, 'source_saved_at')) {
      if (typeof saved !== 'string' || Date.parse(saved) <= latest) continue;
      tooLate.set(saved, (tooLate.get(saved) ?? 0) + records);
    }
  }
  if (tooLate.size === 0) return { batches, warnings: [] };
  const [first] = tooLate.keys();
  const all = [...tooLate.values()].reduce((sum, records) => sum + records, 0);
  return {
    batches: batches.map(({ table, rows }) => ({
      table,
      rows: Array.from(rows, (row) =>
        tooLate.has(row.source_saved_at) ? { ...row, source_saved_at: call } : row,
      ),
    })),
    warnings: [
      `${all} records say they were saved after they were sent, e.g. ${first}: taken as saved at the time of the call`,
    ],
  };
}
