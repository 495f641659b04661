import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { dayAt, eachDay } from '../../../src/core/days.ts';
import { startRun } from '../../../src/jobs/runs/run-control.ts';
import { startWorker } from '../../../src/jobs/worker/worker.ts';
import { clockFrom } from '../../reliability/support.ts';
import { checkFold } from '../../support/chaos/fold.ts';
import { randomFrom } from '../../support/chaos/random.ts';
import { testDatabase } from '../../support/database.ts';
import { startServer } from '../../support/http-server.ts';
import { backfill, ended, openPipeline, start } from '../../support/pipeline.ts';
import { replay } from '../../support/replay-support.ts';
import { waitFor } from '../../support/wait-for.ts';

const SEED = Number(process.env.OVERLAP_SEED ?? 20_250_912);
const SYMBOLS = 12;
/**
 * At most so many are missing in a response, so that none of its withdrawals is withheld. A day that once had 12 rows
 * has at least 10, and at least 8 of these are listed again: 4 fewer than 12, and up to 5 may be. With one more it
 * would be 9, and only 6 listed again.
 */
const MOST_MISSING = 2;

/** A source with another response to each request, and the requests that it got at the same time. */
async function startChangingSource() {
  const random = randomFrom(SEED);
  const below = (limit: number) => Math.floor(random() * limit);
  let release = () => {};
  // The response to the first call for a range comes when the test wants it to.
  const gates = [
    new Promise<void>((resolve) => {
      release = resolve;
    }),
  ];
  const source = { url: '', requests: 0, atOnce: 0, release };
  const underWay = new Map<string, number>();
  const record = (operation: string, day: string, symbol: number) => {
    const [year, month, date] = day.split('-');
    const onDay = `${month}-${date}-${year}`;
    const saved = { SavedAt: `${onDay} 21:0${below(4)}:00` };
    const name = `S${symbol}`;
    return operation === 'GetBhavCopyCM'
      ? { TradDt: onDay, Src: 'NSE', Symbol: name, SctySrs: 'EQ', ClosePrice: below(9), ...saved }
      : {
          ChangeDate: onDay,
          ScripId: name,
          ScripName: `V${below(9)}`,
          PrevSeries: 'EQ',
          ToSeries: 'BE',
          ...saved,
        };
  };
  source.url = await startServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://source');
    const requestText = `${url.pathname}?${url.searchParams}`;
    const now = (underWay.get(requestText) ?? 0) + 1;
    underWay.set(requestText, now);
    source.requests += 1;
    source.atOnce = Math.max(source.atOnce, now);
    const operation = url.pathname.split('/').at(-1) ?? '';
    const param = (name: string) =>
      [...url.searchParams].find(([key]) => key.toLowerCase() === name)?.[1] ?? '';
    const day = (name: string) => dayAt(Number(param(name)), 'Asia/Kolkata');
    const value = eachDay(day('from'), day('to')).flatMap((day) => {
      const missing = new Set(Array.from({ length: below(MOST_MISSING + 1) }, () => below(SYMBOLS)));
      return Array.from({ length: SYMBOLS }, (_, symbol) => symbol)
        .filter((symbol) => !missing.has(symbol))
        .map((symbol) => record(operation, day, symbol));
    });
    // A record that cannot be read: the response then lists nothing in full.
    if (source.requests % 5 === 0)
      value.push({ ...record(operation, day('from'), 99), ClosePrice: 'x', ScripName: ['x'] } as never);
    // Not waited for anything: calls take their time.
    await sleep(below(60));
    if (operation === 'GetSeriesChange') await gates.shift();
    underWay.set(requestText, (underWay.get(requestText) ?? 0) - 1);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ Value: value }));
  });
  return source;
}

/** A busy machine takes its time. */
const PATIENCE_MS = 100_000;

const OPERATIONS = ['GetBhavCopyCM', 'GetSeriesChange'];
const REQUESTED = { operations: OPERATIONS, exchanges: ['NSE'], force: true };

