import { drizzle } from 'drizzle-orm/node-postgres';
import type { Pool } from 'pg';
import { expect, test } from 'vitest';
import { callLimitOf } from '../../src/jobs/policy/quota.ts';
import { startRun } from '../../src/jobs/runs/run-control.ts';
import { markKeyRefused } from '../../src/load/state/source/access-keys.ts';
import { claimWindow } from '../../src/load/state/windows/claim.ts';
import { backfill, openPipeline } from '../support/pipeline.ts';
import { waitFor } from '../support/wait-for.ts';

test('a claim that comes as the key is being refused makes no call', async () => {
  const pipeline = await openPipeline({});
  const { pool } = pipeline.db;
  await startRun(pipeline, backfill({ from: '2025-09-08', to: '2025-09-08', operations: ['GetBhavCopyCM'] }));
  const callLimit = callLimitOf(pipeline.config, pipeline.clock);
  await pool.query("insert into etl.access_keys (key_hash, state) values ($1, 'unknown')", [
    callLimit.keyHash,
  ]);
  const { rows } = await pool.query<{ id: number }>('select id::int from etl.windows order by id limit 1');

  // One worker tries the key and is refused after the claim below has read what is known of the key, and
  // before it takes the trial for itself: there the lock stops it.
  const first = await pool.connect();
  await first.query('begin');
  await first.query('select from etl.access_keys for update');
  const second = claimWindow(pipeline.db.drizzle, rows[0]?.id ?? 0, callLimit);
  await waitFor(async () => (await waiting(pool)) === 1, { what: 'the claim to wait for the key' });
  await first.query('update etl.access_keys set probing_until = $1', [new Date(callLimit.probeUntil)]);
  await markKeyRefused(drizzle(first), callLimit, 'Key Expired.');
  await first.query('commit');
  first.release();

  expect(await second).toEqual({ outcome: 'probing' });
  expect(await claimWindow(pipeline.db.drizzle, rows[0]?.id ?? 0, callLimit)).toEqual({
    outcome: 'refused',
    diagnostic: 'Key Expired.',
  });
});

async function waiting(pool: Pool): Promise<number> {
  const found = await pool.query(
    "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'insert into _etl_._access_keys_%'",
  );
  return found.rowCount ?? 0;
}
