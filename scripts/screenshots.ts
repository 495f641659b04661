// Makes the screenshots in docs/monitoring.md from simulated data: `npm run docs:screenshots`. It needs chromium and
// takes a minute. Look at each screenshot before you commit it.
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { loadCalendar } from '../src/calendar/calendar.ts';
import { sourceSettings } from '../src/cli/open-context.ts';
import { systemClock, today } from '../src/core/clock.ts';
import { loadConfig } from '../src/core/config.ts';
import { addDays, type Day } from '../src/core/days.ts';
import { createLog } from '../src/core/log.ts';
import { createSource } from '../src/extract/index.ts';
import type { WorkContext } from '../src/jobs/context.ts';
import { openQueues } from '../src/jobs/queue/queue.ts';
import { startRun } from '../src/jobs/runs/run-control.ts';
import { startWorker } from '../src/jobs/worker/worker.ts';
import { openDatabase } from '../src/load/database/database.ts';
import { startEmbeddedPostgres } from '../src/load/database/embedded/index.ts';
import { migrateDatabase } from '../src/load/migrate.ts';
import { runProgress } from '../src/load/state/runs/reports.ts';
import { exchangesOf } from '../src/operations/operation.ts';
import { operations } from '../src/operations/registry.ts';
import { startSandbox } from '../src/sandbox/index.ts';
import { startHttpServer } from '../src/web/server.ts';

const IMAGES = fileURLToPath(new URL('../docs/images/', import.meta.url));
const LAPTOP = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 800 };

/** `whole`: the whole page, otherwise only the part in the viewport. */
const SCREENSHOTS = [
  { name: 'tonight', path: '/', colorScheme: 'light', viewport: LAPTOP, whole: true },
  { name: 'tonight-phone', path: '/', colorScheme: 'dark', viewport: PHONE, whole: false },
  { name: 'coverage', path: '/coverage', colorScheme: 'dark', viewport: LAPTOP, whole: false },
  {
    name: 'calendar',
    path: '/coverage/GetBhavCopyCM/NSE',
    colorScheme: 'light',
    viewport: LAPTOP,
    whole: true,
  },
  {
    name: 'calendar-phone',
    path: '/coverage/GetBhavCopyCM/NSE',
    colorScheme: 'light',
    viewport: PHONE,
    whole: false,
  },
  { name: 'issues', path: '/issues', colorScheme: 'light', viewport: LAPTOP, whole: true },
  { name: 'prices', path: '/data/GetBhavCopyCM', colorScheme: 'dark', viewport: LAPTOP, whole: false },
] as const;

/** How many days back the data goes. */
const DAYS_BACK = 325;

type Cleanup = () => Promise<unknown>;

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'eod-screenshots-'));
  const cleanups: Cleanup[] = [async () => rmSync(folder, { recursive: true, force: true })];
  try {
    const context = await openPipeline(folder, cleanups);
    await loadData(context);
    await takeScreenshots(context, cleanups);
  } finally {
    for (const cleanUp of cleanups.reverse()) await cleanUp();
  }
}

