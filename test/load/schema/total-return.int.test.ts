import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decideEvent } from '../../../src/jobs/events/decide-event.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { importInto, newFile, openStore } from '../../support/import-support.ts';

type Context = Awaited<ReturnType<typeof openStore>>;

const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ');

interface Line {
  readonly symbol: string;
  readonly series: string;
  readonly isin: string;
  readonly close: number;
}

/** A bhav copy of NSE. */
const prices = (day: string, lines: readonly Line[]) => {
  const [year, month, date] = day.split('-');
  return newFile(`prices-${day}.csv`, [
    'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN,',
    ...lines.map(
      ({ symbol, series, isin, close }) =>
        `${symbol},${series},${close},${close},${close},${close},${close},${close},600,${close * 600},${date}-${MONTHS[Number(month) - 1]}-${year},5,${isin},`,
    ),
  ]);
};

/** A list of one's own: kind and ratio of each event. */
const list = (events: readonly (readonly [symbol: string, day: string, kind: string, ratio: string])[]) =>
  newFile('list.csv', [
    'exchange,symbol,ex_date,kind,ratio,note',
    ...events.map(([symbol, day, kind, ratio]) => `NSE,${symbol},${day},${kind},${ratio},`),
  ]);

const closesOf = async ({ db }: Context, through: string, symbol: string) =>
  (
    await db.pool.query<{ line: string }>(
      `select concat_ws(' ', trade_date, series, trim_scale(round(close_price, 6)), trim_scale(traded_quantity), trim_scale(round(price_factor, 6)), unadjusted_close_price) as line
         from market.adjusted_prices($1, total_return => true) where symbol = $2 order by trade_date, series`,
      [through, symbol],
    )
  ).rows.map(({ line }) => line);

const share = (symbol: string, close: number, series = 'EQ'): Line => ({
  symbol,
  series,
  isin: `INE${symbol.padEnd(6, '0')}1019`.slice(0, 12),
  close,
});

