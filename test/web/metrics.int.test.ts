import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { commit } from '../../src/core/version.ts';
import type { QueueContext } from '../../src/jobs/context.ts';
import { readFreshness } from '../../src/state/coverage/freshness.ts';
import { clockFrom, openSetup, start } from '../reliability/support.ts';
import { testDatabase } from '../support/database.ts';
import { startServer } from '../support/http-server.ts';
import { isSlowLayer } from '../support/layer.ts';
import { ended, mostly, openPipeline, queueEmpty } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';
import { serve } from '../support/serve.ts';

const file = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

async function scraper(context: QueueContext, roles = ['scheduler', 'worker']) {
  const health = await serve(context, roles);
  return async () => {
    const response = await fetch(`${health.url}/metrics`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    return parse(await response.text());
  };
}

/** Samples by name and labels, as the format of Prometheus has them. */
function parse(
  text: string,
): (name: string, labels?: Readonly<Record<string, string>>) => number | undefined {
  const samples = text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, each]) => [key, each]);
      return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
    });
  return (name, labels = {}) =>
    samples.find(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )?.value;
}

const NSE = { operation: 'GetBhavCopyCM', exchange: 'NSE' };
const FAILING = { operation: 'GetSeriesChange', exchange: 'NSE' };

test.each(mostly('redis'))(
  'says what was loaded, what is missing and what is left, with the queue on %s',
  async (backend) => {
    const setup = await openSetup({
      backend,
      settings: { EOD_CALLS_PER_HOUR: '500', EOD_NIGHTLY_RESERVE: '0.2', EOD_ATTEMPTS: '1' },
      behaviour: { faults: [{ kind: 'status', value: '404', operation: 'GetSeriesChange' }] },
    });
    const scrape = await scraper(setup);
    const before = await scrape();
    expect(before('eod_database_up')).toBe(1);
    expect(before('eod_last_complete_session_timestamp_seconds', NSE)).toBeUndefined();
    expect(before('eod_workers')).toBe(0);
    expect(before('eod_role', { role: 'worker' })).toBe(1);
    expect(before('eod_build_info', { revision: commit() ?? 'unknown' })).toBe(1);
    expect(before('nodejs_eventloop_lag_seconds')).toBeGreaterThanOrEqual(0);
    expect(before('process_resident_memory_bytes')).toBeGreaterThan(1e6);

    const report = await setup.run({
      operations: [NSE.operation],
      exchanges: ['NSE'],
      from: '2025-09-10',
      to: '2025-09-11',
    });
    const failed = await ended(
      setup,
      await start(setup, {
        operations: [FAILING.operation],
        exchanges: ['NSE'],
        from: '2025-09-11',
        to: '2025-09-11',
      }),
    );
    expect([report.state, failed.state]).toEqual(['completed', 'failed']);
    const firstMetrics = await scrape();
    await queueEmpty(setup);
    // Another server, since the first one reads the database again only after some seconds.
    const after = await (await scraper(setup))();
    expect(after('eod_last_complete_session_timestamp_seconds', NSE)).toBe(
      Date.parse('2025-09-11T00:00:00+05:30') / 1000,
    );
    // The 12th should be there by now, and nothing has been requested for it.
    expect(after('eod_late_sessions', NSE)).toBe(1);
    expect(after('eod_missing_sessions', { ...FAILING, reason: 'failed' })).toBe(1);
    // Of every pair as many as the status says, which counts from the first stored trading day on.
    const missing = (await readFreshness(setup)).flatMap(({ operation, exchange, missing: reasons }) =>
      Object.entries(reasons).map(([reason, tradingDays]) => ({
        operation,
        exchange,
        reason,
        sessions: tradingDays,
      })),
    );
    expect(missing.length).toBeGreaterThan(5);
    expect(
      missing.map(({ sessions: _, ...labels }) => ({
        ...labels,
        sessions: after('eod_missing_sessions', labels),
      })),
    ).toEqual(missing);
    expect(after('eod_missing_sessions', { ...NSE, reason: 'not_requested' })).toBe(1);
    expect(firstMetrics('eod_rows_total', { ...NSE, outcome: 'inserted' })).toBe(report.inserted);
    expect(firstMetrics('eod_rows_total', { ...NSE, outcome: 'rejected' })).toBe(0);
    expect(firstMetrics('eod_windows_ended_total', { ...NSE, state: 'loaded' })).toBe(2);
    expect(firstMetrics('eod_windows_ended_total', { ...FAILING, state: 'failed' })).toBe(1);
    expect(firstMetrics('eod_source_call_duration_seconds_count', { ...NSE, outcome: 'success' })).toBe(2);
    expect(
      firstMetrics('eod_source_call_duration_seconds_count', { ...FAILING, outcome: 'http_status' }),
    ).toBe(1);
    expect(after('eod_calls_used')).toBe(3);
    expect(after('eod_calls_left', { queue: 'nightly' })).toBe(497);
    expect(after('eod_calls_left', { queue: 'backfill' })).toBe(397);
    expect(after('eod_open_windows', { state: 'pending' })).toBe(0);
    expect(after('eod_workers')).toBe(1);
    expect(after('eod_queue_jobs', { queue: 'backfill', state: 'active' })).toBe(0);
    expect(after('eod_last_completed_run_timestamp_seconds', { kind: 'backfill' })).toBeGreaterThan(1.7e9);
  },
);

