import { addDays, type Day } from '../../core/days.ts';
import { operations } from '../../operations/registry.ts';
import type { Company } from '../market/companies.ts';
import { between, chance } from '../market/hash.ts';
import type { Market } from '../market/market.ts';
import type { Query } from '../request-query.ts';
import { type DataSet, type OperationDataSets, round2, rupees } from '../response/dataset.ts';
import { cased } from '../response/format.ts';
import { responseFields, type SourceRecord } from '../response/record.ts';
import { issuedShares } from './company-responses.ts';

/** A quarter of the Indian financial year, which is named by its first calendar year. */
interface Quarter {
  readonly year: number;
  readonly code: string;
}

const QUARTERS = ['QJ', 'QS', 'QD', 'QM'];
/** The quarter in which longer periods end. */
const ENDS_WITH: Readonly<Record<string, string>> = { M6: 'QS', M9: 'QD', M12: 'QM' };
const RESULTS_TAKE_DAYS = 45;

function endOf({ year, code }: Quarter): Day {
  switch (ENDS_WITH[code] ?? code) {
    case 'QJ':
      return `${year}-06-30`;
    case 'QS':
      return `${year}-09-30`;
    case 'QD':
      return `${year}-12-31`;
    default:
      return `${year + 1}-03-31`;
  }
}

/** The newest quarter whose results are published on `day`. */
function newestReportedQuarter(day: Day): Quarter {
  const known = addDays(day, -RESULTS_TAKE_DAYS);
  for (let year = Number(known.slice(0, 4)); ; year--) {
    const code = QUARTERS.findLast((one) => endOf({ year, code: one }) <= known);
    if (code !== undefined) return { year, code };
  }
}

/** Figures of a company for a quarter, in rupees. */
function figures(company: Company, nature: string, quarter: Quarter) {
  const position = quarter.year * 10 + QUARTERS.indexOf(ENDS_WITH[quarter.code] ?? quarter.code);
  const part = nature === 'Consolidated' ? 1.12 : 1;
  const shares = issuedShares(company);
  const earnings = (company.paise / 100) * (0.01 + 0.09 * chance(company.seed, position, 90));
  // About one company in twelve makes a loss.
  const sign = chance(company.seed, quarter.year, 91) < 0.08 ? -0.4 : 1;
  const eps = round2(earnings * sign * part);
  const profit = Math.round((eps * shares) / 1_000) * 1_000;
  const ebit = Math.round((Math.abs(profit) * (1.2 + chance(company.seed, position, 92))) / 10_000) * 10_000;
  return {
    shares,
    eps,
    profit,
    ebit,
    interest: Math.max(1, ebit * (0.01 + 0.3 * chance(company.seed, quarter.year, 93))),
    sales: Math.abs(profit) * (4 + 12 * chance(company.seed, quarter.year, 94)) + 1,
    book: (company.paise / 100) * (0.1 + 0.5 * chance(company.seed, quarter.year, 95)) * part,
    debt:
      chance(company.seed, 0, 96) < 0.25 ? 0 : between(1, 9_000, company.seed, quarter.year, 97) * 10_000_000,
    payout: 0.05 * chance(company.seed, quarter.year, 98),
    face: [1, 2, 5, 10][company.seed % 4] as number,
  };
}

type PriceField = 'eodClosePrice' | 'currentPrice';

interface Wanted {
  readonly day: Day;
  /** By default the newest that is reported on that day. */
  readonly quarter?: Quarter;
  readonly price?: PriceField;
  /** Whether the record has a stock price, as GetFinancialRatios declares. */
  readonly stockPrice?: boolean;
}

