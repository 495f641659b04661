import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { beforeAll, expect, test } from 'vitest';
import type { RejectDetail } from '../../src/cli/commands/rejects.ts';
import type { Position } from '../../src/core/position.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { type OpenReject, writeRejects } from '../../src/state/rejects.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { openPool } from '../load/support.ts';
import { runCli, runJson } from '../support/cli.ts';
import { copyResponses } from '../support/copy-responses.ts';
import { testDatabase } from '../support/database.ts';
import { fixture, linesOf, newFile } from '../support/import-support.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();
const ROWS =
  'select exchange, symbol, series, trade_date::text, close_price, revision from market.bhavcopy_cm order by 1, 2, 3, 4';
const RANGE = ['--from', '2025-09-11', '--to', '2025-09-12'];

let sandbox: Sandbox;
let url: string;
let loaded: RunReport;
beforeAll(async () => {
  sandbox = await openSandbox({ instrumentsPerExchange: 30 });
  url = (await testDatabase()).url;
  const env = { DATABASE_URL: url, EOD_BASE_URL: sandbox.url, EOD_ACCESS_KEY: 'kiwi-4711' };
  const { json } = await runJson<RunReport>(['backfill', 'GetBhavCopyCM', ...RANGE], { cwd, env });
  loaded = json;
});

// No address of the source and no key: a replay needs neither.
const options = (databaseUrl = url) => ({ cwd, env: { DATABASE_URL: databaseUrl } });

test('kept responses fill an empty database, without the source', async () => {
  const requestsBefore = sandbox.stats().requests;
  const fresh = (await testDatabase()).url;
  await copyResponses(openPool(url), openPool(fresh));
  const { json, code } = await runJson<RunReport>(['replay'], options(fresh));
  expect(code).toBe(0);
  expect(json).toMatchObject({ kind: 'replay', state: 'completed', requests: 0, from: '2025-09-11' });
  expect(json.inserted).toBe(loaded.inserted);
  expect(await query(fresh, ROWS)).toEqual(await query(url, ROWS));
  expect(sandbox.stats().requests).toBe(requestsBefore);
  const again = await runCli(
    ['replay', 'getbhavcopycm', '--exchange', 'NSE', '--from', '2025-09-12'],
    options(fresh),
  );
  expect(again.code).toBe(0);
  expect(again.stdout).toMatch(/^run 2 \(replay, 2025-09-12\): completed .*\n.* 0 requests$/m);
});

test('there is nothing to replay without responses', async () => {
  const { code, stderr } = await runCli(['replay'], options((await testDatabase()).url));
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no kept response matches'),
  });
});

test('rejects are listed, shown, tried again and resolved', async () => {
  const none = await runCli(['rejects', 'retry'], options());
  expect({ code: none.code, stdout: none.stdout }).toEqual({ code: 0, stdout: 'no open rejects\n' });
  // As if the code of that time could not read two records that the code of today can read.
  await query(
    url,
    `insert into etl.rejected_records (run_id, window_id, operation, exchange, position, record, problems, from_date, to_date,
       fingerprint, first_seen_at, last_seen_at)
     select run_id, window_id, operation, exchange, number, '{"Symbol": "M&M"}', '[{"path": "ClosePrice", "message": "is odd"}]',
            from_date, to_date, number::text, position, position
       from etl.responses, unnest(array[2, 3]) as number where exchange = 'NSE' order by window_id limit 2`,
  );
  const { json: list } = await runJson<OpenReject[]>(['rejects', '--operation', 'GetBhavCopyCM'], options());
  expect(list.map(({ position }) => position).sort()).toEqual([2, 3]);
  expect((await runCli(['rejects', '--exchange', 'BSE'], options())).stdout).toBe('no open rejects\n');
  const id = String(list[0]?.id);
  const { json: shown } = await runJson<RejectDetail>(['rejects', id], options());
  expect(shown).toMatchObject({ record: { Symbol: 'M&M' }, resolvedAt: null });
  expect((await runCli(['rejects', id], options())).stdout).toContain('ClosePrice: is odd');
  expect((await runCli(['rejects', '999'], options())).code).toBe(2);

  const { json, code } = await runJson<{ tried: number; resolved: number; open: number[] }>(
    ['rejects', 'retry'],
    options(),
  );
  expect({ json, code }).toMatchObject({ json: { tried: 2, resolved: 2, open: [] }, code: 0 });
  expect((await runCli(['rejects'], options())).stdout).toBe('no open rejects\n');
});

test('a record that still cannot be read is reported, with exit code 1', async () => {
  await query(
    url,
    `insert into etl.windows (id, run_id, operation, exchange, from_date, to_date, state)
     values (900, 1, 'GetSeriesChange', 'BSE', '2025-09-12', '2025-09-12', 'loaded')`,
  );
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const day = '2025-09-12';
  const reject = { position: 0, record: { ChangeDate: 'soon', ScripId: 'A' }, problems: [] };
  await writeRejects(drizzle({ client }), 'BSE', [
    {
      runId: 1,
      windowId: 900,
      operation: 'GetSeriesChange',
      ...{ from: day, to: day, instruments: [], variant: '' },
      rejects: [reject],
      position: '2025-09-12T16:00:00.000000Z' as Position,
    },
  ]);
  await client.end();
  const { json, code } = await runJson<{ resolved: number; open: number[] }>(['rejects', 'retry'], options());
  expect(code).toBe(1);
  expect(json).toMatchObject({ resolved: 0 });
  expect(json.open).toHaveLength(1);
});

