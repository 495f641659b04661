/** The exchanges whose cash markets have a calendar, and settings of their own. */
export const EXCHANGES = ['BSE', 'NSE'] as const;
export type Exchange = (typeof EXCHANGES)[number];

/**
 * Further segments and exchanges by the code that the source takes, with the exchange whose calendar and settings they
 * follow: the one that runs them, or NSE.
 */
export const SEGMENTS: Readonly<Record<string, Exchange>> = {
  BFO: 'BSE',
  BSE_DEBT: 'BSE',
  BSE_IDX: 'BSE',
  CDS: 'NSE',
  MCX: 'NSE',
  NCDEX: 'NSE',
  NFO: 'NSE',
  NSE_IDX: 'NSE',
};

/** The codes that are known; the source may take others. */
export const EXCHANGE_CODES: readonly string[] = [...EXCHANGES, ...Object.keys(SEGMENTS)];

/**
 * The exchange whose calendar and settings a code follows. One that is not known follows NSE, whose trading days are
 * those of most markets in India.
 */
export function exchangeOfSegment(code: string): Exchange {
  return EXCHANGES.find((exchange) => exchange === code) ?? SEGMENTS[code] ?? 'NSE';
}

/** Spellings of the exchanges in records: their own, with an X before it, and BSE's market identifier code. */
const EXCHANGE_SPELLINGS: ReadonlyMap<string, Exchange> = new Map([
  ['BSE', 'BSE'],
  ['NSE', 'NSE'],
  ['XBSE', 'BSE'],
  ['XBOM', 'BSE'],
  ['XNSE', 'NSE'],
]);

/** The exchange that a record names, in any of its spellings; undefined where it is none of the known ones. */
export function exchangeNamed(name: unknown): Exchange | undefined {
  if (typeof name !== 'string') return undefined;
  return EXCHANGE_SPELLINGS.get(name) ?? EXCHANGE_SPELLINGS.get(name.trim().toUpperCase());
}

/**
 * Shows whether a record names another known exchange than the requested one. An unknown spelling proves nothing. A
 * record of a segment may name the segment, or the exchange that runs it.
 */
export function strayExchange(name: unknown, { exchange }: { readonly exchange: string }): boolean {
  if (typeof name !== 'string' || name === exchange) return false;
  const spelled = name.trim().toUpperCase();
  if (spelled === exchange) return false;
  const whole = exchangeNamed(name);
  if (whole !== undefined) return whole !== exchangeOfSegment(exchange);
  return SEGMENTS[spelled] !== undefined;
}

/** One operation requested for one exchange. */
export interface Pair {
  readonly operation: string;
  readonly exchange: string;
}

/** The name of a pair, which is its key where things are kept by pair. */
export const pairName = ({ operation, exchange }: Pair) => `${operation} ${exchange}`;

/** The time zone of the exchanges. */
export const MARKET_ZONE = 'Asia/Kolkata';
