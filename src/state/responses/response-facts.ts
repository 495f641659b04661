import { type Preparing, statement } from '../../postgres/prepared.ts';
import type { CoverageEntry, CoverageState } from '../registers.ts';
import type { RejectEntry } from '../rejects.ts';
import { responses } from '../schema/source-tables.ts';
import { windows } from '../schema/work.ts';

// The facts of a response: what it said of its entries, as it is kept with it in `etl.responses`. What it did with the
// rows of days is in `etl.withdrawals`; what follows from all of it is in coverage/sum-of-facts.ts.

/** What a response says, but for its rows. */
export interface ResponseSaid {
  readonly outcome: { readonly state: 'loaded' | 'empty' | 'failed' };
  readonly coverage: readonly CoverageEntry[];
  readonly rejects: readonly RejectEntry[];
  /** Why it is suspicious: it may not have all records. What its rejects show is settled with them. */
  readonly doubts: readonly { readonly message: string; readonly isShownByRejects: boolean }[];
}

/** The doubts that no reject shows: only a later good response settles them. */
export const listUnsettled = ({ doubts }: Pick<ResponseSaid, 'doubts'>): string[] =>
  doubts.flatMap(({ isShownByRejects, message }) => (isShownByRejects ? [] : [message]));

/** True if it can show that a record is no longer sent (`is_believed`). One without records may have come too early. */
export const canResolveRejects = ({ outcome, coverage }: Omit<ResponseSaid, 'rejects'>): boolean =>
  outcome.state === 'loaded' ||
  (outcome.state === 'empty' && coverage.every(({ state }) => state === 'empty'));

/** What a response said of its entries, as it is kept: in a few bytes where it said the same of all of them. */
export interface ResponseFact {
  /** What it said of all its entries; each is null where that differs, or where it has no entry. */
  readonly said: CoverageState | null;
  readonly records: number | null;
  readonly diagnostic: string | null;
  /** Its entries, with what differs; null if they are its last day, for each of its instruments. */
  readonly entries: readonly (Partial<CoverageEntry> & Pick<CoverageEntry, 'day'>)[] | null;
  readonly isSuspicious: true | null;
  readonly resolvesRejects: boolean;
}

/** The value of all these, or null if they differ. */
const common = <Value>(values: readonly (Value | null)[]): Value | null =>
  values.every((value) => value === values[0]) ? (values[0] ?? null) : null;

/** What a response said, as it is kept with it. All its entries have its variant. */
export function buildFact(
  response: Omit<ResponseSaid, 'rejects'>,
  { to, instruments }: { readonly to: string; readonly instruments: readonly string[] },
): ResponseFact {
  const { coverage: entries, doubts } = response;
  const commonState = common(entries.map(({ state }) => state));
  const records = common(entries.map((entry) => entry.records));
  const diagnostic = common(entries.map((entry) => entry.diagnostic ?? null));
  const requested = instruments.length === 0 ? [''] : instruments;
  const isSameOfAll =
    entries.length === requested.length &&
    entries.every(
      (entry, at) =>
        entry.day === to &&
        entry.instrument === requested[at] &&
        entry.state === commonState &&
        entry.records === records &&
        (entry.diagnostic ?? null) === diagnostic,
    );
  return {
    said: commonState,
    records,
    diagnostic,
    entries: isSameOfAll
      ? null
      : entries.map((entry) => ({
          day: entry.day,
          ...(entry.instrument !== '' && { instrument: entry.instrument }),
          ...(commonState === null && { state: entry.state }),
          ...(records === null && { records: entry.records }),
          ...(diagnostic === null && entry.diagnostic !== undefined && { diagnostic: entry.diagnostic }),
        })),
    isSuspicious: doubts.length > 0 ? true : null,
    resolvesRejects: canResolveRejects(response),
  };
}

/** The values of the columns that keep a fact; etl.said_of_entries (migrations/repeatable/coverage.sql) reads them. */
export const factValues = ({ entries, ...fact }: ResponseFact) => ({
  ...fact,
  entries: entries === null ? null : JSON.stringify(entries),
});

export type FactValues = ReturnType<typeof factValues> & Record<string, unknown>;

/**
 * Replaces what a response said, after it was read again; what it did with rows changes only with a fold. A copied
 * response, which belongs to no window yet, becomes one of the window that has read it.
 */
export async function replaceFact(
  tx: Preparing,
  responseId: number,
  windowId: number,
  fact: ResponseFact,
): Promise<void> {
  await updateFact(tx, { responseId, windowId, ...factValues(fact) });
}

/** Writes nothing if the response said the same before. */
const updateFact = statement<FactValues & { responseId: number; windowId: number }, Record<string, unknown>>`
  update ${responses} r
     set said = fact.said, records = fact.records, diagnostic = fact.diagnostic, entries = fact.entries,
         is_suspicious = fact.is_suspicious, is_believed = fact.is_believed,
         window_id = case r.window_id when 0 then w.id else r.window_id end,
         run_id = case r.window_id when 0 then w.run_id else r.run_id end
    from (
           select ${'said'}::text as said, ${'records'}::integer as records, ${'diagnostic'}::text as diagnostic,
                  ${'entries'}::jsonb as entries, ${'isSuspicious'}::boolean as is_suspicious,
                  ${'resolvesRejects'}::boolean as is_believed
         ) fact,
         ${windows} w
   where r.id = ${'responseId'}::bigint
     and w.id = ${'windowId'}::bigint
     and (
       r.window_id = 0
       or (r.said, r.records, r.diagnostic, r.entries, r.is_suspicious, r.is_believed)
         is distinct from (fact.said, fact.records, fact.diagnostic, fact.entries, fact.is_suspicious, fact.is_believed)
     )`;
