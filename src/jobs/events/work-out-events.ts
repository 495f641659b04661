import { daysBetween } from '../../core/days.ts';
import { groupBy } from '../../core/group-by.ts';
import {
  type DividendLabel,
  type EventKind,
  type EventStatus,
  type Purpose,
  type PurposeEvent,
  readPurpose,
  type ShareRatio,
} from '../../extract/corporate-actions/purpose.ts';
import { readAnnounced, readTold } from '../../extract/corporate-actions/told.ts';
import type { Notice } from '../../load/market/corporate-events.ts';
import type { EventDecision } from '../../load/state/event-decisions.ts';

/** An event as it is stored. */
export interface CorporateEvent {
  readonly eventId: string;
  readonly exchange: string;
  readonly symbol: string;
  /** The share; null where no table has named the symbol yet. */
  readonly instrumentId: string | null;
  readonly exDate: string;
  readonly kind: EventKind;
  readonly item: string;
  readonly scripCode: number | null;
  readonly recordDate: string | null;
  readonly purpose: string;
  readonly ratio: ShareRatio | null;
  readonly amount: string | null;
  readonly label: DividendLabel;
  readonly status: EventStatus;
  readonly reason: string | null;
}

/** A notice, and the share it is about: one share for all notices of a symbol and day. */
export type NoticeOfShare = Notice & { readonly instrumentId: string | null };

/** One event as one notice tells it. */
type Told = PurposeEvent & {
  readonly notice: NoticeOfShare;
  readonly revised: boolean;
  readonly calledOff: boolean;
  /** Its place among the events of its notice that are alike in kind, label and amount. */
  readonly nth: number;
};

/**
 * Works out the events of an exchange from all its notices and decisions (pure). Lines that repeat one another are one
 * event; a line that says it is revised replaces the others of its share, day and kind. Of lines that contradict each
 * other none counts until a person decides, whichever was read last: neither their order nor reading them again matters.
 * Lines of one share are compared under all of its symbols; each symbol that is told has a row of its own, and what
 * becomes of the event is the same in all of them.
 */
export function workOutEvents(
  notices: readonly NoticeOfShare[],
  decisions: readonly EventDecision[],
): CorporateEvent[] {
  const days = groupBy(notices.flatMap(readNotice), ({ notice }) => `${shareOf(notice)}\n${notice.exDate}`);
  const events = withoutMoved([...days.values()].flatMap(eventsOfDay));
  const decided = new Map(decisions.map((decision) => [decision.eventId, decision]));
  const decidedOfShare = new Map<string, EventDecision>();
  for (const event of events) {
    const decision = decided.get(event.eventId);
    if (decision !== undefined) decidedOfShare.set(sameEvent(event), decision);
  }
  return events.map((event) =>
    decide(event, decided.get(event.eventId) ?? decidedOfShare.get(sameEvent(event))),
  );
}

/** What tells shares apart, also where no table has named the symbol yet. */
const shareOf = ({ symbol, instrumentId }: Pick<CorporateEvent, 'symbol' | 'instrumentId'>) =>
  instrumentId ?? symbol;

/** The same for all symbols of the share. */
const sameEvent = (event: CorporateEvent) => [shareOf(event), event.exDate, event.kind, event.item].join('|');

/** No share gives the same ratio, or pays the same dividend, twice within this time: the day of the event was moved. */
const MOVED_WITHIN_DAYS = 30;

/** Of events of one kind and ratio or amount that follow each other closely a person has to say which day is right. */
function withoutMoved(events: readonly CorporateEvent[]): CorporateEvent[] {
  const counts = ({ status, ratio, amount }: CorporateEvent) =>
    status === 'applied' && (ratio ?? amount) !== null;
  const name = (event: CorporateEvent) =>
    [shareOf(event), event.kind, event.label, event.ratio?.new, event.ratio?.old, event.amount].join('|');
  const alike = groupBy(events.filter(counts), name);
  return events.map((event) => {
    if (!counts(event)) return event;
    const other = alike
      .get(name(event))
      ?.find(
        ({ exDate }) =>
          exDate !== event.exDate && Math.abs(daysBetween(exDate, event.exDate)) <= MOVED_WITHIN_DAYS,
      );
    return other === undefined
      ? event
      : inDoubt(event, `the same event is listed for ${other.exDate}: one of the days may have been moved`);
  });
}

