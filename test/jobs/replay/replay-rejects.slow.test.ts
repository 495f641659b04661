import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { resumeRun } from '../../../src/jobs/runs/run-control.ts';
import { transaction } from '../../../src/postgres/transaction.ts';
import { openRejects, readReject, writeRejects } from '../../../src/state/rejects.ts';
import { backfill, openPipeline, type Pipeline, runToEnd, workToEnd } from '../../support/pipeline.ts';
import { positionOf } from '../../support/position.ts';
import {
  fixReading,
  type Meddler,
  replay,
  replayAnew,
  type SourceRecord,
  startMeddler,
} from '../../support/replay-support.ts';
import { openSandbox } from '../../support/sandbox.ts';

const DAY = {
  from: '2025-09-12',
  to: '2025-09-12',
  operations: ['GetBhavCopyCM'],
  exchanges: ['NSE'],
  force: true,
};
const POSITION = 3;

/** Makes the record at one position, or at all, unreadable; and readable again. */
const spoil = (records: SourceRecord[]) => {
  const record = records[POSITION] as SourceRecord;
  record.ClosePrice = `about ${record.ClosePrice}`;
};
const spoilAll = (records: SourceRecord[]) => {
  for (const record of records) record.ClosePrice = `about ${record.ClosePrice}`;
};
const mend = (records: SourceRecord[]) => {
  for (const record of records) record.ClosePrice = Number(String(record.ClosePrice).replace('about ', ''));
};

let source: Meddler;
beforeAll(async () => {
  const sandbox = await openSandbox({ instrumentsPerExchange: 20 });
  source = await startMeddler(sandbox.url);
});

async function open(settings: Record<string, string> = {}): Promise<Pipeline> {
  return openPipeline({ sourceUrl: source.url, settings });
}

const rejectsOf = ({ db }: Pipeline) => openRejects(db.drizzle, {}, 100);
const rows = async ({ db }: Pipeline) =>
  (await db.pool.query<{ n: number }>('select count(*)::int as n from market.bhavcopy_cm')).rows[0]?.n ?? 0;

