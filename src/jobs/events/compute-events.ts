import { daysBetween } from '../../core/days.ts';
import { groupBy, largest, lastItem, type NonEmpty } from '../../core/iterables.ts';
import { NOT_STATED, readAnnounced, readListedEvent } from '../../extract/corporate-actions/listed-events.ts';
import {
  type DividendLabel,
  type EventKind,
  type EventStatus,
  isReinvested,
  needsReview,
  type Purpose,
  type PurposeEvent,
  readPurpose,
  type ShareRatio,
} from '../../extract/corporate-actions/purpose.ts';
import type { Notice } from '../../load/corporate-events.ts';
import type { EventDecision } from '../../state/events/decisions.ts';

/** A corporate event as it is stored. */
export interface CorporateEvent {
  readonly eventId: string;
  readonly exchange: string;
  readonly symbol: string;
  /** The share; null if the symbol is not known to `market.instruments`. */
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
  /** Whose list has it: not `exchange` if only the other one lists it. */
  readonly listedBy: string;
}

/** A notice with the share that it is about: one share for all notices of a symbol and day. */
export type NoticeOfShare = Notice & { readonly instrumentId: string | null };

/** One event of one notice. */
type NoticeEvent = PurposeEvent & {
  readonly notice: NoticeOfShare;
  readonly revised: boolean;
  readonly calledOff: boolean;
  /** Its position, from 0, among the events of its notice with the same kind, label and amount. */
  readonly nth: number;
  /** True if it would be applied or reinvested, were there no other line. */
  readonly counts: boolean;
};

/** An event with the lines that list it for its day, whether they are used or not; none if the day is called off. */
type ListedEvent = CorporateEvent & { readonly lines: readonly NoticeEvent[] };

/**
 * Makes the events of an exchange from all its notices and decisions (pure). Notices that agree are one event. A
 * revised notice replaces the others of its share, day and kind. If notices contradict each other, none of them is
 * applied until a person decides, so that neither their order nor loading them again matters. Notices of a share are
 * compared under all of its symbols; each symbol in a notice has a row of its own, and the status is the same in all of
 * these rows: the last decision about the event applies, under whichever symbol it was made.
 */
export function computeEvents(
  notices: readonly NoticeOfShare[],
  decisions: readonly EventDecision[],
): CorporateEvent[] {
  const days = groupBy(notices.flatMap(readNotice), ({ notice }) => `${shareOf(notice)}\n${notice.exDate}`);
  const events = [...days.values()].flatMap(eventsOfDay);
  const decided = new Map(decisions.map((decision) => [decision.eventId, decision]));
  const decidedOfShare = new Map<string, EventDecision>();
  for (const event of events) {
    const decision = decided.get(event.eventId);
    const other = decidedOfShare.get(eventOfShare(event));
    if (decision !== undefined && (other === undefined || other.decidedAt < decision.decidedAt))
      decidedOfShare.set(eventOfShare(event), decision);
  }
  const decisionOn = (event: CorporateEvent) => decidedOfShare.get(eventOfShare(event));
  return reviewMoved(events, (event) => decisionOn(event)?.ratio === null).map(({ lines: _, ...event }) =>
    decide(event, decisionOn(event)),
  );
}

/** Identifies a share, even if its symbol is not known. */
const shareOf = ({ symbol, instrumentId }: Pick<CorporateEvent, 'symbol' | 'instrumentId'>) =>
  instrumentId ?? symbol;

/** Identifies an event of a share, under whichever symbol. */
const eventOfShare = (event: CorporateEvent) =>
  [shareOf(event), event.exDate, event.kind, event.item].join('|');

const changesReturns = (event: Pick<PurposeEvent, 'status' | 'reason' | 'ratio' | 'amount'>) =>
  isReinvested(event) || (event.status === 'applied' && event.ratio !== null);

/** No share has the same ratio or dividend twice within this time: the day of the event must have been moved. */
const MOVED_WITHIN_DAYS = 30;

/**
 * Marks events for review that a line lists for another day close to theirs, whatever else is listed for that day. What is
 * ignored by decision is listed no more.
 */
function reviewMoved(
  events: readonly ListedEvent[],
  isIgnored: (event: CorporateEvent) => boolean,
): ListedEvent[] {
  const name = ({ notice, kind, label, ratio, amount }: NoticeEvent) =>
    [shareOf(notice), kind, label, ratio?.new, ratio?.old, amount && trimDecimal(amount)].join('|');
  const alike = groupBy(
    events.filter((event) => !isIgnored(event)).flatMap(({ lines }) => lines.filter(({ counts }) => counts)),
    name,
  );
  return events.map((event) => {
    if (!changesReturns(event)) return event;
    const day = event.lines
      .flatMap((line) => alike.get(name(line)) ?? [])
      .map(({ notice }) => notice.exDate)
      .find(
        (exDate) =>
          exDate !== event.exDate && Math.abs(daysBetween(exDate, event.exDate)) <= MOVED_WITHIN_DAYS,
      );
    return day === undefined
      ? event
      : needsReview(event, `the same event is listed for ${day}: one of the days may have been moved`);
  });
}