function inDoubt<Event extends Pick<PurposeEvent, 'status' | 'reason'>>(event: Event, reason: string): Event {
  return event.status === 'applied' ? { ...event, status: 'needs_review', reason } : event;
}

/** The events of a notice: by what its list tells beside the purpose, else by the purpose. */
function readNotice(notice: NoticeOfShare): Told[] {
  const { events, revised, calledOff } = purposeOf(notice);
  const places = new Map<string, number>();
  return events.map((event, at) => {
    const alike = `${event.kind}|${event.label}|${event.amount}`;
    const nth = places.get(alike) ?? 0;
    places.set(alike, nth + 1);
    // A face value that lost a digit would be greater than the one before the split, but for a rare fraction.
    const endsInNumber = /\d$/.test(notice.purpose) && event.kind !== 'split';
    const isCut = notice.mayBeCut && at === events.length - 1 && endsInNumber;
    const read = isCut
      ? inDoubt(event, 'its list may have cut the text, and with it the last number')
      : event;
    const isOther = notice.exchange === 'NSE' && !OF_SHARES.has(notice.series);
    return { ...(isOther ? ofOther(read, notice.series) : read), notice, revised, calledOff, nth };
  });
}

function purposeOf({ toldKind, toldRatio, announced, purpose }: Notice): Purpose {
  if (announced !== null) return readAnnounced(announced.type, announced.detail);
  return toldKind === null
    ? readPurpose(purpose)
    : { events: [readTold(toldKind, toldRatio)], revised: false, calledOff: false };
}

/** Series of NSE in which shares and units are listed; in others it is another paper of the same symbol. */
const OF_SHARES = new Set(['', ...'EQ BE BZ SM ST SZ IV RR BL IL IQ SQ T0 TL'.split(' ')]);

function ofOther(event: PurposeEvent, series: string): PurposeEvent {
  if (event.status === 'ignored') return event;
  const reason = `the series ${series} is not one of shares`;
  return event.kind === 'dividend' ? { ...event, status: 'ignored', reason } : inDoubt(event, reason);
}

/** Kinds of which a share may have several on one day, each with its amount. */
const BY_AMOUNT: ReadonlySet<EventKind> = new Set(['dividend', 'interest', 'other']);

/** What is told of a share and a day, as events. */
function eventsOfDay(told: readonly Told[]): CorporateEvent[] {
  const kinds = groupBy(told.toSorted(byTime), ({ kind }) => kind);
  const events = [...kinds.values()].flatMap(eventsOfKind);
  const off = told.find(({ calledOff }) => calledOff);
  if (off !== undefined) {
    const reason = `a line says that something is cancelled or put off: ${off.notice.purpose}`;
    return events.map((event) => inDoubt(event, reason));
  }
  const revised = new Set(told.flatMap((one) => (one.revised ? [one.kind] : [])));
  // A revised line may replace the ratio, or tell of something else. Dividends are revised by lines of their own.
  return revised.size === 0 || revised.has('dividend') || revised.has('interest')
    ? events
    : events.map((event) =>
        event.ratio === null || revised.has(event.kind)
          ? event
          : inDoubt(event, 'a revised line of the day does not tell of it'),
      );
}

/** What is told of one kind of event of a share and a day, as events. */
function eventsOfKind(all: readonly Told[]): CorporateEvent[] {
  const revised = all.filter((told) => told.revised);
  const isReplaced = (told: Told) =>
    !told.revised && revised.some(({ label }) => label === '' || told.label === '' || label === told.label);
  const told = all.filter((one) => !isReplaced(one));
  const [{ kind }] = told as [Told];
  if (!BY_AMOUNT.has(kind)) return ofSymbols(all, agreed(told), '');
  // A list without the amount has nothing to add.
  const withAmount = told.filter(({ amount }) => amount !== null);
  if (withAmount.length === 0) return ofSymbols(told, mostDoubtful(told), '');
  const events = [...groupBy(withAmount, ({ amount }) => decimalOf(amount as string))].flatMap(ofAmount);
  // What is paid on other papers of the symbol says nothing against a dividend of the share.
  const doubt = kind === 'dividend' && contradict(withAmount.filter(({ status }) => status !== 'ignored'));
  return events.flatMap(({ item, told: same }) => {
    const event = mostDoubtful(same);
    return ofSymbols(same, doubt ? inDoubt(event, CONTRADICTION) : event, item);
  });
}

