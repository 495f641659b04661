import { join } from 'node:path';
import type { Calendar } from '../calendar/calendar.ts';
import { loadCalendar } from '../calendar/index.ts';
import { systemClock, today } from '../core/clock.ts';
import { type Config, loadConfig } from '../core/config.ts';
import { addDays } from '../core/days.ts';
import { readEnvironment } from '../core/environment.ts';
import { cancelRun } from '../jobs/runs/run-control.ts';
import { type Answer, runExamples } from '../load/market/examples.ts';
import { type RunReport, reportRun } from '../load/state/reports.ts';
import type { RunRequest } from '../load/state/run-request.ts';
import { exchangesOf, isQuarterly } from '../operations/operation.ts';
import { operations } from '../operations/registry.ts';
import { startSandbox } from '../sandbox/index.ts';
import { type Cli, demoSettings, EXIT, logStderr, print, printJson } from './cli.ts';
import { openContext } from './open-context.ts';
import { exampleDays } from './options.ts';
import { bold, type Column, table } from './output.ts';
import { exitCodeOf, failuresText, runText } from './run-output.ts';
import { newRun, workOnRun } from './work-on-run.ts';

const SESSIONS = 5;

/** What a demo has loaded, as JSON. */
interface DemoReport {
  readonly report: RunReport;
  readonly queries: readonly Answer[];
  readonly databaseUrl: string;
  readonly sourceUrl: string;
}

/** Loads and shows a week; @param keep whether Postgres and the sandbox stay up until Ctrl-C. */
export async function demo(cli: Cli, { keep, json }: { keep: boolean; json: boolean }): Promise<void> {
  const { life } = cli;
  cli.demo = true;
  const calendar = loadCalendar();
  const sandbox = await life.open(
    () => startSandbox({ calendar, accessKey: 'demo' }),
    (opened) => opened.close(),
  );
  const config = loadConfig({
    ...demoSettings(readEnvironment(cli.env, cli.cwd)),
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: 'demo',
  });
  logStderr(cli, `starting a private Postgres in ${join(config.EOD_DATA_DIR, 'postgres')}`);
  const context = await openContext(cli, { config, source: true, wait: 'short' });
  const request = demoRequest(config, calendar);
  logStderr(
    cli,
    `asking the sandbox at ${sandbox.url} for ${SESSIONS} sessions of ${operations.length} operations`,
  );
  const runId = await newRun(context, request);
  const { report, interrupted } = await workOnRun(cli, context, runId);
  if (interrupted) {
    await cancelRun(context, runId);
    logStderr(cli, `stopped: run ${runId} is cancelled; the next demo starts afresh`);
    if (json) printJson(cli, await reportRun(context.db.drizzle, runId));
    cli.exitCode = life.cutShort() ?? EXIT.failed;
    return;
  }
  const { url: databaseUrl } = context.db;
  const shown = { report, queries: await runExamples(context.db.pool), databaseUrl, sourceUrl: sandbox.url };
  if (json) printJson(cli, shown);
  else print(cli, demoText(shown, { keep, timeZone: config.EOD_TIMEZONE }));
  const failures = failuresText(report);
  if (failures !== null) logStderr(cli, failures);
  cli.exitCode = exitCodeOf(report);
  if (keep) await life.stopped;
}

/** A quarter has at most so many days. */
const QUARTER_DAYS = 92;

/** The last sessions before today of everything, asked again if need be: that is what a demo shows. */
function demoRequest(config: Config, calendar: Calendar): RunRequest {
  const yesterday = addDays(today(systemClock, config.EOD_TIMEZONE), -1);
  const targets = operations.flatMap((operation) =>
    exchangesOf(operation, config).map((exchange) => {
      const sessions = calendar.lastSessions(exchange, yesterday, SESSIONS);
      // Of quarters, the last one that has ended.
      const from = isQuarterly(operation) ? addDays(yesterday, -QUARTER_DAYS) : (sessions[0] ?? yesterday);
      const to = sessions.at(-1) ?? yesterday;
      return { operation: operation.name, exchange, from, to, refetchFrom: from };
    }),
  );
  return { kind: 'backfill', targets, instruments: [], options: {}, live: false };
}

function summaryText({ fetched, inserted, updated, unchanged, rejected }: RunReport): string {
  if (inserted + updated === 0 && rejected === 0 && unchanged === fetched) {
    return 'Everything was loaded before: all records are unchanged, and no row was written.';
  }
  return 'Run the demo again: what is loaded already will be counted as unchanged.';
}

function demoText(
  { report, queries, databaseUrl, sourceUrl }: DemoReport,
  { keep, timeZone }: { keep: boolean; timeZone: string },
): string {
  const shown = queries.map(({ title, sql, rows }) => {
    const columns = Object.keys(rows[0] ?? {}).map(
      (name): Column<Answer['rows'][number]> => ({ head: name, cell: (row) => row[name] ?? null }),
    );
    return `${bold(title)}\n\n${sql}\n\n${table(columns, rows)}\n`;
  });
  const { from, to } = exampleDays();
  return [
    '',
    runText(report, timeZone),
    '',
    summaryText(report),
    '',
    ...shown,
    ...(keep
      ? [
          'Connect with:',
          '',
          `  psql '${databaseUrl}'`,
          '',
          `Postgres and the sandbox (EOD_BASE_URL=${sourceUrl} EOD_ACCESS_KEY=demo) stay up until Ctrl-C.`,
          '',
        ]
      : []),
    bold('Next'),
    '',
    '  npx eod --demo status       what is loaded, and what is missing',
    `  npx eod --demo run ${String(report.runId).padEnd(8)} this run once more`,
    '  npx eod demo --keep         the same with Postgres left running, and its psql command',
    '',
    'To go live, copy .env.example to .env, set EOD_BASE_URL, EOD_ACCESS_KEY and DATABASE_URL, then',
    '',
    '  npx eod migrate',
    `  npx eod backfill --all --from ${from} --to ${to} --dry-run`,
    '  npx eod up',
  ].join('\n');
}
