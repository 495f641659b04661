import type { Calendar } from '../../calendar/calendar.ts';
import { type Day, type DayRange, daysBetween } from '../../core/days.ts';
import type { Exchange } from '../../core/exchanges.ts';
import { type Company, companies, isinOf } from './companies.ts';
import { between, chance, hash, hashText } from './hash.ts';

/** The first day of the simulation. */
export const MARKET_START: Day = '2015-01-01';

const EPOCH: Day = '1970-01-01';
const START_NUMBER = daysBetween(EPOCH, MARKET_START);
const GROWTH_DAYS = 4_300;
/** At most this many shares have been moved to trade-to-trade (BE) at any time. */
const MOVED_AT_MOST = 25;

// The purposes for which a number is hashed for a day.
const TRADED = 20;
const JUMP = 21;
const STEP = 22;
const LISTING = 23;
const MOVES = 26;

interface Move extends DayRange {
  readonly instrument: number;
}

/** One line of the trade file: a security in one series, or in a group at BSE. */
export interface Instrument {
  readonly symbol: string;
  /** Series (NSE) or group (BSE) at first; a share at NSE may be moved later. */
  readonly series: string;
  readonly name: string;
  readonly isin: string;
  /** `share`: a company's own line; `block`: its block-deal line; `t0`: same-day settlement. */
  readonly kind: 'share' | 'block' | 't0' | 'bond';
  readonly company: Company | null;
  /** Number on the exchange; NSE's belongs to symbol and series (see `instrumentId`). */
  readonly id: number;
  /** For `t0`: index of the company's own line, whose close it has. */
  readonly parent: number;
  readonly paise: number;
  /** Its price at the start of 2015, as a fraction of `paise`. */
  readonly start: number;
  /** Smallest price step in paise. */
  readonly tick: number;
  /** Price band in percent of the previous close. */
  readonly band: number;
  /** Usual size of a day's move. */
  readonly volatility: number;
  /** Proportion of sessions on which it trades. */
  readonly trades: number;
  /** Usual traded quantity of a day. */
  readonly quantity: number;
  /** Days from 1970 to its listing; 0 if it was listed before 2015. */
  readonly listedOn: number;
  readonly seed: number;
}

/** T+0 settlement began on 2024-03-28. */
const T0_FROM = Date.parse('2024-03-28') / 86_400_000;
const FIRST_DAY = Date.parse('2015-01-01') / 86_400_000;
const DAYS_OF_LISTING = 4_300;

const T0_SYMBOLS = ['IDEA', 'SBIN'];
const BLOCK_SYMBOLS = ['RELIANCE', 'TCS'];
const BONDS = [
  ['SGBJUN28', '2.5%GOLDBONDS2028SR-III', 'IN0020200104', 1_058_791],
  ['SGBN28VIII', '2.5%GOLDBONDS2028SR-VIII', 'IN0020200286', 1_090_000],
] as const;

/** Upper and lower price limit in paise around a previous close. */
export function limits(previous: number, band: number, tick: number): { low: number; high: number } {
  const reach = (previous * band) / 100;
  return {
    low: Math.max(tick, Math.ceil((previous - reach) / tick) * tick),
    high: Math.floor((previous + reach) / tick) * tick,
  };
}

/**
 * Closing prices and series moves of an exchange, session by session from 2015 on. Each close is derived from the one
 * before, so that previous closes and price bands are always right. Sessions are computed once, in order, as far as
 * needed.
 */
export class Path {
  readonly exchange: Exchange;
  readonly instruments: readonly Instrument[];
  readonly #calendar: Calendar;
  readonly #sessions: Day[] = [];
  readonly #index = new Map<Day, number>();
  /** Last close of every instrument after each session; 0 before its listing. */
  readonly #closes: Int32Array[] = [];
  readonly #moves: Move[][] = [];
  readonly #series: string[];
  readonly #history = new Map<number, { session: number; series: string }[]>();
  readonly #movable: number[];
  readonly #moved: number[] = [];
  #knownUntil: Day = '';

