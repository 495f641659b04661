/** The kinds of corporate events. */
export const EVENT_KINDS = [
  'split',
  'consolidation',
  'bonus',
  'dividend',
  'rights',
  'demerger',
  'capital_reduction',
  'buyback',
  'interest',
  'meeting',
  'other',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** `applied`: used for adjusted prices or total returns; `needs_review`: a person must decide; `ignored`: not used. */
export const EVENT_STATUSES = ['applied', 'needs_review', 'ignored'] as const;
export type EventStatus = (typeof EVENT_STATUSES)[number];

/** Shares after the event for shares before it, without common divisors. Prices before are multiplied by old ÷ new. */
export interface ShareRatio {
  readonly new: number;
  readonly old: number;
}

/** An event in a text. */
export interface PurposeEvent {
  readonly kind: EventKind;
  /** Null if the text has none that is certain. */
  readonly ratio: ShareRatio | null;
  /** Rupees per share as printed: the dividend or interest, or the premium of a rights issue. */
  readonly amount: string | null;
  readonly status: EventStatus;
  /** Why it is not applied; null if it is. */
  readonly reason: string | null;
  /** Which dividend it is, if the text says so: dividends with different labels are different ones. */
  readonly label: DividendLabel;
}

export type DividendLabel = '' | 'final' | 'interim' | 'special';

/** The meaning of one line of an exchange's list. */
export interface Purpose {
  /** In the order of the text; at least one. */
  readonly events: readonly PurposeEvent[];
  /** True if it says that it replaces what was announced before. */
  readonly revised: boolean;
  /** True if it says that something is cancelled or postponed. */
  readonly calledOff: boolean;
}

/**
 * The longest text that is read: the exchanges' have up to 200 characters. Some patterns try each part of a text from
 * each of its characters, which for 100,000 of them would take minutes.
 */
const LONGEST_PURPOSE = 1_000;

/**
 * Reads the purpose of a corporate action, as NSE and BSE print it: `Bonus 1:1/Dividend- Rs 2 Per Share`.
 * Conservative: a ratio is returned only if the whole clause is understood and no other clause of the text could change
 * it. Splits state face values (from Rs 10 to Rs 2 is five new shares for one), bonuses the new shares for those held
 * (1:2 makes three out of two).
 *
 * @param ofTrust true if it is about the units of a trust, even if the text does not say so.
 */
export function readPurpose(text: string, ofTrust = false): Purpose {
  const isLong = text.length > LONGEST_PURPOSE;
  const line = isLong ? text.toUpperCase() : normalised(text);
  const revised = /REVISED|UPDATED|\bREV\b/.test(line);
  const calledOff = /CANCEL|WITHDRA|POSTPON|DEFER/.test(line);
  if (isLong) {
    const event = other(`its text is longer than the ${LONGEST_PURPOSE} characters that are read`);
    return { events: [event], revised, calledOff };
  }
  const ofUnits = ofTrust || UNITS.test(line);
  const total = readTotal(line);
  const events: PurposeEvent[] = total === null ? [] : [total];
  let unread = '';
  for (const clause of total === null ? splitClauses(line) : []) {
    // `AGM/DIV-FIN RS.2+SPL RS.10`: after a dividend, the word may be left out.
    const isDividend =
      events.some(({ kind }) => kind === 'dividend') && /^SPE?C?I?A?L?\b[ -]*R[SE]/.test(clause);
    const event = isDividend ? readDividend(clause) : ofUnits ? readPart(clause) : readClause(clause);
    if (event === null) unread += ` ${clause}`;
    else events.push(event);
  }
  if (unread !== '' || events.length === 0) {
    events.push(other(isHarmless(unread) ? null : 'it may change the price, and its text is not understood'));
  }
  const labelled = events.map((event) =>
    isFinal(event, line) ? { ...event, label: 'final' as const } : event,
  );
  const read = reviewUnclear(labelled, unread !== '');
  return {
    events: calledOff ? read.map((event) => needsReview(event, CALLED_OFF)) : read,
    revised,
    calledOff,
  };
}

/** The dividend that an annual meeting decides about is the final one. */
const isFinal = ({ kind, label }: PurposeEvent, line: string) =>
  kind === 'dividend' && label === '' && /\bA\.?G\.?M\b|ANNUAL GEN/.test(line);

/** Why no event is applied of a text that cancels or postpones something. */
export const CALLED_OFF = 'its text says that something is cancelled or postponed';

/** Marks an event for review, unless it is ignored anyway. */
export function needsReview<Event extends Pick<PurposeEvent, 'status' | 'reason'>>(
  event: Event,
  reason: string,
): Event {
  return event.status === 'applied' || event.reason === SPECIAL_DIVIDEND
    ? { ...event, status: 'needs_review', reason }
    : event;
}

/** Why a person decides about a special dividend: only adjusted prices are uncertain. */
export const SPECIAL_DIVIDEND =
  'a special dividend may be large enough to adjust prices for it; total returns reinvest it';

/** True if total returns reinvest it. */
export const isReinvested = ({
  status,
  reason,
  ratio,
  amount,
}: Pick<PurposeEvent, 'status' | 'reason' | 'ratio' | 'amount'>) =>
  ratio === null && amount !== null && (status === 'applied' || reason === SPECIAL_DIVIDEND);

/** Words of what certainly changes neither the number of shares nor the price of one. */
const HARMLESS =
  /^(?:|AGENT|ANNUAL|ATTRIBUTE|BONDS?|BOOK|CALL|CHANGE|CLOS(?:ING|URE)|DATES?|DEBENTURES?|DISTRI\w*|GENERAL|IN|MATURITY|NAME|NCDS?|OF|OPTION|PA?RT(?:IAL)?|(?:RE)?PAYMENT|PRINCIPAL|PUT|RE?DE?MP?\w*|REGISTRAR|TRANSFER)$/;

const isHarmless = (text: string) => text.split(/[^A-Z0-9]+/).every((word) => HARMLESS.test(word));

/** The text in upper case, with single spaces and without the `/-` after rupees. */
function normalised(text: string): string {
  return text
    .toUpperCase()
    .replace(/₹|\bINR\b/g, 'RS ')
    .replace(/[–—\u0096\u0097\uFFFD]/g, '-')
    .replace(/\s+/g, ' ')
    .replace(/\/ ?-/g, ' ')
    .replace(/(\d) ?\/ ?(?=PER\b)/g, '$1 ')
    .replace(/\bR([SE])\. ?(?=[\d-])/g, 'R$1 ')
    .replace(GLUED, (_, which: keyof typeof WHICH | undefined) => `${WHICH[which ?? ''] ?? ''}DIV `)
    .replace(/ +/g, ' ')
    .trim();
}

/** Dividends as daily lists shorten them: INTDV, SPLDIV, FDIV, DIVRS. */
const GLUED = /\b(?:(AGM|INT|I|SPL|SP|FIN|F)(?:DIVD?|DV)|DIVD?)(?=R[SE]\b|\b)/g;
const WHICH = {
  AGM: 'AGM/',
  INT: 'INT ',
  I: 'INT ',
  SPL: 'SPL ',
  SP: 'SPL ',
  FIN: 'FIN ',
  F: 'FIN ',
  '': '',
};

/** A note of a revision in brackets, which is not part of an event. */
const NOTE = /\(+[^()\d]*(?:REV|UPDATED)[^()\d]*\)|#PURPOSE REVISED\)/g;

/** Splits a text at `/`, `+`, `&`, `|`, AND and PLUS; a special dividend may follow without a separator. */
function splitClauses(line: string): string[] {
  return line
    .replace(NOTE, ' ')
    .replace(/MEETING(?=[A-Z])/g, 'MEETING/')
    .replace(/(?<=\b(?:SHARES?|SH|\d)) (?=SPE?C?L?(?:ECIAL)? (?:INTERIM )?DIV)/g, '/')
    .split(/[/+&|]| AND | PLUS /)
    .map((clause) => clause.replace(/ +/g, ' ').trim())
    .filter((clause) => /[A-Z0-9]/.test(clause));
}

const MONEY = String.raw`R[SE] ?(\d{1,6}(?:\.\d{1,4})?)(?: ?PER (?:(?:EQUITY )?SHARE|UNIT))?`;
const RATIO = String.raw`(\d{1,5}) ?(?::|FOR(?: EVERY)?) ?(\d{1,5})`;

const SPLIT = new RegExp(
  String.raw`^(?:(?:FACE VALUE|F ?V|STOCK) ?)?(?:SPLI?T|SUB ?-? ?DIVISION)(?: ?\( ?SUB ?-? ?DIVISION ?\))?(?: OF (?:EQUITY )?(?:SHARES|UNITS))? ?-? ?(?:(?:FROM|FRM) ?)?${MONEY} TO ?${MONEY}$`,
);
const CONSOLIDATION = new RegExp(
  `^CONSOLIDATION(?: OF (?:EQUITY )?SHARES)? ?-? ?(?:FROM |FRM )?${MONEY} TO ?${MONEY}$`,
);
const BONUS = new RegExp(`^BONUS(?: (?:ISSUE|SHARES))?(?: (?:OF|IN THE RATIO OF))? ?-? ?${RATIO}$`);
const RIGHTS = new RegExp(
  `^(?:RI?G?HTS?|RI?GTS?)(?: ISSUE)? ?-? ?${RATIO}(?: ?(?:@|AT) ?(?:PREMIUM|PREM|PRM)(?: OF)? ?${MONEY})?$`,
);

/** Securities that are not shares of the company. */
const NOT_SHARES = /DEBENTURE|\bN?C?C?O?DS?\b|NCRPS|PREF|\bRPS\b|WARRANT|\bBONDS?\b|\bDVRS?\b/;

const DIVIDEND =
  /\bSP-?DIV|\b(?:INT)?DIV\b|D?I?VI?D[IEN]*[DN]+E?D?\b|DIVDEND|DIVIDEND|DIVIDED|DIVIDNED|IVIDEND/;
const MEETING = /\bA\.?G\.?M\b|\bE\.?G\.?M\b|GEN?E?[NRM]*A?L ME+T?I?N?G?|\bMEETING|POSTAL BALLOT/;
const INTEREST = /\bI?NTE?RE?ST\b|^INT (?:PAYMENT|PYMNT)|^INTRST/;

/** The event of a clause; null if nothing is recognised in it. */
function readClause(clause: string): PurposeEvent | null {
  if (/BONUS/.test(clause)) return readBonus(clause);
  if (/CONSOLIDAT/.test(clause)) return readConsolidation(clause);
  if (/CAP(?:ITAL)?\.? RED(?:U?C?T?I?O?N)?\b|REDUCTION (?:OF|IN) (?:SHARE )?CAPITAL/.test(clause)) {
    return review('capital_reduction', 'a reduction of capital has no ratio that follows from its text');
  }
  if (/SPLI?T|SUB ?-? ?DIVISION/.test(clause)) return readSplit(clause);
  if (/^(?:RI?G?HTS?|RI?GTS?)\b|\bRIGHTS? (?:ISSUE|SHARES)/.test(clause)) return readRights(clause);
  if (/DE-? ?ME?RGE?R|SPIN ?-?OFF/.test(clause)) {
    return review('demerger', 'a demerger has no ratio that follows from its text');
  }
  if (/BUY ?-?BACK/.test(clause))
    return ignored('buyback', 'a buyback does not change the shares that are kept');
  // "Interest dividend" is a misspelled interim dividend.
  if (INTEREST.test(clause) && !/DIVI/.test(clause)) {
    return { ...ignored('interest', 'interest does not change a share'), amount: amountIn(clause) };
  }
  if (DIVIDEND.test(clause) || /^(?:\w+ )?DISTRI?B?U?TI?O?N/.test(clause)) return readDividend(clause);
  if (MEETING.test(clause)) return ignored('meeting', 'a meeting does not change a share');
  if (/RETURN (?:OF|ON) CAPITAL|CAPITAL REPAYMENT/.test(clause)) {
    return {
      ...other('a return of capital may be large enough to adjust prices for it'),
      amount: amountIn(clause),
    };
  }
  return null;
}

/** Units of a trust or of a fund. Trusts distribute interest, dividends and capital together. */
const UNITS = /\bPER ?(?:UNI?T|UINT|UT)|\bDIST\w*TION\b/;

/** Words of what trusts distribute besides interest and dividends. */
const PARTS =
  /RET[UR]*N (?:OF|ON) CAP|REPAY|PRINCIP|PROCEEDS|AMORTI|INCOME|SURPLUS|SPV|DEBT|NCDS?\b|LOAN|REFUND/;

/** A clause about the units of a trust: with an amount, each part of what it distributes is read like a dividend. */
function readPart(clause: string): PurposeEvent | null {
  const event = readClause(clause);
  const isPart =
    event === null
      ? PARTS.test(clause)
      : event.kind === 'interest' || (event.kind === 'other' && !NOT_SHARES.test(clause));
  const amount = isPart ? amountIn(clause) : null;
  return amount === null ? event : applied(event?.kind ?? 'other', { amount });
}

/** A distribution whose whole amount is stated, and behind it, if at all, what it consists of. */
const TOTAL =
  /^(?:\w+ )?DIST\w*TION(?: ?\([^()]*\))? ?-? ?(?:R[SE] ?)?-? ?(\d{1,6}(?:\.\d{1,6})?)(?: ?PER UNI?T)? ?-? ?(?=CONS|COMP|INCLU|BEING|AS |IN THE FORM|FOR THE |[/&(:,]|$)(.*)$/;

/** The amounts of what it consists of. */
const PART_AMOUNTS = /(?<=R[SE]\.? ?-? ?)\d+(?:\.\d+)?|\d+(?:\.\d+)?(?= PER UNI?T)/g;

/** Amounts of parts are rounded: if their sum differs from the total by more than this, one of them is wrong. */
const ROUNDED_BY = 0.02;

/** The whole distribution of a trust, if the text states it before its parts; null if not. */
function readTotal(line: string): PurposeEvent | null {
  const [, amount, rest = ''] = TOTAL.exec(line.replace(NOTE, ' ').replace(/ +/g, ' ').trim()) ?? [];
  if (amount === undefined || Number(amount) === 0 || OF_SHARES.test(rest)) return null;
  const event = applied('dividend', { amount });
  const parts = (rest.match(PART_AMOUNTS) ?? []).map(Number);
  if (parts.length === 0 && /^[/&]/.test(rest)) return null;
  const sum = parts.reduce((all, part) => all + part, 0);
  return parts.length === 0 || Math.abs(sum - Number(amount)) <= ROUNDED_BY
    ? event
    : needsReview(event, 'its parts do not add up to the whole amount');
}

/** Words of events that are no part of a distribution. */
const OF_SHARES = /\bBON(?!D)|SPLI?T|DIVISION|CONSOL|RIGHT|MERGER|BUY|CANCEL|WITHDRA|POSTPON|DEFER/;

function readBonus(clause: string): PurposeEvent {
  if (NOT_SHARES.test(clause)) return other('the bonus is not in shares of the same kind');
  const match = BONUS.exec(clause);
  const ratio = match === null ? null : reduceRatio(Number(match[1]) + Number(match[2]), Number(match[2]));
  if (ratio === null || ratio.new <= ratio.old) return review('bonus', 'its ratio is missing or unclear');
  return applied('bonus', { ratio });
}

function readSplit(clause: string): PurposeEvent {
  const ratio = faceValueRatio(SPLIT.exec(clause));
  if (ratio === null || ratio.new <= ratio.old)
    return review('split', 'its face values are missing or unclear');
  return applied('split', { ratio });
}

function readConsolidation(clause: string): PurposeEvent {
  const ratio = faceValueRatio(CONSOLIDATION.exec(clause));
  if (ratio === null || ratio.new >= ratio.old) {
    return review('consolidation', 'its face values are missing or unclear');
  }
  return applied('consolidation', { ratio });
}

function readRights(clause: string): PurposeEvent {
  const match = NOT_SHARES.test(clause) ? null : RIGHTS.exec(clause);
  const event = review('rights', 'what a right is worth depends on the price before it');
  if (match === null) return event;
  const ratio = reduceRatio(Number(match[1]) + Number(match[2]), Number(match[2]));
  return {
    ...event,
    ratio: ratio !== null && ratio.new > ratio.old ? ratio : null,
    amount: match[3] ?? null,
  };
}

/** Words of a dividend that is paid once, as the lists write, shorten or misspell them: SPL, SPEC, SP. DIV, SPDIV. */
const SPECIAL =
  /\bSPE?C?I?A? ?L|SPECIAL|SPLECIAL|\bSP(?:EC)?\b|\bSP-?DIV|ONE ?-?TIME|JUBILEE|CENTENARY|ANNIVERSARY|MILL?ENN?IUM|ADDITIONAL|EXTRA/;

function readDividend(clause: string): PurposeEvent {
  if (NOT_SHARES.test(clause)) return ignored('dividend', 'it is not paid on shares');
  const amount = amountIn(clause);
  if (SPECIAL.test(clause)) {
    return {
      ...review(
        'dividend',
        amount === null ? 'a special dividend may be large enough to adjust prices for it' : SPECIAL_DIVIDEND,
      ),
      amount,
      label: 'special',
    };
  }
  const label = /\bINT|INTERIM/.test(clause) ? 'interim' : /\bFIN/.test(clause) ? 'final' : '';
  if (amount === null) return { ...review('dividend', 'its amount is missing or unclear'), label };
  return applied('dividend', { amount, label });
}

/** Numbers beside the amount: percent with the rupees behind them, the face value, and the year it is paid for. */
const BESIDE_AMOUNT = new RegExp(
  [
    String.raw`(?<![\d.])\d{1,6}(?:\.\d+)? ?(?:%|PER ?CENT)[ ,-]*(?:I\.? ?E\.?|THAT IS|OR|EQUIVALENT TO)(?=[ :,-]*R[SE] ?\d)`,
    String.raw`\b(?:(?:OF|ON)(?: THE| A)? )?(?:FACE|PAR) VALUE(?: OF)? ?-? ?R[SE] ?\d+(?:\.\d+)?`,
    String.raw`\b(?:YEAR|F\.? ?Y\.?)(?: ENDED)? ?-? ?(?:19|20)\d\d(?: ?- ?(?:\d\d){1,2})?\b`,
  ].join('|'),
  'g',
);

/** Rupees per share in a clause, as printed; null if there is no number, or more than one. */
function amountIn(clause: string): string | null {
  const text = clause
    .replace(BESIDE_AMOUNT, ' ')
    .replace(/\([^()]*\)/g, ' ')
    .replace(/\bRE \.(?=\d)/g, 'RE 0.')
    .replace(/(?<=\d),(?=(?:\d{2},)*\d{3}(?!\d))/g, '');
  const numbers = [
    ...text.matchAll(/(?<![\d.:])(\d{1,9}(?:\.\d{1,6})?)(?![\d.]*\d|:|\.\.|(?:ST|ND|RD|TH)\b)/g),
  ];
  const [only, ...more] = numbers;
  if (
    only === undefined ||
    more.length > 0 ||
    /%|PER ?CENT|PAISE|LAKH|CRORE|US ?\$|USD|\.\.| \.\d/.test(text)
  )
    return null;
  const isRupees = /R ?[SE]\b|\bS\b|R[SE]\.?\d|PE ?R\b|\bPR\b/.test(text);
  const [, amount = ''] = only;
  return isRupees && Number(amount) > 0 ? amount : null;
}

/** Shares after for shares before, from the face values before and after. */
export function faceValueRatio(match: RegExpExecArray | null): ShareRatio | null {
  if (match === null) return null;
  const [, before = '', after = ''] = match;
  const decimals = (value: string) => value.split('.')[1]?.length ?? 0;
  const scale = Math.max(decimals(before), decimals(after));
  const scaled = (value: string) => Math.round(Number(value) * 10 ** scale);
  return reduceRatio(scaled(before), scaled(after));
}

/** A ratio without common divisors; null unless both sides are positive integers. */
export function reduceRatio(after: number, before: number): ShareRatio | null {
  if (!Number.isSafeInteger(after) || !Number.isSafeInteger(before) || after <= 0 || before <= 0) return null;
  let [a, b] = [after, before];
  while (b !== 0) [a, b] = [b, a % b];
  return { new: after / a, old: before / a };
}

/** Kinds that make other ratios of the same text uncertain if they need a review themselves. */
const UNCLEAR: ReadonlySet<EventKind> = new Set(['other', 'split', 'bonus', 'consolidation']);

/**
 * Marks ratios for review if the same text has something else that may change the number of shares, or words that are
 * not understood.
 */
function reviewUnclear(events: readonly PurposeEvent[], notAllRead: boolean): PurposeEvent[] {
  const unclear = events.some(
    ({ kind, status }) => kind === 'capital_reduction' || (UNCLEAR.has(kind) && status === 'needs_review'),
  );
  if (!unclear && !notAllRead) return [...events];
  return events.map((event) =>
    event.status === 'applied' && event.ratio !== null
      ? { ...event, status: 'needs_review', reason: 'its text says something else that is not understood' }
      : event,
  );
}

/** An event of which only the kind is certain. */
export const review = (kind: EventKind, reason: string): PurposeEvent => ({
  kind,
  ratio: null,
  amount: null,
  status: 'needs_review',
  reason,
  label: '',
});

/** An event with all that its text has to say. */
export const applied = (
  kind: EventKind,
  read: Partial<Pick<PurposeEvent, 'ratio' | 'amount' | 'label'>>,
): PurposeEvent => ({ ...review(kind, ''), ...read, status: 'applied', reason: null });

export const ignored = (kind: EventKind, reason: string): PurposeEvent => ({
  ...review(kind, reason),
  status: 'ignored',
});

/** Something else. @param reason why a person should look at it; null if nothing suggests a change of price. */
const other = (reason: string | null): PurposeEvent =>
  reason === null
    ? ignored('other', 'nothing in its text suggests a change of price')
    : review('other', reason);
