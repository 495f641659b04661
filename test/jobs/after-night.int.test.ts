import { expect, test } from 'vitest';
import { nightlyRequest } from '../../src/jobs/runs/nightly-request.ts';
import { reportRun } from '../../src/load/state/reports.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { testDatabase } from '../support/database.ts';
import { backfill, openPipeline, runToEnd } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';

const clock = { now: () => Date.parse('2025-09-12T23:30:00+05:30') };

test('the data sets are compared after a night has ended; an error in that does not fail the night', async () => {
  const sandbox = await startSandbox({ clock, instrumentsPerExchange: 60 });
  const pipeline = await openPipeline({
    databaseUrl: (await testDatabase()).url,
    sourceUrl: sandbox.url,
    backend: 'postgres',
    clock,
    settings: { EOD_INSTRUMENT_LIMIT: '2' },
  });
  const { pool } = pipeline.db;
  const night = () => nightlyRequest(pipeline, { date: '2025-09-12' });
  await runToEnd(pipeline, backfill({ from: '2025-09-08', to: '2025-09-12' }));
  await pool.query(
    "update market.total_trade_highlights set trade_count = trade_count + 1, source_saved_at = now() + interval '10 years' where trade_date = '2025-09-11' and trade_highlight = 'Total'",
  );
  // A backfill asks for what it asks for; only nights are followed by the comparison.
  expect((await pool.query('select from etl.findings')).rowCount).toBe(0);

  const first = await runToEnd(pipeline, await night());
  expect(first.state).toBe('completed');
  const found = await waitFor(async () => {
    const { rows } = await pool.query(
      'select "check", date::text, instrument, run_id::int from etl.findings',
    );
    return rows.length > 0 && rows;
  });
  expect(found).toEqual([
    { check: 'highlights_trades', date: '2025-09-11', instrument: 'Total', run_id: first.runId },
  ]);

  await pool.query('alter table etl.findings rename to findings_away');
  const second = await runToEnd(pipeline, await night());
  expect(second.state).toBe('completed');
  expect((await reportRun(pipeline.db.drizzle, second.runId)).state).toBe('completed');
  await sandbox.close();
});
