import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect } from 'vitest';
import type { ImportReport } from '../../src/jobs/import/import-files.ts';
import type { Status } from '../../src/jobs/runs/read-status.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { startCuttingProxy } from '../support/chaos/cutting-proxy.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { zip } from '../support/zip.ts';
import { test } from './support.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url));

/** A folder with files of every format, one of them cut. */
function folderOfFiles(): string {
  const cwd = temporaryFolder();
  cpSync(join(FIXTURES, 'files'), join(cwd, 'archive', 'old'), { recursive: true });
  cpSync(join(FIXTURES, 'bhavcopy'), join(cwd, 'archive'), { recursive: true });
  return cwd;
}

/** The flag in an archive which says that the name of an entry is UTF-8. */
const UTF8_NAME = 0x800;

describe('eod import', () => {
  test('needs no source, names the bad file, exits with 1, and is quick to run again', async () => {
    const cwd = folderOfFiles();
    const { url } = await testDatabase();
    const options = { cwd, env: { DATABASE_URL: url } };
    const first = await runCli(['import', 'archive', '--json'], options);
    expect(first.code).toBe(1);
    const report = JSON.parse(first.stdout) as ImportReport;
    expect(report).toMatchObject({ kind: 'import', state: 'failed', requests: 0, left: 0 });
    expect(report.files).toHaveLength(8);
    expect(first.stderr).toContain('1 file refused:');
    expect(first.stderr).toContain(
      `${join('archive', 'old', 'sec_bhavdata_full_18112024.csv')}: cannot be read`,
    );
    const { file: bad, error } = report.files.find(({ state }) => state === 'failed') ?? {};
    expect(report.failures).toEqual([
      {
        windowId: null,
        operation: null,
        exchange: null,
        from: null,
        to: null,
        instruments: [],
        variant: '',
        state: 'failed',
        error: `${bad}: ${error}`,
      },
    ]);
    expect(report.files.find(({ format }) => format === 'bse-equity')).toEqual({
      file: join('archive', 'old', 'EQ070421.CSV'),
      format: 'bse-equity',
      state: 'loaded',
      error: null,
      sessions: [{ exchange: 'BSE', day: '2021-04-07' }],
      rows: 60,
      inserted: 60,
      updated: 0,
      unchanged: 0,
      stale: 0,
      duplicate: 0,
      rejected: 0,
      withdrawn: 0,
      tables: { bhavcopy_cm: 60 },
      formats: [
        {
          format: 'bse-equity',
          sessions: 1,
          records: 60,
          rejected: 0,
          passedOver: 0,
          tables: ['bhavcopy_cm'],
        },
      ],
      form: null,
      leftOut: [],
    });
    const full = join(cwd, 'archive', 'old', 'sec_bhavdata_full_14112024.csv');
    expect((await runCli(['import', full, '--force'], options)).stdout).toMatch(
      /^1 file: 1 loaded, 0 skipped, 0 not recognised, 0 refused\nformat .* in market\nnse-full +1 +100 +0 +0 {2}bhavcopy_cm, deliveries$/m,
    );

    const again = await runCli(['import', join(cwd, 'archive')], options);
    expect(again.code).toBe(1);
    expect(again.stdout).toContain(
      '8 files: 0 loaded, 7 skipped (7 imported before), 0 not recognised, 1 refused',
    );
    // Nothing was loaded, so the run has no days, and nothing to count.
    expect(again.stdout).toMatch(
      /^run \d+ \(import\): failed after .*\n0 windows, 0 requests\nstarted .*\n\ndatabase state/,
    );
    expect((await runCli(['runs', '2'], options)).stdout).toMatch(/^run 2 \(import, 2024-11-14\)/);
    expect((await runCli(['runs', '3'], options)).stdout).toMatch(/^run 3 \(import\)/);
    expect((await runCli(['runs'], options)).stdout).toMatch(/^ +3 +import +failed +\S+ \S+ +0$/m);
    expect(again.stdout).toMatch(/^database state \d+, as before$/m);
    const status = await runCli(['status'], options);
    expect(status.stdout).toMatch(/^data set +exchange +complete to +latest +missing/m);
    expect(status.stdout).toMatch(/^bhavcopy_cm +BSE +2021-04-07 +2025-09-09 +29 +100$/m);
    expect(status.stdout).toContain('“missing” counts the last 30 trading days; eod gaps lists all of them');
    expect(status.stdout).toContain('\ncome from files: deliveries, bhavcopy_cm');
    const { operations } = (await runJson<Status>(['status'], options)).json;
    for (const operation of operations) {
      expect(operation).toMatchObject({ hasBeenRequested: false, lastRun: null, lastRequestedAt: null });
    }
    const good = await runCli(['import', join(cwd, 'archive', 'old', 'EQ070421.CSV'), '--force'], options);
    expect(good.code).toBe(0);
    expect(good.stdout).toContain('1 file: 1 loaded, 0 skipped, 0 not recognised, 0 refused');

    const shown = await runJson<RunReport>(['runs', '1'], options);
    expect(shown.json).toMatchObject({ kind: 'import', state: 'failed' });
    expect(shown.json.error).toContain('sec_bhavdata_full_18112024.csv');
    const resumed = await runCli(['runs', 'resume', '1'], options);
    expect(resumed.code).toBe(2);
    expect(resumed.stderr).toContain('run 1 is an import: import the same files again');
  });

  test('says how many rows a file withdraws, and between which states', async ({ url }) => {
    const cwd = temporaryFolder();
    const options = { cwd, env: { DATABASE_URL: url } };
    const lines = readFileSync(
      join(FIXTURES, 'bhavcopy/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv'),
      'utf8',
    ).split('\n');
    writeFileSync(join(cwd, 'whole.csv'), lines.join('\n'));
    writeFileSync(join(cwd, 'short.csv'), [...lines.slice(0, 10), ...lines.slice(12)].join('\n'));
    await runCli(['import', join(cwd, 'whole.csv')], options);
    const { stdout } = await runCli(['import', join(cwd, 'short.csv')], options);
    expect(stdout).toContain('database state 1 → 2');
    expect(stdout).toMatch(/2 rows not listed any more/);
  });

  test('names files of unknown form, a line for each form, and fails for them only if it is strict', async ({
    url,
  }) => {
    const cwd = temporaryFolder();
    const options = { cwd, env: { DATABASE_URL: url } };
    cpSync(join(FIXTURES, 'files/EQ070421.CSV'), join(cwd, 'in', 'EQ070421.CSV'));
    for (const name of ['funds', 'funds2', 'funds3'])
      writeFileSync(join(cwd, 'in', `${name}.csv`), `Date,Symbol,Client\n1,${name},x\n`);
    const { code, stdout, stderr } = await runCli(['import', 'in'], options);
    expect(code).toBe(0);
    expect(stdout).toContain('4 files: 1 loaded, 0 skipped, 3 not recognised, 0 refused');
    expect(stderr).toContain('3 files not recognised:');
    expect(stderr).toContain(`  "Date,Symbol,Client": ${join('in', 'funds.csv')} and 2 more`);
    expect(stderr).not.toContain('funds2');
    expect((await runCli(['import', 'in', '--strict'], options)).code).toBe(1);
    expect((await runCli(['import', join('in', 'funds.csv')], options)).code).toBe(1);
    const entries = ['in/funds.csv', 'in/funds2.csv', 'in/EQ070421.CSV'].map((name) => ({
      name: basename(name),
      text: readFileSync(join(cwd, name)),
    }));
    writeFileSync(join(cwd, 'all.zip'), zip(entries));
    const archive = await runCli(['import', 'all.zip'], options);
    expect(archive.code).toBe(0);
    expect(archive.stdout).toContain(
      '1 file: 1 loaded, 0 skipped, 0 not recognised (and 2 in archives), 0 refused',
    );
    expect(archive.stderr).toContain(
      '2 files not recognised:\n  "Date,Symbol,Client": all.zip/funds.csv and 1 more',
    );
  });

  test('prints no name of a file on several lines, and refuses a link that leads out of the folder', async ({
    url,
  }) => {
    const cwd = temporaryFolder();
    const options = { cwd, env: { DATABASE_URL: url } };
    const name = (kind: string) => `${kind}\n1 file: 1 loaded\u001b[2J.csv`;
    const shown = (kind: string) => `${kind}\\u000a1 file: 1 loaded\\u001b[2J.csv`;
    mkdirSync(join(cwd, 'archive'));
    symlinkSync(join(cwd, 'archive'), join(cwd, 'in'));
    cpSync(join(FIXTURES, 'files/EQ070421.CSV'), join(cwd, 'EQ070421.CSV'));
    const equity = readFileSync(join(FIXTURES, 'files/EQ070421.CSV'));
    const text = 'Date,Symbol,Client\n';
    for (const kind of ['unknown', 'other']) writeFileSync(join(cwd, 'in', name(kind)), `${text}${kind}`);
    writeFileSync(join(cwd, 'in', name('bad')), '<html>');
    writeFileSync(
      join(cwd, 'in', 'all.zip'),
      zip([
        { name: name('packed'), text, says: { flags: UTF8_NAME } },
        { name: 'EQ080421.CSV', text: equity },
      ]),
    );
    symlinkSync(join(cwd, 'EQ070421.CSV'), join(cwd, 'in', name('link')));
    const { code, stdout, stderr } = await runCli(['import', 'in'], options);
    expect(code).toBe(1);
    expect(stdout).toContain('5 files: 1 loaded, 0 skipped, 2 not recognised (and 1 in archives), 2 refused');
    expect(stderr).toContain(
      `  in/${shown('link')}: is a link that leads out of the folder that was named; name what it leads to as well`,
    );
    expect(stderr).toContain(`  in/${shown('bad')}: is a web page`);
    expect(stderr).toContain(`  "Date,Symbol,Client": in/all.zip/${shown('packed')} and 2 more`);
    const { stdout: run } = await runCli(['runs', '1'], options);
    for (const printed of [stdout, stderr, run]) {
      expect(printed).not.toMatch(/^1 file: 1 loaded/m);
      expect(printed).not.toContain('\u001b[2J');
    }
  });

  test('names files with nothing to load, which were not imported before', async ({ url }) => {
    const cwd = temporaryFolder();
    const options = { cwd, env: { DATABASE_URL: url } };
    writeFileSync(
      join(cwd, 'series_change.csv'),
      'Symbol,Security,From Series,To Series,Change Date,Remarks\nNIL,,,,,\n',
    );
    const { code, stdout, stderr } = await runCli(['import', 'series_change.csv'], options);
    expect(code).toBe(0);
    expect(stdout).toContain('1 file: 0 loaded, 1 skipped, 0 not recognised, 0 refused');
    expect(stderr).toContain(
      '1 file with nothing to load:\n  series_change.csv: has no line that is stored\n',
    );
  });

  test('a path that is not there is a mistake on the command line', async ({ url }) => {
    const result = await runCli(['import', 'nowhere.csv'], {
      cwd: temporaryFolder(),
      env: { DATABASE_URL: url },
    });
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(/^eod: nowhere\.csv cannot be read/);
  });
});