/** The events of a notice, from its columns for kind and ratio if its list has them, otherwise from its purpose. */
function readNotice(notice: NoticeOfShare): NoticeEvent[] {
  const { events, revised, calledOff } = readNoticePurpose(notice);
  const positions = new Map<string, number>();
  return events.map((event, at) => {
    const alike = `${event.kind}|${event.label}|${event.amount}`;
    const nth = positions.get(alike) ?? 0;
    positions.set(alike, nth + 1);
    // Not checked for splits: with a digit cut off, the ratio of face values would almost never be that of a split.
    const endsInNumber = /\d$/.test(notice.purpose) && event.kind !== 'split';
    const isCut = notice.mayBeCut && at === events.length - 1 && endsInNumber;
    const read = isCut
      ? needsReview(event, 'its list may have cut the text, and with it the last number')
      : event;
    const isOther = notice.exchange === 'NSE' && !SHARE_SERIES.has(notice.series);
    const line = isOther ? ofOtherSecurity(read, notice.series) : read;
    return { ...line, notice, revised, calledOff, nth, counts: changesReturns(line) };
  });
}

function readNoticePurpose({ statedKind, statedRatio, announced, purpose, series }: Notice): Purpose {
  if (announced !== null) return readAnnounced(announced.type, announced.detail);
  return statedKind === null
    ? readPurpose(purpose, SERIES_OF_TRUSTS.has(series))
    : { events: [readListedEvent(statedKind, statedRatio)], revised: false, calledOff: false };
}

/** Series of NSE in which units of infrastructure and real estate trusts are listed. */
const SERIES_OF_TRUSTS = new Set(['IV', 'RR']);

/** Series of NSE in which shares and units are listed; in other series, a symbol means another security. */
const SHARE_SERIES = new Set(['', ...'EQ BE BZ SM ST SZ IV RR BL IL IQ SQ T0 TL'.split(' ')]);

function ofOtherSecurity(event: PurposeEvent, series: string): PurposeEvent {
  if (event.status === 'ignored') return event;
  const reason = `the series ${series} is not a series of shares`;
  return event.kind === 'dividend' || isReinvested(event)
    ? { ...event, status: 'ignored', reason }
    : needsReview(event, reason);
}

/** Kinds of events of which a share may have several on one day, with different amounts. */
const BY_AMOUNT: ReadonlySet<EventKind> = new Set(['dividend', 'interest', 'other']);

/** The events of a share and a day. */
function eventsOfDay(all: readonly NoticeEvent[]): ListedEvent[] {
  const { lines, unused } = ofOneDistribution(all.toSorted(byTime));
  const kinds = groupBy(lines, ({ kind }) => kind);
  const events = [...kinds.values()]
    .flatMap(eventsOfKind)
    .map((event) => (isReinvested(event) ? { ...event, lines: [...event.lines, ...unused] } : event));
  const off = lines.find(({ calledOff }) => calledOff);
  if (off !== undefined) {
    const reason = `a line says that something is cancelled or postponed: ${off.notice.purpose}`;
    return events.map((event) => ({ ...needsReview(event, reason), lines: [] }));
  }
  const revised = new Set(lines.flatMap((line) => (line.revised ? [line.kind] : [])));
  // A revised notice of another kind may replace an event with a ratio. Revised dividends are notices of their own.
  return revised.size === 0 || revised.has('dividend') || revised.has('interest')
    ? events
    : events.map((event) =>
        event.ratio === null || revised.has(event.kind)
          ? event
          : needsReview(event, 'a revised line of the day does not mention it'),
      );
}

/**
 * What trusts distribute is stated by its parts in one list, as a whole in another: notices that state the same sum are
 * about the same distribution, and those with the most parts are used. If the sums differ, none is applied.
 *
 * @returns the lines of the day with those that are used; `unused` are the others, but for what a revised notice replaces.
 */