test('runs whose ranges overlap, at once, end in what was covered last', async () => {
  const source = await startChangingSource();
  const { url } = await testDatabase();
  const pipeline = await openPipeline({
    databaseUrl: url,
    sourceUrl: source.url,
    clock: clockFrom('2025-09-20T22:02:00+05:30'),
  });
  const runs = [
    await start(pipeline, backfill({ ...REQUESTED, from: '2025-09-01', to: '2025-09-08' })),
    await start(pipeline, backfill({ ...REQUESTED, from: '2025-09-04', to: '2025-09-12' })),
    await start(pipeline, backfill({ ...REQUESTED, from: '2025-09-05', to: '2025-09-05' })),
    ...(await Promise.all(
      ['03', '06', '07', '10'].map((to) =>
        start(
          pipeline,
          backfill({
            ...REQUESTED,
            operations: ['GetSeriesChange'],
            from: '2025-09-02',
            to: `2025-09-${to}`,
          }),
        ),
      ),
    )),
    await startRun(
      pipeline,
      { ...backfill({ ...REQUESTED, from: '2025-09-03', to: '2025-09-10' }), kind: 'nightly' },
      { tick: 'tonight', requestedBy: 'schedule' },
    ),
  ];
  for (let each = 0; each < 3; each += 1) {
    const worker = await startWorker(pipeline);
    onTestFinished(() => worker.stop(500));
  }
  const ofRanges = "select from etl.loads where operation = 'GetSeriesChange'";
  await waitFor(async () => ((await pipeline.db.pool.query(ofRanges)).rowCount ?? 0) > 1, {
    what: 'a response that was requested later',
    timeoutMs: PATIENCE_MS,
  });
  source.release();
  const reports = await Promise.all(
    runs.map(async (run, at) => {
      if (at === 1) await ended(pipeline, runs[2] ?? 0, PATIENCE_MS).then(() => replay(pipeline, {}));
      return ended(pipeline, run ?? 0, PATIENCE_MS);
    }),
  );
  let requests = 0;
  for (const report of reports) {
    const { inserted, updated, unchanged, stale, duplicate, rejected } = report;
    expect(report).toMatchObject({ state: 'completed', windows: { failed: 0, open: 0 } });
    expect(report.fetched).toBe(inserted + updated + unchanged + stale + duplicate + rejected);
    requests += report.requests;
  }
  expect(source).toMatchObject({ atOnce: 1, requests });
  const all = async (text: string) => (await pipeline.db.pool.query(text)).rows;
  // Withheld withdrawals would leave rows that the fold does not have.
  expect(
    await all("select table_name, day, unlisted_rows from etl.withdrawals where state = 'withheld'"),
  ).toEqual([]);
  expect(await checkFold(url)).toEqual([]);

  // There were responses that came late, rejects and withdrawals.
  const [happened] = await all(`
    select (select count(*) from etl.loads l where exists (
        select from etl.loads o where o.operation = l.operation and o.position > l.position and o.state < l.state
           and o.from_date <= l.to_date and o.to_date >= l.from_date))::int as late,
      (select count(*) from etl.rejects)::int as rejects, (select count(*) from etl.withdrawals)::int as withdrawals`);
  expect(Object.values(happened), JSON.stringify(happened)).not.toContain(0);

  // Each day's coverage is what the last response about it held …
  const differing = await all(`
    select c.operation, c.day, c.state, c.records, last.window_id, c.window_id as by
      from etl.coverage c join lateral (
        select l.window_id from etl.loads l where l.operation = c.operation and c.day between l.from_date and l.to_date
           and l.run_id in (${runs.join()}) order by l.position desc limit 1) last on true
     where c.state <> 'loaded' or c.window_id <> last.window_id`);
  expect(differing).toEqual([]);
  // … and a reject is open only while the last response about its day holds it.
  const open = await all(`
    select j.operation, j.from_date, j.window_id from etl.rejects j where j.resolved_at is null and exists (
      select from etl.loads l join etl.loads own on own.window_id = j.window_id and own.run_id in (${runs.join()})
       where l.operation = j.operation and j.from_date between l.from_date and l.to_date and l.position > own.position
         and l.run_id in (${runs.join()}) and l.rejected = 0)`);
  expect(open).toEqual([]);
}, 120_000);
