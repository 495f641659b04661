import { describe, expect, test } from 'vitest';
import { type Answered, midnight, range, records, sharedSandbox, WEEK } from './support.ts';

const shared = sharedSandbox();
const EXCHANGES = ['BSE', 'NSE'] as const;
const round2 = (value: number) => Math.round(value * 100) / 100;
const n = (value: Answered[string] | undefined) => Number(value);
const sum = (rows: readonly Answered[], field: string) =>
  rows.reduce((total, row) => total + n(row[field]), 0);

const bhavcopy = (exchange: string, from: string, to = from) =>
  records(shared(), 'GetBhavCopyCM', { exchange, ...range(from, to) });

const t0 = (row: Answered) => row.SttlmPric === null;

describe.each(EXCHANGES)('the trade file of %s', (exchange) => {
  test('keeps prices inside the day and turnover inside the prices', async () => {
    const wrong: string[] = [];
    for (const row of await bhavcopy(exchange, WEEK[0] as string, WEEK[4])) {
      const [low, high, quantity, turnover] = [
        n(row.LowPrice),
        n(row.HighPrice),
        n(row.TTQ),
        n(row.TtlTrfVal),
      ];
      const inside = t0(row) ? ['OpenPrice', 'LastPrice'] : ['OpenPrice', 'LastPrice', 'ClosePrice'];
      const prices = ['OpenPrice', 'HighPrice', 'LowPrice', 'ClosePrice', 'LastPrice', 'TtlTrfVal'];
      const problems = [
        ...inside.filter((field) => !(n(row[field]) >= low && n(row[field]) <= high)),
        ...(low > 0 ? [] : ['LowPrice']),
        ...(turnover >= low * quantity - 0.01 && turnover <= high * quantity + 0.01 ? [] : ['turnover']),
        ...(n(row.TotalTradesNo) <= quantity ? [] : ['TotalTradesNo']),
        ...prices.filter((field) => !/^\d+(\.\d{1,2})?$/.test(String(row[field]))),
      ];
      wrong.push(...problems.map((field) => `${row.TradDt} ${row.Symbol} ${field}`));
    }
    expect(wrong).toEqual([]);
  });

  test('starts each day from the close before, through series moves too', async () => {
    const closes = new Map<string, number>();
    let compared = 0;
    for (const day of WEEK) {
      const rows = await bhavcopy(exchange, day);
      for (const row of rows) {
        const line = `${row.ISIN} ${['BL', 'T0'].includes(String(row.SctySrs)) || String(row.Symbol).endsWith('#') ? `${row.Symbol} ${row.SctySrs}` : ''}`;
        const before = closes.get(line);
        if (before !== undefined) {
          expect(n(row.PrevClosePrice), `${day} ${row.Symbol}`).toBe(before);
          compared++;
        }
        closes.set(line, n(row.ClosePrice));
      }
    }
    expect(compared).toBeGreaterThan(1_500);
  });

  test('never closes beyond twenty percent', async () => {
    for (const row of await bhavcopy(exchange, WEEK[2] as string)) {
      if (n(row.PrevClosePrice) === 0) continue;
      // In whole paise, so that no rounding of doubles decides.
      const [close, previous] = [
        Math.round(n(row.ClosePrice) * 100),
        Math.round(n(row.PrevClosePrice) * 100),
      ];
      expect(Math.abs(close - previous) * 5, String(row.Symbol)).toBeLessThanOrEqual(previous);
    }
  });

  test('has new listings with a previous close of 0, and none before', async () => {
    const rows = await bhavcopy(exchange, '2019-02-01', '2019-02-28');
    const listings = rows.filter((row) => n(row.PrevClosePrice) === 0);
    expect(listings.length).toBeGreaterThan(0);
    for (const listing of listings) {
      const own = await records(shared(), 'GetBhavCopyCM', {
        exchange,
        instrumentIdentifiers: String(listing.Symbol),
        ...range('2019-01-01', '2019-06-30'),
      });
      expect(own.find((row) => row.ISIN === listing.ISIN)).toEqual(listing);
    }
  });
});

