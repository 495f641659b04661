import { today } from '../../core/clock.ts';
import { daysBetween } from '../../core/days.ts';
import { requesterName } from '../../core/environment.ts';
import { EXCHANGES } from '../../core/exchanges.ts';
import { groupBy, type NonEmpty } from '../../core/iterables.ts';
import { sha256 } from '../../core/sha256.ts';
import type { RowOf } from '../../declaration/table.ts';
import { NOT_STATED } from '../../extract/corporate-actions/listed-events.ts';
import { type EventKind, isReinvested } from '../../extract/corporate-actions/purpose.ts';
import {
  areStored,
  type LineElsewhere,
  NOTICE_TABLES,
  type Notice,
  readLinesElsewhere,
  readNotices,
  readScripCodes,
  readSymbolOwners,
  SAME_EVENT_DAYS,
  type SymbolOwner,
} from '../../load/corporate-events.ts';
import { COMPUTED, corporateEvents } from '../../operations/files/CorporateEvents.ts';
import { tables } from '../../operations/registry.ts';
import { transaction } from '../../postgres/transaction.ts';
import { type ChangedDays, readDerivedProgress } from '../../state/derived.ts';
import { type EventDecision, readDecisions } from '../../state/events/decisions.ts';
import { takePosition } from '../../state/position-sql.ts';
import { abandonRun, finishRun, insertRun, listRunningRuns, reserveRunId } from '../../state/runs/runs.ts';
import { insertFileWindows, reserveWindowIds } from '../../state/windows/plan.ts';
import type { Context } from '../context.ts';
import { storeResponse } from '../responses/store-response.ts';
import {
  buildEventId,
  type CorporateEvent,
  computeEvents,
  decide,
  isDecided,
  type NoticeOfShare,
  priceFactor,
} from './compute-events.ts';

const BY_RATIO: ReadonlySet<EventKind> = new Set(['split', 'consolidation', 'bonus']);

/** The tables whose rows are notices. */
const noticeTables = tables.filter(({ name }) => NOTICE_TABLES.includes(name));

/**
 * Brings `market.corporate_events` up to date if notices, decisions or owners of symbols have changed since the last
 * time. Changes are loaded like a response, by a run of kind `events`, so that they have revisions and a history. For the
 * process that holds the lock of what is derived.
 *
 * @returns the digest of what they were computed with, null if some could not be stored; and whether any were stored.
 */
export async function updateCorporateEvents(
  context: Context,
  changedDays: ChangedDays,
): Promise<{ readonly digest: string | null; readonly hasStoredEvents: boolean }> {
  const db = context.db.drizzle;
  // Open runs are abandoned ones, because their process must have held the lock.
  for (const id of await listRunningRuns(db, 'events')) {
    await abandonRun(db, id, 'its process ended before it did');
  }
  const decisions = await readDecisions(db);
  const digest = digestDecisions(decisions);
  const progress = await readDerivedProgress(db);
  if (progress?.eventsDigest === digest && noticeTables.every((table) => changedDays(table).length === 0)) {
    return { digest, hasStoredEvents: false };
  }
  const changed: (readonly [exchange: string, rows: readonly EventRow[]])[] = [];
  for (const [exchange, events] of await eventsOfExchanges(context, decisions)) {
    const rows = events.map(buildRow);
    if (!(await areStored(context.db.pool, exchange, rows))) changed.push([exchange, rows]);
  }
  if (changed.length === 0) return { digest, hasStoredEvents: false };
  const areAllStored = await storeEvents(context, changed);
  return { digest: areAllStored ? digest : null, hasStoredEvents: areAllStored };
}

/** The digest that events have to be computed with now, see `DerivedProgress`. */
export const readEventsDigest = async ({ drizzle }: Context['db']): Promise<string> =>
  digestDecisions(await readDecisions(drizzle));

const digestDecisions = (decisions: readonly EventDecision[]): string =>
  sha256(
    decisions
      .map((decision) => JSON.stringify(decision))
      .sort()
      .join('\n'),
  );