  constructor(exchange: Exchange, calendar: Calendar, count: number) {
    this.exchange = exchange;
    this.#calendar = calendar;
    this.instruments = instrumentsOf(exchange, count);
    this.#series = this.instruments.map((one) => one.series);
    this.#movable = this.instruments.flatMap((one, at) => {
      const steady = one.company?.wellKnown === false && one.listedOn === 0 && one.trades === 1;
      return exchange === 'NSE' && one.kind === 'share' && one.series === 'EQ' && steady ? [at] : [];
    });
  }

  /** The index of a session, from 0 at the start of 2015; -1 if the exchange is closed that day. */
  sessionAt(day: Day): number {
    this.#extend(day);
    return this.#index.get(day) ?? -1;
  }

  /** Last session on or before `day`, or -1. */
  lastSession(day: Day): number {
    this.#extend(day);
    let at = this.#sessions.length - 1;
    while (at >= 0 && (this.#sessions[at] as Day) > day) at--;
    return at;
  }

  day(session: number): Day {
    return this.#sessions[session] as Day;
  }

  close(instrument: number, session: number): number {
    return this.#closes[session]?.[instrument] ?? 0;
  }

  /** Close before the session in paise; 0 on the day of listing. */
  previousClose(instrument: number, session: number): number {
    if (session > 0) return this.close(instrument, session - 1);
    const one = this.instruments[instrument] as Instrument;
    return one.listedOn === 0 ? target(one, START_NUMBER) : 0;
  }

  traded(instrument: number, session: number): boolean {
    const one = this.instruments[instrument] as Instrument;
    return this.close(instrument, session) > 0 && tradesOn(one, daysBetween(EPOCH, this.day(session)));
  }

  moves(session: number): readonly Move[] {
    return this.#moves[session] ?? [];
  }

  /** The series of an instrument in a session, after the moves of that session. */
  series(instrument: number, session: number): string {
    const history = this.#history.get(instrument);
    const move = history?.findLast((one) => one.session <= session);
    return move?.series ?? (this.instruments[instrument] as Instrument).series;
  }

  #extend(day: Day): void {
    if (day <= this.#knownUntil || day < MARKET_START) return;
    const from = this.#knownUntil === '' ? MARKET_START : this.#knownUntil;
    for (const session of this.#calendar.sessions(this.exchange, from, day)) {
      if (!this.#index.has(session)) this.#append(session);
    }
    this.#knownUntil = day;
  }

  #append(day: Day): void {
    const session = this.#sessions.length;
    const number = daysBetween(EPOCH, day);
    this.#sessions.push(day);
    this.#index.set(day, session);
    this.#moves.push(this.#moveSome(session, number));
    const closes = new Int32Array(this.instruments.length);
    for (const [at, one] of this.instruments.entries()) {
      closes[at] =
        one.kind === 't0' ? this.#parentClose(one, closes, number) : this.#next(one, at, session, number);
    }
    this.#closes.push(closes);
  }

  #parentClose(one: Instrument, closes: Int32Array, number: number): number {
    return number < one.listedOn ? 0 : (closes[one.parent] as number);
  }

  #next(one: Instrument, at: number, session: number, number: number): number {
    if (number < one.listedOn) return 0;
    const previous = this.previousClose(at, session);
    const usual = target(one, number);
    if (previous === 0) return toTick(usual * (0.9 + 0.35 * chance(one.seed, number, LISTING)), one.tick);
    if (!tradesOn(one, number)) return previous;
    const { low, high } = limits(previous, this.bandOf(at), one.tick);
    const jump = chance(one.seed, number, JUMP);
    if (jump < 0.012) return high;
    if (jump < 0.022) return low;
    const step = bell(hash(one.seed, number, STEP));
    const drift = 0.01 * Math.max(-1, Math.min(1, (usual - previous) / previous));
    const close = toTick(previous * (1 + step * 2 * one.volatility + drift), one.tick);
    return Math.max(low, Math.min(high, close, 2_000_000_000));
  }

  /** The price band of an instrument in a session, by default the newest one; in trade-to-trade (BE) it is 5 %. */
  bandOf(instrument: number, session?: number): number {
    const series = session === undefined ? this.#series[instrument] : this.series(instrument, session);
    return series === 'BE' ? 5 : (this.instruments[instrument] as Instrument).band;
  }

  #moveSome(session: number, number: number): Move[] {
    const moves: Move[] = [];
    if (this.#movable.length === 0) return moves;
    const seed = 0x5e71e5;
    const wanted = between(1, 3, seed, number, MOVES);
    for (let i = 0; i < wanted; i++) {
      const back =
        this.#moved.length >= MOVED_AT_MOST ||
        (this.#moved.length > 4 && chance(seed, number, MOVES + 10 + i) < 0.4);
      const pool = back ? this.#moved : this.#movable;
      const at = pool[between(0, pool.length - 1, seed, number, MOVES + 20 + i)] as number;
      if (moves.some((move) => move.instrument === at)) continue;
      const from = this.#series[at] as string;
      const to = from === 'EQ' ? 'BE' : 'EQ';
      if (to === 'BE') this.#moved.push(at);
      else this.#moved.splice(this.#moved.indexOf(at), 1);
      this.#series[at] = to;
      const history = this.#history.get(at) ?? [];
      history.push({ session, series: to });
      this.#history.set(at, history);
      moves.push({ instrument: at, from, to });
    }
    return moves;
  }
}

