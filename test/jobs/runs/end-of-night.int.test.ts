import { expect } from 'vitest';
import { followUpRuns } from '../../../src/jobs/runs/finish.ts';
import { nextTicks, tickName } from '../../../src/jobs/runs/night-schedules.ts';
import type { openStore } from '../../support/import-support.ts';
import { importInto, NSE_UDIFF, test } from '../../support/import-support.ts';

type Context = Awaited<ReturnType<typeof openStore>>;

/** Counts how often a night is checked, and how many days were not before. */
async function countChecks(context: Context): Promise<() => Promise<number[]>> {
  const { pool } = context.db;
  // A trading day that only the first of the runs is about.
  await importInto(context, [NSE_UDIFF]);
  await pool.query("update etl.runs set follow_up = 'done'");
  await pool.query(`
    create table checked (days int);
    create function note() returns trigger language plpgsql as
      'begin insert into checked select count(*) from news; return null; end';
    create trigger note after insert on etl.checked_days referencing new table as news
      for each statement execute function note()`);
  return async () =>
    (await pool.query<{ days: number }>('select days from checked')).rows.map(({ days }) => days);
}

/** Stores a nightly run as it is before the checks and alerts that follow it. */
const nightlyRun = ({ db }: Context, from: string, state: string, tick: string | null = null) =>
  db.pool.query(
    `insert into etl.runs (kind, requested_by, request, from_date, to_date, state, finished_at, follow_up, tick)
     values ('nightly', 'test', '{}', $1, '2025-09-12', $2, case when $2 = 'completed' then clock_timestamp() end,
             case when $2 = 'completed' then 'due' else 'none' end, $3)`,
    [from, state, tick],
  );

const followUps = async ({ db }: Context) =>
  (
    await db.pool.query<{ state: string }>(
      "select follow_up as state from etl.runs where kind = 'nightly' order by id",
    )
  ).rows.map(({ state }) => state);

test('a night is checked once, after the last of its runs, for the days of all of them', async ({
  context,
}) => {
  const checks = await countChecks(context);
  await nightlyRun(context, '2025-08-29', 'completed');
  await nightlyRun(context, '2025-09-10', 'completed');
  await nightlyRun(context, '2025-09-12', 'running');
  await followUpRuns(context);
  expect(await followUps(context)).toEqual(['done', 'night', 'none']);
  expect(await checks()).toEqual([]);

  await context.db.pool.query(
    "update etl.runs set state = 'completed', finished_at = clock_timestamp(), follow_up = 'due' where state = 'running' and kind = 'nightly'",
  );
  // A paused run may stay so for good.
  await nightlyRun(context, '2025-09-12', 'paused');
  await followUpRuns(context);
  expect(await followUps(context)).toEqual(['done', 'done', 'done', 'none']);
  expect(await checks()).toEqual([1]);
});

test('a night whose runs are started by schedules is checked once, although none overlaps another; and once more after a run by hand', async ({
  context,
}) => {
  const checks = await countChecks(context);
  const { config } = context;
  let now = Date.parse('2025-09-12T12:00:00+05:30');
  const at = { ...context, clock: { now: () => now } };
  const ticks = nextTicks(config, at.clock)
    .filter(({ next }) => Date.parse(next) < now + 86_400_000)
    .sort((a, b) => Date.parse(a.next) - Date.parse(b.next));
  expect(ticks.length).toBeGreaterThan(5);
  for (const [index, tick] of ticks.entries()) {
    expect(await checks()).toEqual([]);
    now = Date.parse(tick.next) + 60_000;
    // The last but one never starts.
    if (index === ticks.length - 2) continue;
    await nightlyRun(context, '2025-08-29', 'completed', tickName(tick, new Date(tick.next)));
    await followUpRuns(at);
  }
  // It is waited for no longer than ten minutes.
  now = Math.max(now, Date.parse(ticks.at(-2)?.next ?? '') + 11 * 60_000);
  await followUpRuns(at);
  await followUpRuns(at);
  expect(await checks()).toEqual([1]);
  expect(new Set(await followUps(context))).toEqual(new Set(['done']));

  await nightlyRun(context, '2025-09-12', 'completed');
  await followUpRuns(at);
  await followUpRuns(at);
  // The trading day was noted as checked before.
  expect(await checks()).toEqual([1, 0]);
});
