import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addDays, type Day } from '../../../src/core/days.ts';
import type { Context } from '../../../src/jobs/context.ts';
import { readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { readCompleteness, writeExpectations } from '../../../src/state/coverage/completeness.ts';
import { sample } from '../../support/for-all.ts';
import { importInto, newFile, openStore } from '../../support/import-support.ts';

const BHAV = 'GetBhavCopyCM';
const EXCHANGES = ['NSE', 'BSE'] as const;
const HEADER =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty';

const tradingDay = (exchange: string, day: Day) =>
  newFile(`${exchange}-${day}.csv`, [
    HEADER,
    `${day},${day},CM,${exchange},STK,500001,INE000A01010,A,EQ,A LTD,100,100,100,100,100,100,40,4000,8,F1,1`,
  ]);

interface Range {
  readonly from: Day | undefined;
  readonly to: Day | undefined;
}

/**
 * A trading day is missing if there is no file of it, from the first one or the day that is named, to the last one of
 * its exchange.
 */
function missingOf(
  { calendar }: Context,
  exchange: string,
  days: readonly Day[],
  { from, to }: Range,
): Day[] {
  const stored = days.toSorted();
  const [first, last] = [stored[0], stored.at(-1)];
  if (first === undefined || last === undefined) return [];
  const begin = from ?? first;
  const end = to !== undefined && to < last ? to : last;
  if (begin > end) return [];
  return calendar.tradingDays(exchange, begin, end).filter((day) => !stored.includes(day));
}

const day = fc
  .tuple(fc.constantFrom(2013, 2014, 2016, 2025), fc.integer({ min: 0, max: 364 }))
  .map(([year, at]) => addDays(`${year}-01-01`, at));
const files = fc.array(fc.record({ exchange: fc.constantFrom(...EXCHANGES), day }), {
  minLength: 1,
  maxLength: 6,
});
const range = fc
  .tuple(fc.option(day, { nil: undefined }), fc.option(day, { nil: undefined }))
  .map(
    ([a, b]): Range =>
      a !== undefined && b !== undefined && a > b ? { from: b, to: a } : { from: a, to: b },
  );

test('what is missing follows from what is stored, whichever days are named and whichever commands ran before', async () => {
  for (const [imported, ranges] of sample(fc.tuple(files, fc.array(range, { minLength: 8, maxLength: 8 })), {
    numRuns: 2,
    seed: 1,
  })) {
    const context = await openStore();
    const ofDays = imported.filter(({ exchange, day: on }) => context.calendar.isTradingDay(exchange, on));
    if (ofDays.length === 0) continue;
    await importInto(
      context,
      ofDays.map(({ exchange, day: on }) => tradingDay(exchange, on)),
    );
    const daysOf = (exchange: string) =>
      ofDays.flatMap((file) => (file.exchange === exchange ? [file.day] : []));
    const expected = (of: Range) =>
      EXCHANGES.flatMap((exchange) =>
        missingOf(context, exchange, daysOf(exchange), of).map((on) => `${exchange} ${on}`),
      ).sort();
    const everything = { from: undefined, to: undefined };
    // Nothing has read gaps so far.
    const { rows } = await context.db.pool.query<{ line: string }>(
      `select exchange || ' ' || day as line from etl.completeness where operation = $1 and state = 'missing'`,
      [BHAV],
    );
    expect(rows.map(({ line }) => line).sort(), 'etl.completeness').toEqual(expected(everything));
    const scope = { expected: 'scheduled', others: true } as const;
    for (const of of [everything, ...ranges]) {
      const gaps = await readGaps(context, of);
      expect(gaps.total, JSON.stringify(of)).toBe(expected(of).length);
      const tradingDays = await readCompleteness(context, { ...scope, ...of });
      const missing = tradingDays.filter(({ state }) => state === 'missing');
      const lines = missing.map(({ exchange, day: on }) => `${exchange} ${on}`).sort();
      expect(lines, JSON.stringify(of)).toEqual(expected(of));
    }
    // With a key for one of the exchanges, the other one's files are looked at in the same way.
    const config = { ...context.config, EOD_ACCESS_KEY: 'kiwi', EOD_EXCHANGES: ['NSE'] };
    await writeExpectations(context.db.drizzle, config as Context['config']);
    for (const of of ranges) {
      const { gaps } = await readGaps({ ...context, config } as Context, of);
      const ofBse = gaps.filter(({ exchange }) => exchange === 'BSE');
      expect(
        ofBse.reduce((sum, gap) => sum + gap.sessions, 0),
        JSON.stringify(of),
      ).toBe(missingOf(context, 'BSE', daysOf('BSE'), of).length);
    }
  }
});
