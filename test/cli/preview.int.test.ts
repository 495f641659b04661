import { beforeAll, describe, expect } from 'vitest';
import { exampleDays } from '../../src/core/clock.ts';
import type { Gaps } from '../../src/jobs/runs/read-gaps.ts';
import type { Status } from '../../src/jobs/runs/read-status.ts';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { runCli, runJson, unwrapped } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { countsOf } from '../support/pipeline.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { bhavFolder, FOLDER_DAY } from './bhav-folder.ts';
import { test } from './support.ts';

const cwd = temporaryFolder();
const RANGE = ['--from', FOLDER_DAY, '--to', FOLDER_DAY];
const ARGS = ['backfill', 'GetBhavCopyCM', ...RANGE];
const CORRECTION = { without: ['GAIL', 'ABAN'], close: { TCS: '3333.3' }, added: ['NEWCO'] };

const settings = (databaseUrl: string, source: Sandbox) => ({
  cwd,
  env: { DATABASE_URL: databaseUrl, EOD_BASE_URL: source.url, EOD_ACCESS_KEY: 'kiwi', EOD_CONCURRENCY: '1' },
});

/** What a preview writes too: its own run, and what its calls show about the key, the hour, the time and the source. */
const ABOUT_CALLS = [
  'etl.runs',
  'etl.windows',
  'etl.call_budget',
  'etl.clock',
  'etl.access_keys',
  'etl.workers',
  'etl.database_identity',
];

/** Every table of both schemas to the byte, but for these. */
async function contents(url: string): Promise<Record<string, string>> {
  const all = await query<{ name: string }>(
    url,
    `select format('%s.%s', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname in ('etl', 'market', 'market_history') and c.relkind in ('r', 'p') order by 1`,
  );
  const names = all.map(({ name }) => name).filter((name) => !ABOUT_CALLS.includes(name));
  const found: Record<string, string> = {};
  for (const name of names) {
    const [row] = await query<{ rows: string }>(
      url,
      `select count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as rows from ${name} t`,
    );
    found[name] = row?.rows ?? '';
  }
  return found;
}

describe('a preview of a correction', () => {
  let url: string;
  let corrected: Sandbox;
  beforeAll(async () => {
    url = (await testDatabase()).url;
    const first = await openSandbox({ dataDir: bhavFolder() });
    corrected = await openSandbox({ dataDir: bhavFolder(CORRECTION) });
    const { json } = await runJson<RunReport>(ARGS, settings(url, first));
    expect(json).toMatchObject({ state: 'completed', inserted: 200 });
  });

  test('counts and shows on both exchanges what the backfill then does, and stores nothing', async () => {
    const before = await contents(url);
    expect(before['market.bhavcopy_cm']).toMatch(/^200 /);
    const { code, json } = await runJson<RunReport>(
      [...ARGS, '--force', '--preview'],
      settings(url, corrected),
    );
    expect(await contents(url)).toEqual(before);
    expect(code).toBe(0);
    expect(json).toMatchObject({ kind: 'preview', state: 'completed', requests: 2, suspicious: [] });
    const each = {
      fetched: 100,
      inserted: 1,
      updated: 1,
      unchanged: 98,
      stale: 0,
      rejected: 0,
      withdrawn: 1,
    };
    expect(json.operations).toMatchObject([
      { exchange: 'BSE', ...each },
      { exchange: 'NSE', ...each },
    ]);
    const sample = (change: string, exchange: string, symbol: string, series: string, columns = {}) => ({
      table: 'market.bhavcopy_cm',
      change,
      columns,
      key: { exchange, symbol, series, trade_date: FOLDER_DAY },
    });
    expect(json.preview).toEqual([
      sample('updated', 'BSE', 'TCS', 'A', { close_price: { old: '3049.45', new: '3333.3' } }),
      sample('withdrawn', 'BSE', 'GAIL', 'A'),
      sample('inserted', 'BSE', 'NEWCO', 'A'),
      sample('updated', 'NSE', 'TCS', 'EQ', { close_price: { old: '3084.7', new: '3333.3' } }),
      sample('withdrawn', 'NSE', 'ABAN', 'EQ'),
      sample('inserted', 'NSE', 'NEWCO', 'GB'),
    ]);

    const human = await runCli([...ARGS, '--force', '--preview'], settings(url, corrected));
    expect(human.code).toBe(0);
    expect(unwrapped(human.stdout)).toContain(
      'nothing was stored; it would insert 2, update 2 and withdraw 2 rows (196 unchanged, 0 stale, 0 rejected), for example\n',
    );
    expect(human.stdout).toMatch(/^updated +NSE +TCS +EQ +2025-09-09 +close_price: 3084\.7 → 3333\.3$/m);
    expect(human.stdout).toMatch(/^withdrawn +BSE +GAIL +A +2025-09-09$/m);
    expect(await contents(url)).toEqual(before);

    const real = await runJson<RunReport>([...ARGS, '--force'], settings(url, corrected));
    expect(countsOf(real.json)).toEqual(countsOf(json));
    expect(await contents(url)).not.toEqual(before);
  });

  test('skips what is loaded as the backfill would, asks nothing, and says how to compare it', async () => {
    const asked = corrected.stats().requests;
    const { code, stdout } = await runCli([...ARGS, '--preview'], settings(url, corrected));
    expect(code).toBe(0);
    expect(stdout).toContain(
      '2 windows skipped: loaded already\nwhat is loaded already is asked for again with --force\n',
    );
    expect(corrected.stats().requests).toBe(asked);
  });
});