describe('prices with dividends reinvested', () => {
  test('by hand: a dividend alone, two on one day, one beside a split, a large one, one before the first close', async () => {
    const context = await openStore();
    await importInto(context, [
      prices('2024-02-01', [share('ONE', 100), share('TWO', 100), share('SPLIT', 100), share('LARGE', 100)]),
      prices('2024-02-05', [share('ONE', 96), share('TWO', 95), share('SPLIT', 45), share('LARGE', 2)]),
      list([
        ['ONE', '2024-02-05', 'dividend', '4'],
        ['ONE', '2024-01-10', 'dividend', '7'],
        ['TWO', '2024-02-05', 'dividend', '3'],
        ['TWO', '2024-02-05', 'dividend', '2'],
        // Of shares before the split: a holder of one at 100 gets 10 rupees and has two.
        ['SPLIT', '2024-02-05', 'dividend', '10'],
        ['SPLIT', '2024-02-05', 'split', '2:1'],
        // The share would be worth nothing.
        ['LARGE', '2024-02-05', 'dividend', '100'],
      ]),
    ]);
    expect(await closesOf(context, '2024-02-05', 'ONE')).toEqual([
      '2024-02-01 EQ 96 600 0.96 100',
      '2024-02-05 EQ 96 600 1 96',
    ]);
    expect(await closesOf(context, '2024-02-04', 'ONE')).toEqual(['2024-02-01 EQ 100 600 1 100']);
    expect(await closesOf(context, '2024-02-05', 'TWO')).toEqual([
      '2024-02-01 EQ 95 600 0.95 100',
      '2024-02-05 EQ 95 600 1 95',
    ]);
    expect(await closesOf(context, '2024-02-05', 'SPLIT')).toEqual([
      '2024-02-01 EQ 45 1200 0.45 100',
      '2024-02-05 EQ 45 600 1 45',
    ]);
    expect(await closesOf(context, '2024-02-05', 'LARGE')).toEqual([
      '2024-02-01 EQ 100 600 1 100',
      '2024-02-05 EQ 2 600 1 2',
    ]);
  });

  test('every part of what a trust distributes counts, and so does a special dividend, until a person decides', async () => {
    const context = await openStore();
    await importInto(context, [
      prices('2024-02-01', [share('TRUST', 100, 'IV'), share('EXTRA', 100)]),
      prices('2024-02-05', [share('TRUST', 90, 'IV'), share('EXTRA', 80)]),
      newFile('CF-CA.csv', [
        'SYMBOL,COMPANY NAME,SERIES,PURPOSE,FACE VALUE,EX-DATE,RECORD DATE',
        'TRUST,T,IV,Interest - Rs 5 Per Unit/Return Of Capital - Rs 3 Per Unit/Dividend - Rs 2 Per Unit,-,05-Feb-2024,-',
        'EXTRA,E,EQ,Dividend - Rs 4 Per Share/Special Dividend - Rs 16 Per Share,10,05-Feb-2024,-',
      ]),
    ]);
    const first = async (symbol: string) => (await closesOf(context, '2024-02-05', symbol))[0];
    expect(await first('TRUST')).toBe('2024-02-01 IV 90 600 0.9 100');
    expect(await first('EXTRA')).toBe('2024-02-01 EQ 80 600 0.8 100');
    const special = 'NSE:EXTRA:2024-02-05:dividend:16';
    await decideEvent(context, special, null);
    expect(await first('EXTRA')).toBe('2024-02-01 EQ 96 600 0.96 100');
    await decideEvent(context, special, { new: 2, old: 1 });
    expect(await first('EXTRA')).toBe('2024-02-01 EQ 48 1200 0.48 100');
    await decideEvent(context, special, 'reset');
    expect(await first('EXTRA')).toBe('2024-02-01 EQ 80 600 0.8 100');
  });

  test('a split while the share was not traded changes what the close before a dividend is worth; other lines follow the share', async () => {
    const context = await openStore();
    await importInto(context, [
      prices('2024-02-01', [share('ABC', 100), share('ABC', 99, 'BL')]),
      prices('2024-02-09', [share('ABC', 48)]),
      list([
        ['ABC', '2024-02-05', 'split', '2:1'],
        ['ABC', '2024-02-07', 'dividend', '1'],
      ]),
    ]);
    // 1 rupee of the 50 that half a share was worth.
    expect(await closesOf(context, '2024-02-09', 'ABC')).toEqual([
      '2024-02-01 BL 48.51 1200 0.49 99',
      '2024-02-01 EQ 49 1200 0.49 100',
      '2024-02-09 EQ 48 600 1 48',
    ]);
  });

  test.each([false, true])(
    'the planner sees through the function (total return: %s), so that a condition reaches the trading days',
    async (isTotal) => {
      const { db } = await openStore();
      for (const condition of ["symbol = 'ABC'", "instrument_id = 'NSE:ABC'", "trade_date > '2024-01-01'"]) {
        const { rows } = await db.pool.query<{ 'QUERY PLAN': string }>(
          `explain select * from market.adjusted_prices('9999-12-31', ${isTotal}) where ${condition}`,
        );
        const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
        expect(plan).not.toContain('Function Scan');
        expect(plan).toContain(`(${condition}`);
      }
    },
  );

  test('are what a holder has who buys with each dividend at the last close before it', async () => {
    const DAYS = ['01', '02', '05', '06', '07', '08', '09', '12', '13', '14', '15', '16'].map(
      (date) => `2024-02-${date}`,
    );
    const event = fc.record({
      day: fc.integer({ min: 1, max: 17 }).map((date) => `2024-02-${String(date).padStart(2, '0')}`),
      terms: fc.constantFrom(
        { kind: 'dividend', ratio: '1' },
        { kind: 'dividend', ratio: '2.5' },
        { kind: 'dividend', ratio: '0.05' },
        { kind: 'split', ratio: '2:1' },
        { kind: 'split', ratio: '10:1' },
        { kind: 'consolidation', ratio: '1:5' },
        { kind: 'bonus', ratio: '1:2' },
        { kind: 'bonus', ratio: '2:3' },
      ),
    });
    const history = fc.record({
      closes: fc.array(fc.option(fc.integer({ min: 100, max: 60_000 }), { freq: 3 }), {
        minLength: DAYS.length,
        maxLength: DAYS.length,
      }),
      renamedAt: fc.integer({ min: 0, max: 2 * DAYS.length }),
      movedAt: fc.integer({ min: 0, max: 2 * DAYS.length }),
      events: fc.array(event, { maxLength: 6 }),
    });
    await forAllAsync(
      [fc.array(history, { minLength: 25, maxLength: 25 })],
      { numRuns: 2, endOnFailure: true },
      async (shares) => {
        const context = await openStore();
        const lines = (at: number) =>
          shares.flatMap(({ closes, renamedAt, movedAt }, nth): Line[] => {
            const close = closes[at];
            if (close === null || close === undefined) return [];
            return [
              {
                symbol: at < renamedAt ? `OLD${nth}` : `NEW${nth}`,
                series: at < movedAt ? 'EQ' : 'BE',
                isin: `INE${String(nth).padStart(6, '0')}011`,
                close: close / 100,
              },
            ];
          });
        await importInto(context, [
          ...DAYS.flatMap((day, at) => (lines(at).length > 0 ? [prices(day, lines(at))] : [])),
          list(
            shares.flatMap(({ events }, nth) =>
              events.map(({ day, terms }) => [`NEW${nth}`, day, terms.kind, terms.ratio] as const),
            ),
          ),
        ]);
        const { rows: tradingDays } = await context.db.pool.query<Record<string, string>>(
          'select instrument_id as id, trade_date::text as day, unadjusted_close_price as close from market.adjusted_prices() order by trade_date',
        );
        const { rows: events } = await context.db.pool.query<Record<string, string>>(
          `select instrument_id as id, ex_date::text as day, kind, amount, ratio_new as "new", ratio_old as "old"
             from market.corporate_events where status = 'applied' order by ex_date, kind <> 'dividend'`,
        );
        expect(events.length).toBeGreaterThan(0);
        for (const through of ['2024-02-08', '2024-02-20']) {
          const { rows } = await context.db.pool.query<Record<string, string>>(
            'select instrument_id as id, trade_date::text as day, close_price as close from market.adjusted_prices($1, total_return => true)',
            [through],
          );
          const closes = new Map(rows.map(({ id, day, close }) => [`${id} ${day}`, Number(close)]));
          const until = tradingDays.filter((tradingDay) => (tradingDay.day as string) <= through);
          expect(rows).toHaveLength(until.length);
          for (const { id, day = '', close } of until) {
            const shares = sharesHeld(
              tradingDays.filter((tradingDay) => tradingDay.id === id),
              events.filter((event) => event.id === id),
              day,
              through,
            );
            expect(closes.get(`${id} ${day}`), `${id} ${day}`).toBeCloseTo(Number(close) / shares, 8);
          }
        }
      },
    );
  });
});

/** How many shares one share of a day has become by another, where each dividend buys at the last close before its ex-date. */
function sharesHeld(
  tradingDays: readonly Record<string, string>[],
  events: readonly Record<string, string>[],
  day: string,
  through: string,
): number {
  let shares = 1;
  for (const exDate of [...new Set(events.map((event) => event.day as string))].sort()) {
    if (exDate <= day || exDate > through) continue;
    const before = tradingDays.findLast((tradingDay) => (tradingDay.day as string) < exDate);
    // The close in shares as there were on the eve of the ex-date.
    const close = events
      .filter((event) => (event.day as string) > (before?.day ?? '') && (event.day as string) < exDate)
      .reduce(
        (price, event) => (event.new === null ? price : (price * Number(event.old)) / Number(event.new)),
        Number(before?.close),
      );
    const paid = events
      .filter((event) => event.day === exDate && event.kind === 'dividend')
      .reduce((sum, event) => sum + Number(event.amount), 0);
    // Without rounding, a dividend of the whole price would leave nothing to buy for.
    if (close - paid > 1e-9) shares /= 1 - paid / close;
    for (const event of events) {
      if (event.day === exDate && event.new !== null) shares *= Number(event.new) / Number(event.old);
    }
  }
  return shares;
}
