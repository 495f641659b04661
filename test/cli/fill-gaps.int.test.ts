import { beforeAll, describe, expect, test } from 'vitest';
import { dayAt, eachDay } from '../../src/core/days.ts';
import type { Forecast } from '../../src/jobs/runs/forecast.ts';
import type { Gaps } from '../../src/jobs/runs/read-gaps.ts';
import type { Sandbox, SeenRequest } from '../../src/sandbox/index.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { isSlowLayer } from '../support/layer.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const cwd = temporaryFolder();
/** A Monday to a Friday, all trading days. */
const RANGE = ['--from', '2025-09-08', '--to', '2025-09-12'];
const MIDDLE = ['--from', '2025-09-10', '--to', '2025-09-10'];
const OPERATIONS = ['GetBhavCopyCM', 'GetCircuitBreakers', 'GetSeriesChange'];

async function setUp(fault?: string) {
  const source = await openSandbox({
    instrumentsPerExchange: 20,
    ...(fault === undefined ? {} : { behaviour: { faults: [{ kind: 'status', operation: fault }] } }),
  });
  const { url } = await testDatabase();
  const env = {
    DATABASE_URL: url,
    EOD_BASE_URL: source.url,
    EOD_ACCESS_KEY: 'kiwi',
    EOD_HTTP_PORT: '0',
    EOD_ATTEMPTS: '1',
  };
  return { source, url, options: { cwd, env } };
}

/** The requests that the sandbox got after the first so many, each as `operation exchange first last`. */
async function requestedSince({ url }: Sandbox, requests: number): Promise<string[]> {
  const sandboxRequests = (await (await fetch(`${url}/_sandbox/requests`)).json()) as SeenRequest[];
  const day = (seconds: string | undefined) => dayAt(Number(seconds), 'Asia/Kolkata');
  return sandboxRequests
    .filter(({ number }) => number > requests)
    .map(({ operation, params }) =>
      [operation, params.exchange, day(params.from ?? params.date), day(params.to ?? params.date)].join(' '),
    )
    .sort();
}

describe('fill-gaps', () => {
  let setup: Awaited<ReturnType<typeof setUp>>;
  let listed: Gaps;
  beforeAll(async () => {
    setup = await setUp();
    await runJson<RunReport>(['backfill', ...OPERATIONS, ...MIDDLE], setup.options);
    listed = (await runJson<Gaps>(['gaps', ...OPERATIONS, ...RANGE], setup.options)).json;
  });

  test('requests exactly what gaps lists, as --dry-run foretells', async () => {
    const { source, url, options } = setup;
    // Two days before and two after the loaded one: of both bhav copies, circuit breakers and series changes.
    expect(listed).toMatchObject({ total: 16 });
    expect(listed.gaps).toHaveLength(8);
    const before = source.stats().requests;
    const plan = await runJson<Forecast>(['gaps', 'fill', ...OPERATIONS, ...RANGE, '--dry-run'], options);
    expect([plan.code, source.stats().requests]).toEqual([0, before]);
    expect(await query(url, "select from etl.runs where kind = 'gap_fill'")).toEqual([]);

    const { code, json } = await runJson<RunReport>(['gaps', 'fill', ...OPERATIONS, ...RANGE], options);
    expect(code).toBe(0);
    expect(json).toMatchObject({ kind: 'gap_fill', state: 'completed', requests: plan.json.requests });
    const byTradingDay = listed.gaps
      .filter(({ operation }) => operation !== 'GetSeriesChange')
      .flatMap(({ operation, exchange, from, to }) =>
        eachDay(from, to).map((day) => `${operation} ${exchange} ${day} ${day}`),
      );
    expect(byTradingDay).toHaveLength(12);
    // One call spans both gaps of what is requested by range.
    const byRange = 'GetSeriesChange NSE 2025-09-08 2025-09-12';
    expect(await requestedSince(source, before)).toEqual([...byTradingDay, byRange].sort());
    expect(json.requests).toBe(13);

    const none = await runJson<Gaps>(['gaps', ...OPERATIONS, ...RANGE], options);
    expect([none.code, none.json.gaps]).toEqual([0, []]);
  });

  test('where nothing is missing it says so, requests nothing and makes no run', async () => {
    const { source, url, options } = setup;
    const before = source.stats().requests;
    const runs = await query(url, 'select id from etl.runs');
    for (const flag of [[], ['--dry-run'], ['--detach']]) {
      const { code, stdout } = await runCli(['gaps', 'fill', ...OPERATIONS, ...MIDDLE, ...flag], options);
      expect([code, stdout]).toEqual([0, 'nothing is missing\n']);
    }
    const weekend = [...OPERATIONS, '--from', '2025-09-13', '--to', '2025-09-14'];
    for (const command of [['gaps'], ['gaps', 'fill']]) {
      const { code, stdout } = await runCli([...command, ...weekend], options);
      expect([code, stdout]).toEqual([0, 'no trading day from 2025-09-13 to 2025-09-14\n']);
    }
    expect(source.stats().requests).toBe(before);
    expect(await query(url, 'select id from etl.runs')).toEqual(runs);
  });
});

