import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ImportReport } from '../../src/jobs/import/import-files.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { startCuttingProxy } from '../support/chaos/cutting-proxy.ts';
import { type RestartablePostgres, startRestartablePostgres } from '../support/chaos/postgres.ts';
import { newDatabase } from '../support/chaos/workload.ts';
import { runCli } from '../support/cli.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const FILE = fileURLToPath(
  new URL('../fixtures/bhavcopy/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv', import.meta.url),
);
const DAYS = ['--from', '2025-09-01', '--to', '2025-09-03'];

/** Every command that plans a run; the replay finds what those before it have loaded. */
const COMMANDS: readonly (readonly [name: string, ...args: string[]])[] = [
  ['backfill', 'GetBhavCopyCM', ...DAYS],
  ['nightly', '--date', '2025-09-05'],
  ['gaps', 'fill', 'GetCircuitBreakers', ...DAYS],
  ['import', FILE, '--force'],
  ['replay', 'GetBhavCopyCM'],
];

/** A report without its times. */
const timeless = (stdout: string): ImportReport =>
  JSON.parse(stdout, (name, value) =>
    ['startedAt', 'finishedAt', 'seconds'].includes(name) ? undefined : value,
  );

/** Those that load responses or files. */
const LOADING = COMMANDS.filter(([name]) => name !== 'replay');

const cwd = temporaryFolder();
let postgres: RestartablePostgres;
let sandbox: Sandbox;

beforeAll(async () => {
  postgres = await startRestartablePostgres(temporaryFolder());
  sandbox = await openSandbox({ instrumentsPerExchange: 20 });
});
afterAll(() => postgres.stop());

function start(args: readonly string[], databaseUrl: string) {
  return runCli([...args, '--json'], {
    cwd,
    env: {
      DATABASE_URL: databaseUrl,
      EOD_BASE_URL: sandbox.url,
      EOD_ACCESS_KEY: 'kiwi',
      EOD_EXCHANGES: 'NSE',
      EOD_INSTRUMENTS: 'TCS',
      EOD_CALLS_PER_HOUR: '100000',
      // What the connections of the queue and idle ones have to say is not the matter here.
      EOD_LOG_LEVEL: 'silent',
    },
  });
}

async function runIds(url: string): Promise<number[]> {
  const rows = await query<{ id: number }>(url, 'select id::int from etl.runs order by id');
  return rows.map(({ id }) => id);
}

describe('Postgres dies while a run is being written', () => {
  let url: string;
  beforeAll(async () => {
    url = await newDatabase(postgres.adminUrl, 'planning');
  });

  test.each(COMMANDS)('eod %s plans it again', async (...args) => {
    const before = await runIds(url);
    const { code, stdout, stderr } = await restartedWhileWriting(url, 'etl.runs', args);
    expect([code, stderr.match(/trying again for up to 60 s/g)]).toEqual([0, [expect.any(String)]]);
    const report = JSON.parse(stdout) as RunReport;
    expect(report).toMatchObject({ state: 'completed', windows: { open: 0, failed: 0 } });
    expect(await runIds(url)).toEqual([...before, report.runId]);
  });

  test('and a replay that is under way goes on with what is left', async () => {
    const { code, stdout } = await restartedWhileWriting(url, 'market.bhavcopy_cm', ['replay']);
    expect(code).toBe(0);
    const { windows } = JSON.parse(stdout) as RunReport;
    expect(windows).toMatchObject({ open: 0, failed: 0 });
    expect(windows.loaded + windows.empty + windows.skipped).toBe(windows.total);
  });
});

describe.each(['etl.windows', 'etl.loads'])('Postgres dies while a command writes to %s', (table) => {
  let url: string;
  beforeAll(async () => {
    url = await newDatabase(postgres.adminUrl, `working_${table.slice(4)}`);
  });

  test.each(LOADING)('eod %s goes on', async (...args) => {
    const { code, stdout, stderr } = await restartedWhileWriting(url, table, args);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expectLoaded(stdout);
  });
});

