import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, expect, test, vi } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import { EXAMPLES } from '../../src/load/examples.ts';
import { defaultOperations } from '../../src/operations/index.ts';
import { listedAs } from '../../src/operations/registry.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { spawnEod } from '../support/eod.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const cwd = temporaryFolder();
/** Settings of a real installation, which a demo must not touch. */
const env = {
  DATABASE_URL: 'postgres://eod:hunter2@127.0.0.1:1/eod',
  REDIS_URL: 'redis://127.0.0.1:1',
  EOD_BASE_URL: 'http://127.0.0.1:1',
  EOD_EXCHANGES: 'NSE',
  // A setting that the demo respects; four demos with more instruments would take a minute.
  EOD_INSTRUMENT_LIMIT: '2',
};

/** Is the demo's Postgres running? */
function serverRuns(): boolean {
  const { pid } = JSON.parse(readFileSync(join(cwd, '.eod/demo/postgres/server.json'), 'utf8')) as {
    pid: number;
  };
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Waits for its end: a process that has ended still exists until its parent, or the system, has taken notice. */
async function serverGone(): Promise<void> {
  await waitFor(() => !serverRuns(), { what: 'the end of the private Postgres' });
}

/** The counts of the table's last line, by their heads. */
function totals(stdout: string): Record<string, number> {
  const heads = (/^data set +exchange +(.*)$/m.exec(stdout)?.[1] ?? '').split(/ +/);
  const values = (/^total +(.*)$/m.exec(stdout)?.[1] ?? '').split(/ +/);
  return Object.fromEntries(heads.map((head, at) => [head, Number(values[at]?.replaceAll(',', ''))]));
}

/** Lines that do not fit on a terminal. */
const longLines = (text: string) => text.split('\n').filter((line) => [...line].length > 80);

test('the demo loads a week of everything, then finds all of it unchanged, and leaves nothing running', async () => {
  const first = await runCli(['demo'], { cwd, env });
  expect(first.stderr).not.toMatch(/eod:|"level"/);
  expect(first.code).toBe(0);
  for (const { name } of defaultOperations)
    expect(first.stdout).toMatch(new RegExp(`^${listedAs(name)} `, 'm'));
  const { windows, fetched, inserted, unchanged = 0, ...others } = totals(first.stdout);
  expect(others).toEqual({});
  expect(inserted).toBeGreaterThan(5_000);
  expect(inserted).toBe((fetched ?? 0) - unchanged);
  expect(first.stdout.match(/;$/gm)).toHaveLength(3);
  expect(first.stdout).toMatch(
    /eod --demo status .*\n.*eod --demo web .*\n.*eod --demo runs 1 .*\n.*eod demo --keep /,
  );
  expect(first.stdout).toMatch(
    /"eod init", set\s+EOD_BASE_URL,\s+EOD_ACCESS_KEY\s+and\s+DATABASE_URL in it, then\n\n {2}eod migrate\n {2}eod backfill .*\n {2}eod up\n/,
  );
  expect(first.stdout).toMatch(/Run "npm link" first, or use\s+"npx eod"/);
  await serverGone();

  const second = await runCli(['demo', '--json'], { cwd, env });
  expect(second.code).toBe(0);
  const { report, queries } = JSON.parse(second.stdout) as { report: RunReport; queries: unknown[] };
  // Run 2 has made the corporate events of the first.
  expect(report).toMatchObject({ runId: 3, windows: { total: windows }, fetched, unchanged: fetched });
  expect(queries).toHaveLength(3);
  await serverGone();

  // The demo's data can be looked at afterwards, whatever the settings are for; the tables fit on a terminal.
  // The splits and consolidations in it are no fault of the data.
  const checked = await runCli(['--demo', 'reconcile', '--json'], { cwd, env });
  expect(checked.code).toBe(0);
  expect(
    (JSON.parse(checked.stdout) as { checks: { open: number }[] }).checks.filter(({ open }) => open > 0),
  ).toEqual([]);
  const status = await runCli(['--demo', 'status'], { cwd, env });
  expect(status).toMatchObject({ code: 0, stderr: '' });
  for (const { name } of defaultOperations)
    expect(status.stdout).toMatch(new RegExp(`^${listedAs(name)} `, 'm'));
  expect(status.stdout).not.toMatch(/nothing| late /);
  const nightly = await runCli(['--demo', 'nightly', '--dry-run'], { cwd, env });
  expect(nightly.stdout).toMatch(/^the sandbox does not limit calls: /m);
  // The demo brings its sandbox along, also for what no schedule requests; the days before its week are then a gap.
  const { to } = report;
  for (const args of [
    ['nightly'],
    ['backfill', 'GetBhavCopyCM', '--from', addDays(to, -21), '--to', addDays(to, -19)],
    ['gaps', 'fill'],
  ]) {
    const { code, json } = await runJson<RunReport>(['--demo', ...args], { cwd, env });
    expect({ args, code, state: json.state }).toEqual({ args, code: 0, state: 'completed' });
    expect(json.requests).toBeGreaterThan(0);
  }
  const doctor = await runCli(['--demo', '-v', 'doctor'], { cwd, env });
  expect(doctor).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok +rights /m) });
  expect(doctor.stdout).toMatch(/^skipped +source +the demo starts a simulated source/m);
  const runs = await runCli(['runs', '--demo'], { cwd, env });
  expect(runs.stdout).toMatch(/^ *3 +backfill +completed +\d\d-\d\d \d\d:\d\d /m);
  const run = await runCli(['--demo', 'runs', '1'], { cwd, env });
  expect(run.stdout).toMatch(/^started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(Asia\/Kolkata\)$/m);
  for (const { stdout } of [first, status, doctor, runs, run]) expect(longLines(stdout)).toEqual([]);
  await serverGone();

  const kept = startCli(['demo', '--keep'], { cwd, env });
  await kept.output(/keep running until Ctrl-C/, 30_000);
  expect(kept.stdout()).toContain('all records are unchanged');
  expect(serverRuns()).toBe(true);
  const [, address] = /^ {2}psql \\\n *'(.+)'$/m.exec(kept.stdout()) ?? [];
  expect(address).toMatch(/^postgres:\/\/eod:\w+@127\.0\.0\.1:\d+\/eod\?sslmode=disable$/);
  const client = new pg.Client({ connectionString: address });
  await client.connect();
  const rows: (number | null)[] = [];
  for (const { sql } of EXAMPLES) rows.push((await client.query(sql)).rowCount);
  await client.end();
  expect(rows.map((count) => count !== null && count > 0)).toEqual([true, true, true]);
  kept.signal('SIGINT');
  expect(await kept.ended).toMatchObject({ code: 0 });
  await serverGone();

  const broken = spawnEod(['demo'], { cwd, env });
  await broken.output(/calling the sandbox/);
  // Twice, as under npm, which passes on the signal that the terminal has sent already.
  broken.kill('SIGINT');
  broken.kill('SIGINT');
  expect(await broken.ended).toMatchObject({ code: 130, stderr: expect.stringMatching(/^(eod: )?stopped/m) });
  await serverGone();
}, 180_000);

