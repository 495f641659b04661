import { join } from 'node:path';
import type { Command } from 'commander';
import type { Calendar } from '../calendar/calendar.ts';
import { loadCalendar } from '../calendar/index.ts';
import { systemClock, today } from '../core/clock.ts';
import { type Config, loadConfig, readEnvironment } from '../core/config.ts';
import { addDays } from '../core/days.ts';
import { exchangesOf } from '../jobs/runs/nightly.ts';
import { cancelRun } from '../jobs/runs/runs.ts';
import type { RunReport } from '../load/state/reports.ts';
import type { RunRequest } from '../load/state/run-request.ts';
import { operations } from '../operations/registry.ts';
import { startSandbox } from '../sandbox/index.ts';
import { type Cli, examples } from './command.ts';
import { openContext } from './context.ts';
import { queriesText } from './demo-queries.ts';
import { newRun } from './new-run.ts';
import { print, say } from './output.ts';
import { exitCodeOf, failuresText, runText } from './run-view.ts';
import { workOn } from './work.ts';

const SESSIONS = 5;

/** Settings of the user the demo respects; the others are for the real source and database. */
const RESPECTED = ['EOD_DATA_DIR', 'EOD_LOG_LEVEL', 'EOD_CONCURRENCY', 'EOD_INSTRUMENT_LIMIT'];

export function demoCommand(program: Command, cli: Cli): Command {
  return program
    .command('demo')
    .description(
      'Load the last 5 sessions of all operations from the sandbox into a private Postgres, and show them.',
    )
    .option('--keep', 'keep Postgres and the sandbox up afterwards, until Ctrl-C')
    .addHelpText('after', examples('eod demo', 'eod demo --keep'))
    .action((flags: { readonly keep?: boolean }) => demo(cli, flags.keep === true));
}

async function demo(cli: Cli, keep: boolean): Promise<void> {
  const { life } = cli;
  const calendar = loadCalendar();
  const sandbox = await life.open(
    () => startSandbox({ calendar, accessKey: 'demo' }),
    (opened) => opened.close(),
  );
  const config = demoConfig(sandbox.url);
  say(`starting a private Postgres in ${join(config.EOD_DATA_DIR, 'postgres')}`);
  const context = await openContext(life, config, { source: true, wait: 'short' });
  const request = demoRequest(config, calendar);
  say(`asking the sandbox at ${sandbox.url} for ${SESSIONS} sessions of ${operations.length} operations`);
  const runId = await newRun(context, request);
  const { report, interrupted } = await workOn(life, context, runId);
  if (interrupted) {
    // Nobody will resume it: the next demo starts afresh.
    await cancelRun(context, runId);
    cli.exitCode = life.cutShort() ?? 1;
    return;
  }
  print(`\n${runText(report)}\n`);
  print(`${verdict(report)}\n`);
  const failures = failuresText(report);
  if (failures !== null) say(failures);
  print(await queriesText(context.db.pool));
  cli.exitCode = exitCodeOf(report);
  print(connectText(context.db.url, keep));
  if (!keep) return;
  print(`\nPostgres and the sandbox (EOD_BASE_URL=${sandbox.url} EOD_ACCESS_KEY=demo) stay up until Ctrl-C.`);
  await life.stopped;
}

function demoConfig(sandboxUrl: string): Config {
  const own = readEnvironment();
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
      return { operation: operation.name, exchange, from, to, againFrom: from };
    }),
  );
  return { kind: 'backfill', targets, instruments: [], options: {}, live: false };
}

function verdict({ fetched, inserted, updated, unchanged, rejected }: RunReport): string {
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
