import type { Calendar } from '../../calendar/calendar.ts';
import { type Day, type DayRange, daysBetween } from '../../core/days.ts';
import type { Exchange } from '../../core/exchanges.ts';
import { between, chance, hash } from './hash.ts';
import { type Instrument, instrumentsOf } from './market-instruments.ts';

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
    const pull = 0.01 * Math.max(-1, Math.min(1, (usual - previous) / previous));
    const close = toTick(previous * (1 + step * 2 * one.volatility + pull), one.tick);
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