const CONTRADICTION =
  'lines tell different amounts for the day: one may correct the other, or there are several dividends';

/** In the order in which they were read; of one time by their texts, so that nothing depends on chance. */
const byTime = (a: Told, b: Told) =>
  a.notice.readAt - b.notice.readAt || (a.notice.purpose < b.notice.purpose ? -1 : 1);

/**
 * Of lines that agree in the amount the one that is in doubt counts: another may have left out what makes it special. One
 * that tells of other papers counts last.
 */
const mostDoubtful = (told: readonly Told[]): Told =>
  (told.findLast(({ status }) => status === 'needs_review') ??
    told.findLast(({ status }) => status === 'applied') ??
    told.at(-1)) as Told;

/**
 * The events of one amount: one, but where a text tells it twice, or lines name different dividends (an interim and a final
 * one). A line that does not name its dividend may mean any of them.
 */
function ofAmount([amount, told]: [string, readonly Told[]]): { item: string; told: readonly Told[] }[] {
  const inTexts = groupBy(told, ({ notice }) => notice);
  const slots = Math.max(
    new Set(told.flatMap(({ label }) => (label === '' ? [] : [label]))).size,
    ...[...inTexts.values()].map((ofText) => ofText.length),
  );
  if (slots <= 1) return [{ item: amount, told }];
  const named = groupBy(told, ({ label, nth }) => `${label} ${nth}`);
  const names = [...named.keys()].filter((name, _, every) => every.length <= slots || !name.startsWith(' '));
  return names.sort().map((name, at) => ({
    item: at === 0 ? amount : `${amount}#${at + 1}`,
    told: named.get(name) ?? [],
  }));
}

/**
 * Do lines tell different amounts of what may be the same dividend? Not where one text tells all of them, or a list of
 * one's own, and not where they name different dividends.
 */
function contradict(told: readonly Told[]): boolean {
  const amountsOf = (some: readonly Told[]) => new Set(some.map(({ amount }) => decimalOf(amount as string)));
  const amounts = amountsOf(told);
  if (amounts.size <= 1) return false;
  // Whoever writes a list of their own means each of its lines.
  const inTexts = groupBy(told, ({ notice }) => (notice.toldKind === null ? notice : 'own list'));
  if ([...inTexts.values()].some((ofText) => amountsOf(ofText).size === amounts.size)) return false;
  const ordinary = told.filter(({ label }) => label !== 'special');
  if (ordinary.some(({ label }) => label === '') && amountsOf(ordinary).size > 1) return true;
  return [...groupBy(told, ({ label }) => label).values()].some((named) => amountsOf(named).size > 1);
}

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

/** An event once for each symbol under which it is told, with the last line that tells it so. */
function ofSymbols(told: readonly Told[], event: Told, item: string): CorporateEvent[] {
  return [...groupBy(told, ({ notice }) => notice.symbol)].map(([symbol, lines]) => {
    const own = symbol === event.notice.symbol ? event : (lines.at(-1) as Told);
    return eventOf({ ...event, notice: own.notice }, item);
  });
}

/** A decimal without needless zeros, so that 2, 2.0 and 2.00 are one amount. */
const decimalOf = (amount: string) =>
  amount
    .replace(/^0+(?=\d)/, '')
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '');

function eventOf({ notice, kind, ratio, amount, label, status, reason }: Told, item: string): CorporateEvent {
  const { exchange, symbol, instrumentId, exDate, scripCode, recordDate, purpose } = notice;
  const eventId = [exchange, symbol, exDate, kind, ...(item === '' ? [] : [item])].join(':');
  return {
    eventId,
    exchange,
    symbol,
    instrumentId,
    exDate,
    kind,
    item,
    scripCode,
    recordDate,
    purpose,
    ratio,
    amount: amount === null ? null : decimalOf(amount),
    label,
    status,
    reason,
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