/** Starts a sandbox and a private Postgres, and opens what works on them. */
async function openPipeline(folder: string, cleanups: Cleanup[]): Promise<WorkContext> {
  const sandbox = await startSandbox({ accessKey: 'demo', instrumentsPerExchange: 120, splits: true });
  cleanups.push(() => sandbox.close());
  const config = loadConfig({
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: 'demo',
    EOD_INSTRUMENT_LIMIT: '3',
    EOD_HTTP_PORT: '0',
    EOD_WEB_ACTIONS: 'true',
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
  return { config, log, db, queues, source, calendar: loadCalendar(), clock: systemClock };
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

/** Works on a run until this share of its windows has ended. */
async function workUntil(context: WorkContext, runId: number, share: number): Promise<void> {
  const worker = await startWorker(context);
  for (;;) {
    const { ended, total, state } = await runProgress(context.db.drizzle, runId);
    if (state !== 'running' || ended / total >= share) break;
    await sleep(20);
  }
  await worker.stop();
}

/** Loads most of a year, with what may happen in one: missing days, a suspicious one, rejects, findings. */
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
  // The days between two runs are missing.
  await workUntil(context, await plan(context, day(DAYS_BACK), day(150), daily), 1);
  await workUntil(context, await plan(context, day(144), day(95), daily), 1);
  await workUntil(context, await plan(context, day(91), yesterday, daily), 1);
  await workUntil(context, await plan(context, day(60), yesterday), 1);
  await addIncidents(context, now);
  // This run is still open when the screenshots are made.
  await workUntil(
    context,
    await plan(context, day(DAYS_BACK + 200), day(DAYS_BACK + 1), ['GetBhavCopyCM', 'GetCircuitBreakers']),
    0.4,
  );
}

/** Writes what the sandbox does not simulate: a suspicious window, nightly times of loads, rejects and findings. */
async function addIncidents({ db, calendar }: WorkContext, now: Day): Promise<void> {
  const { pool } = db;
  const sessions = calendar.lastSessions('NSE', addDays(now, -1), 120);
  const suspiciousDay = sessions.at(-70) ?? now;
  await pool.query(
    `update etl.windows set unsettled = 'the response lacks 41 of 118 rows that the day had; nothing was withdrawn'
      where operation = 'GetBhavCopyCM' and exchange = 'NSE' and from_date = $1`,
    [suspiciousDay],
  );
  // As if each day had been loaded in its evening: a few minutes after it was due, sometimes hours.
  await pool.query(
    `update etl.loads set committed_at = (to_date + time '21:16') at time zone 'Asia/Kolkata'
        + make_interval(mins => 8 + (hashtext(operation || to_date) & 31)
        + case when hashtext(to_date::text) % 17 = 0 then 150 + (hashtext(operation) & 63) else 0 end)
      where to_date = from_date`,
  );
  await pool.query(
    `insert into etl.rejected_records (run_id, window_id, operation, exchange, position, from_date, to_date, fingerprint, record, problems, first_seen_at, last_seen_at)
     select run_id, id, operation, exchange, 7 * n, from_date, to_date, md5(id || ':' || n), '{}'::jsonb,
            case n when 1 then '[{"path": "ClosePrice", "message": "is not a number: \\"n/a\\""}]'::jsonb
                   else '[{"path": "ISIN", "message": "is not an ISIN: \\"INE009A0\\""}]'::jsonb end, now(), now()
       from (select *, row_number() over (order by id desc) as n from etl.windows
              where operation = 'GetBhavCopyCM' and state = 'loaded' and exchange = 'BSE') w where n <= 2`,
  );
  const findings = [
    ['previous_close', 'error', 'GetBhavCopyCM', 'NSE', 'INFY EQ', '1489.90', '1502.90'],
    ['row_count', 'warning', 'GetBhavCopyCM', 'BSE', '', 'about 122 rows', '81 rows'],
    ['highlights_turnover', 'info', 'GetTotalTradeHighlights', 'BSE', '', '4211.07 crore', '4209.88 crore'],
  ];
  for (const [
    at,
    [check, severity, operation, exchange, instrument, expected, found],
  ] of findings.entries()) {
    await pool.query(
      `insert into etl.findings ("check", severity, operation, exchange, date, instrument, expected, found)
       values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
      [check, severity, operation, exchange, sessions.at(-1 - at), instrument, expected, found],
    );
  }
}

async function takeScreenshots(context: WorkContext, cleanups: Cleanup[]): Promise<void> {
  const stopping = new AbortController().signal;
  const server = await startHttpServer(context, { roles: ['web'], stopping });
  cleanups.push(() => server.close());
  const browser: Browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  cleanups.push(() => browser.close());
  mkdirSync(IMAGES, { recursive: true });
  for (const { name, path, colorScheme, viewport, whole } of SCREENSHOTS) {
    const page = await browser.newPage({ colorScheme, viewport, reducedMotion: 'reduce' });
    await page.goto(`${server.url}${path}`);
    const file = join(IMAGES, `${name}.png`);
    await page.screenshot({ path: file, fullPage: whole });
    await page.close();
    console.log(`${name}.png: ${Math.round(statSync(file).size / 1024)} KB`);
  }
}

await main();
