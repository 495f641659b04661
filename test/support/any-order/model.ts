import {
  CALLS,
  calledAt,
  calledOn,
  DAYS,
  entryOf,
  type Kind,
  kindOf,
  type Response,
  recordOf,
  SAVED,
  type Sent,
  type TableKind,
} from './responses.ts';

// What is stored once some responses are loaded, computed from the responses alone, as an ordered fold: in whatever
// order they were loaded. It shares no code with the pipeline.

/** A withdrawal that a person has accepted. */
export interface Accepted {
  readonly position: string;
  readonly table: string;
  readonly day: string;
}

/** What a database holds of an exchange, or should, as sorted text by topic. */
export interface Stored {
  readonly rows: readonly string[];
  /** The revisions of the rows, past ones as well. They depend on the order of the loads until a replay into empty tables. */
  readonly revisions: readonly string[];
  readonly states: readonly string[];
  readonly records: readonly string[];
  readonly diagnostics: readonly string[];
  /** What responses did about rows that they did not list. */
  readonly withdrawals: readonly string[];
  readonly openRejects: readonly string[];
  readonly resolvedRejects: readonly string[];
  /** Of the open ones: when they were seen last, and where. */
  readonly sightings: readonly string[];
  /** By operation, how many responses somebody should look at. */
  readonly suspicious: readonly string[];
  /** Entries whose coverage is not the sum of what is kept with the responses. */
  readonly notTheSum: readonly string[];
  /** Rows in which a copy that follows by changes alone differs. */
  readonly notFollowed: readonly string[];
}
export type Topic = keyof Stored;

/** At most this share of the records of a response may be rejected. */
export const MAX_REJECT_SHARE = 0.5;
/** This many rows of a day may always be withdrawn at once, and this share of the most that it had. */
const ALWAYS_WITHDRAWN = 5;
const MAX_WITHDRAW_SHARE = 0.1;
const WITHHELD = 'the response has no rows of this day, but some are stored';
const NO_DAY = '-';

type Reject = Exclude<Sent, { type: 'row' }>;
type Row = Extract<Sent, { type: 'row' }>;

/** What a response says, whatever else is known. */
interface Fact {
  readonly position: string;
  readonly response: Response;
  /** Rows to store: none if too many records were rejected. */
  readonly rows: readonly Row[];
  readonly rejects: readonly { readonly position: number; readonly record: Reject }[];
  readonly strays: number;
  /** What it says of each entry that it is about. */
  readonly entries: ReadonlyMap<string, EntryFact>;
  /** Whether it says which records are no longer sent, so that their rejects are resolved. */
  readonly resolvesRejects: boolean;
}

interface EntryFact {
  readonly state: string;
  readonly records: number;
  readonly diagnostic: string;
}

/** An entry of the coverage. */
const nameOf = (response: Response, day: string, instrument: string) => {
  const { operation, variant } = entryOf(response);
  return [operation, day, instrument, variant].join('|');
};

/** The days that a response is about: if it has none, the day of the call. */
function daysRequested(response: Response): string[] {
  const { requests } = kindOf(response.kind);
  if (requests === 'once') return [calledOn(response)];
  return DAYS.slice(requests === 'instrument' ? response.to : response.from, response.to + 1);
}

/** The day and the instrument that a rejected record says. */
function namedBy(kind: Kind, record: Reject): { day?: string; instrument?: string } {
  if (record.type !== 'broken' || !kindOf(kind).tables[0].dated) return {};
  const day = DAYS[record.day] as string;
  return kind === 'bhav' || kind === 'pledge' ? { day, instrument: `S${record.symbol}` } : { day };
}

