import { join } from 'node:path';
import type { Pool } from 'pg';
import type { Calendar } from '../calendar/calendar.ts';
import { loadCalendar } from '../calendar/index.ts';
import { systemClock, today } from '../core/clock.ts';
import { type Config, loadConfig } from '../core/config.ts';
import { addDays } from '../core/days.ts';
import { readEnvironment } from '../core/environment.ts';
import { cancelRun } from '../jobs/runs/run-control.ts';
import type { RunReport } from '../load/state/reports.ts';
import type { RunRequest } from '../load/state/run-request.ts';
import { exchangesOf } from '../operations/operation.ts';
import { operations } from '../operations/registry.ts';
import { startSandbox } from '../sandbox/index.ts';
import { type Cli, EXIT, logStderr, print } from './cli.ts';
import { openContext } from './open-context.ts';
import { bold, type Cell, type Column, table } from './output.ts';
import { exitCodeOf, failuresText, runText } from './run-output.ts';
import { newRun, workOnRun } from './work-on-run.ts';

const SESSIONS = 5;

/** Settings of the user the demo respects; the others are for the real source and database. */
const RESPECTED = ['EOD_DATA_DIR', 'EOD_LOG_LEVEL', 'EOD_CONCURRENCY', 'EOD_INSTRUMENT_LIMIT'];

/** Loads and shows a week; @param keep whether Postgres and the sandbox stay up until Ctrl-C. */
export async function demo(cli: Cli, keep: boolean): Promise<void> {
  const { life } = cli;
  const calendar = loadCalendar();
  const sandbox = await life.open(
    () => startSandbox({ calendar, accessKey: 'demo' }),
    (opened) => opened.close(),
  );
  const config = demoConfig(cli, sandbox.url);
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
    // Nobody will resume it: the next demo starts afresh.
    await cancelRun(context, runId);
    cli.exitCode = life.cutShort() ?? EXIT.failed;
    return;
  }
  print(cli, `\n${runText(report)}\n`);
  print(cli, `${summaryText(report)}\n`);
  const failures = failuresText(report);
  if (failures !== null) logStderr(cli, failures);
  print(cli, await queriesText(context.db.pool));
  cli.exitCode = exitCodeOf(report);
  print(cli, connectText(context.db.url, keep));
  if (!keep) return;
  print(
    cli,
    `\nPostgres and the sandbox (EOD_BASE_URL=${sandbox.url} EOD_ACCESS_KEY=demo) stay up until Ctrl-C.`,
  );
  await life.stopped;
}

function demoConfig({ env, cwd }: Cli, sandboxUrl: string): Config {
  const own = readEnvironment(env, cwd);
  const respected = Object.fromEntries(RESPECTED.flatMap((name) => (own[name] ? [[name, own[name]]] : [])));
  return loadConfig({
    EOD_INSTRUMENT_LIMIT: '10',
    ...respected,
    EOD_DATA_DIR: join(respected.EOD_DATA_DIR ?? '.eod', 'demo'),
    EOD_BASE_URL: sandboxUrl,
    EOD_ACCESS_KEY: 'demo',
    EOD_CALLS_PER_HOUR: '1000000',
  });
}

/** The last sessions before today of everything, asked again if need be: that is what a demo shows. */
function demoRequest(config: Config, calendar: Calendar): RunRequest {
  const yesterday = addDays(today(systemClock, config.EOD_TIMEZONE), -1);
  const targets = operations.flatMap((operation) =>
    exchangesOf(operation, config).map((exchange) => {
      const sessions = calendar.lastSessions(exchange, yesterday, SESSIONS);
      const from = sessions[0] ?? yesterday;
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

function connectText(url: string, keep: boolean): string {
  const command = `psql '${url}'`;
  if (keep) return `Connect with:\n\n  ${command}`;
  return [
    'To look around yourself, keep Postgres up with: npm run demo -- --keep',
    'It then prints the psql command, with a new port each time; just now it would have been:',
    '',
    `  ${command}`,
  ].join('\n');
}

interface Example {
  readonly title: string;
  readonly sql: string;
}

/** First queries for somebody who has just loaded a week; README.md shows the same. */
const EXAMPLES: readonly Example[] = [
  {
    title: 'The five most traded shares of the last session on NSE',
    sql: `select symbol, series, close_price, traded_quantity, round(turnover / 1e7, 2) as turnover_crore
  from market.bhavcopy_cm
 where exchange = 'NSE' and trade_date = (select max(trade_date) from market.bhavcopy_cm where exchange = 'NSE')
 order by turnover desc limit 5;`,
  },
  {
    title: 'Who moved most over these sessions, on either exchange',
    sql: `with week as (
  select exchange, symbol, series,
         (array_agg(previous_close_price order by trade_date))[1] as before,
         (array_agg(close_price order by trade_date desc))[1] as after
    from market.bhavcopy_cm where trade_date > current_date - 10
   group by exchange, symbol, series)
select exchange, symbol, series, before, after, round(100 * (after / before - 1), 2) as percent_move
  from week where before > 0
 order by abs(after / before - 1) desc limit 5;`,
  },
  {
    title: "The last session's top gainers on BSE, with what the bhav copy says of them",
    sql: `select g.rank, b.symbol, g.close_price, g.percent_change, b.traded_quantity, b.trade_count
  from market.top_gainers_losers g
  join market.bhavcopy_cm b on b.exchange = g.exchange and b.trade_date = g.trade_date
                           and b.exchange_instrument_id = g.scrip_code
 where not g.is_loser and g.trade_date = (select max(trade_date) from market.top_gainers_losers)
 order by g.rank;`,
  },
];

/** Runs the example queries and draws each with its text and its answer. */
async function queriesText(pool: Pool): Promise<string> {
  const parts: string[] = [];
  for (const { title, sql } of EXAMPLES) {
    const result = await pool.query<Record<string, Cell>>(sql);
    const columns = result.fields.map(
      ({ name }): Column<Record<string, Cell>> => ({ head: name, cell: (row) => asCell(row[name]) }),
    );
    parts.push(`${bold(title)}\n\n${sql}\n\n${table(columns, result.rows)}\n`);
  }
  return parts.join('\n');
}

/** node-postgres hands numeric and bigint over as text; they fit for showing. */
function asCell(value: Cell | undefined): Cell {
  if (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value)) return Number(value);
  return value ?? null;
}
