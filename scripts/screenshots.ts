// Makes the picture of README.md from simulated data, the calendar of coverage above the prices of a share that split:
// `npm run docs:screenshots`. It needs chromium and takes a minute. Look at the picture before you commit it.
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { loadCalendar } from '../src/calendar/calendar.ts';
import { sourceSettings } from '../src/cli/source-settings.ts';
import { systemClock, today } from '../src/core/clock.ts';
import { loadConfig } from '../src/core/config.ts';
import { addDays, type Day } from '../src/core/days.ts';
import { createLog } from '../src/core/log.ts';
import { exchangesOf } from '../src/declaration/operation.ts';
import { createSource } from '../src/extract/index.ts';
import type { WorkContext } from '../src/jobs/context.ts';
import { openQueues } from '../src/jobs/queue/queue.ts';
import { startRun } from '../src/jobs/runs/run-control.ts';
import { startWorker } from '../src/jobs/worker/worker.ts';
import { migrateDatabase } from '../src/migrate.ts';
import { operations } from '../src/operations/registry.ts';
import { openDatabase } from '../src/postgres/database.ts';
import { startEmbeddedPostgres } from '../src/postgres/embedded/index.ts';
import { type Sandbox, startSandbox } from '../src/sandbox/index.ts';
import { readRunProgress } from '../src/state/runs/reports.ts';
import { startHttpServer } from '../src/web/server.ts';

const PICTURE = fileURLToPath(new URL('../docs/images/coverage.png', import.meta.url));
/** High enough for the data sets of prices and two more. */
const VIEWPORT = { width: 1280, height: 652 };

/** How many days back the data goes. */
const DAYS_BACK = 325;

type Cleanup = () => Promise<unknown>;

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'eod-screenshots-'));
  const cleanups: Cleanup[] = [async () => rmSync(folder, { recursive: true, force: true })];
  try {
    const { sandbox, context } = await openPipeline(folder, cleanups);
    await loadData(context);
    await takePicture(context, symbolWithSplit(sandbox), cleanups);
  } finally {
    for (const cleanUp of cleanups.reverse()) await cleanUp();
  }
}

/** Starts a sandbox and a private Postgres, and opens what works on them. */
async function openPipeline(
  folder: string,
  cleanups: Cleanup[],
): Promise<{ readonly sandbox: Sandbox; readonly context: WorkContext }> {
  const sandbox = await startSandbox({ accessKey: 'demo', instrumentsPerExchange: 600, splits: true });
  cleanups.push(() => sandbox.close());
  const config = loadConfig({
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: 'demo',
    EOD_INSTRUMENT_LIMIT: '3',
    EOD_HTTP_PORT: '0',
    EOD_CALLS_PER_HOUR: '2000',
  });
  const log = createLog(config);
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), log });
  cleanups.push(() => server.stop());
  const db = openDatabase({ url: server.url, log, connections: 12 });
  cleanups.push(() => db.close());
  await migrateDatabase(db, config);
  const queues = await openQueues({ db, config, log });
  cleanups.push(() => queues.close());
  const source = createSource(sourceSettings(config), log);
  cleanups.push(() => source.close());
  const calendar = loadCalendar();
  return { sandbox, context: { config, log, db, queues, source, calendar, clock: systemClock } };
}

/** Starts a backfill. @param names of the operations; by default all. */
async function plan(context: WorkContext, from: Day, to: Day, names?: readonly string[]): Promise<number> {
  const chosen = operations.filter(({ name }) => names?.includes(name) ?? true);
  const targets = chosen.flatMap((operation) =>
    exchangesOf(operation, context.config).map((exchange) => ({
      operation: operation.name,
      exchange,
      from,
      to,
      refetchFrom: null,
    })),
  );
  const request = { kind: 'backfill', targets, instruments: [], options: {}, live: false } as const;
  const runId = await startRun(context, request);
  if (runId === null) throw new Error('a run without a tick always has a number');
  return runId;
}

/** Works on a run until it has ended. */
async function workUntilEnd(context: WorkContext, runId: number): Promise<void> {
  const worker = await startWorker(context);
  while ((await readRunProgress(context.db.drizzle, runId)).state === 'running') await sleep(20);
  await worker.stop();
}

/** Loads most of a year, without the days between two runs, and for the last weeks every operation. */
async function loadData(context: WorkContext): Promise<void> {
  const now = today(systemClock, context.config.EOD_TIMEZONE);
  const yesterday = addDays(now, -1);
  const day = (back: number) => addDays(now, -back);
  const daily = [
    'GetBhavCopyCM',
    'GetCircuitBreakers',
    'GetTop5GainersLosers',
    'GetTotalTradeHighlights',
    'GetSeriesChange',
  ];
  await workUntilEnd(context, await plan(context, day(DAYS_BACK), day(150), daily));
  await workUntilEnd(context, await plan(context, day(144), day(95), daily));
  await workUntilEnd(context, await plan(context, day(91), yesterday, daily));
  await workUntilEnd(context, await plan(context, day(DAYS_BACK), yesterday, ['GetCorporateActions']));
  await workUntilEnd(context, await plan(context, day(60), yesterday));
  await context.db.pool.query(
    `update etl.windows set unsettled = 'the response lacks 41 of 118 rows that the day had; nothing was withdrawn'
      where operation = 'GetBhavCopyCM' and exchange = 'NSE' and from_date = $1`,
    [context.calendar.lastTradingDays('NSE', yesterday, 70)[0]],
  );
}

/** A share that split once in these days, about in their middle, so that its prices as printed have one step. */
function symbolWithSplit(sandbox: Sandbox): string {
  const day = (back: number) => addDays(today(systemClock, 'Asia/Kolkata'), -back);
  const all = sandbox.splits(day(DAYS_BACK), day(0));
  const once = all.filter(({ symbol }) => all.filter((share) => share.symbol === symbol).length === 1);
  const chosen = once.find(({ kind, exDate }) => kind === 'split' && exDate > day(DAYS_BACK / 2));
  if (chosen === undefined) throw new Error('no share splits once in these days');
  return chosen.symbol;
}

async function takePicture(context: WorkContext, symbol: string, cleanups: Cleanup[]): Promise<void> {
  const stopping = new AbortController().signal;
  const server = await startHttpServer(context, { roles: ['web'], stopping });
  cleanups.push(() => server.close());
  const browser: Browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  cleanups.push(() => browser.close());
  const page = await browser.newPage({ colorScheme: 'light', viewport: VIEWPORT, reducedMotion: 'reduce' });
  await page.goto(`${server.url}/coverage`);
  const coverage = await page.screenshot();
  await page.goto(`${server.url}/coverage/GetBhavCopyCM/NSE?symbol=${symbol}`);
  const prices = await page.locator('section[aria-labelledby="prices"]').screenshot();
  const pictures = [coverage, prices].map(
    (image) => `<img src="data:image/png;base64,${image.toString('base64')}">`,
  );
  // A page of its own, because the policy of ours allows no such styles.
  const composed = await browser.newPage({ viewport: VIEWPORT });
  await composed.setContent(
    `<!doctype html><body style="margin: 0 0 24px; background: #f4f6f8; display: grid; justify-items: center">${pictures.join('')}`,
  );
  mkdirSync(dirname(PICTURE), { recursive: true });
  await composed.screenshot({ path: PICTURE, fullPage: true });
  console.log(`${PICTURE}: ${Math.round(statSync(PICTURE).size / 1024)} KB`);
}

await main();