test('rejects of an imported file are read again from the file, which pruning keeps', async () => {
  const fresh = (await testDatabase()).url;
  const [header = '', ...rows] = linesOf(fixture('files/sec_bhavdata_full_14112024.csv'));
  const file = newFile('odd.csv', [
    header,
    ...rows.slice(1),
    (rows[0] ?? '').replace('Nov-2024, ', 'Nov-2024, n'),
  ]);
  const imported = await runJson<RunReport>(['import', file], options(fresh));
  expect(imported.json).toMatchObject({ state: 'completed', rejected: 1 });
  const again = await runJson<unknown>(['rejects', 'retry'], options(fresh));
  expect({ json: again.json, code: again.code }).toMatchObject({
    json: { runId: 2, tried: 1, resolved: 0, report: { unchanged: 98, rejected: 1 } },
    code: 1,
  });
  const shown = await runCli(['rejects', '1'], options(fresh));
  expect(shown.stdout).toContain(`record 49 of ${file}`);
  expect(shown.stdout).toMatch(/its file is kept \(1\)/);

  const pruned = await runJson<{ bodies: number }>(['prune'], options(fresh));
  expect(pruned.json).toMatchObject({ rejects: 0, bodies: 0 });
  const { json } = await runJson<unknown>(['rejects', 'retry'], options(fresh));
  expect(json).toMatchObject({ runId: 3, tried: 1, resolved: 0, open: [1], report: { rejected: 1 } });
});

test('a replay whose work breaks off is paused; one in the hands of another process is left alone', async () => {
  await query(
    url,
    `create function public.refuse() returns trigger language plpgsql as $$ begin raise 'out of order'; end $$;
     create trigger refuse before update on etl.windows for each row execute function public.refuse()`,
  );
  const broken = await runCli(['replay'], options());
  expect({ code: broken.code, stderr: broken.stderr }).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('out of order'),
  });
  await query(url, 'drop function public.refuse cascade');
  const newest = 'select id::int, state from etl.runs order by id desc limit 1';
  const [run] = await query<{ id: number; state: string }>(url, newest);
  expect(run).toMatchObject({ state: 'paused' });

  const other = new pg.Client({ connectionString: url });
  await other.connect();
  try {
    await other.query(`select pg_advisory_lock(hashtextextended('eod:replay:${run?.id}', 0))`);
    const second = await runCli(['runs', 'resume', String(run?.id)], options());
    expect({ code: second.code, stderr: second.stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is being worked on by another process'),
    });
    expect(await query(url, newest)).toEqual([{ id: run?.id, state: 'running' }]);
  } finally {
    await other.end();
  }
  const resumed = await runJson<RunReport>(['runs', 'resume', String(run?.id)], options());
  expect({ code: resumed.code, state: resumed.json.state }).toEqual({ code: 0, state: 'completed' });
});

test('prune deletes what is old enough, and only says so with --dry-run', async () => {
  await query(
    url,
    `insert into etl.runs (kind, requested_by, request, from_date, to_date, state, finished_at)
     values ('backfill', 'test', '{}', '2020-01-01', '2020-01-01', 'completed', '2020-01-01')`,
  );
  const responses = await query(url, 'select id, hash from etl.responses order by id');
  await query(
    url,
    `insert into etl.findings ("check", severity, operation, exchange, date, instrument, resolved_at)
     values ('row_count', 'warning', 'GetBhavCopyCM', 'NSE', '2025-01-01', 'A', now() - interval '500 days'),
            ('row_count', 'warning', 'GetBhavCopyCM', 'NSE', '2025-01-01', 'B', null)`,
  );
  const hours = 'select key_hash, hour, calls from etl.call_budget order by hour';
  const counted = await query(url, hours);
  await query(
    url,
    "insert into etl.call_budget (key_hash, hour, calls) values ('k', '2025-01-01T00:00Z', 7)",
  );
  await query(
    url,
    "insert into etl.response_bodies (hash, encoding, body, bytes) values ('unread', 'br', 'x', 1)",
  );
  const rows = await query(url, ROWS);
  const expected = { runs: 1, findings: 1, hours: 1, bodies: 1, bytes: 1 };
  const dry = await runJson<{ isDryRun: boolean }>(['prune', '--dry-run'], options());
  expect(dry.json).toMatchObject({ ...expected, isDryRun: true });
  const counts = await runCli(['prune', '--dry-run'], options());
  expect(counts.stdout.replaceAll(/\s+/g, ' ')).toMatch(
    /^would delete 1 run, .*1 unreadable response \(0 MB\); nothing else was older than 400 days $/,
  );
  expect(counts.stdout).not.toContain(' 0 alerts');
  const refused = await runCli(['prune'], { ...options(), typed: 'n' });
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(
    /^This permanently deletes 1 run, .*1 resolved finding, the call counts of 1 hour, 1 unreadable response \(0 MB\)\.\nGo on\? \[y\/N\] n\n/,
  );
  const real = await runJson<{ isDryRun: boolean }>(['prune', '--yes'], { ...options(), typed: 'n' });
  expect(real.json).toMatchObject({ ...expected, isDryRun: false });
  expect(await query(url, hours), 'the calls of this hour still count').toEqual(counted);
  expect(counted).not.toEqual([]);
  const again = await runCli(['prune'], options());
  expect(again.stdout).toBe('nothing is older than 400 days\n');
  // Kept responses stay, and what was loaded from them.
  expect(await query(url, 'select id, hash from etl.responses order by id')).toEqual(responses);
  expect(await query(url, ROWS)).toEqual(rows);
});
