import { addDays, type Day, type DayRange, dayStart, daysBetween } from '../../core/days.ts';
import type { Exchange } from '../../core/exchanges.ts';
import { between, chance, hash } from '../market/hash.ts';
import { type Market, ZONE } from '../market/market.ts';
import { companyNumber, type Instrument } from '../market/path.ts';
import type { Split } from '../market/splits.ts';
import type { Query } from '../request-query.ts';
import { type DataSet, type OperationDataSets, sessionsOf } from '../response/dataset.ts';
import type { SourceRecord } from '../response/record.ts';

/** Proportion of companies that announce something on a day. */
const ANNOUNCING = 0.03;

/** An action is announced at least and at most this many days before its record date. */
const NOTICE_DAYS = { least: 10, most: 30 };

/** A split is announced this many days before its ex-date. */
const SPLIT_NOTICE_DAYS = 20;

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

/** What every action of a company has, whatever it is. */
function commonFields(exchange: Exchange, instrument: Instrument, day: Day) {
  const number = daysBetween('1970-01-01', day);
  return {
    scripCode: companyNumber(exchange, instrument),
    symbol: instrument.symbol,
    companyName: instrument.name,
    industryName: instrument.company?.industry.name ?? null,
    listedStatus: 'Listed',
    scripFaceValue: [1, 2, 5, 10][hash(instrument.seed, 0, 82) % 4] as number,
    isin: instrument.isin,
    announceType: 'Corporate Action',
    announcementDate: day,
    announcementUrl: `https://announcements.example/${companyNumber(exchange, instrument)}/${day}`,
    bcRdFlag: 'RD',
    bcRdTo: null,
    ndStartDate: null,
    ndEndDate: null,
    referenceSrno: String(hash(instrument.seed, number, 84) % 100_000),
    modifyDate: dayStart(day, ZONE) + 18 * 3600 + (hash(instrument.seed, number, 85) % 3600),
  };
}

function action(exchange: Exchange, instrument: Instrument, day: Day): SourceRecord {
  const number = daysBetween('1970-01-01', day);
  const common = commonFields(exchange, instrument, day);
  const [label, code] = CATEGORIES[hash(instrument.seed, number, 80) % CATEGORIES.length] as readonly [
    string,
    string,
  ];
  const recordDate = addDays(day, between(NOTICE_DAYS.least, NOTICE_DAYS.most, instrument.seed, number, 81));
  const dividend = code === 'FD' || code === 'ID';
  return {
    ...common,
    actionId: `${common.scripCode}${day.replaceAll('-', '')}`,
    meetingDate: code.endsWith('GM') ? recordDate : null,
    corporateActionType: label,
    purposeCode: code.padEnd(3),
    ratioAmount: dividend ? String(between(1, 40, instrument.seed, number, 83) / 2) : null,
    bcRdFrom: recordDate,
    provXdate: addDays(recordDate, -1),
    paymentDate: dividend ? addDays(recordDate, 20) : null,
  };
}

/** A split of the simulated market, as it was announced; null if the company is not on the exchange. */
function splitAction(market: Market, exchange: Exchange, split: Split): SourceRecord | null {
  const at = market.find(exchange, split.symbol);
  const instrument = at === null ? undefined : market.path(exchange).instruments[at];
  if (instrument === undefined) return null;
  const day = addDays(split.exDate, -SPLIT_NOTICE_DAYS);
  const common = commonFields(exchange, instrument, day);
  const [label, code] = split.kind === 'split' ? ['Stock Split', 'SS'] : ['Consolidation of Shares', 'CS'];
  return {
    ...common,
    // The company may announce something else on the same day.
    actionId: `${common.scripCode}${day.replaceAll('-', '')}1`,
    meetingDate: null,
    corporateActionType: label,
    purposeCode: code.padEnd(3),
    ratioAmount: split.ratio,
    bcRdFrom: split.exDate,
    provXdate: split.exDate,
    paymentDate: null,
  };
}

/** What was announced on these days; a company that is requested by name announces something on each of them. */
function announced(
  market: Market,
  exchange: Exchange,
  days: readonly Day[],
  wanted?: string,
): SourceRecord[] {
  const path = market.path(exchange);
  return days.flatMap((day) => {
    const number = daysBetween('1970-01-01', day);
    const audit = market.audit('actions', exchange, day);
    return market
      .shares(exchange, path.sessionAt(day))
      .filter(({ instrument }) => wanted === undefined || wanted === instrument.symbol)
      .filter(({ instrument }) => wanted !== undefined || chance(instrument.seed, number, 86) < ANNOUNCING)
      .map(({ instrument }) => ({ ...action(exchange, instrument, day), ...audit }));
  });
}

/** The splits with an ex-date in a range, as far as they are announced. */
function announcedSplits(market: Market, exchange: Exchange, { from, to }: DayRange): SourceRecord[] {
  const splits = market.splits?.between(from, to) ?? [];
  return splits.flatMap((split) => {
    const record = splitAction(market, exchange, split);
    const day = addDays(split.exDate, -SPLIT_NOTICE_DAYS);
    if (record === null || day > market.publishedUntil()) return [];
    return [{ ...record, ...market.audit('actions', exchange, day) }];
  });
}

/** Corporate actions: the declared form of the pledge and category operations, by the days of their announcements. */
export const corporateActions: DataSet = {
  table: 'corporate_actions',
  records(market, query) {
    const latest = market.latestSession(query.exchange);
    const days = query.range === null ? (latest === null ? [] : [latest]) : sessionsOf(market, query);
    return announced(market, query.exchange, days, query.instruments[0]);
  },
};

/** Kinds that would move prices, which in the simulated market only its own splits and consolidations do. */
const MOVES_PRICES: ReadonlySet<string> = new Set(
  ['AM', 'BN', 'CS', 'DM', 'RC', 'RT', 'SOA', 'SO', 'SS'].map((code) => code.padEnd(3)),
);

/**
 * The actions with an ex-date in the range, or, in the other reading of the documentation, those announced in it. The
 * splits of the simulated market are among them.
 */
function ownActions(
  market: Market,
  { exchange, range, instruments: [wanted], options, byAnnouncement = false }: Query,
): SourceRecord[] {
  if (range === null) return [];
  const { from, to } = range;
  const sessions = market.sessions(exchange, byAnnouncement ? from : addDays(from, -NOTICE_DAYS.most), to);
  const later = byAnnouncement ? SPLIT_NOTICE_DAYS : 0;
  const isRequested = (exDate: string) => byAnnouncement || (exDate >= from && exDate <= to);
  const fits = (value: unknown, filter: string | undefined) =>
    filter === undefined || String(value).trim().toLowerCase() === filter.trim().toLowerCase();
  return [
    ...announced(market, exchange, sessions).filter(
      ({ provXdate, purposeCode }) =>
        isRequested(String(provXdate)) && !MOVES_PRICES.has(String(purposeCode)),
    ),
    ...announcedSplits(market, exchange, { from: addDays(from, later), to: addDays(to, later) }),
  ].filter(
    (record) =>
      (wanted === undefined || record.symbol === wanted) &&
      fits(record.corporateActionType, options.actionType) &&
      fits(record.purposeCode, options.purposeCode),
  );
}

/** An issuer's own actions, in the form of the published sample; a reading of their own is the declared one. */
export const actionDataSets: OperationDataSets = {
  sample: { table: 'corporate_actions', published: true, records: ownActions },
};