function ofOneDistribution(lines: readonly NoticeEvent[]): {
  readonly lines: readonly NoticeEvent[];
  readonly unused: readonly NoticeEvent[];
} {
  const paid = lines.filter(isReinvested);
  if (paid.every(({ kind }) => kind === 'dividend')) return { lines, unused: [] };
  const current = paid.some(({ revised }) => revised) ? paid.filter(({ revised }) => revised) : paid;
  const texts = [...groupBy(current, ({ notice }) => notice).values()];
  const sumAmounts = (parts: readonly NoticeEvent[]) =>
    parts.reduce((sum, { amount }) => sum + Number(amount), 0).toFixed(6);
  const differ = new Set(texts.map(sumAmounts)).size > 1;
  const most = largest(texts.map(({ length }) => length));
  const describeParts = (parts: readonly NoticeEvent[]) =>
    parts
      .map(({ kind, amount }) => `${kind} ${Number(amount)}`)
      .sort()
      .join();
  const chosen = texts.findLast(({ length }) => length === most) ?? [];
  const counting = new Set(
    differ ? current : texts.filter((parts) => describeParts(parts) === describeParts(chosen)).flat(),
  );
  return {
    lines: lines
      .filter((line) => !isReinvested(line) || counting.has(line))
      .map((line) => (differ && counting.has(line) ? needsReview(line, CONTRADICTION) : line)),
    unused: current.filter((line) => !counting.has(line)),
  };
}

/** The events of one kind, of a share and a day. */
function eventsOfKind(all: Readonly<NonEmpty<NoticeEvent>>): ListedEvent[] {
  const revised = all.filter((event) => event.revised);
  const isReplaced = (event: NoticeEvent) =>
    !event.revised &&
    revised.some(({ label }) => label === '' || event.label === '' || label === event.label);
  const lines = all.filter((event) => !isReplaced(event));
  const [{ kind }] = all;
  if (!BY_AMOUNT.has(kind)) return ofSymbols(all, agreedEvent(lines), '', lines);
  // Notices without an amount add nothing to those with one.
  const withAmount = lines.filter(hasAmount);
  if (withAmount.length === 0) return ofSymbols(lines, leastCertain(lines), '');
  const events = [...groupBy(withAmount, ({ amount }) => trimDecimal(amount))].flatMap(ofAmount);
  // A dividend of another security with the symbol does not contradict that of the share.
  const contradicts =
    kind === 'dividend' && amountsContradict(withAmount.filter(({ status }) => status !== 'ignored'));
  const counted = events.flatMap(({ item, lines: same }) => {
    const event = leastCertain(same);
    return ofSymbols(same, contradicts ? needsReview(event, CONTRADICTION) : event, item);
  });
  // A notice that is not understood is another event than those with amounts.
  const unknown =
    kind === 'other'
      ? lines.filter(({ amount, status }) => amount === null && status === 'needs_review')
      : [];
  return unknown.length === 0 ? counted : [...counted, ...ofSymbols(unknown, leastCertain(unknown), '')];
}

type WithAmount = NoticeEvent & { readonly amount: string };

const hasAmount = (event: NoticeEvent): event is WithAmount => event.amount !== null;

const CONTRADICTION =
  'lines give different amounts for the day: one may correct the other, or there are several dividends';

/** Sorts by the time of reading, and events of one time by their texts, so that the order is always the same. */
const byTime = (a: NoticeEvent, b: NoticeEvent) =>
  a.notice.readAt - b.notice.readAt || (a.notice.purpose < b.notice.purpose ? -1 : 1);

/**
 * Of events with the same amount, one that needs review wins: the others may lack the detail that makes it special. One
 * of another security wins only if there is no other.
 */
const leastCertain = (lines: readonly NoticeEvent[]): NoticeEvent =>
  (lines.findLast(({ status }) => status === 'needs_review') ??
    lines.findLast(({ status }) => status === 'applied') ??
    lines.at(-1)) as NoticeEvent;

/**
 * The events with one amount: usually one; several if one notice has the amount more than once, or notices name
 * different dividends (e.g. interim and final). A notice that does not name its dividend may mean any of them.
 */
function ofAmount([amount, lines]: [string, readonly NoticeEvent[]]): {
  item: string;
  lines: readonly NoticeEvent[];
}[] {
  const inTexts = groupBy(lines, ({ notice }) => notice);
  const slots = largest(
    Array.from(inTexts.values(), (ofText) => ofText.length),
    new Set(lines.flatMap(({ label }) => (label === '' ? [] : [label]))).size,
  );
  if (slots <= 1) return [{ item: amount, lines }];
  const linesByLabel = groupBy(lines, ({ label, nth }) => `${label} ${nth}`);
  const names = [...linesByLabel.keys()].filter(
    (name, _, every) => every.length <= slots || !name.startsWith(' '),
  );
  return names.sort().map((name, at) => ({
    item: at === 0 ? amount : `${amount}#${at + 1}`,
    lines: linesByLabel.get(name) ?? [],
  }));
}

/**
 * True if notices give different amounts for what may be the same dividend. Not if one notice, or the user's own list,
 * has all of the amounts, and not if they name different dividends: a line without a name repeats the one with its
 * amount.
 */
