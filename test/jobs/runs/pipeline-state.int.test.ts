import { beforeAll, describe, expect, test } from 'vitest';
import { keyHash } from '../../../src/jobs/policy/quota.ts';
import { syncTradingDays } from '../../../src/jobs/responses/sync-sessions.ts';
import type { PipelineState } from '../../../src/jobs/runs/pipeline-state.ts';
import { readCurrent, type Status } from '../../../src/jobs/runs/read-status.ts';
import { resumeRun } from '../../../src/jobs/runs/run-control.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import { pipelineAdvice } from '../../../src/web/commands.ts';
import { clockFrom, EVENING, openSetup, start } from '../../reliability/support.ts';
import { runCli, runJson, unwrapped } from '../../support/cli.ts';
import { freePort } from '../../support/free-port.ts';
import { ended, openPipeline, type Pipeline } from '../../support/pipeline.ts';
import { serve } from '../../support/serve.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const DAY = '2025-09-12';
const PAIR = { operation: 'GetBhavCopyCM', exchange: 'NSE' };
const KEY = 'a key for tests';

/** The worst first. */
const FACTS = ['key', 'storage', 'outage', 'night', 'missing'] as const;
type Fact = (typeof FACTS)[number];

let pipeline: Pipeline;

beforeAll(async () => {
  pipeline = await openPipeline({
    clock: clockFrom('2025-09-12T23:30:00+05:30'),
    settings: { EOD_OPERATIONS: PAIR.operation, EOD_EXCHANGES: PAIR.exchange, EOD_ACCESS_KEY: KEY },
  });
  await syncTradingDays(pipeline);
});

/** Makes these facts true, and no others. @returns the run of each. */
async function setFacts(facts: readonly Fact[]): Promise<Readonly<Partial<Record<Fact, number>>>> {
  const { pool } = pipeline.db;
  await pool.query('truncate etl.runs, etl.windows, etl.coverage, etl.source_state, etl.workers');
  const tradingDays = pipeline.calendar.lastTradingDays(PAIR.exchange, DAY, 40);
  await writeCoverage(pipeline.db.drizzle, {
    ...PAIR,
    runId: 1,
    windowId: null,
    position: await takePosition(pipeline.db.drizzle),
    coverage: tradingDays
      .filter((day) => day !== DAY || !facts.includes('missing'))
      .map((day) => ({ day, instrument: '', variant: '', state: 'loaded', records: 100 })),
  });
  const addRun = async (kind: string, window: string) => {
    const { rows } = await pool.query<{ id: number }>(
      `with run as (
         insert into etl.runs (kind, state, requested_by, request, from_date, to_date, finished_at)
         values ($1, 'failed', 'test', '{}', $2, $2, now()) returning id)
       insert into etl.windows (run_id, operation, exchange, from_date, to_date, attempts, started_at, finished_at, state, error, diagnostic)
       select id, $3, $4, $2, $2, ${window} from run returning run_id::int as id`,
      [kind, DAY, PAIR.operation, PAIR.exchange],
    );
    return rows[0]?.id as number;
  };
  const hourAgo = "now() - interval '1 hour'";
  const runs: Partial<Record<Fact, number>> = {};
  if (facts.includes('night'))
    runs.night = await addRun('nightly', `1, ${hourAgo}, ${hourAgo}, 'failed', 'x', 'Invalid Request.'`);
  if (facts.includes('key')) {
    runs.key = await addRun('backfill', `1, ${hourAgo}, ${hourAgo}, 'blocked', 'x', 'Key Expired.'`);
    await pool.query(
      "insert into etl.source_state (key_hash, called_at, diagnostic, refused_at) values ($1, now(), 'Key Expired.', $2)",
      [keyHash(KEY), '2025-09-12T21:40:00+05:30'],
    );
  }
  if (facts.includes('storage'))
    await pool.query(
      "insert into etl.workers (worker, cannot_store, cannot_store_since) values ('w', 'Postgres: no space left', '2025-09-12T22:00:00+05:30')",
    );
  if (facts.includes('outage')) {
    runs.outage = await addRun('backfill', "5, now(), now(), 'failed', 'HTTP status 503', null");
    await pool.query(
      `insert into etl.source_state (key_hash, called_at, failures, failing_since, failure) values ($1, now(), 5, $2, 'HTTP status 503')
         on conflict (key_hash) do update set failures = 5, failing_since = excluded.failing_since, failure = excluded.failure`,
      [keyHash(KEY), '2025-09-12T22:10:00+05:30'],
    );
  }
  return runs;
}