/** A number between -1.5 and 1.5, mostly near 0: the sum of three parts of one hash. */
function bell(bits: number): number {
  return ((bits & 1023) + ((bits >>> 10) & 1023) + ((bits >>> 20) & 1023)) / 1024 - 1.5;
}

function tradesOn(one: Instrument, number: number): boolean {
  return number === one.listedOn || one.trades === 1 || chance(one.seed, number, TRADED) < one.trades;
}

/** The price that closes are drawn towards: it grows from a fraction in 2015 to today's. */
function target(one: Instrument, number: number): number {
  const grown = one.start + (1 - one.start) * Math.min(1.2, (number - START_NUMBER) / GROWTH_DAYS);
  return toTick(one.paise * grown, one.tick);
}

function toTick(paise: number, tick: number): number {
  return Math.max(100, Math.round(paise / tick) * tick);
}

function seriesOf(company: Company, exchange: Exchange): string {
  if (company.wellKnown) return exchange === 'NSE' ? 'EQ' : 'A';
  const at = chance(company.seed, 0, 3);
  if (exchange === 'NSE') return at < 0.84 ? 'EQ' : at < 0.91 ? 'BE' : 'SM';
  if (at < 0.22) return 'A';
  return at < 0.62 ? 'B' : at < 0.84 ? 'X' : at < 0.91 ? 'T' : 'M';
}

function bandOf(series: string, company: Company): number {
  if (['BE', 'T'].includes(series)) return 5;
  if (company.wellKnown || series === 'A') return 20;
  return [5, 10, 20, 20][hash(company.seed, 0, 4) % 4] as number;
}

