import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addDays } from '../../../src/core/days.ts';
import type { Pair } from '../../../src/core/exchanges.ts';
import { syncTradingDays } from '../../../src/jobs/responses/sync-sessions.ts';
import { readStatus } from '../../../src/jobs/runs/read-status.ts';
import { readTonight } from '../../../src/jobs/runs/read-tonight.ts';
import { readTradingDayRecords, type TradingDayState } from '../../../src/state/coverage/completeness.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { MISSING_OF, readFreshness } from '../../../src/state/coverage/freshness.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import { newRun, newWindow } from '../../load/support.ts';
import { clockFrom } from '../../reliability/support.ts';
import { runCli } from '../../support/cli.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { openPipeline, type Pipeline } from '../../support/pipeline.ts';
import { serve } from '../../support/serve.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const clock = clockFrom('2025-09-12T23:30:00+05:30');
/** One that is scheduled for the exchange, and one that is only ever loaded by hand. */
const PAIRS: readonly Pair[] = [
  { operation: 'GetBhavCopyCM', exchange: 'NSE' },
  { operation: 'GetTotalTradeHighlights', exchange: 'BSE' },
];

type State = 'loaded' | 'empty' | 'failed' | 'not_published' | null;

/** Records what is known of the last trading days, the newest first; of those with null nothing is known. */
async function cover(pipeline: Pipeline, pair: Pair, states: readonly State[], before = '2025-09-12') {
  await pipeline.db.pool.query('delete from etl.coverage where operation = $1 and exchange = $2', [
    pair.operation,
    pair.exchange,
  ]);
  const tradingDays = [...pipeline.calendar.lastTradingDays(pair.exchange, before, states.length)].reverse();
  const coverage = tradingDays.flatMap((day, at) => {
    const state = states[at] ?? null;
    const records = state === 'loaded' ? 100 + (at % 7) : 0;
    return state === null ? [] : [{ day, instrument: '', variant: '', state, records }];
  });
  await writeCoverage(pipeline.db.drizzle, {
    ...pair,
    runId: 1,
    windowId: null,
    position: await takePosition(pipeline.db.drizzle),
    coverage,
  });
}

/** What the trading days of the whole history say. */
async function fromWholeHistory(pipeline: Pipeline, { operation, exchange }: Pair) {
  const scope = { expected: 'scheduled' as const, others: true };
  const tradingDays = (await readTradingDayRecords(pipeline, scope)).filter(
    (entry) => entry.operation === operation && entry.exchange === exchange,
  );
  const due = tradingDays.filter(({ state }) => state !== 'pending');
  const last = tradingDays.filter(({ state }) => state === 'complete').at(-1);
  return {
    lastComplete: last?.day ?? null,
    completeTo: completeBefore(due),
    lastRecords: last?.records ?? null,
    lastDue: due.at(-1)?.day ?? null,
    isLate: due.at(-1)?.state === 'missing',
    reason: due.at(-1)?.reason ?? null,
    missingSessions: due.slice(-MISSING_OF).filter(({ state }) => state === 'missing').length,
  };
}

/** The last complete trading day before which none is missing. */
function completeBefore(due: readonly TradingDayState[]) {
  const missing = due.findIndex(({ state }) => state === 'missing');
  return (missing === -1 ? due : due.slice(0, missing)).at(-1)?.day ?? null;
}

const states = fc.array(
  fc.oneof(
    { arbitrary: fc.constant<State>('loaded'), weight: 30 },
    { arbitrary: fc.constantFrom<State>('empty', 'failed', 'not_published', null), weight: 2 },
  ),
  { maxLength: 70, size: 'max' },
);
const history = fc.record({ missing: fc.integer({ min: 0, max: 80 }), states });

test('the summary says what the whole history says, wherever the data begins and ends', async () => {
  const pipeline = await openPipeline({ clock, settings: { EOD_EXCHANGES: 'NSE' } });
  await syncTradingDays(pipeline, '2024-09-01');
  await forAllAsync([history, history], { numRuns: 10 }, async (...histories) => {
    for (const [at, { missing, states }] of histories.entries()) {
      const pair = PAIRS[at];
      if (pair === undefined) throw new Error('there is a pair for each history');
      await cover(pipeline, pair, [...Array.from({ length: missing }, () => null), ...states]);
    }
    const freshness = await readFreshness(pipeline);
    for (const pair of PAIRS) {
      const listed = freshness.filter(
        (entry) => entry.operation === pair.operation && entry.exchange === pair.exchange,
      );
      const wanted = await fromWholeHistory(pipeline, pair);
      const isListed = pair.exchange === 'NSE' || listed.length > 0 || wanted.lastDue !== null;
      expect(listed).toMatchObject(isListed ? [wanted] : []);
    }
  });
});