function ratioRecord(market: Market, query: Query, wanted: Wanted): SourceRecord[] {
  const { day, quarter = newestReportedQuarter(day), price: field = 'eodClosePrice' } = wanted;
  const path = market.path(query.exchange);
  const at = market.find(query.exchange, query.instruments[0] ?? '');
  const session = path.sessionAt(day);
  const company = at === null ? null : (path.instruments[at]?.company ?? null);
  const close = at === null ? 0 : path.close(at, session);
  if (at === null || company === null || close === 0) return [];
  const found = figures(company, query.options.natureOfReport ?? 'Standalone', quarter);
  const price = rupees(close);
  const marketCap = price * found.shares;
  const year = market.yearRange(query.exchange, at, session);
  return [
    {
      year: quarter.year,
      lastQ: quarter.code,
      marketCap: round2(marketCap / 1e7),
      eodClosePrice: field === 'eodClosePrice' ? price : undefined,
      currentPrice: field === 'currentPrice' ? price : undefined,
      stockPrice: wanted.stockPrice === true ? price : undefined,
      week52High: rupees(year.high),
      week52Low: rupees(year.low),
      eps: found.eps,
      // A company without earnings has no such ratio; the source sends 0.
      peRatio: found.eps === 0 ? 0 : price / found.eps,
      bookValuePerShare: found.book,
      dividendYield: found.payout * 100,
      ebit: found.ebit,
      interestCoverageRatio: found.ebit / found.interest,
      faceValue: found.face,
      priceSalesRatio: marketCap / found.sales,
      profitAfterTax: found.profit,
      enterpriseValue: Math.round(marketCap + found.debt),
      debt: found.debt,
      receivedAt: undefined,
      savedAt: undefined,
    },
  ];
}

/** Ratios of a day; none if it has no published session. */
function endOfDay(market: Market, query: Query, day: Day): SourceRecord[] {
  return market.sessions(query.exchange, day, day).length === 0 ? [] : ratioRecord(market, query, { day });
}

/** Ratios of the newest published session. */
function current(market: Market, query: Query, price: PriceField): SourceRecord[] {
  const day = market.latestSession(query.exchange);
  const stockPrice = price === 'eodClosePrice';
  return day === null ? [] : ratioRecord(market, query, { day, price, stockPrice });
}

/** Ratios of a quarter at the price of its last session; none before its results are published. */
function quarterly(market: Market, query: Query): SourceRecord[] {
  const newest = newestReportedQuarter(market.publishedUntil());
  const { period = 'Latest', year } = query.options;
  const quarter = period === 'Latest' ? newest : { year: Number(year), code: period };
  const end = endOf(quarter);
  if (end > endOf(newest)) return [];
  const [day] = market.sessions(query.exchange, addDays(end, -20), end).slice(-1);
  return day === undefined ? [] : ratioRecord(market, query, { day, quarter, stockPrice: true });
}

function ratios(market: Market, query: Query): SourceRecord[] {
  if (query.operation.name === 'GetFinRatioSnapshot') return current(market, query, 'currentPrice');
  if (query.operation.name === 'GetFinRatioEOD') return endOfDay(market, query, query.day ?? '');
  const type = query.options.type ?? (query.day === null ? 'Quarter' : 'EOD');
  if (type === 'Realtime') return current(market, query, 'eodClosePrice');
  return type === 'Quarter' ? quarterly(market, query) : endOfDay(market, query, query.day ?? '');
}

const financialRatios: DataSet = { table: 'financial_ratios', bare: true, records: ratios };

const tableOfRatios = () =>
  operations.flatMap((operation) => operation.shapes).find((shape) => shape.table.name === 'financial_ratios')
    ?.table;

/** The same figures as a list of facts: the declared form. */
const ratioFacts: DataSet = {
  table: 'financial_ratio_facts',
  records(market, query) {
    const table = tableOfRatios();
    const fields = table === undefined ? [] : responseFields(table);
    return ratios(market, query).flatMap((record) =>
      fields
        .filter((field) => record[field.source] !== undefined)
        .map((field) => ({
          key: cased(field.source, 'pascal'),
          label: field.meaning.replace(/\.$/, ''),
          unitId: field.unit ?? null,
          decimals: field.kind === 'numeric' ? 2 : 0,
          value: String(record[field.source]),
          description: field.meaning,
          receivedAt: undefined,
          savedAt: undefined,
        })),
    );
  },
};

/** The data of an operation of ratios. */
export const ratioDataSets: OperationDataSets = { sample: financialRatios, declared: ratioFacts };