test('fields that no column reads are a warning of their windows and of the report, and counted', async () => {
  const sandbox = await openSandbox();
  const sourceUrl = await startServer(async (request, response) => {
    const served = await fetch(new URL(request.url ?? '', sandbox.url));
    const body = (await served.json()) as { Value: object[] };
    const records = body.Value.map((record) => ({ ...record, Extra: 1, '<b>Other': null }));
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...body, Value: records }));
  });
  const setup = await openSetup({ sourceUrl });
  const scrape = await scraper(setup);
  const days = {
    operations: [NSE.operation],
    exchanges: ['NSE'],
    from: '2025-09-10',
    to: '2025-09-11',
    force: true,
  };
  const warning = 'the source sends fields that no column reads: <b>Other, Extra';
  for (const count of [2, 4]) {
    const { runId, warnings } = await setup.run(days);
    expect(warnings).toEqual([{ operation: NSE.operation, warning, windows: 2 }]);
    const { rows } = await setup.db.pool.query('select warnings from etl.windows where run_id = $1', [runId]);
    expect(rows).toEqual([{ warnings: [warning] }, { warnings: [warning] }]);
    expect((await scrape())('eod_responses_with_unknown_fields_total', NSE)).toBe(count);
  }
});

test('rules, dashboard and documentation name metrics that exist, and the documentation names all of them', async () => {
  const setup = await openSetup();
  const health = await serve(setup, ['web']);
  const text = await (await fetch(`${health.url}/metrics`)).text();
  const exposed = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name, type]) =>
    type === 'histogram' ? [name, `${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
  );
  const metricsIn = (path: string) =>
    new Set(file(path).match(/\b(?:eod|nodejs|process)_[a-z0-9_]+[a-z0-9]\b/g));
  for (const path of [
    'deploy/prometheus/rules.yml',
    'deploy/grafana/eod-pipeline.json',
    'docs/monitoring.md',
  ]) {
    expect(metricsIn(path).size).toBeGreaterThan(10);
    expect([...metricsIn(path)].filter((name) => !exposed.includes(name))).toEqual([]);
  }
  const names = [...text.matchAll(/^# TYPE (eod_\S+) /gm)].map(([, name]) => name as string);
  expect(names.filter((name) => !metricsIn('docs/monitoring.md').has(name))).toEqual([]);
  const lines = text.split('\n').filter((line) => /^# HELP eod_/.test(line));
  for (const line of lines) expect(line).toMatch(/^# HELP \w+ .+\.$/);
});

test.runIf(isSlowLayer)('promtool takes rules and metrics (it is in the package prometheus)', async () => {
  const promtool = (args: string[], input?: string) => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
    expect(stdout + stderr).toBeDefined();
    return { status, output: stdout + stderr };
  };
  const at = (path: string) => fileURLToPath(new URL(`../../deploy/prometheus/${path}`, import.meta.url));
  expect(promtool(['check', 'rules', at('rules.yml')])).toMatchObject({ status: 0 });
  expect(promtool(['check', 'config', at('prometheus.yml')])).toMatchObject({ status: 0 });
  expect(promtool(['test', 'rules', at('rules.test.yml')])).toMatchObject({ status: 0 });
  const setup = await openSetup();
  const health = await serve(setup, ['scheduler', 'worker', 'web']);
  const text = await (await fetch(`${health.url}/metrics`)).text();
  // A label has one value, never a list of them.
  expect(text).not.toMatch(/="[^"]*,[^"]*"/);
  const ownLines = text.split('\n').filter((line) => /^(?:# \w+ )?eod_/.test(line));
  expect(promtool(['check', 'metrics'], `${ownLines.join('\n')}\n`)).toEqual({ status: 0, output: '' });
  // Each rule has a test in which it fires.
  const alerts = [...file('deploy/prometheus/rules.yml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const tested = file('deploy/prometheus/rules.test.yml');
  expect(
    alerts.filter((name) => !new RegExp(`alertname: ${name}\\n\\s+exp_alerts:\\n`).test(tested)),
  ).toEqual([]);
});

test('a worker alone reports only what is its own: the database is read for the scheduler and the dashboard', async () => {
  const setup = await openSetup();
  const names = async (...roles: string[]) => {
    const { url } = await serve(setup, roles);
    const text = await (await fetch(`${url}/metrics`)).text();
    return [...text.matchAll(/^# TYPE (eod_\S+) /gm)].map(([, name]) => name);
  };
  const [worker, scheduler, web] = [await names('worker'), await names('scheduler'), await names('web')];
  expect(worker.toSorted()).toEqual([
    'eod_build_info',
    'eod_database_up',
    'eod_responses_waiting',
    'eod_responses_with_unknown_fields_total',
    'eod_role',
    'eod_rows_total',
    'eod_source_call_duration_seconds',
    'eod_windows_ended_total',
  ]);
  expect(scheduler).toEqual(expect.arrayContaining([...worker, 'eod_late_sessions', 'eod_calls_left']));
  expect(web).toEqual(scheduler);
  const scrape = await scraper(setup, ['worker']);
  expect((await scrape())('eod_database_up')).toBe(1);
});

test.each([[['worker']], [['scheduler']]])(
  'while the database is unreachable, the metrics read from it are missing, and those of the process itself stay (%j)',
  async (roles) => {
    const database = await testDatabase();
    const context = await openPipeline({
      databaseUrl: database.url,
      clock: clockFrom('2025-09-12T22:02:00+05:30'),
    });
    const scrape = await scraper(context, roles);
    await database.drop();
    const read = await scrape();
    expect(read('eod_database_up')).toBe(0);
    expect(read('eod_workers')).toBeUndefined();
    expect(read('eod_build_info')).toBe(1);
  },
);