describe('a record that is rejected', () => {
  let pipeline: Pipeline;
  let all: number;
  beforeEach(async () => {
    pipeline = await open();
    source.meddle = spoil;
    const report = await runToEnd(pipeline, backfill(DAY));
    expect(report).toMatchObject({ state: 'completed', rejected: 1 });
    all = report.fetched;
  });

  test('stays open under its number while the code cannot read it', async () => {
    const before = await rejectsOf(pipeline);
    expect(before).toMatchObject([{ position: POSITION, problems: [{ path: 'ClosePrice' }] }]);
    for (let time = 0; time < 2; time++) {
      const report = await replay(pipeline, {}, { rejectsOnly: true });
      expect(report).toMatchObject({ state: 'completed', requests: 0, unchanged: all - 1, rejected: 1 });
      expect(await rejectsOf(pipeline)).toEqual(before);
    }
    expect(await rows(pipeline)).toBe(all - 1);
  });

  test('loads once the code can, and is resolved', async () => {
    const [before] = await rejectsOf(pipeline);
    await fixReading(pipeline, mend);
    const report = await replay(pipeline, {}, { rejectsOnly: true });
    expect(report).toMatchObject({ state: 'completed', inserted: 1, unchanged: all - 1, rejected: 0 });
    expect(await rejectsOf(pipeline)).toEqual([]);
    expect(await rows(pipeline)).toBe(all);
    const detail = await readReject(pipeline.db.drizzle, before?.id ?? 0);
    expect(detail?.resolvedAt).not.toBeNull();
    expect(detail?.responseId).not.toBeNull();
  });

  test('stays one however often it is sent, says when it was first and last, and is resolved once it is read', async () => {
    const [first] = await rejectsOf(pipeline);
    expect(first?.firstSeenAt).toBe(first?.lastSeenAt);
    for (let time = 0; time < 3; time++) {
      expect(await runToEnd(pipeline, backfill(DAY))).toMatchObject({ rejected: 1 });
    }
    const [last, ...more] = await rejectsOf(pipeline);
    expect(more).toEqual([]);
    expect(last).toMatchObject({ id: first?.id, firstSeenAt: first?.firstSeenAt, runId: 4 });
    expect(Date.parse(last?.lastSeenAt ?? '')).toBeGreaterThan(Date.parse(first?.firstSeenAt ?? ''));
    source.meddle = () => undefined;
    await runToEnd(pipeline, backfill(DAY));
    expect(await rejectsOf(pipeline)).toEqual([]);
    expect(await rows(pipeline)).toBe(all);
  });

  test('is open again under its number if it comes again after it was resolved, also after a replay into emptied tables', async () => {
    const [first] = await rejectsOf(pipeline);
    source.meddle = () => undefined;
    await runToEnd(pipeline, backfill(DAY));
    expect(await rejectsOf(pipeline)).toEqual([]);
    source.meddle = spoil;
    await runToEnd(pipeline, backfill(DAY));
    const listed = () =>
      pipeline.db.pool.query(
        'select id::int, run_id::int, first_seen_at, last_seen_at, resolved_at from etl.rejects order by id',
      );
    const before = (await listed()).rows;
    expect(before).toMatchObject([{ id: first?.id, run_id: 3, resolved_at: null }]);
    expect(before[0].first_seen_at).toEqual(new Date(first?.firstSeenAt ?? ''));
    await replayAnew(pipeline);
    expect((await listed()).rows).toEqual(before);
  });

  test('is resolved when it is no longer sent', async () => {
    source.meddle = (records) => {
      records.splice(POSITION, 1);
    };
    await runToEnd(pipeline, backfill(DAY));
    expect(await rejectsOf(pipeline)).toEqual([]);
  });

  test('is not resolved by a response that was not believed, nor by one about a part of the day', async () => {
    const before = await rejectsOf(pipeline);
    source.meddle = (records) => {
      records.splice(POSITION, 1);
      spoilAll(records);
    };
    expect(await runToEnd(pipeline, backfill(DAY))).toMatchObject({ state: 'failed' });
    expect((await rejectsOf(pipeline)).map(({ id }) => id)).toContain(before[0]?.id);
    source.meddle = () => undefined;
    await runToEnd(pipeline, backfill({ ...DAY, instruments: ['TCS'] }));
    expect(await rejectsOf(pipeline)).toHaveLength(all);
    await runToEnd(pipeline, backfill(DAY));
    expect(await rejectsOf(pipeline)).toEqual([]);
  });

  test('is not resolved by the replay of an older response', async () => {
    source.meddle = () => undefined;
    const other = await open();
    await runToEnd(other, backfill(DAY));
    source.meddle = spoil;
    await runToEnd(other, backfill(DAY));
    const before = await rejectsOf(other);
    expect(before).toHaveLength(1);
    await replay(other, {});
    expect(await rejectsOf(other)).toEqual(before);
  });
});

test('a day that failed because of its many rejects is loaded completely once the code can read it', async () => {
  const pipeline = await open();
  source.meddle = spoilAll;
  const report = await runToEnd(pipeline, backfill(DAY));
  expect(report).toMatchObject({ state: 'failed', windows: { failed: 1 } });
  expect(await rows(pipeline)).toBe(0);
  await fixReading(pipeline, (records) => mend(records.slice(0, -1)));
  const better = await replay(pipeline, { operations: ['GetBhavCopyCM'] });
  expect(better).toMatchObject({ state: 'completed', inserted: report.fetched - 1, rejected: 1 });
  expect(await rejectsOf(pipeline)).toHaveLength(1);
  const coverage = await pipeline.db.pool.query('select state, records::int from etl.coverage');
  expect(coverage.rows).toEqual([{ state: 'loaded', records: report.fetched - 1 }]);
});

