import { daysBetween } from '../../core/days.ts';
import { groupBy } from '../../core/iterables.ts';
import { NOT_STATED } from '../../extract/corporate-actions/listed-events.ts';
import { type EventKind, isReinvested } from '../../extract/corporate-actions/purpose.ts';
import type { LineElsewhere } from '../../load/market/corporate-events.ts';
import type { EventDecision } from '../../load/state/events/decisions.ts';
import { type CorporateEvent, decide, eventIdOf, isDecided } from './work-out-events.ts';

/** The two exchanges may have different ex-dates; further apart than this many days it is another event. */
const SAME_EVENT_DAYS = 7;

const BY_RATIO: ReadonlySet<EventKind> = new Set(['split', 'consolidation', 'bonus']);

/**
 * Adds what only the other exchange lists (pure): an event is of a share, and so of its lines on both exchanges. An
 * exchange's own event of that kind counts alone, whatever it says, on that day or, where the ex-dates differ, a few days
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
    const listed = ofShare.get(shareId)?.filter(counts) ?? [];
    if (listed.length === 0) continue;
    for (const namesOfLine of groupBy(names, ({ instrumentId }) => instrumentId).values()) {
      const { exchange, instrumentId } = namesOfLine[0] as LineElsewhere;
      const own = ofShare.get(instrumentId)?.filter(counts) ?? [];
      const empty = own.filter(isEmpty);
      const telling = own.filter((event) => !isEmpty(event));
      for (const event of listed) {
        if (isTold(event, telling, listed)) continue;
        const symbol = symbolOn(event.exDate, namesOfLine);
        const named = { symbol, eventId: eventIdOf({ ...event, exchange, symbol }) };
        const owner = ids.get(named.eventId) ?? holderOn(event.exDate, symbol, names);
        // Of two lines with one symbol, the other's event has the name that no line shares.
        const code = instrumentId.slice(instrumentId.indexOf(':') + 1);
        const { eventId, ...as } =
          owner === instrumentId
            ? named
            : { symbol: code, eventId: eventIdOf({ ...event, exchange, symbol: code }) };
        const less = empty.filter((one) => one.exDate === event.exDate && sortOf(one) === sortOf(event));
        // Of two empty ones the exchange's own stays.
        const isReplaced = less.some((one) => one.eventId === eventId);
        if ((ids.has(eventId) && !isReplaced) || (isEmpty(event) && less.length > 0)) continue;
        for (const one of less) replaced.add(one);
        const copy = { ...event, ...as, eventId, exchange, instrumentId, scripCode: null };
        added.set(eventId, decide(copy, decided.get(eventId)));
      }
    }
  }
  const addedTo = groupBy([...added.values()], ({ exchange }) => exchange);
  return new Map(
    [...events].map(([exchange, own]) => [
      exchange,
      [...own.filter((event) => !replaced.has(event)), ...(addedTo.get(exchange) ?? [])],
    ]),
  );
}

/** Does it say anything about the share? What was ignored by rule is a meeting or the like, or of another security. */
const counts = (event: CorporateEvent) => event.status !== 'ignored' || isDecided(event);

const isEmpty = (event: CorporateEvent) =>
  event.reason === NOT_STATED || (event.kind === 'dividend' && event.amount === null && !isDecided(event));

/** Kinds that are compared with each other: what a trust distributes is one dividend, of whatever kinds its parts are. */
const sortOf = (event: CorporateEvent): EventKind => (isReinvested(event) ? 'dividend' : event.kind);

const areNear = (a: CorporateEvent, b: CorporateEvent) =>
  Math.abs(daysBetween(a.exDate, b.exDate)) <= SAME_EVENT_DAYS;

/** Is an event among a line's own, maybe with another day or, with the same ratio, under another kind? */
function isTold(
  event: CorporateEvent,
  own: readonly CorporateEvent[],
  listed: readonly CorporateEvent[],
): boolean {
  const sort = sortOf(event);
  const isListedToo = (one: CorporateEvent, apart: boolean) =>
    listed.some(
      (other) => sortOf(other) === sortOf(one) && (apart ? areNear(other, one) : other.exDate === one.exDate),
    );
  return own.some((one) => {
    if (sortOf(one) === sort)
      return one.exDate === event.exDate || (areNear(one, event) && !isListedToo(one, false));
    return (
      BY_RATIO.has(event.kind) &&
      BY_RATIO.has(one.kind) &&
      event.ratio !== null &&
      one.ratio?.new === event.ratio.new &&
      one.ratio.old === event.ratio.old &&
      areNear(one, event) &&
      !isListedToo(one, true)
    );
  });
}

/** The line that has a symbol on a day, or had it last before, among those of a share; otherwise its first one. */
function holderOn(day: string, symbol: string, lines: readonly LineElsewhere[]): string | undefined {
  const sorted = lines.filter((line) => line.symbol === symbol).toSorted(byFirstSeen);
  return (sorted.findLast(({ firstSeen }) => firstSeen <= day) ?? sorted[0])?.instrumentId;
}

const byFirstSeen = (a: LineElsewhere, b: LineElsewhere) => {
  const [one, other] = [a, b].map((line) => `${line.firstSeen} ${line.symbol} ${line.instrumentId}`);
  return (one as string) < (other as string) ? -1 : 1;
};

/** The symbol of a line on a day: the one it had then or last before, otherwise its first one. Later days do not change it. */
function symbolOn(day: string, names: readonly LineElsewhere[]): string {
  const sorted = names.toSorted(byFirstSeen);
  const name = sorted.findLast(({ firstSeen }) => firstSeen <= day) ?? sorted[0];
  return (name as LineElsewhere).symbol;
}
