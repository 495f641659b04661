import { type Clock, today } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import type { Extracted } from '../../extract/types.ts';
import { databaseError } from '../../load/database/errors.ts';
import type { ReadKept } from '../../load/market/fold.ts';
import { loadWindow } from '../../load/market/load-window.ts';
import type { FullSet } from '../../load/market/merge.ts';
import type { CoverageEntry } from '../../load/state/coverage.ts';
import type { AnswerToKeep, KeptAnswer } from '../../load/state/responses/kept.ts';
import type { RecordCounts } from '../../load/state/windows/windows.ts';
import { type DataSet, isOperation } from '../../operations/operation.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import { countValues } from '../../operations/rows.ts';
import type { Context } from '../context.ts';
import { NO_TICKERS, type ReadAnswer, sessionAnswer } from '../import/session-answer.ts';
import { readKept, readKeptSource, sessionOf } from '../replay/read-kept.ts';
import { observeSessions, provenDays } from '../runs/sync-sessions.ts';
import { type CoveredWindow, coverageOf } from './answer-coverage.ts';

/** A window with its answer, read. */
export interface Answered extends ReadAnswer {
  readonly window: CoveredWindow & {
    readonly id: number;
    readonly runId: number;
    readonly operation: string;
    readonly exchange: string;
  };
  /** The time of the call: what an empty answer means depends on it. */
  readonly calledAt: number;
  /** Bytes of the body as it was sent. */
  readonly bytes: number;
  readonly preview: boolean;
  /** Names the answer and the code that read it, where it came from the source just now. */
  readonly digest?: string;
  /** Kept for replay; left out where nothing is to be kept. */
  readonly answer?: AnswerToKeep | undefined;
  /** Where an answer is read once more, the other windows that have read it. */
  readonly readByWindows?: readonly number[];
  /** Are all kept answers loaded anew, into tables that held nothing? */
  readonly fresh?: boolean;
  /** Was it worked out here? Then however many rows it withdraws, none is missing by mistake. */
  readonly trusted?: boolean;
}

/**
 * Stores what an answer holds: rows, rejects, coverage and the end of its window. Fetched just now
 * or kept for years, an answer is treated the same way.
 *
 * @returns null when the window had ended already.
 */
export async function storeAnswer(
  context: Context,
  {
    window,
    extracted,
    calledAt,
    bytes,
    preview,
    answer,
    digest,
    readByWindows,
    fresh,
    trusted,
    ...file
  }: Answered,
): Promise<RecordCounts | null> {
  const { config, db } = context;
  const { outcome, warnings, ...believed } = storablePart(context, extracted, calledAt);
  // First, so that a day the calendar was wrong about counts in the coverage.
  const proven = provenDays(window.operation, window, believed.extracted);
  if (!preview)
    await observeSessions(context, window.exchange, proven).catch((error) => {
      throw databaseError(error);
    });
  const { coverage, fullSets, suspicions } = daysOfAnswer(context, window, {
    ...file,
    ...believed,
    calledAt,
  });
  return loadWindow(db, {
    windowId: window.id,
    runId: window.runId,
    operation: window.operation,
    exchange: window.exchange,
    batches: believed.extracted.batches,
    rejects: extracted.rejects,
    fullSets,
    preserved: file.preserved,
    readKept: (kept) => readToFold(context, kept),
    maxWithdrawShare: trusted === true ? 1 : config.EOD_MAX_WITHDRAW_SHARE,
    coverage,
    outcome,
    warnings: [...extracted.warnings, ...warnings],
    suspicions,
    fetchedAt: new Date(calledAt),
    bytes,
    preview,
    answer,
    digest,
    readByWindows,
    fresh,
  });
}

