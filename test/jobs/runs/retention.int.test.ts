import { expect } from 'vitest';
import { pruneRuns } from '../../../src/jobs/runs/prune-runs.ts';
import { startWorker } from '../../../src/jobs/worker/worker.ts';
import { BSE_UDIFF, importInto, NSE_UDIFF, query, test } from '../../support/import-support.ts';
import { openPipeline } from '../../support/pipeline.ts';

const DAY_MS = 86_400_000;

test('what old runs left is deleted, but for what something refers to', async ({ context }) => {
  const { pool } = context.db;
  await importInto(context, [NSE_UDIFF]);
  const result = await pool.query<{ id: number }>(
    `insert into etl.runs (kind, requested_by, request, from_date, to_date, state, finished_at)
     values ('backfill', 'test', '{}', '2025-01-01', '2025-01-01', 'completed', now()),
            ('backfill', 'test', '{}', '2025-01-01', '2025-01-01', 'completed', now()),
            ('backfill', 'test', '{}', '2025-01-01', '2025-01-01', 'running', null) returning id::int`,
  );
  const [done, suspicious, open] = result.rows.map(({ id }) => id) as [number, number, number];
  // Ranges that were not requested, beside one that was.
  await pool.query(
    `insert into etl.windows (run_id, operation, exchange, from_date, to_date, state, suspicious)
     select r.id, 'GetSeriesChange', 'NSE', '2025-01-01', '2025-01-01', s.state, s.why
       from etl.runs r, (values ('skipped', null), ('failed', null), ('loaded', 'fewer rows than before')) s(state, why)
      where r.id = $1 or r.id = any($2) and s.why is null`,
    [suspicious, [done, open]],
  );
  await pool.query(`insert into etl.alerts (kind, subject, message, facts) values ('gaps', 'a', 'a', '{}')`);
  await pool.query(
    `insert into etl.findings ("check", severity, operation, exchange, date, instrument, resolved_at)
     values ('row_count', 'warning', 'GetBhavCopyCM', 'NSE', '2025-01-01', 'A', now()),
            ('row_count', 'warning', 'GetBhavCopyCM', 'NSE', '2025-01-01', 'B', null)`,
  );
  await pool.query(`insert into etl.call_budget (key_hash, hour, calls) values ('k', now(), 7)`);
  // Two that were withheld: of one, the state of its day still follows.
  await pool.query(
    `with kept as (
       insert into etl.withdrawals (load_id, window_id, run_id, operation, exchange, table_name, day, state, unlisted_rows, max_rows, remaining_rows, position, rows)
       select 1, window_id, run_id, operation, exchange, 'bhavcopy_cm', to_date - before, 'outdated', before + 1, 9, 0, position, '[]'
         from etl.responses, (values (0), (1)) days(before)
       returning operation, exchange, day, position
     ) update etl.coverage c set withheld_position = kept.position from kept
        where (c.operation, c.exchange, c.day, c.instrument) = (kept.operation, kept.exchange, kept.day, '')`,
  );
  const rows = () =>
    query(
      context,
      'select r.id::int as run, w.state from etl.runs r left join etl.windows w on w.run_id = r.id order by 1, 2',
    );
  const before = await rows();

  // As long as they are not old, nothing is deleted.
  const none = {
    ...{ runs: 0, windows: 0, alerts: 0, withdrawals: 0, findings: 0, hours: 0 },
    ...{ rejects: 0, bodies: 0, bytes: 0 },
  };
  expect(await pruneRuns(context)).toEqual(none);
  // Whatever the clock of the machine says.
  const ahead = { now: () => Date.now() + (context.config.EOD_KEEP_RUNS_DAYS + 1) * DAY_MS };
  expect(await pruneRuns({ ...context, clock: ahead } as typeof context)).toEqual(none);
  const later = { ...context, config: { ...context.config, EOD_KEEP_RUNS_DAYS: -1 } };
  const counted = await pruneRuns(later, true);
  expect(await rows()).toEqual(before);
  expect(await pruneRuns(later)).toEqual(counted);
  expect(counted).toEqual({ ...none, runs: 1, windows: 4, alerts: 1, withdrawals: 1, findings: 1, hours: 1 });
  expect(await query(context, 'select unlisted_rows from etl.withdrawals')).toEqual([{ unlisted_rows: 1 }]);
  expect(await query(context, 'select instrument from etl.findings')).toEqual([{ instrument: 'B' }]);
  const left = await rows();
  expect(left).toEqual([
    expect.objectContaining({ state: 'loaded' }),
    { run: suspicious, state: 'loaded' },
    { run: open, state: 'failed' },
    { run: open, state: 'skipped' },
  ]);

  // The file is still known, and its response can be folded again.
  const again = await importInto(context, [NSE_UDIFF, BSE_UDIFF]);
  expect(again.files.map(({ state }) => state).sort()).toEqual(['loaded', 'skipped']);
});

test('a worker does so when it starts', async ({ context }) => {
  const addOldRun = () =>
    context.db.pool.query(
      `insert into etl.runs (kind, requested_by, request, from_date, to_date, state, finished_at)
       values ('backfill', 'test', '{}', '2020-01-01', '2020-01-01', 'completed', '2020-01-01')`,
    );
  const oldRuns = async () => (await query(context, 'select from etl.runs')).length;
  await addOldRun();
  const worker = await startWorker(
    await openPipeline({ databaseUrl: context.db.url, settings: { EOD_KEEP_RUNS_DAYS: '400' } }),
  );
  expect(await oldRuns()).toBe(0);
  await worker.stop();
});
