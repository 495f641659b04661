import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
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
  const found = await query<{ id: number }>(url, 'select id::int from etl.runs order by id');
  return found.map(({ id }) => id);
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
