import { daysBetween } from '../../core/days.ts';
import {
  type EventKind,
  type EventStatus,
  type PurposeEvent,
  readPurpose,
  type ShareRatio,
} from '../../extract/corporate-actions/purpose.ts';
import { readTold } from '../../extract/corporate-actions/told.ts';
import type { Notice } from '../../load/market/corporate-events.ts';
import type { EventDecision } from '../../load/state/event-decisions.ts';

/** An event as it is stored, without the share it belongs to. */
export interface CorporateEvent {
  readonly eventId: string;
  readonly exchange: string;
  readonly symbol: string;
  readonly exDate: string;
  readonly kind: EventKind;
  readonly item: string;
  readonly scripCode: number | null;
  readonly recordDate: string | null;
  readonly purpose: string;
  readonly ratio: ShareRatio | null;
  readonly amount: string | null;
  readonly status: EventStatus;
  readonly reason: string | null;
  /** See `Notice`. */
  readonly symbolOfDay: boolean;
}

/** One event as one notice tells it. */
type Told = PurposeEvent & { readonly notice: Notice; readonly revised: boolean };

/**
 * Works out the events of an exchange from all its notices and decisions (pure). Lines that repeat one another are one
 * event; a line that says it is revised replaces the others of its share, day and kind. Of lines that contradict each
 * other none counts until a person decides, whichever was read last: neither their order nor reading them again matters.
 */
export function workOutEvents(
  notices: readonly Notice[],
  decisions: readonly EventDecision[],
): CorporateEvent[] {
  const groups = new Map<string, Told[]>();
  for (const notice of notices) {
    for (const told of readNotice(notice)) {
      const name = `${notice.symbol}\n${notice.exDate}\n${told.kind}`;
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [told]);
      else group.push(told);
    }
  }
  const decided = new Map(decisions.map((decision) => [decision.eventId, decision]));
  const events = withoutMoved([...groups.values()].flatMap(eventsOfKind));
  return events.map((event) => decide(event, decided.get(event.eventId)));
}

/** No share gives the same ratio twice within this time: the day of the event was moved. */
const MOVED_WITHIN_DAYS = 30;

/** Of events of one kind and ratio that follow each other closely a person has to say which day is right. */
function withoutMoved(events: readonly CorporateEvent[]): CorporateEvent[] {
  const name = ({ symbol, kind, ratio }: CorporateEvent) => `${symbol}|${kind}|${ratio?.new}:${ratio?.old}`;
  const days = new Map<string, string[]>();
  const counted = events.filter(({ status, ratio }) => status === 'applied' && ratio !== null);
  for (const event of counted) days.set(name(event), [...(days.get(name(event)) ?? []), event.exDate]);
  return events.map((event) => {
    if (event.status !== 'applied' || event.ratio === null) return event;
    const other = days
      .get(name(event))
      ?.find((day) => day !== event.exDate && Math.abs(daysBetween(day, event.exDate)) <= MOVED_WITHIN_DAYS);
    if (other === undefined) return event;
    return {
      ...event,
      status: 'needs_review',
      reason: `the same event is listed for ${other}: one of the days may have been moved`,
    };
  });
}

/** The events of a notice: by what its list tells beside the purpose, else by the purpose. */
function readNotice(notice: Notice): Told[] {
  const { events, revised } =
    notice.toldKind === null
      ? readPurpose(notice.purpose)
      : { events: [readTold(notice.toldKind, notice.toldRatio)], revised: false };
  return events.map((event) => ({
    ...(notice.exchange === 'NSE' && !OF_SHARES.has(notice.series) ? ofOther(event, notice.series) : event),
    notice,
    revised,
  }));
}

/** Series of NSE in which shares and units are listed; in others it is another paper of the same symbol. */
const OF_SHARES = new Set(['', ...'EQ BE BZ SM ST SZ IV RR BL IL IQ SQ T0 TL'.split(' ')]);

function ofOther(event: PurposeEvent, series: string): PurposeEvent {
  if (event.ratio === null || event.status !== 'applied') return event;
  return { ...event, status: 'needs_review', reason: `the series ${series} is not one of shares` };
}

/** Kinds of which a share may have several on one day, each with its amount. */
const BY_AMOUNT: ReadonlySet<EventKind> = new Set(['dividend', 'interest', 'other']);

