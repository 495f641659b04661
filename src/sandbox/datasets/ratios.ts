import { addDays, type Day } from '../../core/days.ts';
import { findDays, findQuarter } from '../../operations/GetFinancialRatios.ts';
import type { CheckedRequest } from '../checked-request.ts';
import type { Market } from '../market/market.ts';
import { computeClose } from '../market/shares.ts';
import { type DataSet, rupees } from '../response/dataset.ts';
import { complete, responseFields, type SourceRecord } from '../response/record.ts';

const RESULTS_TAKE_DAYS = 45;

/** A period of a financial year, and its last day. */
interface Period {
  readonly year: string;
  readonly period: string;
  readonly to: Day;
}

/** The newest quarter whose results are published on `day`. */
function newestReportedQuarter(day: Day): Period {
  const quarter = findQuarter(addDays(day, 1 - RESULTS_TAKE_DAYS));
  return findQuarter(addDays(quarter.from, -1));
}

/** The ratios of an instrument. Those that no price says are invented. */
function ratioRecord(
  market: Market,
  { exchange, instruments, operation, options }: CheckedRequest,
  day: Day,
  reported?: Period,
): SourceRecord[] {
  const share = market.shares(exchange).find(instruments[0] ?? '');
  if (share === null) return [];
  const price = rupees(computeClose(share, day));
  const ofYear = market.yearRange(exchange, share, day);
  const quarter = reported ?? newestReportedQuarter(day);
  const isSnapshot = operation.name === 'GetFinRatioSnapshot';
  const known = {
    year: Number(quarter.year),
    lastQ: quarter.period,
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
  return [
    complete(known, fields, `${share.isin} ${quarter.year} ${quarter.period} ${options.natureOfReport}`),
  ];
}

/** Ratios of a day; none if it has no published trading day. */
function endOfDay(market: Market, request: CheckedRequest): SourceRecord[] {
  const day = request.day ?? '';
  if (market.tradingDays(request.exchange, day, day).length === 0) return [];
  return ratioRecord(market, request, day);
}

/** Ratios of the newest published trading day. */
function current(market: Market, request: CheckedRequest): SourceRecord[] {
  const day = market.latestTradingDay(request.exchange);
  return day === null ? [] : ratioRecord(market, request, day);
}

/** Ratios of a period at the price of its last trading day; none before its results are published. */
function periodic(market: Market, request: CheckedRequest): SourceRecord[] {
  const newest = newestReportedQuarter(market.publishedUntil());
  const { period = 'Latest', year } = request.options;
  const days = findDays(period, year);
  const reported = days === null ? newest : { year: `${year}`, period, to: days.to };
  const day = market.tradingDays(request.exchange, addDays(reported.to, -20), reported.to).at(-1);
  if (reported.to > newest.to || day === undefined) return [];
  return ratioRecord(market, request, day, reported);
}

/** The ratios of one instrument. */
export const financialRatios: DataSet = {
  table: 'financial_ratios',
  bare: true,
  records(market, request) {
    if (request.operation.name === 'GetFinRatioSnapshot') return current(market, request);
    if (request.operation.name === 'GetFinRatioEOD') return endOfDay(market, request);
    const type = request.options.type ?? (request.day === null ? 'Quarter' : 'EOD');
    if (type === 'Realtime') return current(market, request);
    return type === 'Quarter' ? periodic(market, request) : endOfDay(market, request);
  },
};