function factOf(response: Response, position: string): Fact {
  const { kind, sent, call } = response;
  const { tables } = kindOf(kind);
  const rejects = sent.flatMap((record, position) => (record.type === 'row' ? [] : [{ position, record }]));
  const strays = rejects.filter(({ record }) => record.type === 'stray').length;
  const isFailed =
    rejects.length > 0 && (rejects.length === sent.length || rejects.length / sent.length > MAX_REJECT_SHARE);
  const rows = isFailed ? [] : sent.filter((record) => record.type === 'row');
  const { instruments, filtered } = entryOf(response);
  const entries = new Map<string, EntryFact>();
  for (const day of filtered ? [] : daysRequested(response)) {
    for (const instrument of instruments.length === 0 ? [''] : instruments) {
      const records = rows.filter((row) => {
        const table = tables[row.table] as TableKind;
        if (!table.dated) return true;
        return DAYS[row.day] === day && (instrument === '' || instrument === `S${row.symbol}`);
      }).length;
      const mayBeRejected =
        isFailed ||
        rejects.some(({ record }) => {
          const named = namedBy(kind, record);
          return (
            (named.day ?? day) === day &&
            (instrument === '' || (named.instrument ?? instrument) === instrument)
          );
        });
      const isAwaited =
        kindOf(kind).requests === 'once' || DAYS.indexOf(day as never) >= (CALLS[call]?.awaitedFrom ?? 0);
      const outcome =
        strays > 0
          ? { state: 'failed', diagnostic: straysText(strays) }
          : records > 0
            ? { state: 'loaded', diagnostic: '' }
            : mayBeRejected
              ? { state: 'failed', diagnostic: 'none of its records was stored; see its rejects' }
              : { state: isAwaited ? 'not_published' : 'empty', diagnostic: '' };
      entries.set(nameOf(response, day, instrument), { ...outcome, records });
    }
  }
  const isEmpty = sent.length === 0;
  const resolvesRejects =
    !isFailed && (!isEmpty || [...entries.values()].every(({ state }) => state === 'empty'));
  return { position, response, rows, rejects, strays, entries, resolvesRejects };
}

const straysText = (strays: number) =>
  `${strays === 1 ? 'a record is' : `${strays} records are`} of a day, quarter or exchange that was not requested`;

/** The days (NO_DAY if it has none) of a table that a response lists in full. */
function fullDays({ response, rows, rejects, entries }: Fact, { name, lists }: TableKind): string[] {
  const { kind, part } = response;
  if (part !== 'full' || rejects.length > 0 || lists === 'none') return [];
  const filled = new Set(rows.map((row) => kindOf(kind).tables[row.table]?.name));
  if (filled.size > 0 && !filled.has(name)) return [];
  // It may have come too early.
  const isEarly = [...entries].some(
    ([entry, { state }]) =>
      state === 'not_published' && (entry.split('|')[1] as string) >= calledOn(response),
  );
  if (isEarly) return [];
  return lists === 'exchange' ? [NO_DAY] : daysRequested(response);
}

interface StoredRow {
  readonly day: string;
  readonly symbol: string;
  value: string;
  /** When it was saved, in milliseconds; 0 if that is not known. */
  saved: number;
  revision: number;
  live: boolean;
}

interface FoldedTable {
  readonly rows: readonly StoredRow[];
  readonly past: readonly string[];
  readonly withdrawals: readonly Withdrawal[];
}

/** What a response did about the rows of a day that it did not list. */
interface Withdrawal {
  readonly position: string;
  readonly day: string;
  readonly unlistedRows: number;
  readonly maxRows: number;
  readonly remainingRows: number;
  state: 'withdrawn' | 'accepted' | 'withheld' | 'outdated';
}

const isWithheld = ({ state }: Withdrawal) => state === 'withheld';
const hasEmptied = ({ state, remainingRows }: Withdrawal) =>
  remainingRows === 0 && (state === 'withdrawn' || state === 'accepted');

