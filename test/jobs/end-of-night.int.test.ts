import { expect } from 'vitest';
import { followUpRuns } from '../../src/jobs/runs/finish.ts';
import { importInto, NSE_UDIFF, query, test } from './import-support.ts';

test('a night is checked once, after the last of its runs, for the days of all of them', async ({
  context,
}) => {
  const { pool } = context.db;
  // A session that only the first of the runs is about.
  await importInto(context, [NSE_UDIFF]);
  await pool.query("update etl.runs set follow_up = 'done'");
  await pool.query(`
    create table checked (days int);
    create function note() returns trigger language plpgsql as
      'begin insert into checked select count(*) from news; return null; end';
    create trigger note after insert on etl.checked_days referencing new table as news
      for each statement execute function note()`);
  const nightlyRun = (from: string, state: string, followUp: string) =>
    pool.query(
      `insert into etl.runs (kind, requested_by, request, from_date, to_date, state, finished_at, follow_up)
       values ('nightly', 'test', '{}', $1, '2025-09-12', $2, case when $2 = 'completed' then clock_timestamp() end, $3)`,
      [from, state, followUp],
    );
  await nightlyRun('2025-08-29', 'completed', 'due');
  await nightlyRun('2025-09-10', 'completed', 'due');
  await nightlyRun('2025-09-12', 'running', 'none');
  await followUpRuns(context);
  expect(await query(context, "select follow_up from etl.runs where kind = 'nightly' order by id")).toEqual([
    { follow_up: 'done' },
    { follow_up: 'done' },
    { follow_up: 'none' },
  ]);
  expect(await query(context, 'select * from checked')).toEqual([]);

  await pool.query(
    "update etl.runs set state = 'completed', finished_at = clock_timestamp(), follow_up = 'due' where state = 'running' and kind = 'nightly'",
  );
  // A paused run may stay so for good.
  await nightlyRun('2025-09-12', 'paused', 'none');
  await followUpRuns(context);
  expect(await query(context, 'select * from checked')).toEqual([{ days: 1 }]);
});