/** What is told of one kind of event of a share and a day, as events. */
function eventsOfKind(all: readonly Told[]): CorporateEvent[] {
  const revised = all.filter((told) => told.revised);
  const told = (revised.length > 0 ? revised : all).toSorted(byTime);
  const first = told[0] as Told;
  const symbolOfDay = all.some(({ notice }) => notice.symbolOfDay);
  if (!BY_AMOUNT.has(first.kind)) return [{ ...eventOf(agreed(told), ''), symbolOfDay }];
  const events = new Map<string, Told>();
  for (const one of told) {
    const item = one.amount === null ? '' : decimalOf(one.amount);
    const known = events.get(item);
    // Of equal amounts the one that is in doubt counts: another list may have left out what makes it special.
    if (known === undefined || known.status !== 'needs_review') events.set(item, one);
  }
  // A list without the amount has nothing to add.
  if (events.size > 1) events.delete('');
  const together = first.kind !== 'dividend' || areOfOneList(told, events.size);
  return [...events].map(([item, one]) => ({
    ...eventOf(together ? one : inDoubt(one), item),
    symbolOfDay,
  }));
}

/**
 * Does one list tell all of these amounts? Then they are several dividends. Else the later list may have corrected the
 * earlier one.
 */
function areOfOneList(told: readonly Told[], amounts: number): boolean {
  const lists = new Map<number, Set<string>>();
  for (const { notice, amount } of told) {
    if (amount === null) continue;
    const known = lists.get(notice.readAt) ?? new Set();
    lists.set(notice.readAt, known.add(decimalOf(amount)));
  }
  return amounts <= 1 || [...lists.values()].some(({ size }) => size >= amounts);
}

function inDoubt(told: Told): Told {
  if (told.status !== 'applied') return told;
  return {
    ...told,
    status: 'needs_review',
    reason:
      'lists tell different amounts for the day: one may correct the other, or there are several dividends',
  };
}

const byTime = (a: Told, b: Told) =>
  a.notice.readAt - b.notice.readAt || (a.notice.purpose < b.notice.purpose ? -1 : 1);

/** The one event that notices of one kind tell of; those that tell a ratio count before those that do not. */
function agreed(told: readonly Told[]): Told {
  const clear = told.filter(({ status }) => status === 'applied');
  const last = (clear.length > 0 ? clear : told).at(-1) as Told;
  const ratios = new Set(clear.map(({ ratio }) => `${ratio?.new}:${ratio?.old}`));
  if (ratios.size <= 1) return last;
  const purposes = [...new Set(clear.map(({ notice }) => notice.purpose))].sort();
  return {
    ...last,
    ratio: null,
    status: 'needs_review',
    reason: `several ratios are told: ${purposes.join('; ')}`,
  };
}

/** A decimal without needless zeros, so that 2, 2.0 and 2.00 are one amount. */
const decimalOf = (amount: string) =>
  amount
    .replace(/^0+(?=\d)/, '')
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '');

function eventOf({ notice, kind, ratio, amount, status, reason }: Told, item: string): CorporateEvent {
  const { exchange, symbol, exDate, scripCode, recordDate, purpose } = notice;
  const eventId = [exchange, symbol, exDate, kind, ...(item === '' ? [] : [item])].join(':');
  return {
    eventId,
    exchange,
    symbol,
    exDate,
    kind,
    item,
    scripCode,
    recordDate,
    purpose,
    ratio,
    amount: amount === null ? null : decimalOf(amount),
    status,
    reason,
    symbolOfDay: notice.symbolOfDay,
  };
}

function decide(event: CorporateEvent, decision: EventDecision | undefined): CorporateEvent {
  if (decision === undefined) return event;
  const reason = `decided by ${decision.decidedBy}`;
  return decision.ratio === null
    ? { ...event, status: 'ignored', reason }
    : { ...event, ratio: decision.ratio, status: 'applied', reason };
}

/** `ratio_old ÷ ratio_new` with 20 decimals, rounded half up, as text. */
export function priceFactor({ new: after, old: before }: ShareRatio): string {
  const scale = 10n ** 20n;
  const [a, b] = [BigInt(before) * scale * 2n, BigInt(after) * 2n];
  const scaled = (a + BigInt(after)) / b;
  const text = scaled.toString().padStart(21, '0');
  return decimalOf(`${text.slice(0, -20)}.${text.slice(-20)}`);
}