/** The rows of a response for a table: of those with the same key, the one saved last, or else the last one. */
function rowsOf(fact: Fact, at: number) {
  const { kind, symbols, nature, to, sent } = fact.response;
  const table = kindOf(kind).tables[at] as TableKind;
  const best = new Map<string, { day: string; symbol: string; value: string; saved: number }>();
  const ranks = new Map<string, number>();
  const shown = new Map<Sent, number>();
  for (const record of kind === 'gainers' ? sent : []) {
    if (record.type === 'unknown') continue;
    const side = `${record.type === 'stray' ? '' : record.day} ${record.symbol % 2}`;
    ranks.set(side, (ranks.get(side) ?? 0) + 1);
    shown.set(record, ranks.get(side) ?? 0);
  }
  for (const row of fact.rows) {
    if (row.table !== at) continue;
    const rank = shown.get(row);
    const value = `V${row.value}${rank === undefined ? '' : `#${rank}`}`;
    const day = kind === 'ratios' ? (DAYS[to] as string) : table.dated ? (DAYS[row.day] as string) : NO_DAY;
    const symbol = kind === 'ratios' ? `S${symbols[0]}/${nature}` : `S${row.symbol}`;
    // The label of a category is a part of its key.
    const key = `${day} ${symbol}${kind === 'categories' ? ` ${value}` : ''}`;
    const savedAt = SAVED[row.saved] ?? 0;
    // A record cannot have been saved after it was sent.
    const saved = savedAt > calledAt(fact.response) ? calledAt(fact.response) : savedAt;
    if ((best.get(key)?.saved ?? 0) <= saved) best.set(key, { day, symbol, value, saved });
  }
  return best;
}

function foldTable(
  facts: readonly Fact[],
  kind: Kind,
  at: number,
  accepted: readonly Accepted[],
): FoldedTable {
  const { tables, mayBeEmpty } = kindOf(kind);
  const table = tables[at] as TableKind;
  const rows = new Map<string, StoredRow>();
  const past: string[] = [];
  const maxRowsOfDay = new Map<string, number>();
  const withdrawals: Withdrawal[] = [];
  const archive = (row: StoredRow, withdrawn: boolean) =>
    past.push(`past ${revisionText(table.name, row)} ${withdrawn}`);
  const liveOn = (day: string) =>
    [...rows].filter(([, row]) => row.live && (table.lists === 'exchange' || row.day === day));
  for (const fact of facts) {
    const { response, position } = fact;
    if (response.kind !== kind) continue;
    const full = fullDays(fact, table);
    const before = new Map(full.map((day) => [day, liveOn(day).length]));
    const best = rowsOf(fact, at);
    for (const [key, { day, symbol, value, saved: savedAt }] of best) {
      const row = rows.get(key);
      if (row === undefined) {
        rows.set(key, { day, symbol, value, saved: savedAt, revision: 1, live: true });
        continue;
      }
      // The time of the call, in place of one that cannot be right, counts for new rows only.
      const saved = savedAt === calledAt(response) ? 0 : savedAt;
      const isStale = saved > 0 && row.saved > saved;
      if (row.live && (isStale || (row.value === value && (saved === 0 || saved === row.saved)))) continue;
      if (row.live) archive(row, false);
      row.revision += 1;
      row.live = true;
      if (isStale) continue;
      row.value = value;
      row.saved = saved === 0 ? row.saved : saved;
    }
    for (const day of full) {
      for (const withdrawal of withdrawals)
        if (withdrawal.day === day && isWithheld(withdrawal)) withdrawal.state = 'outdated';
      const live = liveOn(day);
      const unlisted = live.filter(([key]) => !best.has(key));
      if (unlisted.length === 0) continue;
      const was = before.get(day) ?? 0;
      const maxRows = Math.max(was, maxRowsOfDay.get(day) ?? 0);
      const remainingRows = live.length - unlisted.length;
      const isAccepted = accepted.some(
        (withdrawal) =>
          withdrawal.position === position && withdrawal.table === table.name && withdrawal.day === day,
      );
      const listsNone = ![...best.values()].some((row) => table.lists === 'exchange' || row.day === day);
      const isAllowed =
        !(listsNone && !mayBeEmpty) &&
        maxRows - (was - unlisted.length) <=
          Math.max(ALWAYS_WITHDRAWN, Math.floor(maxRows * MAX_WITHDRAW_SHARE));
      if (!isAllowed && !isAccepted) {
        withdrawals.push({
          position,
          day,
          unlistedRows: unlisted.length,
          maxRows,
          remainingRows,
          state: 'withheld',
        });
        continue;
      }
      for (const [, row] of unlisted) {
        archive(row, true);
        row.live = false;
      }
      maxRowsOfDay.set(day, isAccepted ? remainingRows : maxRows);
      const state = isAccepted ? 'accepted' : 'withdrawn';
      withdrawals.push({ position, day, unlistedRows: unlisted.length, maxRows, remainingRows, state });
    }
  }
  return { rows: [...rows.values()], past, withdrawals };
}

