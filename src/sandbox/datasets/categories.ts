import { addDays, type Day, dayStart, daysBetween } from '../../core/days.ts';
import type { Exchange } from '../../operations/operation.ts';
import type { SourceRecord } from '../answer/record.ts';
import { between, chance, hash } from '../market/hash.ts';
import { companyNumber, type Instrument } from '../market/instruments.ts';
import { ZONE } from '../market/market.ts';
import { type DataSet, sessionsOf } from './dataset.ts';

/** Label and code of each kind of corporate action. */
const CATEGORIES: readonly (readonly [label: string, code: string])[] = [
  ['A.G.M.', 'AGM'],
  ['Amalgamation', 'AM'],
  ['Annual Book Closure', 'ABC'],
  ['Bonus issue', 'BN'],
  ['Buy Back of Shares', 'BGM'],
  ['Change in Terms or Status', 'EX'],
  ['Consolidation of Shares', 'CS'],
  ['Conversion of FCD', 'FC'],
  ['Conversion of PCD', 'PC'],
  ['Court Convened Meeting', 'CCM'],
  ['Demerger', 'DM'],
  ['Dividend', 'DP'],
  ['E.G.M.', 'EGM'],
  ['Final Dividend', 'FD'],
  ['Interest Payment', 'IP'],
  ['Interim Dividend', 'ID'],
  ['Issue of Warrants', 'WR'],
  ['Postal Ballot', 'POM'],
  ['Preferential Issue', 'PI'],
  ['Redemption of NCD', 'RD'],
  ['Reduction of Capital', 'RC'],
  ['Right Issue of Equity Shares', 'RT'],
  ['Scheme of Arrangement', 'SOA'],
  ['Special Dividend', 'SD'],
  ['Spin Off', 'SO'],
  ['Stock Split', 'SS'],
];

/** The list of kinds; codes padded to three characters. */
export const categories: DataSet = {
  table: 'corporate_action_categories',
  records: () =>
    CATEGORIES.map(([corporateActiontype, code]) => ({
      corporateActiontype,
      purposeCode: code.padEnd(3),
      receivedAt: undefined,
      savedAt: undefined,
    })),
};

function action(exchange: Exchange, instrument: Instrument, day: Day): SourceRecord {
  const scripCode = companyNumber(exchange, instrument);
  const number = daysBetween('1970-01-01', day);
  const [label, code] = CATEGORIES[hash(instrument.seed, number, 80) % CATEGORIES.length] as readonly [
    string,
    string,
  ];
  const recordDate = addDays(day, between(10, 30, instrument.seed, number, 81));
  const dividend = code === 'FD' || code === 'ID';
  return {
    scripCode,
    actionId: `${scripCode}${day.replaceAll('-', '')}`,
    symbol: instrument.symbol,
    companyName: instrument.name,
    industryName: instrument.company?.industry.name ?? null,
    listedStatus: 'Listed',
    scripFaceValue: [1, 2, 5, 10][hash(instrument.seed, 0, 82) % 4] as number,
    isin: instrument.isin,
    announceType: 'Corporate Action',
    announcementDate: day,
    meetingDate: code.endsWith('GM') ? recordDate : null,
    corporateActionType: label,
    purposeCode: code.padEnd(3),
    announcementUrl: `https://announcements.example/${scripCode}/${day}`,
    ratioAmount: dividend ? String(between(1, 40, instrument.seed, number, 83) / 2) : null,
    bcRdFlag: 'RD',
    bcRdFrom: recordDate,
    bcRdTo: null,
    provXdate: addDays(recordDate, -1),
    ndStartDate: null,
    ndEndDate: null,
    paymentDate: dividend ? addDays(recordDate, 20) : null,
    referenceSrno: String(hash(instrument.seed, number, 84) % 100_000),
    modifyDate: dayStart(day, ZONE) + 18 * 3600 + (hash(instrument.seed, number, 85) % 3600),
  };
}

/** Proportion of companies that announce something on a day. */
const ANNOUNCING = 0.03;

/** Corporate actions: the declared form of the pledge and category operations. */
export const corporateActions: DataSet = {
  table: 'corporate_actions',
  records(market, query) {
    const latest = market.latestSession(query.exchange);
    const days = query.range === null ? (latest === null ? [] : [latest]) : sessionsOf(market, query);
    const path = market.path(query.exchange);
    const [wanted] = query.instruments;
    return days.flatMap((day) => {
      const number = daysBetween('1970-01-01', day);
      const audit = market.audit('actions', query.exchange, day);
      return market
        .shares(query.exchange, path.sessionAt(day))
        .filter(({ instrument }) => wanted === undefined || wanted === instrument.symbol)
        .filter(({ instrument }) => wanted !== undefined || chance(instrument.seed, number, 86) < ANNOUNCING)
        .map(({ instrument }) => ({ ...action(query.exchange, instrument, day), ...audit }));
    });
  },
};
