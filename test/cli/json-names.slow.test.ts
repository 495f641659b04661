import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildProgram, loadCommand } from '../../src/cli/program.ts';
import { bhavcopy, bhavRow, loadBhav, newRun, newWindow, openPool } from '../load/support.ts';
import { misnamedBooleans } from '../support/boolean-names.ts';
import { captureCli, runCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { openSandbox } from '../support/sandbox.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// The rule of names of JSON in docs/tables.md: `runCli` holds it over the document and the log of every command that any
// test runs, `startWebhook` over every alert. This file runs each command that can print JSON, so that none is left out.

const DAY = '2025-08-29';
const EVENT = 'NSE:ABC:2024-02-05:demerger';
const EVENTS = 'exchange,symbol,ex_date,kind,ratio,note\nNSE,ABC,2024-02-05,demerger,,Demerger\n';
const RANGE = ['--from', DAY, '--to', DAY];
const folder = temporaryFolder();

/** A command line for each, in an order in which they find something. */
const LINES: Readonly<Record<string, readonly string[]>> = {
  migrate: [],
  init: [join(folder, 'settings')],
  config: [],
  'runs cancel': ['3'],
  operations: [],
  schedules: [],
  backfill: ['GetCircuitBreakers', ...RANGE],
  nightly: ['--dry-run'],
  import: [join(folder, 'events.csv')],
  status: [],
  doctor: [],
  runs: [],
  'runs resume': ['1'],
  gaps: ['GetBhavCopyCM', '--all', ...RANGE],
  'gaps fill': ['GetBhavCopyCM', '--dry-run', ...RANGE],
  query: ['select 1 as one'],
  export: ['bhavcopy_cm', '--out', join(folder, 'rows.parquet')],
  state: [],
  wait: ['--night', '2025-01-01', '--timeout', '0'],
  issues: [],
  rejects: [],
  withdrawals: [],
  'withdrawals accept': ['1'],
  events: [],
  'events set': [EVENT, '--ignore'],
  'events ignore': ['--below', '5', '--dry-run'],
  reconcile: RANGE,
  findings: [],
  replay: [],
  'rejects retry': [],
  'rejects accept': ['--exchange', 'BSE'],
  'findings accept': ['--exchange', 'BSE'],
  prune: ['--dry-run'],
  verify: [],
};

/** Those that can print JSON; the demo has a Postgres of its own, in demo.slow.test.ts. */
async function commandsWithJson(): Promise<string[]> {
  const { cli } = captureCli();
  const program = buildProgram(cli);
  const found: string[] = [];
  for (const command of program.commands) {
    await loadCommand(command, cli);
    for (const one of [command, ...command.commands]) {
      // `show ID` is the command with an ID.
      if (one.name() === 'show' || !one.options.some(({ long }) => long === '--json')) continue;
      found.push(
        one === command || one.name() === 'list' ? command.name() : `${command.name()} ${one.name()}`,
      );
    }
  }
  return found.filter((name) => name !== 'demo');
}

test('booleans in the documents of all commands begin with is or has', async () => {
  expect(Object.keys(LINES).sort()).toEqual((await commandsWithJson()).sort());
  const { url } = await testDatabase();
  const store = openPool(url);
  const runId = await newRun(store);
  const others: number[] = [];
  for (let at = 0; at < 5; at += 1) others.push(await newRun(store));
  const fullSets = [{ table: bhavcopy, exchange: 'NSE', days: { from: DAY, to: DAY }, mayBeEmpty: false }];
  const rows = Array.from({ length: 20 }, (_, at) => bhavRow({ symbol: `SYMBOL${at}` }));
  await loadBhav(store, rows, { fullSets, runId });
  const problems = [{ path: 'ClosePrice', message: 'is missing' }];
  await loadBhav(store, rows.slice(8), {
    fullSets,
    runId,
    rejects: [{ position: 1, record: { Symbol: 'A', IsLoser: true }, problems }],
  });
  for (const id of [runId, ...others]) await newWindow(store, id, 'failed');
  writeFileSync(join(folder, 'events.csv'), EVENTS);
  const source = await openSandbox({ instrumentsPerExchange: 5 });
  const env = {
    DATABASE_URL: url,
    EOD_BASE_URL: source.url,
    EOD_ACCESS_KEY: 'a key for tests',
    EOD_LOG_LEVEL: 'info',
    EOD_ALERT_WEBHOOK: 'http://127.0.0.1:9',
    EOD_ATTEMPTS: '1',
  };
  const refused: Record<string, string> = {};
  for (const [name, args] of Object.entries(LINES)) {
    const { code, stdout, stderr } = await runCli([...name.split(' '), ...args, '--json'], {
      cwd: folder,
      env,
    });
    expect(() => JSON.parse(stdout), name).not.toThrow();
    // A command that is refused shows nothing of its document.
    if (code === 2) refused[name] = stderr;
  }
  expect(refused).toEqual({});
});

test('others are found, wherever they are, but for what the source or a setting is called', () => {
  const document = {
    late: true,
    isLate: false,
    hasRows: true,
    issued: true,
    island: { hashed: true },
    days: [{ is_new: true, new: false }],
    isListed: [true],
    flags: [true],
    record: { Loser: true },
    EOD_METRICS: { value: true },
  };
  expect(misnamedBooleans(document)).toEqual([
    '.late',
    '.issued',
    '.island.hashed',
    '.days[].new',
    '.flags[]',
  ]);
  expect(misnamedBooleans(null)).toEqual([]);
});
