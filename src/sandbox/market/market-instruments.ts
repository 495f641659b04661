import type { Exchange } from '../../core/exchanges.ts';
import { type Company, companies, isinOf } from './companies.ts';
import { between, chance, hash, hashText } from './hash.ts';

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
  const places = ['EQ', 'BE', 'SM', 'BL', 'T0', 'GB', 'ST'];
  return 1_000 + instrument.id * places.length + places.indexOf(series);
}

/**
 * The securities of an exchange, `count` of them, always in the same order: odd ones (two series,
 * T+0, bonds, `&` and `-` in the symbol) are among the first.
 */
export function instrumentsOf(exchange: Exchange, count: number): Instrument[] {
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