/** Every set of facts. */
const subsets = Array.from({ length: 2 ** FACTS.length }, (_, set) =>
  FACTS.filter((_, at) => (set >> at) % 2 === 1),
);

/** What is to be said where these facts are true. */
function expectedOf(facts: readonly Fact[], runs: Readonly<Partial<Record<Fact, number>>>) {
  const has = (fact: Fact) => facts.includes(fact);
  if (has('key'))
    return {
      state: 'blocked',
      cause: 'the source refuses the access key: Key Expired.',
      since: '2025-09-12T16:10:00.000000Z',
      runId: runs.key,
      remedy: 'try_key',
      nextTry: 'the night of 2025-09-13 21:15',
    };
  if (has('storage'))
    return {
      state: 'blocked',
      cause: 'responses cannot be stored, and no call is made until they can: Postgres: no space left',
      since: '2025-09-12T16:30:00.000000Z',
      runId: null,
    };
  if (has('outage'))
    return {
      state: 'blocked',
      cause: 'the source does not respond: HTTP status 503',
      since: '2025-09-12T16:40:00.000000Z',
      runId: runs.outage,
    };
  // What a night lacked and was loaded since needs nobody.
  if (has('night') && has('missing'))
    return { state: 'failed', cause: 'the last night failed: Invalid Request.', runId: runs.night };
  if (has('missing'))
    return {
      state: 'missing',
      cause: '1 trading day of 1 data set is missing (of the last 30 of each)',
      since: null,
      runId: null,
      remedy: 'fill_gaps',
    };
  return { state: 'ok', cause: null, since: null, runId: null, remedy: null, nextTry: null };
}

test.each([
  ['try_key', 6, 'eod runs resume 6', 'tries the key now; otherwise the night of 2025-09-13 21:15 does'],
  ['try_key', null, 'eod doctor', 'tries the key now; otherwise the night of 2025-09-13 21:15 does'],
  ['check_storage', null, 'eod doctor', 'shows what Postgres refuses'],
  ['follow_run', 6, 'eod runs 6', 'shows how far the run is, and what it tries again when'],
  ['await_source', 6, 'eod runs resume 6', 'requests what is left, once the source responds'],
  ['resume', 6, 'eod runs resume 6', 'requests again what failed'],
  ['fill_gaps', null, 'eod gaps fill', 'requests what is missing'],
  ['import_files', null, 'eod gaps', 'lists them; import the files of these days'],
] as const)('what helps: %s, run %s', (remedy, runId, command, does) => {
  const nextTry = remedy === 'try_key' ? 'the night of 2025-09-13 21:15' : null;
  const state = { state: 'blocked', cause: 'x', since: null, runId, remedy, nextTry } as const;
  expect(pipelineAdvice(state)).toEqual({ command, does });
});

test('the state is the worst of what is true, whatever else is', async () => {
  for (const facts of subsets) {
    const runs = await setFacts(facts);
    const { pipeline: state } = await readCurrent(pipeline);
    expect({ facts, ...state }).toMatchObject({ facts, ...expectedOf(facts, runs) });
  }
});

