import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { Clock } from '../../../src/core/clock.ts';
import { planReplay } from '../../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../../src/jobs/replay/work-replay.ts';
import { readKept } from '../../../src/load/fold/fold.ts';
import { defaultOperations } from '../../../src/operations/index.ts';
import { tables } from '../../../src/operations/registry.ts';
import { databaseError } from '../../../src/postgres/database-errors.ts';
import { reportRun } from '../../../src/state/runs/reports.ts';
import { copyResponses } from '../../support/copy-responses.ts';
import { testDatabase } from '../../support/database.ts';
import { openStore } from '../../support/import-support.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../../support/pipeline.ts';
import { fetched, records, replay, rowsOf } from '../../support/replay-support.ts';

/** Friday evening, an hour after the data is out. */
const clock: Clock = (() => {
  const offset = Date.parse('2025-09-12T22:02:00+05:30') - Date.now();
  return { now: () => Date.now() + offset };
})();
const DAYS = { from: '2025-09-12', to: '2025-09-12' };

async function instrumentsOf({ db }: Pipeline) {
  const result = await db.pool.query('select * from market.instruments order by instrument_id');
  expect(result.rows.length).toBeGreaterThan(10);
  return result.rows;
}

async function coverageOf({ db }: Pipeline): Promise<unknown[]> {
  const result = await db.pool.query(
    `select operation, exchange, day::text, instrument, variant, state, records::int from etl.coverage
      where state <> 'holiday' order by 1, 2, 3, 4, 5`,
  );
  return result.rows;
}

const count = async ({ db }: Pipeline, source: string) =>
  (await db.pool.query<{ n: number }>(`select count(*)::int as n from ${source}`)).rows[0]?.n;

/** Responses of the source: corporate events are computed from these, and are no responses to copy. */
const FROM_SOURCE = "operation <> 'CorporateEvents'";

