import type { Job } from 'bullmq';
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { TickJob } from '../../../src/jobs/queue/queue.ts';
import { nextTicks, plannedSchedules } from '../../../src/jobs/runs/night-schedules.ts';
import { processTick, startScheduler, syncSchedules } from '../../../src/jobs/worker/scheduler.ts';
import { defaultOperations } from '../../../src/operations/index.ts';
import { startCuttingProxy } from '../../support/chaos/cutting-proxy.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { sample } from '../../support/for-all.ts';
import { isSlowLayer } from '../../support/layer.ts';
import { losePart } from '../../support/lose-part.ts';
import { mostly, openPipeline, type Pipeline } from '../../support/pipeline.ts';
import { freePrefix, redisUrl } from '../../support/redis.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Every operation that is requested by default, on every exchange it is requested of. */
const ALL = defaultOperations.flatMap(({ name, exchanges }) =>
  exchanges.map((exchange) => `${name}-${exchange}`),
);

const BOTH = { EOD_OPERATIONS: ['default'], EOD_EXCHANGES: ['BSE', 'NSE'] as ('BSE' | 'NSE')[] };

/** The hour of the day in India. */
const HOUR = Number(new Date().toLocaleTimeString('en-GB', { timeZone: 'Asia/Kolkata' }).slice(0, 2));
/** A night that is hours away, at whatever time of day these tests run: a tick that is due in minutes is planned. */
const NIGHT = HOUR < 18 ? '21:15' : '06:00';
const HOURS_AWAY = { ...BOTH, EOD_NIGHT_TIMES: [NIGHT] };

describe('the declared schedules', () => {
  const planned = plannedSchedules(BOTH);

  test('are one for each operation and exchange, each at its own minute after 21:15', () => {
    expect(planned.map((schedule) => schedule.id).sort()).toEqual([...ALL].sort());
    expect(new Set(planned.map((schedule) => schedule.pattern)).size).toBe(ALL.length);
    for (const { pattern } of planned) {
      const [minute, hour, dayOfMonth, month] = pattern.split(' ');
      expect([dayOfMonth, month]).toEqual(['*', '*']);
      expect(Number(hour) * 60 + Number(minute)).toBeGreaterThanOrEqual(21 * 60 + 15);
    }
    expect(planned.find((schedule) => schedule.id === 'GetBhavCopyCM-BSE')?.pattern).toBe('15 21 * * *');
    expect(planned.find((schedule) => schedule.id === 'GetBhavCopyCM-NSE')?.pattern).toBe('17 21 * * *');
  });

  test('leave out exchanges the settings do not allow', () => {
    const ids = plannedSchedules({ ...BOTH, EOD_EXCHANGES: ['NSE'] }).map((schedule) => schedule.id);
    expect(ids.sort()).toEqual(ALL.filter((id) => id.endsWith('-NSE')).sort());
    expect(ids).toContain('GetBhavCopyCM-NSE');
    expect(ids).not.toContain('GetFinRatioEOD-NSE');
  });

  test('are of the operations that EOD_OPERATIONS requests', () => {
    const of = (...EOD_OPERATIONS: string[]) =>
      plannedSchedules({ ...BOTH, EOD_OPERATIONS }).map(({ id }) => id);
    expect(of('default', 'GetBhavCopyFO', '-GetFinRatioEOD').sort()).toEqual(
      [...ALL.filter((id) => id !== 'GetFinRatioEOD-BSE'), 'GetBhavCopyFO-BFO'].sort(),
    );
    expect(of('GetIndexDetail')).toEqual(['GetIndexDetail-BSE_IDX']);
  });
});

