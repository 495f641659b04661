import { addDays, type Day, type DayRange, dayStart } from '../../core/days.ts';
import { MARKET_ZONE } from '../../core/exchanges.ts';
import { between, chance, hash, pick } from '../market/hash.ts';
import type { Market } from '../market/market.ts';
import { dayNumber, type Share, type Shares } from '../market/shares.ts';
import type { DataSet } from '../response/dataset.ts';

/** Proportion of companies that announce something on a day. */
const ANNOUNCING = 0.05;

/** An action is announced at least and at most this many days before its record date. */
const NOTICE_DAYS = { least: 10, most: 30 };

/** A split is announced this many days before its ex-date. */
const SPLIT_NOTICE_DAYS = 20;

/** Label and code of each kind of corporate action. */
const SPLIT = ['Stock Split', 'SS'] as const;
const CONSOLIDATION = ['Consolidation of Shares', 'CS'] as const;
const CATEGORIES: readonly (readonly [label: string, code: string])[] = [
  ['A.G.M.', 'AGM'],
  ['Bonus issue', 'BN'],
  ['Buy Back of Shares', 'BGM'],
  CONSOLIDATION,
  ['Demerger', 'DM'],
  ['Dividend', 'DP'],
  ['E.G.M.', 'EGM'],
  ['Final Dividend', 'FD'],
  ['Interim Dividend', 'ID'],
  ['Postal Ballot', 'POM'],
  ['Reduction of Capital', 'RC'],
  ['Right Issue of Equity Shares', 'RT'],
  SPLIT,
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

/** The dates of an action; the published sample has the time of each, which is midnight but for the announcement. */
const DATES = ['meetingDate', 'bcRdFrom', 'bcRdTo', 'provXdate', 'ndStartDate', 'ndEndDate', 'paymentDate'];

/** When actions are announced, in seconds after midnight. */
const ANNOUNCED_AT = 16 * 3600 + 36 * 60 + 3;

interface Action {
  readonly share: Share;
  readonly announcedOn: Day;
  readonly exDate: Day;
  readonly kind: readonly [label: string, code: string];
  readonly ratioAmount?: string;
  readonly dates: Readonly<Record<string, Day>>;
}

/** What companies announced on these days. */
const announced = (shares: Shares, days: readonly Day[]): Action[] =>
  days.flatMap((day) => {
    const number = dayNumber(day);
    return shares.list
      .filter(({ seed }) => chance(seed, number, 86) < ANNOUNCING)
      .map((share): Action => {
        const kind = pick(CATEGORIES, hash(share.seed, number, 80));
        const notice = between(NOTICE_DAYS.least, NOTICE_DAYS.most, share.seed, number, 81);
        const recordDate = addDays(day, notice);
        const action = { share, kind, announcedOn: day, exDate: addDays(recordDate, -1) };
        if (!kind[0].endsWith(' Dividend')) return { ...action, dates: { bcRdFrom: recordDate } };
        const ratioAmount = String(between(1, 40, share.seed, number, 83) / 2);
        return {
          ...action,
          ratioAmount,
          dates: { bcRdFrom: recordDate, paymentDate: addDays(recordDate, 20) },
        };
      });
  });

/** The splits with an ex-date in a range, as far as they are announced. */
const announcedSplits = (market: Market, shares: Shares, { from, to }: DayRange): Action[] =>
  (market.splits?.between(from, to) ?? []).flatMap(({ symbol, exDate, kind, ratio }) => {
    const share = shares.find(symbol);
    const announcedOn = addDays(exDate, -SPLIT_NOTICE_DAYS);
    if (share === null || announcedOn > market.publishedUntil()) return [];
    const category = kind === 'split' ? SPLIT : CONSOLIDATION;
    return [{ share, announcedOn, exDate, kind: category, ratioAmount: ratio, dates: { bcRdFrom: exDate } }];
  });

/** An action in the form of the published sample, which has no id. */
function makeRecord({ share, announcedOn, exDate, kind, ratioAmount = '', dates }: Action, shares: Shares) {
  const days: Readonly<Record<string, Day>> = { ...dates, provXdate: exDate };
  return {
    actionId: 0,
    scripCode: shares.companyNumber(share),
    symbol: share.symbol,
    companyName: share.name,
    industryName: share.industry.name,
    scripFaceValue: '10.0',
    isin: share.isin,
    corporateActionType: kind[0],
    purposeCode: kind[1].padEnd(3),
    ratioAmount,
    announcementDate: dayStart(announcedOn, MARKET_ZONE) + ANNOUNCED_AT,
    modifyDate: dayStart(announcedOn, MARKET_ZONE) + 18 * 3600,
    ...Object.fromEntries(
      DATES.map((name) => [name, days[name] === undefined ? null : dayStart(days[name], MARKET_ZONE)]),
    ),
  };
}

/** Kinds that would move prices, which in the simulated market only its own splits and consolidations do. */
const MOVES_PRICES = ['BN', 'CS', 'DM', 'RC', 'RT', 'SS'];

/** An issuer's own actions with an ex-date in the range, among them the splits of the simulated market. */
export const corporateActions: DataSet = {
  table: 'corporate_actions',
  written: {
    symbol: { source: 'ScripId' },
    companyName: { source: 'ScripName' },
    actionId: { kind: 'int8' },
    scripFaceValue: { kind: 'text' },
    ...Object.fromEntries(['announcementDate', ...DATES].map((name) => [name, { kind: 'datetime' }])),
  },
  records(market, { exchange, range, instruments: [wanted], options }) {
    if (range === null) return [];
    const { from, to } = range;
    const shares = market.shares(exchange);
    const tradingDays = market.tradingDays(exchange, addDays(from, -NOTICE_DAYS.most), to);
    const fits = (value: string, filter: string | undefined) =>
      filter === undefined || value.toLowerCase() === filter.trim().toLowerCase();
    const others = announced(shares, tradingDays).filter(
      ({ exDate, kind }) => exDate >= from && exDate <= to && !MOVES_PRICES.includes(kind[1]),
    );
    return [...others, ...announcedSplits(market, shares, range)]
      .filter(
        ({ share, kind: [label, code] }) =>
          fits(share.symbol, wanted) && fits(label, options.actionType) && fits(code, options.purposeCode),
      )
      .map((action) => ({
        ...makeRecord(action, shares),
        ...market.audit('actions', exchange, action.announcedOn),
      }));
  },
};