const rowText = (table: string, { day, symbol, value, saved }: StoredRow) =>
  [table, day, symbol, value, saved].join(' ');
const revisionText = (table: string, row: StoredRow) => `${rowText(table, row)} r${row.revision}`;

/** What identifies a rejected record: the record, and what was requested. */
function rejectName({ response }: Fact, record: Reject): string {
  const { operation, from, to, variant, instruments } = entryOf(response);
  const { day } = namedBy(response.kind, record);
  const { requests } = kindOf(response.kind);
  return rejectText({
    operation,
    days: requests === 'once' ? '' : `${day ?? from} ${day ?? to}`,
    variant,
    instruments: requests === 'instrument' ? instruments : [],
    record: recordOf(response.kind, record),
  });
}

/** The same for the model and for what is stored. */
export const rejectText = (reject: {
  readonly operation: string;
  readonly days: string;
  readonly variant: string;
  readonly instruments: readonly string[];
  readonly record: Record<string, unknown>;
}) =>
  [
    reject.operation,
    reject.days,
    reject.variant,
    reject.instruments.join(),
    JSON.stringify(Object.entries(reject.record).sort(([a], [b]) => (a < b ? -1 : 1))),
  ].join(' ');

function foldRejects(facts: readonly Fact[]) {
  const last = new Map<string, { fact: Fact; record: Reject; position: number }>();
  for (const fact of facts) {
    const here = new Set<string>();
    for (const { record, position } of fact.rejects) {
      const name = rejectName(fact, record);
      if (here.has(name)) continue;
      here.add(name);
      last.set(name, { fact, record, position });
    }
  }
  const open = new Map(
    [...last].filter(([, { fact, record }]) => !facts.some((other) => covers(other, fact, record))),
  );
  return { last, open };
}

/** Does a response prove that a record that was rejected in another one is no longer sent, or can be read? */
function covers(later: Fact, fact: Fact, record: Reject): boolean {
  const [laterEntry, entry] = [entryOf(later.response), entryOf(fact.response)];
  if (!later.resolvesRejects || later.position <= fact.position) return false;
  if (
    later.response.kind !== fact.response.kind ||
    laterEntry.filtered ||
    laterEntry.variant !== entry.variant
  )
    return false;
  const { day } = namedBy(fact.response.kind, record);
  const hasDays =
    kindOf(fact.response.kind).requests === 'once' ||
    (laterEntry.from <= (day ?? entry.from) && (day ?? entry.to) <= laterEntry.to);
  const hasInstruments =
    laterEntry.instruments.length === 0 ||
    (entry.instruments.length > 0 &&
      entry.instruments.every((instrument) => laterEntry.instruments.includes(instrument)));
  return hasDays && hasInstruments;
}

/**
 * What must be stored once these responses are loaded.
 *
 * @param positions of the responses loaded; the same response may have been loaded more than once.
 */