test.runIf(isSlowLayer)(
  'trading days too old for the source are requested only if their first day is named',
  async () => {
    const { source, url, options } = await setUp();
    await runJson<RunReport>(['backfill', 'GetCircuitBreakers', ...RANGE], options);
    await query(url, "delete from etl.coverage where day in ('2025-09-09', '2025-09-10')");
    const before = source.stats().requests;
    const { json } = await runJson<Gaps>(['gaps', 'GetCircuitBreakers', ...RANGE], options);
    expect(json.gaps).toMatchObject([{ sessions: 2, reason: 'beyond_history' }]);
    // Whatever has not been loaded since is too old as well.
    const all = ['gaps', 'fill', 'GetCircuitBreakers', '--to', '2025-09-12'];
    for (const flags of [['--dry-run'], []]) {
      const { code, stdout, stderr } = await runCli([...all, ...flags], options);
      expect([code, stdout]).toEqual([0, 'nothing is missing that the source still has\n']);
      expect(stderr).toMatch(/^2 missing trading days too old for the source .*--from/m);
    }
    expect(source.stats().requests).toBe(before);
    const filled = await runJson<RunReport>(['gaps', 'fill', 'GetCircuitBreakers', ...RANGE], options);
    expect([filled.code, filled.json.requests]).toEqual([0, 2]);
  },
);

test('what cannot be filled ends with exit code 1 and stays a gap, with the reason', async () => {
  const { options } = await setUp('GetCircuitBreakers');
  const args = ['GetBhavCopyCM', 'GetCircuitBreakers', '--exchange', 'NSE', ...MIDDLE];
  const { code, stdout, stderr } = await runCli(['gaps', 'fill', ...args], options);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^run 1 \(gap_fill, 2025-09-10\): failed/);
  expect(stderr).toMatch(
    /1 window did not load:\n {2}failed: Price bands hit, circuit_breakers NSE 2025-09-10: .*503/,
  );
  const { json } = await runJson<Gaps>(['gaps', ...args], options);
  expect(json.gaps).toMatchObject([
    { operation: 'GetCircuitBreakers', exchange: 'NSE', from: '2025-09-10', reason: 'failed' },
  ]);
});

test.runIf(isSlowLayer)('--detach leaves the work to workers', async () => {
  const { source, url, options } = await setUp();
  const args = ['gaps', 'fill', 'GetBhavCopyCM', ...RANGE];
  const { code, stdout } = await runCli([...args, '--detach'], options);
  expect([code, stdout]).toEqual([0, 'run 1 enqueued: 10 windows\n']);
  expect(source.stats().requests).toBe(0);

  const up = startCli(['up', '--roles', 'worker'], options);
  const [run] = await waitFor(async () => {
    const ended = await query<{ state: string; kind: string }>(
      url,
      'select state, kind from etl.runs where finished_at is not null',
    );
    return ended.length > 0 ? ended : null;
  });
  expect(run).toEqual({ state: 'completed', kind: 'gap_fill' });
  up.signal('SIGTERM');
  expect((await up.ended).code).toBe(0);
  expect(source.stats().requests).toBe(10);
  const gaps = await runCli(['gaps', 'GetBhavCopyCM', ...RANGE], options);
  expect(gaps).toMatchObject({ code: 0, stdout: 'nothing is missing, 2025-09-08 to 2025-09-12\n' });
});

test('gaps says of an empty database that nothing is loaded; years without a calendar are one sentence', async () => {
  const { url } = await testDatabase();
  const options = { cwd, env: { DATABASE_URL: url } };
  expect(await runCli(['gaps'], options)).toMatchObject({
    code: 0,
    stdout: 'no trading day is loaded yet, so none is missing\n',
  });
  const year = ['--from', '1776-01-01', '--to', '1776-12-31', '--dry-run'];
  const { stderr } = await runCli(['backfill', 'bhavcopy_cm', ...year], options);
  expect(stderr).toBe(
    'no calendar data for BSE 1776, NSE 1776: Monday to Friday was assumed (EOD_CALENDAR_FILE)\n',
  );
});

test('--detach --dry-run makes no sense', async () => {
  const { code, stdout, stderr } = await runCli(['gaps', 'fill', '--detach', '--dry-run'], { cwd });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/cannot be used with option/);
});
