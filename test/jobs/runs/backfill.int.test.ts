import { beforeAll, describe, expect, test } from 'vitest';
import { addDays, eachDay } from '../../../src/core/days.ts';
import { forecastRun } from '../../../src/jobs/runs/forecast.ts';
import { planInput } from '../../../src/jobs/runs/plan-input.ts';
import { planKnown } from '../../../src/jobs/runs/plan-run.ts';
import { defaultOperations } from '../../../src/operations/index.ts';
import { tables } from '../../../src/operations/registry.ts';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import { openStore } from '../../support/import-support.ts';
import {
  backfill,
  countsOf,
  marketContents,
  mostly,
  openPipeline,
  type Pipeline,
  runToEnd,
} from '../../support/pipeline.ts';
import { fetched, records } from '../../support/replay-support.ts';
import { openSandbox } from '../../support/sandbox.ts';

/** A Wednesday evening in India, after publication: the same for the pipeline and the source. */
const clock = { now: () => Date.parse('2025-09-10T22:05:00+05:30') };
const WEEK = { from: '2025-09-01', to: '2025-09-05' };
const TRADING_DAYS = 5;
const INSTRUMENTS = 2;

describe.each(mostly('postgres'))('a backfill of everything, the queue in %s', (backend) => {
  let sandbox: Sandbox;
  let pipeline: Pipeline;
  beforeAll(async () => {
    sandbox = await openSandbox({ clock, instrumentsPerExchange: 30 });
    pipeline = await openPipeline({
      sourceUrl: sandbox.url,
      backend,
      clock,
      settings: { EOD_INSTRUMENT_LIMIT: String(INSTRUMENTS) },
    });
  });

  const rowsOf = async (query: string) => (await pipeline.db.pool.query(query)).rows;

  test('loads all operations, and its counts add up', async () => {
    const report = await runToEnd(pipeline, backfill(WEEK));
    expect(report).toMatchObject({ state: 'completed', failures: [], rejected: 0, error: null });
    expect(report.windows).toMatchObject({ failed: 0, blocked: 0, cancelled: 0, skipped: 1, open: 0 });
    expect(new Set(report.operations.map((operation) => operation.operation))).toEqual(
      new Set(defaultOperations.map((operation) => operation.name)),
    );
    const byName = (name: string) => report.operations.filter((operation) => operation.operation === name);
    expect(byName('GetBhavCopyCM').map((operation) => operation.windows.loaded)).toEqual([
      TRADING_DAYS,
      TRADING_DAYS,
    ]);
    // Both natures of each trading day; the snapshot is of today alone. The quarter they lie in has not ended.
    expect(byName('GetFinRatioEOD')[0]?.windows.total).toBe(INSTRUMENTS * 2 * TRADING_DAYS);
    expect(byName('GetFinancialRatios')[0]?.windows).toMatchObject({ total: 1, skipped: 1 });
    expect(byName('GetFinRatioSnapshot')[0]?.windows.total).toBe(INSTRUMENTS * 2);
    expect(report.requests).toBe(sandbox.stats().requests);
    expect(report.requests).toBe(report.windows.total - 1);
    for (const counts of [report, ...report.operations]) {
      const { inserted, updated, unchanged, stale, duplicate, rejected } = counts;
      expect(counts.fetched).toBe(inserted + updated + unchanged + stale + duplicate + rejected);
    }
    const contents = await marketContents(pipeline);
    // What is computed of corporate actions is inserted by no window.
    const loaded = tables.filter(({ name }) => name !== 'corporate_events');
    const rows = loaded.reduce((sum, { name }) => sum + (contents[name]?.rows ?? 0), 0);
    expect(rows).toBe(report.inserted);
    expect(contents.bhavcopy_cm?.rows).toBeGreaterThan(TRADING_DAYS * 2 * 20);
    expect(await rowsOf("select * from etl.coverage where state not in ('loaded', 'empty')")).toEqual([]);
  });

  test('instruments nobody named are those with the largest turnover of the newest bhav copy', async () => {
    const largest = await rowsOf(
      `select symbol from market.bhavcopy_cm where exchange = 'BSE' and trade_date = '${WEEK.to}'
        group by symbol order by sum(turnover) desc, symbol limit ${INSTRUMENTS}`,
    );
    const symbols = await rowsOf(
      "select distinct instruments[1] as symbol from etl.windows where operation = 'GetFinRatioEOD'",
    );
    expect(symbols).toHaveLength(INSTRUMENTS);
    expect(symbols).toEqual(expect.arrayContaining(largest));
  });

  test('a second time skips every trading day that is loaded, without one request', async () => {
    const before = { requests: sandbox.stats().requests, market: await marketContents(pipeline) };
    const report = await runToEnd(pipeline, backfill(WEEK));
    expect(report).toMatchObject({ state: 'completed', requests: 0, fetched: 0 });
    expect(report.windows.skipped).toBe(report.windows.total);
    expect(new Set(report.operations.map((operation) => operation.operation)).size).toBe(
      defaultOperations.length,
    );
    expect(report.skips.every((skip) => /^(loaded already|nothing to request)/.test(skip.reason))).toBe(true);
    expect({ requests: sandbox.stats().requests, market: await marketContents(pipeline) }).toEqual(before);
  });

  test('by force requests all of it again and changes nothing', async () => {
    const before = { requests: sandbox.stats().requests, market: await marketContents(pipeline) };
    const revisions =
      'select symbol, trade_date, revision, run_id, xmin::text from market.bhavcopy_cm order by 1, 2, 3, 5';
    const stored = await rowsOf(revisions);
    const report = await runToEnd(pipeline, backfill({ ...WEEK, force: true, operations: RANGED }));
    expect(report).toMatchObject({ state: 'completed', inserted: 0, updated: 0, rejected: 0 });
    expect(report.unchanged).toBe(report.fetched);
    expect(report.fetched).toBeGreaterThan(0);
    expect(sandbox.stats().requests).toBe(before.requests + report.windows.total);
    expect(await marketContents(pipeline)).toEqual(before.market);
    expect(await rowsOf(revisions)).toEqual(stored);
  });

  test('a longer range requests only what is new', async () => {
    const report = await runToEnd(
      pipeline,
      backfill({ from: WEEK.from, to: '2025-09-08', operations: ['GetBhavCopyCM'], exchanges: ['NSE'] }),
    );
    expect(countsOf(report).windows).toMatchObject({ loaded: 1, skipped: TRADING_DAYS });
  });

  test('named instruments are requested and covered one by one', async () => {
    const [first] = await rowsOf("select symbol from market.bhavcopy_cm where exchange = 'NSE' limit 1");
    const request = backfill({
      from: '2025-08-29',
      to: '2025-08-29',
      operations: ['GetBhavCopyCM'],
      exchanges: ['NSE'],
      instruments: [first.symbol, 'NO SUCH & CO'],
    });
    expect((await runToEnd(pipeline, request)).windows).toMatchObject({ total: 1, loaded: 1 });
    expect(
      await rowsOf("select instrument, state from etl.coverage where day = '2025-08-29' order by state"),
    ).toEqual([
      { instrument: 'NO SUCH & CO', state: 'empty' },
      { instrument: first.symbol, state: 'loaded' },
    ]);
  });
});