function share(company: Company, exchange: Exchange, index: number): Instrument {
  const series = seriesOf(company, exchange);
  const small = !company.wellKnown;
  const late = small && chance(company.seed, 0, 5) < 0.15;
  const thin = small && chance(company.seed, 0, 6) < 0.1;
  const worth = company.wellKnown ? 4e10 : 10 ** (5.5 + 4 * chance(company.seed, 0, 7)) * 100;
  return {
    symbol: company.symbol,
    series,
    name: company.name,
    isin: company.isin,
    kind: 'share',
    company,
    id: exchange === 'BSE' ? company.code : index,
    parent: -1,
    paise: company.paise,
    start: 0.3 + 0.5 * chance(company.seed, 0, 11),
    tick: company.paise < 25_000 ? 1 : 5,
    band: bandOf(series, company),
    volatility: company.wellKnown ? 0.011 : 0.012 + 0.016 * chance(company.seed, 0, 8),
    trades: thin ? 0.35 + 0.5 * chance(company.seed, 0, 9) : 1,
    quantity: Math.max(
      20,
      Math.round(worth / company.paise / (thin ? 40 : 1) / (exchange === 'BSE' ? 12 : 1)),
    ),
    listedOn: late ? FIRST_DAY + between(20, DAYS_OF_LISTING, company.seed, 0, 10) : 0,
    seed: company.seed,
  };
}

function extraLine(of: Instrument, at: number, exchange: Exchange, kind: 'block' | 't0'): Instrument {
  const t0 = kind === 't0';
  return {
    ...of,
    kind,
    symbol: t0 && exchange === 'BSE' ? `${of.symbol}#` : of.symbol,
    series: exchange === 'BSE' ? of.series : t0 ? 'T0' : 'BL',
    id: exchange === 'BSE' ? of.id - 400_000 : of.id,
    parent: at,
    trades: t0 ? 1 : 0.4,
    quantity: t0 ? 40 : Math.round(of.quantity / 4),
    listedOn: t0 ? T0_FROM : 0,
    seed: hashText(`${of.isin}/${kind}`),
  };
}

function bond(index: number, exchange: Exchange): Instrument {
  const [symbol, name, isin, paise] =
    exchange === 'NSE'
      ? (BONDS[index] as (typeof BONDS)[number])
      : ([
          `${795 + index}AFL28`,
          `${795 + index}% ASTRA FINANCE 2028`,
          isinOf(`INE90${index}F0701`),
          100_000,
        ] as const);
  return {
    symbol,
    series: exchange === 'NSE' ? 'GB' : 'F',
    name,
    isin,
    kind: 'bond',
    company: null,
    id: exchange === 'NSE' ? 490 + index : 936_000 + index,
    parent: -1,
    paise,
    start: 0.9,
    tick: 1,
    band: 10,
    volatility: 0.004,
    trades: 0.7,
    quantity: 150,
    listedOn: 0,
    seed: hashText(isin),
  };
}

/** The number of a company's own line in its first series; it stays when the series changes. */
export function companyNumber(exchange: Exchange, instrument: Instrument): number {
  return instrumentId(exchange, instrument, instrument.series);
}

/** The number of a line. NSE has a number for each series of a symbol, BSE one code that never changes. */
export function instrumentId(exchange: Exchange, instrument: Instrument, series: string): number {
  if (exchange === 'BSE') return instrument.id;
  const positions = ['EQ', 'BE', 'SM', 'BL', 'T0', 'GB', 'ST'];
  return 1_000 + instrument.id * positions.length + positions.indexOf(series);
}

/**
 * The securities of an exchange, `count` of them, always in the same order: odd ones (two series,
 * T+0, bonds, `&` and `-` in the symbol) are among the first.
 */
function instrumentsOf(exchange: Exchange, count: number): Instrument[] {
  const list: Instrument[] = [];
  const add = (one: Instrument) => list.length < count && list.push(one);
  for (const company of companies()) {
    if (list.length >= count) return list;
    if (exchange === 'BSE' ? !company.onBse : !company.onNse) continue;
    const own = share(company, exchange, list.length);
    const at = list.length;
    add(own);
    if (T0_SYMBOLS.includes(own.symbol)) add(extraLine(own, at, exchange, 't0'));
    if (exchange === 'NSE' && BLOCK_SYMBOLS.includes(own.symbol)) add(extraLine(own, at, exchange, 'block'));
    if (own.symbol === 'INFY') for (let i = 0; i < BONDS.length; i++) add(bond(i, exchange));
  }
  return list;
}
