import { copyFileSync, existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.ts';
import { syncTradingDays } from '../../../src/jobs/responses/sync-sessions.ts';
import { type Gaps, gapRequest, readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { readStatus } from '../../../src/jobs/runs/read-status.ts';
import { migrateDatabase } from '../../../src/migrate.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { DEFAULT_SETTINGS } from '../../../src/state/coverage/completeness.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import type { CoverageState } from '../../../src/state/registers.ts';
import { bhavSource } from '../../support/bhav-source.ts';
import { testDatabase } from '../../support/database.ts';
import { backfill, openPipeline, runToEnd } from '../../support/pipeline.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const at = (time: string): Clock => ({ now: () => Date.parse(`${time}:00+05:30`) });

async function pipelineAt(clock: Clock, databaseUrl?: string) {
  const url = databaseUrl ?? (await testDatabase()).url;
  return openPipeline({ databaseUrl: url, clock });
}
type Pipeline = Awaited<ReturnType<typeof pipelineAt>>;

async function cover(
  { db }: Pick<Pipeline, 'db'>,
  operation: string,
  exchange: string,
  days: Record<
    string,
    CoverageState | [CoverageState, { instrument?: string; variant?: string; diagnostic?: string }]
  >,
) {
  await writeCoverage(db.drizzle, {
    operation,
    exchange,
    runId: 1,
    windowId: null,
    position: await takePosition(db.drizzle),
    coverage: Object.entries(days).map(([day, known]) => {
      const [state, facts] = typeof known === 'string' ? [known, {}] : known;
      return { day: `2025-09-${day}`, instrument: '', variant: '', state, records: 100, ...facts };
    }),
  });
}

const spans = ({ gaps }: Pick<Gaps, 'gaps'>) =>
  gaps.map(({ operation, exchange, from, to, reason }) => `${operation} ${exchange} ${from} ${to} ${reason}`);

describe('why a trading day is not there', () => {
  test('every reason, on trading days only, and nothing before its publication', async () => {
    const pipeline = await pipelineAt(at('2025-09-11T20:00'));
    await cover(pipeline, 'GetBhavCopyCM', 'NSE', {
      '01': 'loaded',
      '02': ['failed', { diagnostic: 'it broke' }],
      '03': ['blocked', { diagnostic: 'Date is out of allowed range.' }],
      '04': ['loaded', { instrument: 'TCS' }],
      '05': 'empty',
      '06': 'failed',
      '08': 'not_published',
      '10': 'loaded',
    });
    const scope = { operations: [operationNamed('GetBhavCopyCM')], exchanges: ['NSE'] };
    const gaps = await readGaps(pipeline, scope);
    const expected = [
      'GetBhavCopyCM NSE 2025-09-02 2025-09-02 failed',
      'GetBhavCopyCM NSE 2025-09-03 2025-09-03 beyond_history',
      'GetBhavCopyCM NSE 2025-09-04 2025-09-04 partial',
      'GetBhavCopyCM NSE 2025-09-05 2025-09-05 empty',
      'GetBhavCopyCM NSE 2025-09-08 2025-09-08 not_published',
      'GetBhavCopyCM NSE 2025-09-09 2025-09-09 not_requested',
    ];
    expect(spans(gaps)).toEqual(expected);
    expect(gaps).toMatchObject({ from: '2025-09-01', to: '2025-09-10', total: 6 });
    expect(gaps.gaps[0]?.detail).toBe('it broke');
    expect(spans({ gaps: gaps.pending })).toEqual(['GetBhavCopyCM NSE 2025-09-11 2025-09-11 not_published']);

    const published = await pipelineAt(at('2025-09-11T21:15'), pipeline.db.url);
    const later = await readGaps(published, scope);
    expect(spans(later)).toEqual([...expected, 'GetBhavCopyCM NSE 2025-09-11 2025-09-11 not_requested']);
    expect(later.pending).toEqual([]);

    // Long afterwards, what nobody requested is beyond what the source keeps.
    const old = await pipelineAt(at('2026-03-02T20:00'), pipeline.db.url);
    const never = await readGaps(old, { ...scope, from: '2025-09-09', to: '2025-09-09' });
    expect(never.gaps).toMatchObject([{ reason: 'beyond_history' }]);
  });

  test('an empty trading day is complete where that is normal; one instrument is enough where no bhav copy says how many there are', async () => {
    const pipeline = await pipelineAt(at('2025-09-05T23:30'));
    await cover(pipeline, 'GetCircuitBreakers', 'NSE', {
      '01': 'loaded',
      '02': 'empty',
      '04': 'empty',
      '05': 'loaded',
    });
    const variant = 'eod/Standalone';
    await cover(pipeline, 'GetFinRatioEOD', 'BSE', {
      '03': ['loaded', { instrument: 'TCS', variant }],
      '04': ['failed', { instrument: 'TCS', variant }],
    });
    const operations = ['GetCircuitBreakers', 'GetFinRatioEOD'].map(operationNamed);
    expect(spans(await readGaps(pipeline, { operations }))).toEqual([
      'GetCircuitBreakers NSE 2025-09-03 2025-09-03 not_requested',
      'GetFinRatioEOD BSE 2025-09-04 2025-09-04 failed',
      'GetFinRatioEOD BSE 2025-09-05 2025-09-05 not_requested',
    ]);
  });

  test('what is awaited is no gap yet, and neither complete; of single instruments nothing is awaited', async () => {
    const pipeline = await pipelineAt(at('2025-09-05T23:30'));
    const variant = 'eod/Standalone';
    await cover(pipeline, 'GetSeriesChange', 'NSE', { '03': 'loaded', '04': 'not_published' });
    await cover(pipeline, 'GetFinRatioEOD', 'BSE', {
      '03': ['loaded', { instrument: 'TCS', variant }],
      '04': ['loaded', { instrument: 'TCS', variant }],
    });
    for (const instrument of ['A', 'B']) {
      await cover(pipeline, 'GetFinRatioEOD', 'BSE', {
        '04': ['not_published', { instrument, variant }],
        '05': ['not_published', { instrument, variant }],
      });
    }
    await cover(pipeline, 'GetFinRatioEOD', 'BSE', { '03': ['not_published', { instrument: 'A', variant }] });
    const operations = ['GetSeriesChange', 'GetFinRatioEOD'].map(operationNamed);
    const soon = await readGaps(pipeline, { operations });
    expect(spans(soon)).toEqual(['GetSeriesChange NSE 2025-09-05 2025-09-05 not_requested']);
    expect(spans({ gaps: soon.pending })).toEqual([
      'GetFinRatioEOD BSE 2025-09-04 2025-09-05 not_published',
      'GetSeriesChange NSE 2025-09-04 2025-09-04 not_published',
    ]);
    // Nothing was requested again: after the nights that look back it is missing.
    const late = await readGaps(await pipelineAt(at('2025-09-12T23:30'), pipeline.db.url), {
      operations,
      to: '2025-09-05',
    });
    expect(spans(late)).toContain('GetFinRatioEOD BSE 2025-09-04 2025-09-05 not_published');
    expect(late.pending).toEqual([]);
  });

  test('of GetFinancialRatios it is the last days of quarters that should be there, from the day on', async () => {
    const scope = { operations: [operationNamed('GetFinancialRatios')] };
    const cover2025 = async (pipeline: Pipeline, day: string, states: Record<string, CoverageState>) =>
      writeCoverage(pipeline.db.drizzle, {
        operation: 'GetFinancialRatios',
        exchange: 'BSE',
        runId: 1,
        windowId: null,
        position: await takePosition(pipeline.db.drizzle),
        coverage: Object.entries(states).map(([instrument, state]) => ({
          day,
          instrument,
          variant: 'quarter/Standalone',
          state,
          records: 1,
        })),
      });
    const may = await pipelineAt(at('2025-05-20T23:30'));
    expect(spans(await readGaps(may, scope))).toEqual([
      'GetFinancialRatios BSE 2025-03-31 2025-03-31 not_requested',
    ]);
    await cover2025(may, '2025-03-31', { A: 'not_published', B: 'not_published', C: 'loaded' });
    const awaited = await readGaps(may, scope);
    expect([spans(awaited), spans({ gaps: awaited.pending })]).toEqual([
      [],
      ['GetFinancialRatios BSE 2025-03-31 2025-03-31 not_published'],
    ]);
    const { operations } = await readStatus(may);
    const ratios = operations.find(({ operation }) => operation === 'GetFinancialRatios');
    expect(ratios).toMatchObject({ isLate: false });
    await cover2025(may, '2025-03-31', { B: 'loaded' });
    expect(await readGaps(may, scope)).toMatchObject({ gaps: [], pending: [] });
    // The days of the next quarters become due one by one; gaps of quarters are requested as such.
    const november = await pipelineAt(at('2025-11-20T23:30'), may.db.url);
    const gaps = await readGaps(november, scope);
    expect(spans(gaps)).toEqual(['GetFinancialRatios BSE 2025-06-30 2025-09-30 not_requested']);
    expect(gapRequest(gaps.gaps).targets).toMatchObject([{ from: '2025-06-30', to: '2025-09-30' }]);
  });

  test('weekly operations are due on their weekday; undated ones are missing until they were loaded once', async () => {
    // Friday the fifth: the pledges of this week are requested on Saturday.
    const pipeline = await pipelineAt(at('2025-09-05T23:30'));
    await cover(pipeline, 'GetConsolidatedPledge', 'BSE', { '01': 'empty' });
    const operations = ['GetConsolidatedPledge', 'GetCorporateActionsCategories'].map(operationNamed);
    const friday = await readGaps(pipeline, { operations });
    expect(spans(friday)).toEqual(['GetCorporateActionsCategories BSE 2025-08-29 2025-08-29 not_requested']);
    // Requested and not there, it says what came of that.
    for (const [state, reason] of Object.entries({
      failed: 'failed',
      not_published: 'empty',
      empty: 'empty',
    })) {
      await cover(pipeline, 'GetCorporateActionsCategories', 'BSE', { '02': state as CoverageState });
      expect(spans(await readGaps(pipeline, { operations }))).toEqual([
        `GetCorporateActionsCategories BSE 2025-08-29 2025-08-29 ${reason}`,
      ]);
    }
    await cover(pipeline, 'GetCorporateActionsCategories', 'BSE', { '03': 'loaded' });
    const saturday = await pipelineAt(at('2025-09-06T23:30'), pipeline.db.url);
    expect(spans(await readGaps(saturday, { operations }))).toEqual([
      'GetConsolidatedPledge BSE 2025-09-02 2025-09-05 not_requested',
    ]);
  });

  test('an exchange that is not scheduled is checked only between the days that were loaded of it', async () => {
    const pipeline = await pipelineAt(at('2025-09-11T23:30'));
    await cover(pipeline, 'GetTop5GainersLosers', 'NSE', { '01': 'loaded', '02': 'empty', '03': 'loaded' });
    const gaps = await readGaps(pipeline, {
      operations: [operationNamed('GetTop5GainersLosers')],
      exchanges: ['NSE'],
      to: '2025-09-04',
    });
    expect(spans(gaps)).toHaveLength(2);
    const all = await readGaps(pipeline, {
      operations: [operationNamed('GetTop5GainersLosers')],
      from: '2025-09-01',
    });
    expect(spans(all).filter((gap) => gap.includes('NSE'))).toEqual([
      'GetTop5GainersLosers NSE 2025-09-02 2025-09-02 empty',
    ]);
  });
});

test('the view and the status say the same as the gaps, as of the trading day’s publication', async () => {
  const pipeline = await openPipeline({});
  const tradingDays = pipeline.calendar.lastTradingDays('BSE', '2025-02-21', 25);
  await writeCoverage(pipeline.db.drizzle, {
    operation: 'GetTotalTradeHighlights',
    exchange: 'BSE',
    runId: 1,
    windowId: null,
    position: await takePosition(pipeline.db.drizzle),
    coverage: tradingDays
      .filter((_, index) => index !== 20)
      .map((day, index) => ({
        day,
        instrument: '',
        variant: '',
        state: 'loaded' as const,
        records: 100 + index,
      })),
  });
  const operations = [operationNamed('GetTotalTradeHighlights')];
  const gaps = await readGaps(pipeline, { operations, to: '2025-02-21' });
  expect(gaps.gaps).toMatchObject([{ from: tradingDays[20], to: tradingDays[20], sessions: 1 }]);
  const view = await pipeline.db.pool.query<{ day: string }>(
    `select to_char(day, 'YYYY-MM-DD') as day from etl.completeness
        where operation = 'GetTotalTradeHighlights' and state = 'missing' and day <= '2025-02-21'`,
  );
  expect(view.rows).toEqual([{ day: tradingDays[20] }]);

  const of = async (time: string) => {
    const status = await readStatus({ ...pipeline, clock: at(time) });
    return status.operations.find(({ operation }) => operation === 'GetTotalTradeHighlights');
  };
  expect(await of('2025-02-21T23:00')).toMatchObject({
    lastComplete: '2025-02-21',
    lastDue: '2025-02-21',
    isLate: false,
    missingSessions: 1,
    // Of all before the last, 100 to 122.
    lastRecords: 123,
    medianRecords: 111,
    suspiciousWindows: 0,
    openRejects: 0,
  });
  // Saturday and Sunday make nothing late, nor does Monday before its publication.
  expect(await of('2025-02-24T20:00')).toMatchObject({ isLate: false, lastDue: '2025-02-21' });
  expect(await of('2025-02-24T22:00')).toMatchObject({
    isLate: true,
    lastDue: '2025-02-24',
    lastComplete: '2025-02-21',
    missingSessions: 2,
  });
});

test('etl.completeness explains every column and follows the settings it is made with', async () => {
  const pipeline = await pipelineAt(systemClock);
  const { db } = pipeline;
  await syncTradingDays(pipeline);
  const bare = await db.pool.query(
    `select attname from pg_attribute where attrelid = 'etl.completeness'::regclass and attnum > 0
          and col_description(attrelid, attnum) is null
       union all select 'the view' where obj_description('etl.completeness'::regclass) is null`,
  );
  expect(bare.rows).toEqual([]);
  const exchanges = async () => {
    const result = await db.pool.query<{ exchange: string }>(
      'select distinct exchange from etl.completeness order by 1',
    );
    return result.rows.map(({ exchange }) => exchange);
  };
  // Without a key nobody expects anything.
  expect(await exchanges()).toEqual([]);
  const settings = { ...DEFAULT_SETTINGS, EOD_ACCESS_KEY: 'a key' };
  await migrateDatabase(db, settings);
  expect(await exchanges()).toEqual(['BSE', 'NSE']);
  await migrateDatabase(db, { ...settings, EOD_EXCHANGES: ['NSE'] });
  expect(await exchanges()).toEqual(['NSE']);
  await migrateDatabase(db);
  expect(await exchanges()).toEqual([]);
});

describe('etl.sessions', () => {
  test('follows the calendar and is left alone when it does already', async () => {
    const pipeline = await pipelineAt(at('2025-09-11T20:00'));
    const contents = () =>
      pipeline.db.pool.query('select exchange, day, kind, xmin from etl.sessions order by 1, 2');
    await syncTradingDays(pipeline);
    const first = (await contents()).rows;
    expect(first.length).toBeGreaterThan(5_000);
    await syncTradingDays(pipeline);
    expect((await contents()).rows).toEqual(first);
    await pipeline.db.pool.query("update etl.sessions set kind = 'special' where day = '2025-09-11'");
    await pipeline.db.pool.query("insert into etl.sessions values ('NSE', '2025-09-13', 'session')");
    await syncTradingDays(pipeline);
    const kinds = await pipeline.db.pool.query(
      "select kind from etl.sessions where day between '2025-09-11' and '2025-09-14'",
    );
    expect(kinds.rows.map((row) => row.kind)).toEqual(['session', 'session', 'session', 'session']);
  });
});

const FOLDER = resolve('../shared/data/bhavcopy');

describe.runIf(existsSync(FOLDER))('a file taken out of the folder of real bhav copies', () => {
  test('is named, and filled with one call once it is back', async () => {
    const holed = temporaryFolder();
    for (const name of readdirSync(FOLDER)) {
      if (name.includes('_BSE_') && !name.includes('20250909'))
        copyFileSync(join(FOLDER, name), join(holed, name));
    }
    const { url } = await testDatabase();
    const pipelineOf = (folder: string) => openPipeline({ databaseUrl: url, sandbox: bhavSource(folder) });
    const before = await pipelineOf(holed);
    const week = { from: '2025-09-05', to: '2025-09-11' };
    await runToEnd(before, backfill({ ...week, operations: ['GetBhavCopyCM'], exchanges: ['BSE'] }));
    const scope = { operations: [operationNamed('GetBhavCopyCM')], exchanges: ['BSE'], to: week.to };
    const gaps = await readGaps(before, scope);
    expect(spans(gaps)).toEqual(['GetBhavCopyCM BSE 2025-09-09 2025-09-09 empty']);

    const after = await pipelineOf(FOLDER);
    const filled = await runToEnd(after, gapRequest(gaps.gaps));
    expect(filled).toMatchObject({ kind: 'gap_fill', state: 'completed', requests: 1 });
    expect(filled.inserted).toBeGreaterThan(4_000);
    expect((await readGaps(after, scope)).total).toBe(0);
  });
});

test('the trading days of a segment are those of its exchange, also one that a bhav copy has shown', async () => {
  const pipeline = await pipelineAt(at('2025-09-16T20:00'));
  await pipeline.db.pool.query(
    `insert into etl.sessions (exchange, day, kind) values ('BSE', '2025-09-14', 'observed')`,
  );
  await cover(pipeline, 'GetBhavCopyCM', 'BFO', { '11': 'loaded' });
  const scope = { operations: [operationNamed('GetBhavCopyCM')], from: '2025-09-11', to: '2025-09-15' };
  expect(spans(await readGaps(pipeline, { ...scope, exchanges: ['BFO'] }))).toEqual([
    'GetBhavCopyCM BFO 2025-09-12 2025-09-15 not_requested',
  ]);
  const daysOf = async (exchange: string) =>
    (await readGaps(pipeline, { ...scope, exchanges: [exchange] })).gaps.map(({ sessions }) => sessions);
  expect([await daysOf('BFO'), await daysOf('NFO')]).toEqual([[3], [3]]);
});