const LOADED = "select from etl.windows where state = 'loaded'";
const SQL = /select|insert|update /i;

describe('an interrupted import', () => {
  test('says so, prints its report, and ends its run', async ({ url }) => {
    const cwd = folderOfFiles();
    const env = { DATABASE_URL: url, EOD_CONCURRENCY: '1' };
    const started = startCli(['import', join(cwd, 'archive'), '--json'], { cwd, env });
    await waitFor(async () => (await query(url, LOADED)).length > 0, { timeoutMs: 20_000, everyMs: 5 });
    started.signal('SIGINT');
    const { code, stdout, stderr } = await started.ended;
    expect(code).toBe(130);
    const report = JSON.parse(stdout) as ImportReport;
    expect(report.state).toBe('cancelled');
    expect(report.left).toBeGreaterThan(0);
    expect(stderr).toMatch(/^stopped: \d files left; import the same files again to go on$/m);
    expect(stderr).not.toMatch(SQL);
    const states = await query(url, 'select state from etl.runs');
    expect(states).toEqual([{ state: 'cancelled' }]);
  });

  test('goes on when Postgres is back', async ({ url }) => {
    const proxy = await startCuttingProxy(url);
    const cwd = folderOfFiles();
    const env = { DATABASE_URL: proxy.url, EOD_CONCURRENCY: '1' };
    const started = startCli(['import', join(cwd, 'archive'), '--json'], { cwd, env });
    await waitFor(async () => (await query(url, LOADED)).length > 0, { timeoutMs: 20_000, everyMs: 5 });
    proxy.setAway(true);
    await started.output(/trying again/);
    proxy.setAway(false);
    const { stdout, stderr } = await started.ended;
    await proxy.close();
    expect(stderr).not.toMatch(SQL);
    const report = JSON.parse(stdout) as ImportReport;
    const errors = report.files.flatMap(({ state, error }) => (state === 'failed' ? [error] : []));
    expect(errors).toEqual(['cannot be read: the CSV breaks off inside its last row']);
    expect(report).toMatchObject({ left: 0, windows: { open: 0, failed: 0, cancelled: 0 } });
  });

  test('ends with 1 when Postgres stays away', async ({ url }) => {
    const proxy = await startCuttingProxy(url);
    const cwd = folderOfFiles();
    const env = { DATABASE_URL: proxy.url, EOD_CONCURRENCY: '1', EOD_SERVER_PATIENCE_MS: '1000' };
    const started = startCli(['import', join(cwd, 'archive'), '--json'], { cwd, env });
    await waitFor(async () => (await query(url, LOADED)).length > 0, { timeoutMs: 20_000, everyMs: 5 });
    proxy.setAway(true);
    const { code, stdout, stderr } = await started.ended;
    await proxy.close();
    expect(code).toBe(1);
    expect(stderr.trim().split('\n').at(-1)).toMatch(/^eod: Postgres: /);
    expect(JSON.parse(stdout)).toMatchObject({ error: { kind: 'database_unreachable', exitCode: 1 } });
  });
});
