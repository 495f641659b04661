import { expect, test } from 'vitest';
import { type Answered, range, records, sandbox, sharedSandbox, WEEK } from './support.ts';

const shared = sharedSandbox();
const n = (value: Answered[string] | undefined) => Number(value);
const bhavcopy = (exchange: string, day: string) =>
  records(shared(), 'GetBhavCopyCM', { exchange, ...range(day) });

test('series changes show in the trade file of their day', async () => {
  const changes = await records(shared(), 'GetSeriesChange', {
    exchange: 'NSE',
    ...range('2025-07-01', '2025-09-12'),
  });
  const days = new Set(changes.map((change) => change.ChangeDate));
  expect(days.size).toBeGreaterThan(40);
  expect(changes.length / days.size).toBeLessThanOrEqual(3);
  for (const change of changes.filter((one) => String(one.ChangeDate).startsWith('09-'))) {
    const [month, date, year] = String(change.ChangeDate).split('-');
    const rows = await records(shared(), 'GetBhavCopyCM', {
      exchange: 'NSE',
      instrumentIdentifiers: String(change.ScripId),
      ...range(`${year}-${month}-01`, `${year}-${month}-${date}`),
    });
    const before = rows.filter((row) => row.TradDt !== change.ChangeDate).at(-1);
    const after = rows.find((row) => row.TradDt === change.ChangeDate);
    expect(after?.SctySrs).toBe(change.ToSeries);
    if (before === undefined) continue;
    expect(before.SctySrs).toBe(change.PrevSeries);
    expect(after?.PrevClosePrice).toBe(before.ClosePrice);
    expect(after?.FinInstrmId).not.toBe(before.FinInstrmId);
    expect(after?.ISIN).toBe(before.ISIN);
  }
  const [one] = changes;
  const own = await records(shared(), 'GetSeriesChange', {
    exchange: 'NSE',
    instrumentIdentifier: String(one?.ScripId),
    ...range('2025-07-01', '2025-09-12'),
  });
  expect(own).toEqual(changes.filter((change) => change.ScripId === one?.ScripId));
  expect(await records(shared(), 'GetSeriesChange', range('2025-07-01', '2025-09-12'))).toEqual([]);
});

test('classification codes extend each other, and its companies are those of the trade file', async () => {
  const rows = await records(shared(), 'GetSectoralClassification', range(WEEK[0] as string, WEEK[4]));
  const isins = new Set((await bhavcopy('BSE', WEEK[4] as string)).map((row) => row.ISIN));
  expect(rows.length).toBeGreaterThan(400);
  expect(new Set(rows.map((row) => row.ISIN)).size).toBe(rows.length);
  for (const row of rows) {
    expect(String(row.SectCode).startsWith(String(row.MeiCode))).toBe(true);
    expect(String(row.IndustryCode).startsWith(String(row.SectCode))).toBe(true);
    expect(String(row.BasicIndustryCode).startsWith(String(row.IndustryCode))).toBe(true);
  }
  expect(rows.filter((row) => isins.has(row.ISIN)).length).toBeGreaterThan(rows.length * 0.9);
  const [tcs] = await records(shared(), 'GetSectoralClassification', { instrumentIdentifiers: 'TCS' });
  expect(tcs).toMatchObject({
    ScripCode: 532540,
    BasicIndustryCode: 'IN080101001',
    AllotedFrom: '03-31-2022',
  });
  const software = await records(shared(), 'GetSectoralClassification', { industry: 'IT - Software' });
  expect(new Set(software.map((row) => row.IndustryCode))).toEqual(new Set(['IN080101']));
});

test('pledges add up, one record a company and session', async () => {
  const rows = await records(shared(), 'GetConsolidatedPledge', range(WEEK[0] as string, WEEK[1]));
  expect(new Set(rows.map((row) => `${row.ScripCode} ${row.TradeDate}`)).size).toBe(rows.length);
  for (const row of rows) {
    expect(n(row.TotalPromoterHoldingShares) + n(row.TotalPublicHolding)).toBe(row.TotalIssuedShares);
    expect(n(row.Noofsharespledgedinthedepositorysystem_DNoofsharespledged)).toBeLessThanOrEqual(
      n(row.TotalIssuedShares),
    );
  }
  const own = await records(shared(), 'GetConsolidatedPledge', {
    instrumentIdentifier: 'TCS',
    ...range(WEEK[0] as string),
  });
  expect(own).toEqual(rows.filter((row) => row.ScripId === 'TCS' && row.TradeDate === '09-08-2025'));
});

test('quarters: figures once they are out, nothing before', async () => {
  const quarter = (period: string, year?: string) =>
    records(shared(), 'GetFinancialRatios', {
      type: 'Quarter',
      instrumentIdentifier: 'TCS',
      period,
      ...(year === undefined ? {} : { year }),
    });
  const [march] = await quarter('QM', '2024');
  expect(march).toMatchObject({ Year: 2024, LastQ: 'QM' });
  const [close] = await records(shared(), 'GetBhavCopyCM', {
    instrumentIdentifiers: 'TCS',
    ...range('2025-03-28'),
  });
  expect(march?.EODClosePrice).toBe(close?.ClosePrice);
  expect(await quarter('Latest')).toEqual(await quarter('QJ', '2025'));
  expect(await quarter('QS', '2025')).toEqual([]);
});

test('a revision changes a few rows of each day, saves them later, and keeps the sets in step', async () => {
  const revised = await sandbox({ revision: 2, instrumentsPerExchange: 500 });
  const day = WEEK[1] as string;
  const [before, after] = [await bhavcopy('BSE', day), await records(revised, 'GetBhavCopyCM', range(day))];
  const changed = after.filter((row, at) => JSON.stringify(row) !== JSON.stringify(before[at]));
  expect(after.length).toBe(before.length);
  expect(changed.length).toBeGreaterThan(2);
  expect(changed.length).toBeLessThan(after.length * 0.1);
  for (const row of changed) {
    const old = before.find((one) => one.FinInstrmId === row.FinInstrmId);
    expect(String(row.SavedAt) > String(old?.SavedAt)).toBe(true);
    expect(row.TTQ).not.toBe(old?.TTQ);
    expect(row.ClosePrice).toBe(old?.ClosePrice);
  }
  const [total] = await records(revised, 'GetTotalTradeHighlights', range(day));
  expect(total?.TradesNo).toBe(after.reduce((total, row) => total + n(row.TotalTradesNo), 0));
});

test('realtime and snapshot are of the newest published session', async () => {
  const asked = { instrumentIdentifier: 'RELIANCE', natureOfReport: 'Standalone' };
  const [close] = await records(shared(), 'GetBhavCopyCM', {
    instrumentIdentifiers: 'RELIANCE',
    ...range(WEEK[4] as string),
  });
  const [snapshot] = await records(shared(), 'GetFinRatioSnapshot', asked);
  const [realtime] = await records(shared(), 'GetFinancialRatios', { ...asked, type: 'Realtime' });
  expect(snapshot?.CurrentPrice).toBe(close?.ClosePrice);
  expect(realtime).toMatchObject({
    EODClosePrice: close?.ClosePrice,
    StockPrice: close?.ClosePrice,
    EPS: snapshot?.EPS,
  });
});
