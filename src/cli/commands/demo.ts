import { join } from 'node:path';
import type { Calendar } from '../../calendar/calendar.ts';
import { exampleDays } from '../../core/clock.ts';
import type { Config } from '../../core/config.ts';
import { isInstalled } from '../../core/data-folder.ts';
import { addDays, type Day } from '../../core/days.ts';
import { readEnvironment } from '../../core/environment.ts';
import { exchangesOf, isQuarterly } from '../../declaration/operation.ts';
import { type ExampleResult, runExamples } from '../../load/examples.ts';
import { requestedOperations } from '../../operations/requested.ts';
import { EXAMPLE_KEY } from '../../sandbox/behaviour.ts';
import type { RunRequest } from '../../state/request.ts';
import type { RunReport } from '../../state/runs/reports.ts';
import { EXIT, logNote, logStderr, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { demoSettings } from '../demo-settings.ts';
import { flag } from '../options.ts';
import { bold, type Column, table } from '../output.ts';
import { failuresText, runExitCode, runText } from '../run-output.ts';

const TRADING_DAYS = 5;

/** What a demo has loaded, as JSON. */
interface DemoReport {
  readonly report: RunReport;
  readonly queries: readonly ExampleResult[];
  readonly databaseUrl: string;
  readonly sourceUrl: string | undefined;
}

export default defineCommand({
  path: 'demo',
  group: 'Load',
  summary:
    'Load the last 5 trading days of all operations from the sandbox into a private Postgres, and show them.',
  options: { keep: flag('afterwards, keep Postgres and the sandbox running until Ctrl-C') },
  examples: ['eod demo', 'eod demo --keep', 'eod --demo status'],
  async run(cli, { keep, json }) {
    const { loadConfig } = await import('../../core/config.ts');
    const { lastNight } = await import('../../declaration/night-times.ts');
    const { cancelRun } = await import('../../jobs/runs/run-control.ts');
    const { reportRun } = await import('../../state/runs/reports.ts');
    const { openContext } = await import('../open-context.ts');
    const { startNewRun, workOnRun } = await import('../work-on-run.ts');
    const { life } = cli;
    cli.demo = true;
    const settings = loadConfig(demoSettings(cli, readEnvironment(cli.env, cli.cwd)), cli.cwd);
    logNote(cli, `starting a private Postgres in ${join(settings.EOD_DATA_DIR, 'postgres')}`);
    const context = await openContext(cli, { config: settings, source: true, wait: 'short' });
    const { config, calendar, clock } = context;
    const request = demoRequest(config, calendar, lastNight(config, clock));
    logNote(
      cli,
      `calling the sandbox at ${config.EOD_BASE_URL} for ${TRADING_DAYS} trading days of ${requestedOperations(config).length} operations`,
    );
    const runId = await startNewRun(context, request);
    const { report, isInterrupted } = await workOnRun(cli, context, runId);
    if (isInterrupted) {
      await cancelRun(context, runId);
      logStderr(cli, `stopped: run ${runId} is cancelled; the next demo starts afresh`);
      if (json) printJson(cli, await reportRun(context, runId));
      cli.exitCode = life.cutShort() ?? EXIT.failed;
      return;
    }
    const shown = {
      report,
      queries: await runExamples(context.db.pool),
      databaseUrl: context.db.url,
      sourceUrl: config.EOD_BASE_URL,
    };
    if (json) printJson(cli, shown);
    else {
      print(cli, demoText(shown, { keep, root: cli.root, timeZone: config.EOD_TIMEZONE }));
      // These commands are not about the demo's data.
      print({ ...cli, demo: false }, realDataText());
    }
    const failures = failuresText(report);
    if (failures !== null) logStderr(cli, failures);
    cli.exitCode = runExitCode(report);
    if (keep) await life.stopped;
  },
});

/** The most days a quarter has. */
const QUARTER_DAYS = 92;

/**
 * Requests the last trading days of all operations whose data is due, also if they are loaded, because that is what a
 * demo shows. In the evening today is among them; otherwise "eod --demo status" would say that it is late.
 */
function demoRequest(config: Config, calendar: Calendar, last: Day): RunRequest {
  const targets = requestedOperations(config).flatMap((operation) =>
    exchangesOf(operation, config).map((exchange) => {
      const tradingDays = calendar.lastTradingDays(exchange, last, TRADING_DAYS);
      // For quarterly figures, the last quarter that has ended.
      const from = isQuarterly(operation) ? addDays(last, -QUARTER_DAYS) : (tradingDays[0] ?? last);
      const to = tradingDays.at(-1) ?? last;
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
  { keep, root, timeZone }: { keep: boolean; root: string; timeZone: string },
): string {
  const shown = queries.map(({ title, sql, rows }) => {
    const columns = Object.keys(rows[0] ?? {}).map(
      (name): Column<ExampleResult['rows'][number]> => ({ head: name, cell: (row) => row[name] ?? null }),
    );
    return `${bold(title)}\n\n${sql}\n\n${table(columns, rows)}\n`;
  });
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
          // In one line it would be too wide, and be broken where a shell does not expect it.
          '  psql \\',
          `    '${databaseUrl}'`,
          '',
          `Postgres and the sandbox (EOD_BASE_URL=${sourceUrl} EOD_ACCESS_KEY=${EXAMPLE_KEY}) keep running until Ctrl-C.`,
          '',
        ]
      : []),
    bold('Next'),
    '',
    '  eod --demo status       what is loaded, and what is missing',
    '  eod --demo web          the same and more as a dashboard, until Ctrl-C',
    `  eod --demo runs ${String(report.runId).padEnd(7)} this report again`,
    '  eod demo --keep         the same, and keeps Postgres running for psql',
    '',
    isInstalled(root)
      ? 'Where the shell does not find "eod", write "npx eod".'
      : 'Run "npm link" first, or use "npx eod", which starts two seconds slower.',
  ].join('\n');
}

/** What to do for real data. */
function realDataText(): string {
  const { from, to } = exampleDays();
  return [
    '',
    'For real data, write a .env with "eod init", set EOD_BASE_URL, EOD_ACCESS_KEY and DATABASE_URL in it, then',
    '',
    '  eod migrate',
    `  eod backfill --all --from ${from} --to ${to} --dry-run`,
    '  eod up',
  ].join('\n');
}