/** The events of all exchanges: those of one may reach the lines of the other. */
async function eventsOfExchanges(
  context: Context,
  decisions: readonly EventDecision[],
): Promise<Map<string, CorporateEvent[]>> {
  const listed = new Map<string, CorporateEvent[]>();
  for (const exchange of EXCHANGES) {
    listed.set(exchange, computeEvents(await noticesOfShares(context, exchange), decisions));
  }
  return withEventsOfOtherExchange(listed, await readLinesElsewhere(context.db.pool), decisions);
}

/** The notices of an exchange with the shares that they are about. */
async function noticesOfShares({ db }: Context, exchange: string): Promise<NoticeOfShare[]> {
  const notices = await readNotices(db.pool, exchange);
  if (notices.length === 0) return [];
  const symbols = [...new Set(notices.map(({ symbol }) => symbol))];
  const owners = groupBy(await readSymbolOwners(db.pool, exchange, symbols), ({ symbol }) => symbol);
  const codes = exchange === 'BSE' ? await readScripCodes(db.pool) : new Map<number, string>();
  // All notices of a symbol and day are about one share: the one with the scrip code in one of them, otherwise the
  // owner of the symbol.
  return [...groupBy(notices, ({ symbol, exDate }) => `${symbol}\n${exDate}`).values()].flatMap((same) => {
    const [{ symbol, exDate }] = same;
    const ownerByCode = same.flatMap(({ scripCode }) => codes.get(scripCode ?? 0) ?? []).sort()[0];
    const symbolOfDay = same.some((notice) => notice.symbolOfDay);
    const instrumentId = ownerByCode ?? findOwner({ exDate, symbolOfDay }, owners.get(symbol) ?? []);
    return same.map((notice) => ({ ...notice, instrumentId }));
  });
}

/**
 * The instrument that a list means by a symbol (pure). A daily list means the one that had the symbol on the day of the
 * event. An export means the one that had it on the day of the export, which is the last owner, unless that was first
 * seen after the event.
 */
function findOwner(
  { exDate, symbolOfDay }: Pick<Notice, 'exDate' | 'symbolOfDay'>,
  owners: readonly SymbolOwner[],
): string | null {
  const last = owners.at(-1);
  if (last === undefined) return null;
  if (!symbolOfDay && last.firstSeen <= exDate) return last.instrumentId;
  const then = owners.find(
    ({ from, to }) => (from === '-infinity' || from <= exDate) && (to === 'infinity' || exDate < to),
  );
  return (then ?? last).instrumentId;
}

type EventRow = RowOf<typeof corporateEvents>;

/** An event as a row of `market.corporate_events`; it has no source audit. */
function buildRow(event: CorporateEvent): EventRow {
  return {
    exchange: event.exchange,
    symbol: event.symbol,
    ex_date: event.exDate,
    kind: event.kind,
    item: event.item,
    event_id: event.eventId,
    instrument_id: event.instrumentId,
    scrip_code: event.scripCode,
    record_date: event.recordDate,
    purpose: event.purpose,
    ratio_new: event.ratio === null ? null : String(event.ratio.new),
    ratio_old: event.ratio === null ? null : String(event.ratio.old),
    amount: event.amount,
    // The terms of a rights issue do not tell how prices change, unless a person has set a ratio.
    price_factor:
      event.ratio === null || (event.kind === 'rights' && event.status !== 'applied')
        ? null
        : priceFactor(event.ratio),
    status: event.status,
    status_reason: event.reason,
    listed_by: event.listedBy,
    is_special: event.label === 'special',
    is_reinvested: isReinvested(event),
    source_received_at: null,
    source_saved_at: null,
  };
}