test('what an interrupted demo has loaded can be looked at, and the status says how to load the rest', async () => {
  const options = { cwd: temporaryFolder(), env };
  const broken = startCli(['demo'], options);
  await broken.output(/calling the sandbox/, 30_000);
  broken.signal('SIGINT');
  expect(await broken.ended).toMatchObject({ code: 130 });
  const { code, stdout } = await runCli(['--demo', 'status'], options);
  expect(code).toBe(0);
  expect(stdout).toContain('the demo was stopped before its end; "eod demo" loads what is missing');
  expect(stdout).not.toMatch(/EOD_BASE_URL|"eod up"/);
});

test('without a demo there is nothing to look at', async () => {
  const { code, stdout, stderr } = await runCli(['--demo', 'status'], { cwd: temporaryFolder(), env });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toBe('eod: nothing has been loaded by "eod demo" yet: run it first\n');
});

afterEach(() => {
  vi.useRealTimers();
});

test('before the data of the day is published the demo loads up to the day before, and nothing is late', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-11-20T20:59:00+05:30') });
  const folder = temporaryFolder();
  expect(await runCli(['demo', '--json'], { cwd: folder, env })).toMatchObject({ code: 0 });
  const status = await runCli(['--demo', 'status'], { cwd: folder, env });
  expect(status.stdout).toMatch(/^bhavcopy_cm +NSE +2026-11-19 +2026-11-19 +\d+$/m);
  expect(status.stdout).not.toMatch(/nothing| late /);
});