test('a preview into an empty database leaves it empty, rejects too, and the day as missing as before', async () => {
  const { url } = await testDatabase();
  // `n/a` is no price: one record is rejected.
  const source = await openSandbox({ dataDir: bhavFolder({ close: { TCS: 'n/a' } }) });
  const { env } = settings(url, source);
  const options = { cwd, env: { ...env, EOD_HISTORY_DAYS: '10000' } };
  const scope = ['GetBhavCopyCM', ...RANGE, '--exchange', 'BSE'];
  // The first command writes the calendar.
  const before = await runJson<Gaps>(['gaps', ...scope], options);
  const empty = await contents(url);
  const { json } = await runJson<RunReport>(['backfill', ...scope, '--preview'], options);
  expect(json).toMatchObject({ inserted: 99, rejected: 1, requests: 1 });
  expect(json.preview.map(({ change }) => change)).toEqual(Array(5).fill('inserted'));
  expect(await contents(url)).toEqual(empty);
  const after = await runJson<Gaps>(['gaps', ...scope], options);
  expect(after.json).toEqual(before.json);
  expect(after.json.gaps).toMatchObject([{ reason: 'never_asked', sessions: 1 }]);
});

test('an older answer than the stored one is stale', async ({ url }) => {
  const market = { instrumentsPerExchange: 30 };
  const range = ['--from', '2025-09-01', '--to', FOLDER_DAY];
  const args = ['backfill', 'GetBhavCopyCM', ...range, '--exchange', 'NSE'];
  const newer = await runJson<RunReport>(args, settings(url, await openSandbox({ ...market, revision: 2 })));
  const before = await contents(url);
  const older = await openSandbox(market);
  const { json } = await runJson<RunReport>([...args, '--force', '--preview'], settings(url, older));
  expect(json.stale).toBeGreaterThan(0);
  expect(json).toMatchObject({ inserted: 0, updated: 0, withdrawn: 0, preview: [] });
  expect(json.stale + json.unchanged).toBe(newer.json.inserted);
  expect(await contents(url)).toEqual(before);
});

