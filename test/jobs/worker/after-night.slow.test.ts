import { expect, test } from 'vitest';
import { followUpRuns } from '../../../src/jobs/runs/finish.ts';
import { nightlyRequest } from '../../../src/jobs/runs/nightly-request.ts';
import { resumeRun } from '../../../src/jobs/runs/run-control.ts';
import { startWorker } from '../../../src/jobs/worker/worker.ts';
import { reportRun } from '../../../src/state/runs/reports.ts';
import { spawnEod } from '../../support/eod.ts';
import { backfill, openPipeline, runToEnd, start } from '../../support/pipeline.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhook } from '../../support/webhook.ts';

let time = Date.parse('2025-09-12T22:30:00+05:30');
const clock = { now: () => time };

test('the data sets are compared after a night has ended; an error in that does not fail the night', async () => {
  const pipeline = await openPipeline({
    sandbox: { instrumentsPerExchange: 60 },
    clock,
    settings: { EOD_INSTRUMENT_LIMIT: '2' },
  });
  const { pool } = pipeline.db;
  const night = () => nightlyRequest(pipeline, { date: '2025-09-12' });
  await runToEnd(pipeline, backfill({ from: '2025-09-08', to: '2025-09-12' }));
  await pool.query(
    "update market.bhavcopy_cm set low_price = -5, source_saved_at = '2025-09-12 23:00+05:30' where exchange = 'BSE' and trade_date = '2025-09-11' and symbol = 'TCS'",
  );
  // Responses of the same moment would be applied anew from what is kept.
  time += 3_600_000;
  // Only nights are followed by the comparison, and this was a backfill.
  expect((await pool.query('select from etl.findings')).rowCount).toBe(0);

  const first = await runToEnd(pipeline, await night());
  expect(first.state).toBe('completed');
  const findings = await waitFor(async () => {
    // Of so few companies none has an event on the first of the days.
    const { rows } = await pool.query(
      `select "check", date::text, instrument, run_id::int from etl.findings where "check" <> 'before_event_lists'`,
    );
    return rows.length > 0 && rows;
  });
  expect(findings).toEqual([
    { check: 'price_positive', date: '2025-09-11', instrument: 'TCS A', run_id: first.runId },
  ]);

  await pool.query('alter table etl.findings rename to findings_away');
  const second = await runToEnd(pipeline, await night());
  expect(second.state).toBe('completed');
  expect((await reportRun(pipeline, second.runId)).state).toBe('completed');
  const followUps = await pool.query(
    "select follow_up, follow_up_attempts as attempts from etl.runs where kind = 'nightly' order by id",
  );
  expect(followUps.rows).toEqual([
    { follow_up: 'done', attempts: 1 },
    { follow_up: 'due', attempts: 1 },
  ]);
  for (const attempts of [2, 3, 4, 5]) {
    await followUpRuns(pipeline);
    const { rows } = await pool.query(
      'select follow_up as state, follow_up_attempts as attempts from etl.runs where id = $1',
      [second.runId],
    );
    expect(rows).toEqual([{ state: attempts === 5 ? 'failed' : 'due', attempts }]);
  }
});

test('the alerts of a run are raised although the process that ended it was killed before', async () => {
  const webhook = await startWebhook();
  const faults = [{ kind: 'status' as const, value: '404', operation: 'GetCircuitBreakers' }];
  const pipeline = await openPipeline({
    sandbox: { clock, instrumentsPerExchange: 5, behaviour: { faults } },
    settings: { EOD_ALERT_WEBHOOK: webhook.url },
  });
  const { pool } = pipeline.db;
  const first = spawnEod(['up', '--roles', 'worker'], { env: pipeline.environment, cwd: temporaryFolder() });
  await first.output(/eod is up/);
  // Holds the process up where it wants to keep the alert.
  const holder = await pool.connect();
  await holder.query('begin; lock table etl.alerts in access exclusive mode');
  const runId = await start(
    pipeline,
    backfill({ from: '2025-09-11', to: '2025-09-11', operations: ['GetCircuitBreakers'] }),
  );
  await waitFor(async () => {
    const waiting = await pool.query(
      `select from pg_locks l join etl.runs r on r.id = $1 and r.state = 'failed'
        where l.relation = 'etl.alerts'::regclass and not l.granted`,
      [runId],
    );
    return waiting.rowCount !== 0;
  });
  first.kill('SIGKILL');
  await first.ended;
  await holder.query('rollback');
  holder.release();
  const followUp = async () =>
    (await pool.query<{ state: string }>('select follow_up as state from etl.runs where id = $1', [runId]))
      .rows[0];
  expect(await followUp()).toEqual({ state: 'due' });
  expect(webhook.alerts).toEqual([]);

  const second = await startWorker(pipeline);
  await waitFor(async () => (await followUp())?.state === 'done');
  expect(webhook.alerts.map(({ kind, facts }) => [kind, facts.run])).toEqual([['run_failed', runId]]);
  await second.stop();
});

test('names that cannot be brought in fail each run until they can, and are brought in then', async () => {
  const pipeline = await openPipeline({ sandbox: { instrumentsPerExchange: 5 }, clock });
  const { pool } = pipeline.db;
  await pool.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise 'no room'; end $$;
    create trigger refuse before insert on etl.observed_aliases for each row when (new.exchange = 'NSE') execute function refuse()`);
  const night = (exchange: string, day: string) =>
    runToEnd(
      pipeline,
      backfill({ operations: ['GetBhavCopyCM'], exchanges: [exchange], from: day, to: day }),
    );
  expect(await night('NSE', '2025-09-11')).toMatchObject({
    state: 'failed',
    error: expect.stringContaining('no room'),
  });
  expect(await night('BSE', '2025-09-11')).toMatchObject({
    state: 'failed',
    error: expect.stringContaining('no room'),
  });
  await pool.query('drop trigger refuse on etl.observed_aliases');
  expect(await night('BSE', '2025-09-12')).toMatchObject({ state: 'completed', error: null });
  const result = await pool.query('select distinct exchange from market.instruments order by 1');
  expect(result.rows).toEqual([{ exchange: 'BSE' }, { exchange: 'NSE' }]);
});

test('a run whose names cannot be brought up to date ends as failed and says why; resumed, it is tried again', async () => {
  const webhook = await startWebhook();
  const pipeline = await openPipeline({
    sandbox: { instrumentsPerExchange: 5 },
    clock,
    settings: { EOD_ALERT_WEBHOOK: webhook.url },
  });
  const { pool } = pipeline.db;
  await pool.query('alter table etl.observed_aliases rename to observed_aliases_away');
  const options = { operations: ['GetBhavCopyCM'], exchanges: ['NSE'] };
  const { runId, ...run } = await runToEnd(
    pipeline,
    backfill({ ...options, from: '2025-09-11', to: '2025-09-12' }),
  );
  const why = 'instruments and corporate events could not be brought up to date: ';
  expect(run).toMatchObject({ state: 'failed', windows: { loaded: 2 }, error: expect.stringContaining(why) });
  await waitFor(() => webhook.alerts.some(({ message }) => message.includes(why)), { what: 'the alert' });

  await pool.query('alter table etl.observed_aliases_away rename to observed_aliases');
  await resumeRun(pipeline, runId);
  expect(await reportRun(pipeline, runId)).toMatchObject({ state: 'completed', error: null });
  expect((await pool.query('select from market.instruments')).rowCount).toBeGreaterThan(0);
});
