import { expect, test } from 'vitest';
import { loadCalendar } from '../../src/calendar/index.ts';
import { addDays } from '../../src/core/days.ts';
import { Market } from '../../src/sandbox/market/market.ts';

const calendar = loadCalendar();
const clock = { now: () => Date.parse('2026-11-22T12:00:00+05:30') };
const market = (splits: boolean) =>
  new Market({ calendar, clock, instrumentsPerExchange: 500, revision: 0, splits });
const [plain, split] = [market(false), market(true)];
const sessionBefore = (exchange: string, day: string) =>
  calendar.lastSessions(exchange, addDays(day, -1), 1).at(-1) ?? '';
const events = (from: string, to: string) => split.splits?.between(from, to) ?? [];

test('each Monday and Wednesday one company splits, and one that split before consolidates', () => {
  const found = events('2026-11-02', '2026-11-15');
  const days = ['2026-11-02', '2026-11-04', '2026-11-09', '2026-11-11'];
  for (const kind of ['split', 'consolidation']) {
    expect(found.filter((one) => one.kind === kind).map(({ exDate }) => exDate)).toEqual(days);
  }
  expect(new Set(found.map(({ symbol }) => symbol)).size).toBe(8);
  expect(plain.splits).toBeNull();
  expect(events('2000-01-01', '2015-01-04')).toEqual([]);
});

test('prices and quantities are as a split leaves them, and what they were before it is taken back', () => {
  const every = events('2015-01-01', '2026-11-20');
  // What a share is multiplied by, from all its events until a day.
  const sharesOf = (symbol: string, day: string) =>
    every
      .filter((one) => one.symbol === symbol && one.exDate <= day)
      .reduce((shares, { ratio }) => (ratio === '5:1' ? shares * 5 : shares / 5), 1);
  const [event] = events('2026-11-16', '2026-11-16').filter(({ kind }) => kind === 'split');
  const { symbol = '', code = 0 } = event ?? {};
  for (const exchange of ['NSE', 'BSE'] as const) {
    for (let day = '2026-11-09'; day < '2026-11-20'; day = addDays(day, 1)) {
      const before = plain.lines(exchange, day);
      for (const [at, line] of split.lines(exchange, day).entries()) {
        const was = before[at];
        if (was === undefined) throw new Error('a line is missing');
        const shares = line.instrument.kind === 'share' ? sharesOf(line.instrument.symbol, day) : 1;
        if (shares === 1) {
          expect({ ...line, lastClose: 0 }).toEqual({ ...was, lastClose: 0 });
          continue;
        }
        expect(line.quantity).toBe(was.quantity * shares);
        expect(Math.abs(line.close * shares - was.close)).toBeLessThanOrEqual(line.instrument.tick * shares);
        const { low, high, open, close, last, turnover, quantity } = line;
        for (const price of [open, close, last, turnover / quantity]) {
          expect(price).toBeGreaterThanOrEqual(low);
          expect(price).toBeLessThanOrEqual(high);
        }
      }
    }
    const lineOf = (day: string) =>
      split
        .lines(exchange, day)
        .find(({ instrument }) => instrument.symbol === symbol && instrument.kind === 'share');
    // The last close is printed as it was, also on an ex-date, as the exchanges do it.
    for (const day of ['2026-11-13', '2026-11-16', '2026-11-17', '2026-11-18', '2026-11-19']) {
      const before = new Map(
        split
          .lines(exchange, sessionBefore(exchange, day))
          .map((line) => [`${line.instrument.symbol} ${line.series}`, line.close]),
      );
      const compared = split
        .lines(exchange, day)
        .filter(({ instrument, settlement }) => instrument.kind === 'share' && settlement !== null)
        .flatMap(({ instrument, series, lastClose }) => {
          const close = before.get(`${instrument.symbol} ${series}`);
          return close === undefined ? [] : [{ symbol: instrument.symbol, lastClose, close }];
        });
      expect(compared.length).toBeGreaterThan(100);
      expect(compared.filter((one) => one.lastClose !== one.close)).toEqual([]);
    }
    expect(lineOf('2026-11-13')?.instrument.company?.code).toBe(code);
    expect((lineOf('2026-11-13')?.close ?? 0) / (lineOf('2026-11-16')?.close ?? 1)).toBeGreaterThan(3);
  }
});