test('an answer that lacks too many rows is suspicious: told, but not held against the operation', async () => {
  const { url } = await testDatabase();
  const load = await runJson<RunReport>(ARGS, settings(url, await openSandbox({ dataDir: bhavFolder() })));
  expect(load.json.inserted).toBe(200);
  const before = await contents(url);
  const short = settings(url, await openSandbox({ dataDir: bhavFolder({ lessAtEnd: 11 }) }));
  const reason = expect.stringMatching(/^11 of 100 rows of market\.bhavcopy_cm were not listed any more/);
  const { code, json } = await runJson<RunReport>([...ARGS, '--force', '--preview'], short);
  expect(code).toBe(0);
  expect(json).toMatchObject({ withdrawn: 0, unchanged: 178 });
  expect(json.suspicious).toMatchObject([
    { operation: 'GetBhavCopyCM', exchange: 'BSE', from: FOLDER_DAY, to: FOLDER_DAY, reason },
    { operation: 'GetBhavCopyCM', exchange: 'NSE', from: FOLDER_DAY, to: FOLDER_DAY, reason },
  ]);
  const human = await runCli(['run', '2'], short);
  expect(unwrapped(human.stdout)).toMatch(
    /^suspicious: GetBhavCopyCM NSE 2025-09-09: 11 of 100 rows .*WITHDRAW_SHARE/m,
  );
  const runs = await runCli(['runs'], short);
  expect(runs.stdout).toMatch(/^ *2 +preview .* 2 of \d+ suspicious$/m);
  const status = await runJson<Status>(['status'], short);
  expect(status.json.operations.map(({ suspiciousWindows }) => suspiciousWindows)).toEqual(
    status.json.operations.map(() => 0),
  );
  expect(await contents(url)).toEqual(before);
});

test('a preview that fails, or is refused for good, leaves the coverage as it is', async ({ url }) => {
  const market = { instrumentsPerExchange: 30 };
  // Among so few companies no series changes: the days are complete without a record.
  const args = ['backfill', 'GetSeriesChange', '--from', '2025-08-25', '--to', FOLDER_DAY];
  const load = await runJson<RunReport>(args, settings(url, await openSandbox(market)));
  expect(load.json).toMatchObject({ state: 'completed', fetched: 0 });
  const before = await contents(url);
  for (const fault of [
    { kind: 'status', value: '404' },
    { kind: 'diagnostic', value: 'Function not enabled.' },
  ] as const) {
    const broken = await openSandbox({ ...market, behaviour: { faults: [fault] } });
    const { code, json } = await runJson<RunReport>([...args, '--force', '--preview'], settings(url, broken));
    expect([code, json.state]).toEqual([1, 'failed']);
    expect(await contents(url)).toEqual(before);
  }
});

test('a preview of days of which nothing is known writes down no holiday', async ({ url }) => {
  const args = ['backfill', 'GetSeriesChange', '--from', '2025-08-25', '--to', FOLDER_DAY, '--preview'];
  await runJson<RunReport>(args, settings(url, await openSandbox({ instrumentsPerExchange: 30 })));
  expect(await query(url, 'select * from etl.coverage')).toEqual([]);
});

test.each([['--detach'], ['--dry-run']])('--preview %s makes no sense', async (flag) => {
  const { code, stdout, stderr } = await runCli([...ARGS, '--preview', flag], { cwd });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/'--preview' cannot be used with option/);
});

test('every operation can be previewed, before and after it is loaded', async ({ url }) => {
  const few = (source: Sandbox) => {
    const { env } = settings(url, source);
    return { cwd, env: { ...env, EOD_INSTRUMENT_LIMIT: '1', EOD_CONCURRENCY: '4' } };
  };
  const { from, to } = exampleDays();
  const args = ['backfill', '--all', '--from', from, '--to', to];
  const first = few(await openSandbox({ instrumentsPerExchange: 20 }));
  await runCli(['gaps', '--from', from, '--to', to], first);
  const empty = await contents(url);
  const before = await runJson<RunReport>([...args, '--preview'], first);
  expect(before.json).toMatchObject({ state: 'completed', failures: [] });
  expect(await contents(url)).toEqual(empty);
  expect((await runJson<RunReport>(args, first)).json).toMatchObject({ state: 'completed' });
  const loaded = await contents(url);
  const grown = few(await openSandbox({ instrumentsPerExchange: 22 }));
  const after = await runJson<RunReport>([...args, '--preview', '--force'], grown);
  expect(after.json).toMatchObject({ state: 'completed', failures: [] });
  expect(after.json.inserted).toBeGreaterThan(0);
  expect(await contents(url)).toEqual(loaded);
});