/** The part of an answer that may be stored: nothing, where too many records were rejected. */
function storablePart({ config }: Pick<Context, 'config'>, extracted: Extracted, calledAt: number) {
  const outcome = outcomeOf(extracted, config.EOD_MAX_REJECT_SHARE);
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

/** What an answer says of its days, and which rows it lists in full, as of its call. */
function daysOfAnswer(
  { config, calendar }: Pick<Context, 'config' | 'calendar'>,
  window: CoveredWindow & Pick<Answered['window'], 'operation' | 'exchange'>,
  { extracted, partial, calledAt }: Pick<Answered, 'extracted' | 'partial' | 'calledAt'>,
) {
  const dataSet = dataSetNamed(window.operation);
  const clock: Clock = { now: () => calledAt };
  const suspicions = strayText(extracted);
  const sessions = calendar.sessions(window.exchange, window.from, window.to);
  const asked = isOperation(dataSet)
    ? coverageOf(dataSet, window, sessions, extracted, { clock, calendar, config })
    : [];
  const coverage = asked.map((entry) =>
    // Part of an answer was not what was asked for: what else is wrong with it cannot be told.
    suspicions.length === 0
      ? entry
      : { ...entry, state: 'failed' as const, diagnostic: suspicions.join('; ') },
  );
  return {
    coverage,
    fullSets:
      partial === true
        ? []
        : fullSetsOf(dataSet, window, extracted, coverage, today(clock, config.EOD_TIMEZONE)),
    suspicions,
  };
}

/**
 * Reads a kept answer as it would be stored if it came now, to be folded with others.
 *
 * @returns null for a file without tickers: under which ones its rows were stored depended on what was stored.
 */
export async function readToFold(context: Context, kept: KeptAnswer): ReturnType<ReadKept> {
  const session = kept.file === null ? null : sessionOf(readKept(context, kept), kept);
  if (session?.withoutTickers === true || session === undefined) return null;
  const file: ReadAnswer =
    session === null
      ? { extracted: readKeptSource(context, kept) }
      : await sessionAnswer(context.db.pool, session, NO_TICKERS);
  const calledAt = kept.fetchedAt.getTime();
  const { extracted } = storablePart(context, file.extracted, calledAt);
  const { fullSets } = daysOfAnswer(context, kept, { ...file, extracted, calledAt });
  return { batches: extracted.batches, fullSets, preserved: file.preserved };
}

function strayText({ strays = 0 }: Extracted): string[] {
  if (strays === 0) return [];
  return [
    `${strays === 1 ? 'a record is' : `${strays} records are`} of a day or an exchange that was not asked for`,
  ];
}

/** A source's clock may be ahead of ours by so much. */
const CLOCK_TOLERANCE_MS = 3_600_000;

/**
 * A record cannot have been saved after it was sent: where it says so, the time of the call counts, since it
 * would make every later correction look old.
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

/** How a window that was answered ends. */
export interface Outcome {
  readonly state: 'loaded' | 'empty' | 'failed';
  readonly error: string | null;
}

/**
 * Half a day must not look like a day: where more records than the allowed share were rejected,
 * none is stored, and the window fails.
 */
export function outcomeOf({ fetched, rejects }: Extracted, allowedShare: number): Outcome {
  if (fetched === 0) return { state: 'empty', error: null };
  if (rejects.length / fetched <= allowedShare && rejects.length < fetched)
    return { state: 'loaded', error: null };
  const percent = Math.round(allowedShare * 100);
  return {
    state: 'failed',
    error: `${rejects.length} of ${fetched} records were rejected (allowed: ${percent} %, EOD_MAX_REJECT_SHARE); none was stored, and each is kept as a reject`,
  };
}

/**
 * What an answer is the full set of, so that rows it does not list any more can be withdrawn
 * (pure). Nothing is, when it was asked for certain instruments or a part of the day, when records
 * were rejected (one of them may be the missing row), or on the evening of a day without records.
 */
export function fullSetsOf(
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
      // An answer in one shape says nothing of the rows that came in another.
      .filter((shape) => shape.fullSet !== 'none' && (filled.length === 0 || filled.includes(shape.table)))
      .map((shape) => ({
        table: shape.table,
        exchange: window.exchange,
        days: shape.fullSet === 'days' ? { from: window.from, to: window.to } : null,
        mayBeEmpty: dataSet.emptyIsNormal,
      }))
  );
}
