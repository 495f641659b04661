import { addDays, type Day, type DayRange, dayStart } from '../../core/days.ts';
import type { Exchange } from '../../core/exchanges.ts';
import { between, chance, hash } from '../market/hash.ts';
import { type Market, ZONE } from '../market/market.ts';
import { dayNumber, type Share, type Shares } from '../market/shares.ts';
import type { DataSet } from '../response/dataset.ts';
import type { SourceRecord } from '../response/record.ts';

/** Proportion of companies that announce something on a day. */
const ANNOUNCING = 0.05;

/** An action is announced at least and at most this many days before its record date. */
const NOTICE_DAYS = { least: 10, most: 30 };

/** A split is announced this many days before its ex-date. */
const SPLIT_NOTICE_DAYS = 20;

/** Label and code of each kind of corporate action. */
const CATEGORIES: readonly (readonly [label: string, code: string])[] = [
  ['A.G.M.', 'AGM'],
  ['Bonus issue', 'BN'],
  ['Buy Back of Shares', 'BGM'],
  ['Consolidation of Shares', 'CS'],
  ['Demerger', 'DM'],
  ['Dividend', 'DP'],
  ['E.G.M.', 'EGM'],
  ['Final Dividend', 'FD'],
  ['Interim Dividend', 'ID'],
  ['Postal Ballot', 'POM'],
  ['Reduction of Capital', 'RC'],
  ['Right Issue of Equity Shares', 'RT'],
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
function commonFields(shares: Shares, share: Share, day: Day) {
  return {
    scripCode: shares.companyNumber(share),
    symbol: share.symbol,
    companyName: share.name,
    industryName: share.industry.name,
    scripFaceValue: [1, 2, 5, 10][hash(share.seed, 0, 82) % 4] as number,
    isin: share.isin,
    // The published sample has no id.
    actionId: 0,
    announcementDate: day,
    bcRdTo: null,
    ndStartDate: null,
    ndEndDate: null,
    modifyDate: dayStart(day, ZONE) + 18 * 3600,
  };
}

function action(shares: Shares, share: Share, day: Day): SourceRecord {
  const number = dayNumber(day);
  const [label, code] = CATEGORIES[hash(share.seed, number, 80) % CATEGORIES.length] as readonly [
    string,
    string,
  ];
  const recordDate = addDays(day, between(NOTICE_DAYS.least, NOTICE_DAYS.most, share.seed, number, 81));
  const dividend = code === 'FD' || code === 'ID';
  return {
    ...commonFields(shares, share, day),
    meetingDate: code.endsWith('GM') ? recordDate : null,
    corporateActionType: label,
    purposeCode: code.padEnd(3),
    ratioAmount: dividend ? String(between(1, 40, share.seed, number, 83) / 2) : null,
    bcRdFrom: recordDate,
    provXdate: addDays(recordDate, -1),
    paymentDate: dividend ? addDays(recordDate, 20) : null,
  };
}

/** What companies announced on these days. */
function announced(market: Market, exchange: Exchange, days: readonly Day[]): SourceRecord[] {
  const shares = market.shares(exchange);
  return days.flatMap((day) => {
    const audit = market.audit('actions', exchange, day);
    return shares.list
      .filter(({ seed }) => chance(seed, dayNumber(day), 86) < ANNOUNCING)
      .map((share) => ({ ...action(shares, share, day), ...audit }));
  });
}

/** The splits with an ex-date in a range, as far as they are announced. */
function announcedSplits(market: Market, exchange: Exchange, { from, to }: DayRange): SourceRecord[] {
  const shares = market.shares(exchange);
  return (market.splits?.between(from, to) ?? []).flatMap(({ symbol, exDate, kind, ratio }) => {
    const share = shares.find(symbol);
    const day = addDays(exDate, -SPLIT_NOTICE_DAYS);
    if (share === null || day > market.publishedUntil()) return [];
    const [label, code] = kind === 'split' ? ['Stock Split', 'SS'] : ['Consolidation of Shares', 'CS'];
    return [
      {
        ...commonFields(shares, share, day),
        meetingDate: null,
        corporateActionType: label,
        purposeCode: code.padEnd(3),
        ratioAmount: ratio,
        bcRdFrom: exDate,
        provXdate: exDate,
        paymentDate: null,
        ...market.audit('actions', exchange, day),
      },
    ];
  });
}

/** Kinds that would move prices, which in the simulated market only its own splits and consolidations do. */
const MOVES_PRICES: ReadonlySet<string> = new Set(
  ['BN', 'CS', 'DM', 'RC', 'RT', 'SS'].map((code) => code.padEnd(3)),
);

/** The dates of a corporate action; the published sample has the time of each. */
const DATES = [
  'announcementDate',
  'meetingDate',
  'bcRdFrom',
  'bcRdTo',
  'provXdate',
  'ndStartDate',
  'ndEndDate',
  'paymentDate',
];

/** When actions are announced, in seconds after midnight. */
const ANNOUNCED_AT = 16 * 3600 + 36 * 60 + 3;

/** A record as the published sample has it. */
const published = (record: SourceRecord): SourceRecord => ({
  ...record,
  scripFaceValue: `${record.scripFaceValue}.0`,
  ...Object.fromEntries(
    DATES.map((name) => {
      const day = record[name];
      const seconds = name === 'announcementDate' ? ANNOUNCED_AT : 0;
      return [name, typeof day === 'string' ? dayStart(day, ZONE) + seconds : null];
    }),
  ),
});

/**
 * An issuer's own actions with an ex-date in the range, in the form of the published sample: among them the splits of
 * the simulated market.
 */
export const corporateActions: DataSet = {
  table: 'corporate_actions',
  written: {
    symbol: { source: 'ScripId' },
    companyName: { source: 'ScripName' },
    actionId: { kind: 'int8' },
    scripFaceValue: { kind: 'text' },
    ...Object.fromEntries(DATES.map((name) => [name, { kind: 'datetime' }])),
  },
  records(market, { exchange, range, instruments: [wanted], options }) {
    if (range === null) return [];
    const { from, to } = range;
    const sessions = market.sessions(exchange, addDays(from, -NOTICE_DAYS.most), to);
    const fits = (value: unknown, filter: string | undefined) =>
      filter === undefined || String(value).trim().toLowerCase() === filter.trim().toLowerCase();
    return [
      ...announced(market, exchange, sessions).filter(
        ({ provXdate, purposeCode }) =>
          String(provXdate) >= from && String(provXdate) <= to && !MOVES_PRICES.has(String(purposeCode)),
      ),
      ...announcedSplits(market, exchange, range),
    ]
      .filter(
        (record) =>
          (wanted === undefined || record.symbol === wanted) &&
          fits(record.corporateActionType, options.actionType) &&
          fits(record.purposeCode, options.purposeCode),
      )
      .map(published);
  },
};
