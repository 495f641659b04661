import { afterEach, describe, expect, test, vi } from 'vitest';
import { loadCalendar } from '../../src/calendar/calendar.ts';
import { type Clock, createSettableClock, systemClock, today } from '../../src/core/clock.ts';
import { addDays, type Day } from '../../src/core/days.ts';
import { runCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { startServer } from '../support/http-server.ts';
import { backfill, openPipeline, runToEnd } from '../support/pipeline.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const MINUTES = 60_000;
const DAYS = 24 * 60 * MINUTES;
const EXCHANGE = 'NSE';
const lastTradingDay = (): Day =>
  loadCalendar().lastTradingDays(EXCHANGE, addDays(today(systemClock, 'Asia/Kolkata'), -1), 1)[0] as Day;

/**
 * A source whose responses hold one company more each time, without the time of saving, so that their order decides.
 */
async function growingSource(day: Day) {
  const [year, month, date] = day.split('-');
  const source = { url: '', requests: 0 };
  source.url = await startServer((_, response) => {
    source.requests += 1;
    const Value = Array.from({ length: 20 + source.requests }, (_, symbol) => ({
      TradDt: `${month}-${date}-${year}`,
      Src: EXCHANGE,
      Symbol: `S${symbol}`,
      SctySrs: 'EQ',
      ClosePrice: 100 + source.requests,
    }));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ Value }));
  });
  return source;
}

const stored = (url: string) =>
  query<{ rows: number; price: number }>(
    url,
    'select count(*)::int as rows, max(close_price)::int as price from market.bhavcopy_cm',
  );

/** Settings of a machine whose clock is that many milliseconds ahead from now on. */
function machine(databaseUrl: string, sourceUrl: string, ahead: number) {
  vi.restoreAllMocks();
  const realNow = Date.now;
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + ahead);
  return { DATABASE_URL: databaseUrl, EOD_BASE_URL: sourceUrl, EOD_ACCESS_KEY: 'a key for tests' };
}

afterEach(() => vi.restoreAllMocks());

describe('clocks that differ or change', () => {
  const argsFor = (day: Day) => [
    'GetBhavCopyCM',
    '--from',
    day,
    '--to',
    day,
    '--exchange',
    EXCHANGE,
    '--force',
  ];

  test('of two machines, the one that requests last has the last word, whatever its clock says', async () => {
    const day = lastTradingDay();
    const source = await growingSource(day);
    const { url } = await testDatabase();
    for (const ahead of [5, -5]) {
      const ended = await runCli(['backfill', ...argsFor(day)], {
        cwd: temporaryFolder(),
        env: machine(url, source.url, ahead * MINUTES),
      });
      expect(ended).toMatchObject({ code: 0 });
    }
    expect(await stored(url)).toEqual([{ rows: 22, price: 102 }]);
  });

  test('a clock that is put back while workers run is noticed with the next call', async () => {
    const day = lastTradingDay();
    const source = await growingSource(day);
    const { url } = await testDatabase();
    let ahead = 5;
    const ownClock: Clock = { now: () => Date.now() + ahead * MINUTES };
    const pipeline = await openPipeline({
      databaseUrl: url,
      sourceUrl: source.url,
      clock: createSettableClock(ownClock),
    });
    const request = backfill({
      operations: ['GetBhavCopyCM'],
      exchanges: [EXCHANGE],
      from: day,
      to: day,
      force: true,
    });
    for (ahead of [5, -5]) expect(await runToEnd(pipeline, request)).toMatchObject({ state: 'completed' });
    expect(await stored(url)).toEqual([{ rows: 22, price: 102 }]);
  });

  test('a clock that is set to another date is used as it is, with a warning', async () => {
    const source = await growingSource(lastTradingDay());
    const { url } = await testDatabase();
    const { code, stdout, stderr } = await runCli(['nightly', '--dry-run', '--json'], {
      cwd: temporaryFolder(),
      env: machine(url, source.url, -2 * DAYS),
    });
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('more than an hour off'),
    });
    const days = [...stdout.matchAll(/"(?:from|to)": "(.*)"/g)].map(([, day = '']) => day);
    vi.restoreAllMocks();
    const twoDaysAgo = addDays(today(systemClock, 'Asia/Kolkata'), -2);
    expect(days).not.toEqual([]);
    expect(days.filter((day) => day > twoDaysAgo)).toEqual([]);
  });
});