function amountsContradict(lines: readonly WithAmount[]): boolean {
  const collectAmounts = (some: readonly WithAmount[]) =>
    new Set(some.map(({ amount }) => trimDecimal(amount)));
  const amounts = collectAmounts(lines);
  if (amounts.size <= 1) return false;
  // All lines of the user's own list are meant as separate dividends.
  const inTexts = groupBy(lines, ({ notice }) => (notice.statedKind === null ? notice : 'own list'));
  if ([...inTexts.values()].some((ofText) => collectAmounts(ofText).size === amounts.size)) return false;
  const labelled = lines.filter(({ label }) => label !== '');
  const amountsNamed = collectAmounts(labelled);
  const ordinary = lines.filter(({ label, amount }) =>
    label === '' ? !amountsNamed.has(trimDecimal(amount)) : label !== 'special',
  );
  if (ordinary.some(({ label }) => label === '') && collectAmounts(ordinary).size > 1) return true;
  const names = groupBy([...labelled, ...ordinary], ({ label }) => label);
  return [...names.values()].some((ofName) => collectAmounts(ofName).size > 1);
}

/**
 * The one event of notices of one kind; those that can be applied win over the others, and those that say more, unless any
 * of them has another ratio.
 */
function agreedEvent(lines: readonly NoticeEvent[]): NoticeEvent {
  const clear = lines.filter(({ status }) => status === 'applied');
  const last = (clear.at(-1) ??
    lines.findLast(({ ratio }) => ratio !== null) ??
    lines.findLast(({ reason }) => reason !== NOT_STATED) ??
    lines.at(-1)) as NoticeEvent;
  const stating = lines.filter(({ ratio }) => ratio !== null);
  const ratios = new Set(stating.map(({ ratio }) => `${ratio?.new}:${ratio?.old}`));
  if (clear.length === 0 || ratios.size <= 1) return last;
  const purposes = [...new Set(stating.map(({ notice }) => notice.purpose))].sort();
  return {
    ...last,
    ratio: null,
    status: 'needs_review',
    reason: `the lists give several ratios: ${purposes.join('; ')}`,
  };
}

/** The event once for each symbol in its notices, with the last notice of that symbol. */
function ofSymbols(
  lines: readonly NoticeEvent[],
  event: NoticeEvent,
  item: string,
  current = lines,
): ListedEvent[] {
  return [...groupBy(lines, ({ notice }) => notice.symbol)].map(([symbol, ofSymbol]) => {
    const { notice } = symbol === event.notice.symbol ? event : lastItem(ofSymbol);
    return { ...buildEvent({ ...event, notice }, item), lines: current };
  });
}

/** A decimal without unnecessary zeros, so that 2, 2.0 and 2.00 are the same amount. */
const trimDecimal = (amount: string) =>
  amount
    .replace(/^0+(?=\d)/, '')
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '');

function buildEvent(
  { notice, kind, ratio, amount, label, status, reason }: NoticeEvent,
  item: string,
): CorporateEvent {
  const { exchange, symbol, instrumentId, exDate, scripCode, recordDate, purpose } = notice;
  return {
    eventId: buildEventId({ exchange, symbol, exDate, kind, item }),
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
    amount: amount === null ? null : trimDecimal(amount),
    label,
    status,
    reason,
    listedBy: exchange,
  };
}

/** The name of an event in commands. */
export const buildEventId = ({
  exchange,
  symbol,
  exDate,
  kind,
  item,
}: Pick<CorporateEvent, 'exchange' | 'symbol' | 'exDate' | 'kind' | 'item'>) =>
  [exchange, symbol, exDate, kind, ...(item === '' ? [] : [item])].join(':');

/** The event as a person has decided about it, if anybody has. */
export function decide(event: CorporateEvent, decision: EventDecision | undefined): CorporateEvent {
  if (decision === undefined) return event;
  const reason = `decided by ${decision.decidedBy}`;
  return decision.ratio === null
    ? { ...event, status: 'ignored', reason }
    : { ...event, ratio: decision.ratio, status: 'applied', reason };
}

/** True if a person has decided about it. */
export const isDecided = ({ reason }: CorporateEvent) => reason?.startsWith('decided by ') === true;

/** `ratio_old ÷ ratio_new` with 20 decimals, rounded half up, as text. */
export function priceFactor({ new: after, old: before }: ShareRatio): string {
  const scale = 10n ** 20n;
  const [a, b] = [BigInt(before) * scale * 2n, BigInt(after) * 2n];
  const scaled = (a + BigInt(after)) / b;
  const text = scaled.toString().padStart(21, '0');
  return trimDecimal(`${text.slice(0, -20)}.${text.slice(-20)}`);
}