describe.each(EXCHANGES)('what follows from the trade file of %s', (exchange) => {
  test('top five gainers and losers', async () => {
    for (const day of WEEK) {
      const rows = (await bhavcopy(exchange, day)).filter((row) => n(row.PrevClosePrice) > 0 && !t0(row));
      const change = (row: Answered) =>
        ((n(row.ClosePrice) - n(row.PrevClosePrice)) / n(row.PrevClosePrice)) * 100;
      const ranked = rows.sort((a, b) => change(b) - change(a));
      const listed = await records(shared(), 'GetTop5GainersLosers', {
        exchange,
        type: 'GainersLosers',
        ...range(day),
      });
      const gainers = listed.filter((row) => row.IsLoser === false);
      const losers = listed.filter((row) => row.IsLoser === true);
      expect(listed).toEqual([...gainers, ...losers]);
      expect(gainers.map((row) => row.PercentageFluctation)).toEqual(
        ranked.slice(0, 5).map((row) => round2(change(row))),
      );
      expect(losers.map((row) => row.PercentageFluctation)).toEqual(
        ranked
          .slice(-5)
          .reverse()
          .map((row) => round2(change(row))),
      );
      for (const row of listed) {
        const line = rows.find((one) => one.FinInstrmId === row.ScripCode);
        expect(row.ScripName).toBe(String(line?.Symbol).slice(0, 12).padEnd(12));
        expect(row.ScripGroup).toBe(String(line?.SctySrs).padEnd(2));
        expect([row.CurrentClosing, row.PreviousClosing, row.Quantity]).toEqual([
          line?.ClosePrice,
          line?.PrevClosePrice,
          line?.TTQ,
        ]);
        expect(row.Turnover).toBeCloseTo(n(line?.TtlTrfVal) / 1e5, 1);
      }
    }
  });

  test('one side alone when only that is asked for', async () => {
    const sides = async (type: string) =>
      (await records(shared(), 'GetTop5GainersLosers', { exchange, type, ...range(WEEK[0] as string) })).map(
        (row) => row.IsLoser,
      );
    expect(await sides('Gainers')).toEqual([false, false, false, false, false]);
    expect(await sides('Losers')).toEqual([true, true, true, true, true]);
  });

  test('highlights, in crores', async () => {
    for (const day of WEEK) {
      const rows = await bhavcopy(exchange, day);
      const found = await records(shared(), 'GetTotalTradeHighlights', { exchange, ...range(day) });
      const check = (row: Answered | undefined, part: readonly Answered[]) => {
        expect(row?.ScripsNo).toBe(part.length);
        expect(row?.TradesNo).toBe(sum(part, 'TotalTradesNo'));
        expect(row?.SharesVol).toBeCloseTo(sum(part, 'TTQ') / 1e7, 1);
        expect(row?.TurnoverRsCr).toBeCloseTo(sum(part, 'TtlTrfVal') / 1e7, 1);
      };
      expect(found.filter((row) => row.TradeHighlights === 'Total')).toHaveLength(1);
      check(
        found.find((row) => row.TradeHighlights === 'Total'),
        rows,
      );
      for (const series of new Set(rows.map((row) => row.SctySrs))) {
        check(
          found.find((row) => row.TradeHighlights === `Group ${series}`),
          rows.filter((row) => row.SctySrs === series),
        );
      }
    }
  });

  test('securities at a band', async () => {
    let both = 0;
    for (const day of WEEK) {
      const rows = await bhavcopy(exchange, day);
      const found = await records(shared(), 'GetCircuitBreakers', { exchange, date: midnight(day) });
      expect(found.length).toBeGreaterThan(3);
      for (const hit of found) {
        const suffixed = exchange === 'NSE' && hit.Series !== 'EQ';
        const symbol = suffixed
          ? String(hit.ScripId).replace(new RegExp(`\\.${hit.Series}$`), '')
          : hit.ScripId;
        const line = rows.find((row) => row.Symbol === symbol && row.SctySrs === hit.Series);
        const [previous, reached] = [
          n(line?.PrevClosePrice),
          n(hit.Band === 'H' ? line?.HighPrice : line?.LowPrice),
        ];
        const percent = Math.abs(reached / previous - 1) * 100;
        // A limit is rounded towards the previous close by up to one price step.
        const step = (0.05 / previous) * 100 + 0.001;
        expect(
          [5, 10, 20].some((band) => percent <= band + 0.001 && percent > band - step),
          `${day} ${symbol} ${percent}`,
        ).toBe(true);
      }
      // Whoever moved by a whole twenty percent is among them.
      const limit = rows.filter(
        (row) => n(row.PrevClosePrice) > 0 && !t0(row) && n(row.ClosePrice) / n(row.PrevClosePrice) > 1.199,
      );
      for (const row of limit)
        expect(
          found.some((hit) => hit.Band === 'H' && String(hit.ScripId).startsWith(String(row.Symbol))),
        ).toBe(true);
      const high = await records(shared(), 'GetCircuitBreakers', {
        exchange,
        date: midnight(day),
        band: 'H',
      });
      expect(high).toEqual(found.filter((hit) => hit.Band === 'H'));
      both += found.length - new Set(found.map((hit) => hit.ScripId)).size;
    }
    expect(both).toBeGreaterThan(0);
  });

  test('week’s highs and lows and market value of the ratios', async () => {
    const day = WEEK[3] as string;
    for (const line of (await bhavcopy(exchange, day)).filter(
      (row) =>
        ['TCS', 'IDEA', 'M&M'].includes(String(row.Symbol)) && !['BL', 'T0'].includes(String(row.SctySrs)),
    )) {
      const asked = {
        exchange,
        instrumentIdentifier: String(line.Symbol),
        date: midnight(day),
        natureOfReport: 'Consolidated',
      };
      const [ratios] = await records(shared(), 'GetFinRatioEOD', asked);
      expect(ratios?.EODClosePrice).toBe(line.ClosePrice);
      expect(n(ratios?.Week52High)).toBeGreaterThanOrEqual(n(line.ClosePrice));
      expect(n(ratios?.Week52Low)).toBeLessThanOrEqual(n(line.ClosePrice));
      expect(n(ratios?.PeRatio)).toBeCloseTo(n(line.ClosePrice) / n(ratios?.EPS), 9);
      const [same] = await records(shared(), 'GetFinancialRatios', { ...asked, type: 'EOD' });
      expect(same).toEqual(ratios);
      const [alone] = await records(shared(), 'GetFinRatioEOD', { ...asked, natureOfReport: 'Standalone' });
      expect(alone?.EPS).not.toBe(ratios?.EPS);
    }
  });
});