/** Operations whose windows do not depend on which instruments are the largest today. */
const RANGED = defaultOperations
  .filter((operation) => operation.windows.per !== 'instrument')
  .map((operation) => operation.name);

test('a plan reads what is known of its own days and instruments, however much else is known', async () => {
  const context = await openPipeline({});
  const [from, to] = ['2025-09-01', '2025-09-05'];
  const names = Array.from({ length: 60 }, (_, at) => `S${at}`);
  for (const operation of ['GetFinRatioEOD', 'GetBhavCopyCM']) {
    const entries = eachDay(addDays(from, -60), to).flatMap((day) =>
      names.map((instrument) => ({ day, instrument, variant: '', state: 'loaded', records: 1 }) as const),
    );
    await writeCoverage(context.db.drizzle, {
      operation,
      exchange: 'BSE',
      runId: 1,
      windowId: null,
      position: await takePosition(context.db.drizzle),
      coverage: entries,
    });
  }
  const known = async (operation: string, instruments: string[], refetchFrom: string | null = null) => {
    const target = { operation, exchange: 'BSE', from, to, refetchFrom };
    const input = await planInput(
      context,
      { kind: 'backfill', instruments, options: {}, live: false },
      target,
    );
    return [...input.covered].map(([request, who]) => `${request} ${who}`).sort();
  };
  const week = eachDay(from, to);
  const of = (days: readonly string[], who: string) => days.map((day) => `${day}| ${who}`);
  expect(await known('GetFinRatioEOD', ['S7'])).toEqual(of(week, 'all'));
  expect(await known('GetBhavCopyCM', ['S7'])).toEqual(of(week, 'all'));
  expect(await known('GetBhavCopyCM', ['new', 'S7', 'S8'])).toEqual(of(week, '6'));
  expect(await known('GetBhavCopyCM', [])).toEqual([]);
  expect(await known('GetFinRatioEOD', ['S7'], week[1])).toEqual(of(week.slice(0, 1), 'all'));
});

test('instruments are requested as the exchange spells them, so that no case makes a second one of them', async () => {
  const context = await openStore();
  await fetched(1, [
    ...records(0, 2),
    ...records(2, 4).map((record, at) => ({ ...record, Symbol: ['Mixed', 'TCS'][at] })),
  ])(context);
  const plannedFor = async (exchange: string, instruments: string[]) => {
    const target = {
      operation: 'GetFinRatioEOD',
      exchange,
      from: '2025-08-29',
      to: '2025-08-29',
      refetchFrom: null,
    };
    return (await planInput(context, { kind: 'backfill', instruments, options: {}, live: false }, target))
      .instruments;
  };
  expect(await plannedFor('NSE', ['tcs', 'TCS', 's001', 'Mixed', 'mixed', 'Nifty 50'])).toEqual([
    'TCS',
    'S001',
    'Mixed',
    'Nifty 50',
  ]);
  expect(await plannedFor('BSE', ['tcs'])).toEqual(['tcs']);
});

test('years of a few hundred instruments are planned, however many windows that makes', async () => {
  const context = await openPipeline({});
  const request = backfill({
    from: '2024-01-01',
    to: '2025-06-30',
    operations: ['GetFinRatioEOD'],
    exchanges: ['BSE'],
    instruments: Array.from({ length: 300 }, (_, at) => `S${at}`),
  });
  const tradingDays = context.calendar.tradingDays('BSE', '2024-01-01', '2025-06-30').length;
  expect(await forecastRun(context, request)).toMatchObject({ requests: 300 * 2 * tradingDays });
  // Gaps of one operation and exchange are counted together, and once.
  const gaps = request.targets.flatMap((target) => [
    { ...target, to: '2024-12-31' as const },
    { ...target, from: '2025-01-01' as const },
  ]);
  const { requests, operations } = await forecastRun(context, { ...request, targets: gaps });
  expect(requests).toBe(300 * 2 * tradingDays);
  expect(operations).toEqual([
    expect.objectContaining({ operation: 'GetFinRatioEOD', exchange: 'BSE', requests }),
  ]);
  const later = await planKnown(context, request, request.targets);
  expect([...later.windows]).toHaveLength(300 * 2 * tradingDays);
});