/** @returns false if some were not stored. */
async function storeEvents(
  context: Context,
  changed: readonly (readonly [exchange: string, rows: readonly EventRow[]])[],
): Promise<boolean> {
  const { db, clock, config, log } = context;
  const day = today(clock, config.EOD_TIMEZONE);
  const runId = await reserveRunId(db.drizzle);
  const ids = await reserveWindowIds(db.drizzle, changed.length);
  const windows = await transaction(db, async (tx) => {
    await insertRun(tx, {
      id: runId,
      kind: 'events',
      requestedBy: requesterName(),
      request: { kind: 'events', targets: [], instruments: [], options: {}, live: false },
      from: day,
      to: day,
    });
    return insertFileWindows(tx, runId, {
      ids,
      file: null,
      hash: null,
      parts: changed.map(([exchange]) => ({
        operation: COMPUTED,
        exchange,
        from: day,
        to: day,
        params: {},
      })),
    });
  });
  const calledAt = clock.now();
  const rowsOf = new Map(changed);
  let stored = windows.length > 0;
  for (const window of windows) {
    const rows = rowsOf.get(window.exchange) ?? [];
    const batches = [{ table: corporateEvents, rows }];
    const load = await storeResponse(context, {
      window,
      extracted: {
        batches,
        rejects: [],
        fetched: rows.length,
        doubts: [],
        listsAll: true,
        warnings: [],
        unknownFields: [],
      },
      position: await takePosition(db.drizzle),
      calledAt,
      response: { packed: null, contentType: null, calledOn: day },
      bytes: 0,
      trusted: true,
    });
    stored &&= load !== null;
    const withdrawn = load?.counts.withdrawn ?? 0;
    if (withdrawn > 0) {
      log.warn(
        { runId, exchange: window.exchange, events: withdrawn },
        'withdrew corporate events that no longer follow from the notices, the owners of symbols and the decisions',
      );
    }
  }
  await finishRun(db.drizzle, runId);
  return stored;
}

/**
 * Adds what only the other exchange lists (pure): an event is of a share, and so of its lines on both exchanges. An
 * exchange's own event of that kind is used alone, whatever it says, on that day or, where the ex-dates differ, a few days
 * apart; but a dividend without an amount, and what the source service states without a ratio, says nothing, and is
 * replaced.
 *
 * @param events the events of each exchange from its own lists.
 * @param lines the lines that the shares of either exchange have on the other.
 * @returns all events of each exchange; decisions about added ones are applied.
 */
export function withEventsOfOtherExchange(
  events: ReadonlyMap<string, readonly CorporateEvent[]>,
  lines: readonly LineElsewhere[],
  decisions: readonly EventDecision[],
): Map<string, CorporateEvent[]> {
  const decided = new Map(decisions.map((decision) => [decision.eventId, decision]));
  const every = [...events.values()].flat();
  const ofShare = groupBy(every, ({ instrumentId }) => instrumentId ?? '');
  const ids = new Map(every.map(({ eventId, instrumentId }) => [eventId, instrumentId]));
  const added = new Map<string, CorporateEvent>();
  const replaced = new Set<CorporateEvent>();
  for (const [shareId, names] of groupBy(lines, (line) => line.shareId)) {
    const listed = ofShare.get(shareId)?.filter(isAboutShare) ?? [];
    if (listed.length === 0) continue;
    for (const namesOfLine of groupBy(names, ({ instrumentId }) => instrumentId).values()) {
      const [{ exchange, instrumentId }] = namesOfLine;
      const eventsOfLine = ofShare.get(instrumentId)?.filter(isAboutShare) ?? [];
      const empty = eventsOfLine.filter(isEmpty);
      const stating = eventsOfLine.filter((event) => !isEmpty(event));
      for (const event of listed) {
        if (isStated(event, stating, listed)) continue;
        const symbol = symbolOn(event.exDate, namesOfLine);
        const bySymbol = { symbol, eventId: buildEventId({ ...event, exchange, symbol }) };
        const owner = ids.get(bySymbol.eventId) ?? holderOn(event.exDate, symbol, names);
        // Of two lines with one symbol, the other's event has the name that no line shares.
        const code = instrumentId.slice(instrumentId.indexOf(':') + 1);
        const { eventId, ...as } =
          owner === instrumentId
            ? bySymbol
            : { symbol: code, eventId: buildEventId({ ...event, exchange, symbol: code }) };
        const less = empty.filter(
          (emptyEvent) =>
            emptyEvent.exDate === event.exDate && comparedKind(emptyEvent) === comparedKind(event),
        );
        // Of two empty ones the exchange's own stays.
        const isReplaced = less.some((emptyEvent) => emptyEvent.eventId === eventId);
        if ((ids.has(eventId) && !isReplaced) || (isEmpty(event) && less.length > 0)) continue;
        for (const emptyEvent of less) replaced.add(emptyEvent);
        const copy = { ...event, ...as, eventId, exchange, instrumentId, scripCode: null };
        added.set(eventId, decide(copy, decided.get(eventId)));
      }
    }
  }
  const addedTo = groupBy([...added.values()], ({ exchange }) => exchange);
  return new Map(
    [...events].map(([exchange, eventsOfExchange]) => [
      exchange,
      [...eventsOfExchange.filter((event) => !replaced.has(event)), ...(addedTo.get(exchange) ?? [])],
    ]),
  );
}

