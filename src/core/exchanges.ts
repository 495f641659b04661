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
 * The exchange whose calendar and settings a code follows. One that is not known follows NSE, whose sessions are those
 * of most markets in India.
 */
export function exchangeOfSegment(code: string): Exchange {
  return EXCHANGES.find((one) => one === code) ?? SEGMENTS[code] ?? 'NSE';
}