test('the page of the status, the coverage and the status say the same of data that ends long ago', async () => {
  const pipeline = await openPipeline({ clock });
  await syncTradingDays(pipeline, '2024-01-01');
  const server = await serve(pipeline, ['web']);
  const textOf = async (path: string) =>
    (await (await fetch(`${server.url}${path}`)).text())
      .replaceAll('<wbr/>', '')
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ');
  expect(await textOf('/')).toContain('Nothing is loaded yet');
  expect((await readStatus(pipeline)).isUnused).toBe(true);

  for (const pair of PAIRS)
    await cover(
      pipeline,
      pair,
      Array.from({ length: 250 }, () => 'loaded'),
      '2025-02-14',
    );
  const tonight = await readTonight(pipeline);
  const status = await readStatus(pipeline);
  expect(status.operations).toMatchObject(
    tonight.operations.map(({ openRejects: _, ...operation }) => operation),
  );
  expect(status.isUnused).toBe(false);
  expect(status.operations).toContainEqual(
    expect.objectContaining({
      ...PAIRS[0],
      lastComplete: '2025-02-14',
      isLate: true,
      reason: 'not_requested',
      missingSessions: MISSING_OF,
    }),
  );
  const page = await textOf('/');
  expect(page).not.toContain('Nothing is loaded yet');
  expect(page).toMatch(/\d+ trading days of \d+ data sets are missing/);
  expect(page).toMatch(/Prices, bhavcopy_cm NSE 2025-09-12: not requested yet 2025-02-14 100 on 2025-02-14 /);
  expect(await textOf('/coverage')).toMatch(/Prices, bhavcopy_cm NSE [^A-Z]*; complete to 2025-02-14/);
});

test('what is usual is the median of the last 30 trading days, and stands beside the records of the last with its day', async () => {
  const pipeline = await openPipeline({ clock, settings: { EOD_EXCHANGES: 'NSE' } });
  await syncTradingDays(pipeline, '2025-06-01');
  const pair = { operation: 'GetBhavCopyCM', exchange: 'NSE' };
  const [last = '', ...before] = pipeline.calendar.lastTradingDays('NSE', '2025-09-12', 45).reverse();
  const recordsOf = (at: number) => (at < 15 ? 100 : at < 30 ? 300 : 900);
  await writeCoverage(pipeline.db.drizzle, {
    ...pair,
    runId: 1,
    windowId: null,
    position: await takePosition(pipeline.db.drizzle),
    coverage: [
      { day: last, records: 450 },
      ...before.map((day, at) => ({ day, records: recordsOf(at) })),
    ].map((entry) => ({ ...entry, instrument: '', variant: '', state: 'loaded' as const })),
  });
  const set = (await readFreshness(pipeline)).find(({ operation }) => operation === pair.operation);
  expect(set).toMatchObject({ lastComplete: last, lastRecords: 450, medianRecords: 200 });
  const server = await serve(pipeline, ['web']);
  const page = await (await fetch(server.url)).text();
  expect(page.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')).toContain(' 450 usually 200 ');
  const { stdout } = await runCli(['status'], {
    cwd: temporaryFolder(),
    env: { DATABASE_URL: pipeline.db.url, EOD_EXCHANGES: 'NSE' },
  });
  expect(stdout).toContain(`${last} has 450 rows, usually 200`);
});

const ACTIONS = { operation: 'GetCorporateActions', exchange: 'BSE' };
/** Days that a response was about, with its number of records. */
type Listed = readonly [days: number, records: number];

test.each<[what: string, last: Listed, before: readonly Listed[], usual: number | null]>([
  [
    'a list over 90 days does not count beside daily ones',
    [8, 150],
    [
      [90, 2_000],
      [8, 148],
      [8, 152],
    ],
    150,
  ],
  [
    'a shorter range is compared with none that is longer',
    [2, 20],
    [
      [8, 150],
      [8, 150],
      [90, 2_000],
    ],
    null,
  ],
  [
    'a longer one is not either',
    [90, 2_000],
    [
      [8, 150],
      [8, 150],
    ],
    null,
  ],
  [
    'equal ones are compared',
    [8, 20],
    [
      [8, 150],
      [8, 150],
    ],
    150,
  ],
])('of records without days: %s', async (_what, last, before, usual) => {
  const pipeline = await openPipeline({ clock });
  await syncTradingDays(pipeline, '2025-06-01');
  const runId = await newRun(pipeline.db);
  const listed = [last, ...before];
  const days = pipeline.calendar.lastTradingDays('BSE', '2025-09-12', listed.length).reverse();
  for (const [at, [length, records]] of listed.entries()) {
    const to = days[at] as string;
    const request = { ...ACTIONS, from: addDays(to, 1 - length), to };
    const windowId = await newWindow(pipeline.db, runId, 'loaded', request);
    await writeCoverage(pipeline.db.drizzle, {
      ...ACTIONS,
      runId,
      windowId,
      position: await takePosition(pipeline.db.drizzle),
      coverage: [{ day: to, instrument: '', variant: '', state: 'loaded', records }],
    });
  }
  const set = (await readFreshness(pipeline)).find(({ operation }) => operation === ACTIONS.operation);
  expect(set).toMatchObject({ lastRecords: last[1], medianRecords: usual });
});