export function fold(positions: ReadonlyMap<Response, string>, accepted: readonly Accepted[]): Stored {
  const byPosition = new Map(
    [...positions].map(([response, position]) => [position, factOf(response, position)]),
  );
  const facts = [...byPosition.values()].sort((a, b) => (a.position < b.position ? -1 : 1));
  const kinds = [...new Set(facts.map(({ response }) => response.kind))];
  const tables = kinds.flatMap((kind) =>
    kindOf(kind).tables.map((table, at) => ({
      table,
      operation: kindOf(kind).operation,
      ...foldTable(facts, kind, at, accepted),
    })),
  );
  const coverage = foldCoverage(facts, tables, accepted);
  const { last, open } = foldRejects(facts);
  // The newest response that holds it: nobody has to look at a record twice.
  const strays = [...open.values()].filter(({ record }) => record.type === 'stray');
  const suspicious = new Map<string, number>();
  for (const fact of facts) {
    const { operation } = entryOf(fact.response);
    const isSuspicious =
      strays.some((stray) => stray.fact === fact) ||
      tables.some(({ withdrawals }) =>
        withdrawals.some((withdrawal) => isWithheld(withdrawal) && withdrawal.position === fact.position),
      );
    if (isSuspicious) suspicious.set(operation, (suspicious.get(operation) ?? 0) + 1);
  }
  const live = tables.flatMap(({ table, rows }) =>
    rows.filter((row) => row.live).map((row) => ({ name: table.name, row })),
  );
  const sorted = (texts: readonly string[]) => [...texts].sort();
  return {
    rows: sorted(live.map(({ name, row }) => rowText(name, row))),
    revisions: sorted([
      ...live.map(({ name, row }) => `now ${revisionText(name, row)}`),
      ...tables.flatMap(({ past }) => past),
    ]),
    states: sorted(coverage.map(({ entry, state }) => `${entry} ${state}`)),
    records: sorted(coverage.map(({ entry, records }) => `${entry} ${records}`)),
    diagnostics: sorted(coverage.map(({ entry, diagnostic }) => `${entry} ${diagnostic}`)),
    withdrawals: sorted(
      tables.flatMap(({ table, withdrawals }) =>
        withdrawals.map(({ position, day, unlistedRows, maxRows, remainingRows, state }) =>
          [table.name, day, position, unlistedRows, maxRows, remainingRows, state].join(' '),
        ),
      ),
    ),
    openRejects: sorted([...open.keys()]),
    resolvedRejects: sorted([...last.keys()].filter((name) => !open.has(name))),
    sightings: sorted(
      [...open].map(([name, { fact, position }]) => `${name} ${fact.position.slice(0, 23)}Z ${position}`),
    ),
    suspicious: sorted([...suspicious].map(([operation, responses]) => `${operation} ${responses}`)),
    notTheSum: [],
    notFollowed: [],
  };
}

function foldCoverage(
  facts: readonly Fact[],
  tables: readonly (FoldedTable & { readonly operation: string })[],
  accepted: readonly Accepted[],
) {
  const names = new Set(facts.flatMap(({ entries }) => [...entries.keys()]));
  return [...names].map((entry) => {
    const [operation, day, instrument] = entry.split('|') as [string, string, string, string];
    const about = facts.flatMap((fact) => {
      const entryFact = fact.entries.get(entry);
      return entryFact === undefined ? [] : [{ fact, entryFact }];
    });
    // Only a response about the whole exchange withdraws rows.
    const speaks = (position: string) =>
      instrument === '' && about.some(({ fact }) => fact.position === position);
    const lastOf = (positions: readonly string[]) => [...positions].filter(speaks).sort().at(-1) ?? '';
    const filled = tables.filter((table) => table.operation === operation);
    const onDay = (item: { readonly day: string }) => item.day === day || item.day === NO_DAY;
    const emptied = lastOf(
      filled.flatMap((table) =>
        table.withdrawals
          .filter((withdrawal) => hasEmptied(withdrawal) && onDay(withdrawal))
          .map(({ position }) => position),
      ),
    );
    const newestWithheld = lastOf(
      filled.flatMap((table) =>
        table.withdrawals
          .filter((withdrawal) => isWithheld(withdrawal) && onDay(withdrawal))
          .map(({ position }) => position),
      ),
    );
    const last = about.at(-1) as (typeof about)[number];
    const loaded = about.filter(({ entryFact }) => entryFact.state === 'loaded').at(-1);
    const suspicious = about.filter(({ fact }) => fact.strays > 0).at(-1)?.fact.position ?? '';
    const isLoaded =
      loaded !== undefined && loaded.fact.position > suspicious && loaded.fact.position >= emptied;
    const { state: lastState } = last.entryFact;
    const isUndecided =
      newestWithheld === last.fact.position && (lastState === 'empty' || lastState === 'not_published');
    // A person has accepted that there is nothing.
    const isAccepted =
      emptied === last.fact.position &&
      lastState === 'not_published' &&
      accepted.some((withdrawal) => withdrawal.position === last.fact.position && onDay(withdrawal));
    return {
      entry,
      state: isLoaded ? 'loaded' : isUndecided ? 'failed' : isAccepted ? 'empty' : lastState,
      records: (isLoaded ? loaded.entryFact : last.entryFact).records,
      diagnostic: isUndecided ? WITHHELD : last.entryFact.diagnostic,
    };
  });
}