describe('Postgres restarts again and again', () => {
  test('an import loads and counts the same as an undisturbed one', async () => {
    const folder = temporaryFolder();
    const days = Array.from({ length: 28 }, (_, at) => `2025-08-${String(at + 1).padStart(2, '0')}`);
    for (const day of days) {
      const text = readFileSync(FILE, 'utf8').replaceAll('2025-08-29', day);
      writeFileSync(join(folder, basename(FILE).replace('20250829', day.replaceAll('-', ''))), text);
    }
    const [calm, stormy] = [
      await newDatabase(postgres.adminUrl, 'calm'),
      await newDatabase(postgres.adminUrl, 'stormy'),
    ];
    const expected = timeless((await start(['import', folder], calm)).stdout);
    const command = start(['import', folder], stormy);
    let isOver = false;
    void command.finally(() => {
      isOver = true;
    });
    const loaded = "select from etl.windows where state = 'loaded'";
    let restarts = 0;
    for (let least = 1; !isOver && restarts < 6; least += 4) {
      await waitFor(async () => isOver || (await query(stormy, loaded)).length >= least, { what: 'a load' });
      if (isOver) break;
      await postgres.restart(restarts % 2 === 0 ? 'fast' : 'immediate');
      restarts += 1;
    }
    const { code, stdout, stderr } = await command;
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(restarts).toBeGreaterThan(2);
    expect(timeless(stdout)).toEqual(expected);
    const rows =
      'select symbol, series, trade_date::text, close_price::text from market.bhavcopy_cm order by 1, 2, 3';
    expect(await query(stormy, rows)).toEqual(await query(calm, rows));
  });
});

function expectLoaded(stdout: string): void {
  const { state, windows, fetched } = JSON.parse(stdout) as RunReport;
  const ended = { open: 0, failed: 0, cancelled: 0 };
  expect({ state, windows }).toMatchObject({ state: 'completed', windows: ended });
  expect(Math.min(windows.loaded, fetched)).toBeGreaterThan(0);
}

/** Runs a command, and kills Postgres once the command wants to write to the table. */
async function restartedWhileWriting(url: string, table: string, args: readonly string[]) {
  const blocker = new pg.Client({ connectionString: url });
  blocker.on('error', () => undefined);
  await blocker.connect();
  await blocker.query('begin');
  await blocker.query(`lock table ${table} in share mode`);
  const command = start(args, url);
  const waiting = 'select from pg_locks where not granted and relation = $1::regclass';
  await waitFor(async () => (await query(url, waiting, [table])).length > 0, {
    what: `a command that writes to ${table}`,
  });
  await postgres.restart('immediate');
  return command;
}

describe('the connection breaks after a run was written, before anybody hears of it', () => {
  let url: string;
  beforeAll(async () => {
    url = await newDatabase(postgres.adminUrl, 'outcome');
  });

  test.each(COMMANDS)('eod %s does not write another', async (...args) => {
    const before = await runIds(url);
    const statement = /insert into "?etl"?\."?runs"?/;
    const proxy = await startCuttingProxy(url, {
      statement,
      last: args[0] === 'import' ? statement : /commit/,
    });
    const { code, stdout, stderr } = await start(args, proxy.url);
    expect([code, stderr.match(/trying again for up to 60 s/g)]).toEqual([0, [expect.any(String)]]);
    expect(proxy.struck()).toBe(true);
    const report = JSON.parse(stdout) as RunReport;
    expect(report).toMatchObject({ state: 'completed', windows: { open: 0, failed: 0 } });
    expect(report.windows.total).toBeGreaterThan(0);
    expect(await runIds(url)).toEqual([...before, report.runId]);
    await proxy.close();
  });
});

describe('the connection breaks after rows were committed, before anybody hears of it', () => {
  let url: string;
  beforeAll(async () => {
    url = await newDatabase(postgres.adminUrl, 'unheard');
  });

  test.each(LOADING)('eod %s goes on', async (...args) => {
    const statement = /insert into "?etl"?\."?loads"?/;
    const proxy = await startCuttingProxy(url, { statement, last: /commit/ });
    const { code, stdout, stderr } = await start(args, proxy.url);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(proxy.struck()).toBe(true);
    expectLoaded(stdout);
    await proxy.close();
  });
});
