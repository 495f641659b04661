// Makes the pictures of docs/dashboard.md from made-up data: `npm run docs:screenshots`. It needs chromium, and a
// minute; look at each picture before it is committed.
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { loadCalendar } from '../src/calendar/index.ts';
import { sourceSettings } from '../src/cli/open-context.ts';
import { systemClock, today } from '../src/core/clock.ts';
import { loadConfig } from '../src/core/config.ts';
import { addDays, type Day } from '../src/core/days.ts';
import { createLog } from '../src/core/log.ts';
import { createSource } from '../src/extract/index.ts';
import type { WorkContext } from '../src/jobs/context.ts';
import { startRun } from '../src/jobs/runs/run-control.ts';
import { openQueues } from '../src/jobs/worker/queue.ts';
import { startWorker } from '../src/jobs/worker/worker.ts';
import { openDatabase } from '../src/load/database/database.ts';
import { startEmbeddedPostgres } from '../src/load/database/embedded/index.ts';
import { migrateDatabase } from '../src/load/database/migrate.ts';
import { runProgress } from '../src/load/state/reports.ts';
import { exchangesOf } from '../src/operations/operation.ts';
import { operations } from '../src/operations/registry.ts';
import { startSandbox } from '../src/sandbox/index.ts';
import { startHttpServer } from '../src/web/server.ts';

const IMAGES = fileURLToPath(new URL('../docs/images/', import.meta.url));
const LAPTOP = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 800 };

/** The pictures: page, theme, window. `whole`: the page to its end, else what the window shows. */
const PICTURES = [
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
  { name: 'quality', path: '/quality', colorScheme: 'light', viewport: LAPTOP, whole: true },
  { name: 'freshness', path: '/freshness', colorScheme: 'dark', viewport: LAPTOP, whole: false },
] as const;

/** How far back the made-up data goes, in days. */
const REACH = 325;

type Closing = () => Promise<unknown>;

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'eod-screenshots-'));
  const closings: Closing[] = [async () => rmSync(folder, { recursive: true, force: true })];
  try {
    const context = await openPipeline(folder, closings);
    await fill(context);
    await picture(context, closings);
  } finally {
    for (const close of closings.reverse()) await close();
  }
}

/** A sandbox, a private Postgres of its own and all that works on them. */
async function openPipeline(folder: string, closings: Closing[]): Promise<WorkContext> {
  const sandbox = await startSandbox({ accessKey: 'demo', instrumentsPerExchange: 120, splits: true });
  closings.push(() => sandbox.close());
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
  closings.push(() => server.stop());
  const db = openDatabase({ url: server.url, log, connections: 12 });
  closings.push(() => db.close());
  await migrateDatabase(db, config);
  const queues = await openQueues({ db, config, log });
  closings.push(() => queues.close());
  const source = createSource(sourceSettings(config), log);
  closings.push(() => source.close());
  return { config, log, db, queues, source, calendar: loadCalendar(), clock: systemClock };
}

/** Plans a backfill. @param names of the operations; all when not given. */
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

/** Works on a run until this share of it is done. */
async function workUntil(context: WorkContext, runId: number, share: number): Promise<void> {
  const worker = await startWorker(context);
  for (;;) {
    const { ended, total, state } = await runProgress(context.db.drizzle, runId);
    if (state !== 'running' || ended / total >= share) break;
    await sleep(20);
  }
  await worker.stop();
}

/** Most of a year, with what happens in one: days that are missing, one that is suspicious, rejects, findings. */
async function fill(context: WorkContext): Promise<void> {
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
  // Days between two runs are missing.
  await workUntil(context, await plan(context, day(REACH), day(150), daily), 1);
  await workUntil(context, await plan(context, day(144), day(95), daily), 1);
  await workUntil(context, await plan(context, day(91), yesterday, daily), 1);
  await workUntil(context, await plan(context, day(60), yesterday), 1);
  await story(context, now);
  // Under way while the pictures are made.
  await workUntil(
    context,
    await plan(context, day(REACH + 200), day(REACH + 1), ['GetBhavCopyCM', 'GetCircuitBreakers']),
    0.4,
  );
}

/** What no sandbox does by itself. */
async function story({ db, calendar }: WorkContext, now: Day): Promise<void> {
  const { pool } = db;
  const sessions = calendar.lastSessions('NSE', addDays(now, -1), 120);
  const odd = sessions.at(-70) ?? now;
  await pool.query(
    `update etl.windows set suspicious = 'the answer lacks 41 of 118 rows that the day had; nothing was withdrawn'
      where operation = 'GetBhavCopyCM' and exchange = 'NSE' and from_date = $1`,
    [odd],
  );
  // As if each night had been asked for in its evening: a few minutes after it was due, now and then hours.
  await pool.query(
    `update etl.loads set committed_at = (to_date + time '21:16') at time zone 'Asia/Kolkata'
        + make_interval(mins => 8 + (hashtext(operation || to_date) & 31)
        + case when hashtext(to_date::text) % 17 = 0 then 150 + (hashtext(operation) & 63) else 0 end)
      where to_date = from_date`,
  );
  await pool.query(
    `insert into etl.rejects (run_id, window_id, operation, exchange, position, from_date, to_date, fingerprint, record, problems, first_seen_at, last_seen_at)
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

async function picture(context: WorkContext, closings: Closing[]): Promise<void> {
  const stopping = new AbortController().signal;
  const server = await startHttpServer(context, { roles: ['web'], stopping });
  closings.push(() => server.close());
  const browser: Browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  closings.push(() => browser.close());
  mkdirSync(IMAGES, { recursive: true });
  for (const { name, path, colorScheme, viewport, whole } of PICTURES) {
    const page = await browser.newPage({ colorScheme, viewport, reducedMotion: 'reduce' });
    await page.goto(`${server.url}${path}`);
    const file = join(IMAGES, `${name}.png`);
    await page.screenshot({ path: file, fullPage: whole });
    await page.close();
    console.log(`${name}.png: ${Math.round(statSync(file).size / 1024)} KB`);
  }
}

await main();