test('the rejects of a window that failed are resolved once its run is resumed and it loads', async () => {
  const pipeline = await open();
  source.meddle = spoilAll;
  const { runId } = await runToEnd(pipeline, backfill(DAY));
  expect((await rejectsOf(pipeline)).length).toBeGreaterThan(10);
  source.meddle = () => undefined;
  await resumeRun(pipeline, runId);
  expect(await workToEnd(pipeline, runId)).toMatchObject({ state: 'completed', rejected: 0 });
  expect(await rejectsOf(pipeline)).toEqual([]);
});

test('a record is the same one in a response about more days; of another instrument it is another', async () => {
  const pipeline = await open();
  const spoilDay = (records: SourceRecord[]) => {
    for (const record of records) if (record.Date === '09-11-2025') record.Quantity = 'many';
  };
  source.meddle = spoilDay;
  const movers = { operations: ['GetTop5GainersLosers'], exchanges: ['BSE'], force: true };
  await runToEnd(pipeline, backfill({ ...movers, from: '2025-09-11', to: '2025-09-11' }));
  const before = await rejectsOf(pipeline);
  expect(new Set(before.map(({ from, to }) => `${from} ${to}`))).toEqual(new Set(['2025-09-11 2025-09-11']));
  await runToEnd(pipeline, backfill({ ...movers, from: '2025-09-08', to: '2025-09-12' }));
  const ids = (rejects: typeof before) => rejects.map(({ id }) => id).sort();
  expect(ids(await rejectsOf(pipeline))).toEqual(ids(before));
  source.meddle = (records) => {
    records.splice(0, records.length, { MarketCap: 'much', EPS: 1 });
  };
  const ratios = { operations: ['GetFinRatioEOD'], exchanges: ['BSE'], instruments: ['TCS', 'INFY'] };
  await runToEnd(pipeline, backfill({ ...ratios, from: '2025-09-11', to: '2025-09-11' }));
  const bare = (await rejectsOf(pipeline)).filter(({ operation }) => operation === 'GetFinRatioEOD');
  expect(bare).toHaveLength(4);
});

test('responses with the same rejects, loaded at the same time, keep each once for each operation', async () => {
  const { db } = await open();
  const windows = Array.from({ length: 8 }, (_, index) => index + 1);
  await db.pool.query(
    "insert into etl.runs (id, kind, requested_by, request, from_date, to_date) values (1, 'backfill', '', '{}', $1, $1)",
    [DAY.from],
  );
  await db.pool.query(
    `insert into etl.windows (id, run_id, operation, exchange, from_date, to_date, state)
     select id, 1, 'GetSeriesChange', 'NSE', $1, $1, 'running' from unnest($2::int[]) id`,
    [DAY.from, windows],
  );
  const records = Array.from({ length: 60 }, (_, number) => ({ ScripId: `S${number}`, ChangeDate: 'soon' }));
  const load = (windowId: number) =>
    transaction(db, (tx) =>
      writeRejects(
        tx,
        'NSE',
        ['GetSeriesChange', 'GetCircuitBreakers'].map((operation) => ({
          runId: 1,
          windowId,
          operation,
          ...{ from: DAY.from, to: DAY.to, instruments: [], variant: '' },
          // Each begins at another record, and the last ones are no longer sent in the odd ones.
          rejects: records
            .slice(0, windowId % 2 === 0 ? 60 : 50)
            .map((record, index, all) => all[(index + 7 * windowId) % all.length] ?? record)
            .map((record, position) => ({ position, record, problems: [] })),
          position: positionOf(Date.UTC(2025, 8, 12, 16, windowId)),
        })),
      ),
    );
  await Promise.all(windows.map(load));
  await load(8);
  const rejects = await openRejects(db.drizzle, {}, 200);
  expect(new Set(rejects.map(({ windowId }) => windowId))).toEqual(new Set([8]));
  expect(rejects).toHaveLength(2 * records.length);
});