/**
 * True if it says anything about the share. What was ignored by rule is a meeting or the like, or of another security.
 */
const isAboutShare = (event: CorporateEvent) => event.status !== 'ignored' || isDecided(event);

const isEmpty = (event: CorporateEvent) =>
  event.reason === NOT_STATED || (event.kind === 'dividend' && event.amount === null && !isDecided(event));

/** Kinds that are compared with each other: what a trust distributes is one dividend, of whatever kinds its parts are. */
const comparedKind = (event: CorporateEvent): EventKind => (isReinvested(event) ? 'dividend' : event.kind);

const areNear = (a: CorporateEvent, b: CorporateEvent) =>
  Math.abs(daysBetween(a.exDate, b.exDate)) <= SAME_EVENT_DAYS;

/** True if an event is among a line's own, maybe with another day or, with the same ratio, under another kind. */
function isStated(
  event: CorporateEvent,
  eventsOfLine: readonly CorporateEvent[],
  listed: readonly CorporateEvent[],
): boolean {
  const sort = comparedKind(event);
  const isListedToo = (ownEvent: CorporateEvent, apart: boolean) =>
    listed.some(
      (other) =>
        comparedKind(other) === comparedKind(ownEvent) &&
        (apart ? areNear(other, ownEvent) : other.exDate === ownEvent.exDate),
    );
  return eventsOfLine.some((ownEvent) => {
    if (comparedKind(ownEvent) === sort)
      return ownEvent.exDate === event.exDate || (areNear(ownEvent, event) && !isListedToo(ownEvent, false));
    return (
      BY_RATIO.has(event.kind) &&
      BY_RATIO.has(ownEvent.kind) &&
      event.ratio !== null &&
      ownEvent.ratio?.new === event.ratio.new &&
      ownEvent.ratio.old === event.ratio.old &&
      areNear(ownEvent, event) &&
      !isListedToo(ownEvent, true)
    );
  });
}

/** The line that has a symbol on a day, or had it last before, among those of a share; otherwise its first one. */
function holderOn(day: string, symbol: string, lines: readonly LineElsewhere[]): string | undefined {
  const sorted = lines.filter((line) => line.symbol === symbol).toSorted(byFirstSeen);
  return (sorted.findLast(({ firstSeen }) => firstSeen <= day) ?? sorted[0])?.instrumentId;
}

const byFirstSeen = (a: LineElsewhere, b: LineElsewhere) => {
  const text = (line: LineElsewhere) => `${line.firstSeen} ${line.symbol} ${line.instrumentId}`;
  return text(a) < text(b) ? -1 : 1;
};

/** The symbol of a line on a day: the one it had then or last before, otherwise its first one. Later days do not change it. */
function symbolOn(day: string, names: Readonly<NonEmpty<LineElsewhere>>): string {
  const sorted = names.toSorted(byFirstSeen);
  return (sorted.findLast(({ firstSeen }) => firstSeen <= day) ?? sorted[0] ?? names[0]).symbol;
}
