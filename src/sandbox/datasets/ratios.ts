import { addDays, type Day } from '../../core/days.ts';
import type { Market } from '../market/market.ts';
import { computeClose } from '../market/shares.ts';
import type { Query } from '../request-query.ts';
import { type DataSet, rupees } from '../response/dataset.ts';
import { complete, responseFields, type SourceRecord } from '../response/record.ts';

/** A quarter of the Indian financial year, which is named by its first calendar year. */
interface Quarter {
  readonly year: number;
  readonly code: string;
}

const QUARTERS = ['QJ', 'QS', 'QD', 'QM'];
/** The last days of the quarters, and of the longer periods that end with them. */
const ENDS: Readonly<Record<string, string>> = {
  QJ: '06-30',
  QS: '09-30',
  M6: '09-30',
  QD: '12-31',
  M9: '12-31',
};
const RESULTS_TAKE_DAYS = 45;

const quarterEnd = ({ year, code }: Quarter): Day =>
  ENDS[code] === undefined ? `${year + 1}-03-31` : `${year}-${ENDS[code]}`;

/** The newest quarter whose results are published on `day`. */
function newestReportedQuarter(day: Day): Quarter {
  const known = addDays(day, -RESULTS_TAKE_DAYS);
  for (let year = Number(known.slice(0, 4)); ; year--) {
    const code = QUARTERS.findLast((candidate) => quarterEnd({ year, code: candidate }) <= known);
    if (code !== undefined) return { year, code };
  }
}

/** The ratios of an instrument. Those that no price says are invented. */
function ratioRecord(
  market: Market,
  { exchange, instruments, operation, options }: Query,
  day: Day,
  reported?: Quarter,
): SourceRecord[] {
  const share = market.shares(exchange).find(instruments[0] ?? '');
  if (share === null) return [];
  const price = rupees(computeClose(share, day));
  const ofYear = market.yearRange(exchange, share, day);
  const quarter = reported ?? newestReportedQuarter(day);
  const isSnapshot = operation.name === 'GetFinRatioSnapshot';
  const known = {
    year: quarter.year,
    lastQ: quarter.code,
    eodClosePrice: isSnapshot ? undefined : price,
    currentPrice: isSnapshot ? price : undefined,
    stockPrice: reported === undefined ? undefined : price,
    week52High: rupees(ofYear.high),
    week52Low: rupees(ofYear.low),
    dividendYield: (share.seed % 800) / 100,
    // As many digits as a division has.
    peRatio: price / (1 + (share.seed % 97)),
    receivedAt: undefined,
    savedAt: undefined,
  };
  const fields = responseFields(operation.shapes[0].table);
  return [complete(known, fields, `${share.isin} ${quarter.year} ${quarter.code} ${options.natureOfReport}`)];
}

/** Ratios of a day; none if it has no published trading day. */
function endOfDay(market: Market, query: Query): SourceRecord[] {
  const day = query.day ?? '';
  if (market.tradingDays(query.exchange, day, day).length === 0) return [];
  return ratioRecord(market, query, day);
}

/** Ratios of the newest published trading day. */
function current(market: Market, query: Query): SourceRecord[] {
  const day = market.latestTradingDay(query.exchange);
  return day === null ? [] : ratioRecord(market, query, day);
}

/** Ratios of a quarter at the price of its last trading day; none before its results are published. */
function quarterly(market: Market, query: Query): SourceRecord[] {
  const newest = newestReportedQuarter(market.publishedUntil());
  const { period = 'Latest', year } = query.options;
  const quarter = period === 'Latest' ? newest : { year: Number(year), code: period };
  const end = quarterEnd(quarter);
  const day = market.tradingDays(query.exchange, addDays(end, -20), end).at(-1);
  if (end > quarterEnd(newest) || day === undefined) return [];
  return ratioRecord(market, query, day, quarter);
}

/** The ratios of one instrument. */
export const financialRatios: DataSet = {
  table: 'financial_ratios',
  bare: true,
  records(market, query) {
    if (query.operation.name === 'GetFinRatioSnapshot') return current(market, query);
    if (query.operation.name === 'GetFinRatioEOD') return endOfDay(market, query);
    const type = query.options.type ?? (query.day === null ? 'Quarter' : 'EOD');
    if (type === 'Realtime') return current(market, query);
    return type === 'Quarter' ? quarterly(market, query) : endOfDay(market, query);
  },
};