describe('all operations, corrected once and with an instrument missing once', () => {
  let url: string;
  let original: Pipeline;
  beforeAll(async () => {
    url = (await testDatabase()).url;
    const versions = [
      { instrumentsPerExchange: 20 },
      { instrumentsPerExchange: 20, revision: 1 },
      { instrumentsPerExchange: 19, revision: 1 },
    ];
    for (const version of versions) {
      original = await openPipeline({
        databaseUrl: url,
        sandbox: version,
        clock,
        settings: { EOD_INSTRUMENT_LIMIT: '2' },
      });
      const days = backfill({ ...DAYS, force: true });
      // The quarter of those days has not ended.
      const quarter = {
        from: '2025-06-30',
        to: '2025-06-30',
        operations: ['GetFinancialRatios'],
        force: true,
      };
      const targets = days.targets.concat(backfill(quarter).targets);
      const report = await runToEnd(original, { ...days, targets });
      expect(report.state).toBe('completed');
    }
  });

  test('the loads leave history, withdrawn rows and responses, each body once', async () => {
    expect(await count(original, 'market_history.bhavcopy_cm')).toBeGreaterThan(0);
    expect(await count(original, 'market_history.bhavcopy_cm where withdrawn')).toBeGreaterThan(0);
    expect(
      await count(original, `(select distinct operation from etl.responses where ${FROM_SOURCE}) o`),
    ).toBe(defaultOperations.length);
    const responses = await count(original, 'etl.responses');
    expect(await count(original, "etl.windows where state in ('loaded', 'empty', 'failed')")).toBe(responses);
    expect(await count(original, 'etl.response_bodies')).toBeLessThan(responses ?? 0);
    const kept = await original.db.pool.query('select to_jsonb(r)::text as text from etl.responses r');
    expect(kept.rows.filter(({ text }) => text.includes(original.config.EOD_ACCESS_KEY))).toEqual([]);
  });

  test('an empty database becomes the same, row for row, history and coverage included', async () => {
    const empty = await openPipeline({ clock });
    const copied = await copyResponses(original.db, empty.db);
    expect(copied).toBe(await count(original, `etl.responses where ${FROM_SOURCE}`));
    const report = await replay(empty, {});
    expect(report).toMatchObject({ kind: 'replay', state: 'completed', requests: 0 });
    for (const schema of ['market', 'market_history'] as const) {
      const [before, after] = [await rowsOf(original, schema), await rowsOf(empty, schema)];
      for (const { name } of tables) expect(after[name], `${schema}.${name}`).toEqual(before[name]);
    }
    expect(await instrumentsOf(empty)).toEqual(await instrumentsOf(original));
    expect(await coverageOf(empty)).toEqual(await coverageOf(original));
    const responses = `select operation, position, said, records, diagnostic, entries, is_suspicious, is_believed
      from etl.responses where ${FROM_SOURCE} order by position`;
    expect((await empty.db.pool.query(responses)).rows).toEqual(
      (await original.db.pool.query(responses)).rows,
    );
    const ofSource = tables.filter(({ name }) => name !== 'corporate_events');
    const rows = (await Promise.all(ofSource.map(({ name }) => count(empty, `market.${name}`)))).reduce(
      (a = 0, b = 0) => a + b,
    );
    expect(report).toMatchObject({ inserted: rows, updated: 0, unchanged: 0, withdrawn: 0 });
  });

  test('where everything is loaded already, a replay changes nothing', async () => {
    const responses = await count(original, 'etl.responses');
    const before = [await rowsOf(original, 'market'), await rowsOf(original, 'market_history')];
    const report = await replay(original, {});
    expect(report).toMatchObject({ state: 'completed', requests: 0, inserted: 0, updated: 0, withdrawn: 0 });
    expect(report.unchanged).toBeGreaterThan(0);
    expect([await rowsOf(original, 'market'), await rowsOf(original, 'market_history')]).toEqual(before);
    expect(await count(original, 'etl.responses')).toBe(responses);
  });

  test('an interrupted replay continues where it was, and two processes do not work on one run', async () => {
    const runId = (await planReplay(original, { operations: ['GetBhavCopyCM'] })) ?? 0;
    const stopped = new AbortController();
    stopped.abort();
    await workReplay(original, runId, stopped.signal);
    expect((await reportRun(original, runId)).state).toBe('running');
    const { signal } = new AbortController();
    const both = await Promise.allSettled([
      workReplay(original, runId, signal),
      workReplay(original, runId, signal),
    ]);
    expect(both.map((outcome) => outcome.status).sort()).toEqual(['fulfilled', 'rejected']);
    expect((await reportRun(original, runId)).state).toBe('completed');
  });

  test('a part does not wait for another one that is folded', async () => {
    const { pool } = original.db;
    const runId = (await planReplay(original, {})) ?? 0;
    const states = async (ofBhavCopies: boolean) =>
      (
        await pool.query<{ state: string }>(
          `select state from etl.windows where run_id = $1 and (operation = 'GetBhavCopyCM' and exchange = 'NSE') = $2 order by id`,
          [runId, ofBhavCopies],
        )
      ).rows.map(({ state }) => state);
    const holder = await pool.connect();
    const lock = `hashtextextended('eod|bhavcopy_cm|NSE|${DAYS.from}', 0)`;
    await holder.query(`select pg_advisory_lock(${lock})`);
    const working = workReplay(original, runId, new AbortController().signal);
    try {
      const ended = async () =>
        expect((await states(false)).filter((state) => state !== 'loaded' && state !== 'empty')).toEqual([]);
      await vi.waitFor(ended, 20_000);
      expect(await states(true)).toEqual(['running']);
    } finally {
      await holder.query(`select pg_advisory_unlock(${lock})`);
      holder.release();
      await working;
    }
    expect(await states(true)).toEqual(['loaded']);
  });
});

test('a connection that breaks while a kept response is read is no fault of the response', async () => {
  const context = await openStore();
  await fetched(1, records(0, 5))(context, { day: '2025-08-29' });
  const { rows } = await context.db.pool.query<{ id: number }>('select id::int from etl.responses');
  const readAgain = async () => {
    await context.db.pool.query('select pg_terminate_backend(pg_backend_pid())');
    throw new Error('the connection was not cut');
  };
  const error = await readKept(context.db.drizzle, rows[0]?.id ?? 0, { readAgain }).catch(databaseError);
  expect(error).toMatchObject({ kind: 'database_unreachable' });
});