describe.each(mostly('redis'))('schedules kept in %s', (backend) => {
  let database: TestDatabase;
  let pipeline: Pipeline;
  let other: Pipeline;
  beforeAll(async () => {
    database = await testDatabase();
  });
  beforeEach(async () => {
    const options = {
      databaseUrl: database.url,
      backend,
      prefix: freePrefix(),
      settings: { EOD_NIGHT_TIMES: NIGHT },
    };
    pipeline = await openPipeline(options);
    other = await openPipeline(options);
    return async () => {
      await pipeline.close();
      await other.close();
    };
  });

  const kept = async () =>
    (await pipeline.queues.ticks.getJobSchedulers())
      .map(({ key, pattern, tz, next }) => ({ id: key, pattern, tz, next }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  const declared = () =>
    plannedSchedules(HOURS_AWAY)
      .map(({ id, pattern }) => ({ id, pattern, tz: 'Asia/Kolkata', next: expect.any(Number) }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  const waiting = async () => (await pipeline.queues.ticks.getJobCounts()).delayed;

  test('are those declared, at Indian times, with one waiting tick each', async () => {
    await syncSchedules(pipeline);
    expect(await kept()).toEqual(declared());
    expect(await waiting()).toBe(ALL.length);
    for (const { next, pattern } of await kept()) {
      const time = new Date(next ?? 0).toLocaleTimeString('en-GB', {
        timeZone: 'Asia/Kolkata',
        timeStyle: 'short',
      });
      const [minute, hour] = (pattern ?? '').split(' ');
      expect(time).toBe(`${hour?.padStart(2, '0')}:${minute?.padStart(2, '0')}`);
    }
  });

  test('are the same after a second time, and after two schedulers at once', async () => {
    await syncSchedules(pipeline);
    const before = await kept();
    await syncSchedules(pipeline);
    await Promise.all([syncSchedules(pipeline), syncSchedules(other)]);
    expect(await kept()).toEqual(before);
    expect(await waiting()).toBe(ALL.length);
  });

  test('are the same when two schedulers begin at once with none', async () => {
    await Promise.all([syncSchedules(pipeline), syncSchedules(other)]);
    expect(await kept()).toEqual(declared());
    expect(await waiting()).toBe(ALL.length);
  });

  test('have each their next tick again after any part of them was lost', async () => {
    await syncSchedules(pipeline);
    for (let salt = 0; salt < 12; salt += 1) {
      const share = [0.1, 0.5, 0.9][salt % 3] ?? 1;
      await losePart(backend, pipeline.config.EOD_QUEUE_PREFIX, database.url, { share, salt });
      await syncSchedules(pipeline);
      const ids = (await pipeline.queues.ticks.getRanges(['delayed'], 0, -1)).map((id) => id.split(':')[1]);
      expect({ salt, ids: ids.sort() }).toEqual({ salt, ids: [...ALL].sort() });
    }
  });

  /** What a process does whose clock is that many days ahead. */
  async function ahead<Result>(days: number, work: () => Promise<Result>): Promise<Result> {
    const realNow = Date.now;
    const spy = vi.spyOn(Date, 'now').mockImplementation(() => realNow() + days * 86_400_000);
    return work().finally(() => spy.mockRestore());
  }
  const queued = async () => (await pipeline.queues.ticks.getRanges(['delayed', 'wait'], 0, -1)).sort();
  const due = () =>
    nextTicks(pipeline.config, systemClock)
      .map(({ id, next }) => `repeat:${id}:${Date.parse(next)}`)
      .sort();

  test('are those of tonight after three schedulers, one of which has taken ticks by a clock that is ahead', async () => {
    const move = fc.oneof(
      fc.constantFrom('one', 'other', 'sync ahead').map((by) => ({ by, days: 0, taken: [] as string[] })),
      fc.record({
        by: fc.constant('takes'),
        days: fc.constantFrom(2, 40, 1_800),
        taken: fc.subarray(ALL, { minLength: 1 }),
      }),
    );
    const moves = sample(fc.array(move, { minLength: 2, maxLength: 6 }), { numRuns: 6, seed: 1 });
    for (const [at, steps] of moves.entries()) {
      for (const { by, days, taken } of steps) {
        if (by === 'one' || by === 'other') await syncSchedules(by === 'one' ? pipeline : other);
        if (by === 'sync ahead') await ahead(1_800, () => syncSchedules(other));
        // BullMQ makes the next tick when it takes one.
        await ahead(days, async () => {
          for (const { id, operation, exchange, pattern } of plannedSchedules(HOURS_AWAY)) {
            if (!taken.includes(id)) continue;
            const data = { operation, exchange };
            const repeat = { pattern, tz: 'Asia/Kolkata' };
            await other.queues.ticks.upsertJobScheduler(id, repeat, { name: 'tick', data, opts: {} });
          }
        });
      }
      await syncSchedules(pipeline);
      expect({ at, ticks: await queued() }).toEqual({ at, ticks: due() });
      expect(await kept()).toEqual(declared());
    }
  });

  test('a scheduler whose clock is ahead plans no night, and one whose clock is right has its ticks afterwards', async () => {
    await syncSchedules(pipeline);
    await ahead(1_800, async () => {
      const scheduler = await startScheduler(other);
      // It takes each tick, and leaves one of a night that is years away.
      await waitFor(async () => (await queued()).every((id) => Number(id.split(':')[2]) > Date.now()));
      await waitFor(async () => (await pipeline.queues.ticks.getJobCounts()).active === 0);
      await scheduler.stop();
    });
    expect((await pipeline.db.pool.query('select from etl.runs')).rowCount).toBe(0);
    await syncSchedules(pipeline);
    expect(await queued()).toEqual(due());
  });

  test('whose tick has lost its data plan the night all the same', async () => {
    // On a database of its own, because it plans a run.
    const pipeline = await openPipeline({ backend, settings: { EOD_NIGHT_TIMES: NIGHT } });
    const due = Date.parse('2025-09-12T21:15:00+05:30');
    const id = `repeat:GetBhavCopyCM-BSE:${due}`;
    await pipeline.queues.ticks.addBulk([{ name: 'tick', data: {} as TickJob, opts: { jobId: id } }]);
    const scheduler = await startScheduler(pipeline);
    const ticks = await waitFor(async () => {
      const result = await pipeline.db.pool.query<{ tick: string }>('select tick from etl.runs');
      return result.rowCount === 0 ? null : result.rows;
    });
    expect(ticks).toEqual([{ tick: 'GetBhavCopyCM-BSE-2025-09-12T15:45:00.000Z' }]);
    await scheduler.stop();
  });

  function scheduleOnNse(operation: string, repeat: { pattern: string; tz: string }) {
    const data = { operation, exchange: 'NSE' };
    return pipeline.queues.ticks.upsertJobScheduler(`${operation}-NSE`, repeat, {
      name: 'tick',
      data,
      opts: {},
    });
  }

  test('of an operation that is gone are pruned, with their ticks', async () => {
    await scheduleOnNse('GetGone', { pattern: '0 22 * * *', tz: 'Asia/Kolkata' });
    expect(await waiting()).toBe(1);
    await syncSchedules(pipeline);
    expect(await kept()).toEqual(declared());
    expect(await waiting()).toBe(ALL.length);
  });

  test('are changed when the declaration has changed', async () => {
    await scheduleOnNse('GetSeriesChange', { pattern: '1 2 * * 3', tz: 'UTC' });
    await syncSchedules(other);
    expect(await kept()).toEqual(declared());
    expect(await waiting()).toBe(ALL.length);
  });

  test('are there while a scheduler runs, and stay when it stops', async () => {
    const schedulers = await Promise.all([startScheduler(pipeline), startScheduler(other)]);
    expect(await kept()).toEqual(declared());
    await Promise.all(schedulers.map((scheduler) => scheduler.stop()));
    expect(await kept()).toEqual(declared());
  });

  test('a tick makes one run, however often and by however many it is handled', async () => {
    const job = await nextTick(pipeline, {
      operation: 'GetSeriesChange',
      exchange: 'NSE',
    });
    await Promise.all([processTick(pipeline, job), processTick(other, job)]);
    await processTick(pipeline, job);
    const runs = await pipeline.db.pool.query(
      'select kind, state, requested_by, tick, request from etl.runs order by id desc',
    );
    expect(runs.rows).toHaveLength(1);
    expect(runs.rows[0]).toMatchObject({
      kind: 'nightly',
      state: 'running',
      requested_by: 'schedule',
      tick: expect.stringMatching(/^GetSeriesChange-NSE-\d{4}-/),
      request: { targets: [{ operation: 'GetSeriesChange', exchange: 'NSE' }] },
    });
    const windows = await pipeline.db.pool.query('select count(*)::int as windows from etl.windows');
    const { prioritized } = await pipeline.queues.windows.nightly.getJobCounts();
    expect(windows.rows[0].windows).toBe(prioritized);
    await pipeline.db.pool.query("update etl.runs set state = 'cancelled', tick = null");
    await pipeline.db.pool.query('delete from etl.windows; delete from etl.runs');
  });

  test.runIf(isSlowLayer)(
    'a tick that meets an outage of Postgres is put off until that is over; one that cannot be planned ends',
    async () => {
      const { pool } = pipeline.db;
      await pool.query(`
      create sequence failures;
      create function fail() returns trigger language plpgsql as $$
        begin
          if new.tick like 'GetSeriesChange-%' and nextval('failures') <= 2 then
            raise exception 'shutting down' using errcode = '57P01';
          end if;
          if new.tick like 'GetCircuitBreakers-%' then raise exception 'refused' using errcode = '23514'; end if;
          return new;
        end $$;
      create trigger fail before insert on etl.runs for each row execute function fail();`);
      const scheduler = await startScheduler(pipeline);
      onTestFinished(() => scheduler.stop());
      const opts = { removeOnComplete: true };
      await pipeline.queues.ticks.addBulk([
        {
          name: 'tick',
          data: { operation: 'GetCircuitBreakers', exchange: 'NSE' },
          opts,
        },
        {
          name: 'tick',
          data: { operation: 'GetSeriesChange', exchange: 'NSE' },
          opts,
        },
      ]);
      const planned = await waitFor(async () => {
        const { rows } = await pool.query<{ tick: string }>('select tick from etl.runs');
        return rows.length > 0 ? rows.map(({ tick }) => tick) : null;
      });
      expect(planned).toEqual([expect.stringMatching(/^GetSeriesChange-NSE-/)]);
      await waitFor(async () => (await pipeline.queues.ticks.getJobCounts()).failed === 1);
      expect((await pool.query('select nextval($1)::int as next', ['failures'])).rows).toEqual([{ next: 4 }]);
      await pool.query('drop trigger fail on etl.runs; drop function fail; drop sequence failures');
      await pool.query('delete from etl.windows; delete from etl.runs');
    },
  );
});

/** The job of a schedule that comes due every second. */
async function nextTick({ queues }: Pipeline, data: TickJob): Promise<Job<TickJob>> {
  await queues.ticks.upsertJobScheduler(
    `${data.operation}-${data.exchange}`,
    { pattern: '* * * * * *', tz: 'Asia/Kolkata' },
    { name: 'tick', data, opts: { removeOnComplete: true } },
  );
  let close: () => Promise<void> = async () => undefined;
  const job = await new Promise<Job<TickJob>>((resolve) => {
    const worker = queues.work<TickJob>('ticks', async (due) => resolve(due), { concurrency: 1 });
    close = () => worker.close();
  });
  await close();
  return job;
}

test('a Redis that hangs leaves no transaction open while the schedules are compared', async () => {
  const proxy = await startCuttingProxy(redisUrl());
  const pipeline = await openPipeline({ backend: 'redis', settings: { REDIS_URL: proxy.url } });
  const tradingDays = async (condition: string) =>
    (
      await pipeline.db.pool.query(
        `select from pg_stat_activity a where datname = current_database() and pid <> pg_backend_pid() and ${condition}`,
      )
    ).rowCount;
  proxy.setSilent();
  syncSchedules(pipeline).catch(() => undefined);
  const holdsLock =
    "exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory' and l.granted)";
  await waitFor(async () => (await tradingDays(holdsLock)) === 1);
  await waitFor(async () => (await tradingDays('xact_start is not null')) === 0);
  await proxy.close();
  await pipeline.close();
});