describe('the first line', () => {
  /** What the four say: terminal, issues, page, readiness. */
  async function firstLines(context: Pipeline) {
    const server = await serve(context, ['web']);
    const options = { cwd: temporaryFolder(), env: context.environment };
    const html = await (await fetch(server.url)).text();
    const ready = await fetch(`${server.url}/readyz`);
    const first = async (command: string) => {
      const { stdout } = await runCli([command], options);
      return unwrapped(stdout).split('\n');
    };
    return {
      status: await first('status'),
      issues: await first('issues'),
      page: html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' '),
      title: /<title>([^<]*)/.exec(html)?.[1] ?? '',
      readiness: { code: ready.status, body: (await ready.json()) as { pipeline: PipelineState } },
      json: (await runJson<Status>(['status'], options)).json,
    };
  }

  test.each(FACTS.map((fact) => (fact === 'night' ? (['night', 'missing'] as const) : ([fact] as const))))(
    'is the same on the terminal, on the page and in /readyz: %s',
    async (...facts) => {
      await setFacts(facts);
      // The commands of this test have the time of the machine, at which more is missing.
      const { pipeline: advised } = await readCurrent(pipeline);
      const { remedy: _, nextTry: __, ...state } = advised;
      const advice = pipelineAdvice(advised);
      const { status, issues, page, title, readiness } = await firstLines(pipeline);
      expect(readiness).toMatchObject({ code: 200, body: { isReady: true } });
      expect(readiness.body.pipeline).toEqual(state);
      if (state.state !== 'missing') {
        expect(status[0]).toMatch(new RegExp(`^${state.cause}`));
        expect(issues[0]).toBe(status[0]);
      }
      expect(title.toLowerCase()).toContain(state.cause?.toLowerCase());
      expect(page).toContain(`${advice?.command} ${advice?.does}.`);
      if (state.runId !== null) {
        expect(status[0]).toContain(`run ${state.runId} shows more)`);
        expect(page).toContain(`Run ${state.runId} shows more.`);
      }
      expect(page).not.toContain('is complete');
      if (!facts.some((fact) => fact === 'missing') || facts.length > 1)
        expect(page).not.toContain('eod gaps fill');
    },
  );

  test('of a database without data there is none, and of a complete one it says so', async () => {
    await setFacts([]);
    const { page, readiness } = await firstLines(pipeline);
    expect(page).toContain(`${DAY} is complete`);
    expect(readiness.body.pipeline).toEqual({ state: 'ok', cause: null, since: null, runId: null });
    const unused = await openPipeline({ clock: pipeline.clock });
    const { status, issues, readiness: first } = await firstLines(unused);
    expect(status[0]).toBe('nothing is loaded yet; first steps:');
    expect(issues[0]).toBe('nothing is loaded yet, so nothing needs a person');
    expect(first.body.pipeline.state).toBe('ok');
  });
});

test('a source that was down stands first until it has responded, and gaps fill is not advised meanwhile', async () => {
  const setup = await openSetup({
    clock: clockFrom(EVENING),
    settings: {
      EOD_OPERATIONS: PAIR.operation,
      EOD_EXCHANGES: PAIR.exchange,
      EOD_ATTEMPTS: '1',
      EOD_OUTAGE_PATIENCE_MS: '1000',
    },
    sourceUrl: `http://127.0.0.1:${await freePort()}`,
  });
  const days = { operations: [PAIR.operation], exchanges: [PAIR.exchange], from: '2025-09-08', to: DAY };
  const runId = await start(setup, days);
  await setup.work();
  expect((await ended(setup, runId)).state).toBe('failed');
  const { pipeline: down } = await readCurrent(setup);
  expect(down).toMatchObject({
    state: 'blocked',
    cause: expect.stringMatching(
      /^the source does not respond: .*the source cannot be reached: .*ECONNREFUSED/,
    ),
    since: expect.stringMatching(/^\d{4}-/),
    runId,
    remedy: 'await_source',
  });
});

test('a source that fails for some data sets, and responds for others, is not down', async () => {
  const setup = await openSetup({
    behaviour: { faults: [{ kind: 'status', value: '500', operation: 'GetCircuitBreakers', first: 3 }] },
    settings: { EOD_EXCHANGES: PAIR.exchange, EOD_ATTEMPTS: '3' },
  });
  const days = { exchanges: [PAIR.exchange], from: DAY, to: DAY };
  const operations = [PAIR.operation, 'GetCircuitBreakers', 'GetSeriesChange'];
  const report = await setup.run({ ...days, operations, tick: 'night' });
  expect(report).toMatchObject({ state: 'failed', windows: { failed: 1, total: 3 } });
  const read = async () => (await readCurrent(setup)).pipeline;
  expect(await read()).toMatchObject({
    state: 'failed',
    cause: 'the last night failed: the source responded with HTTP status 500',
    runId: report.runId,
  });
  await resumeRun(setup, report.runId);
  await ended(setup, report.runId);
  expect((await read()).state).toBe('missing');
});
