import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { exampleDays, systemClock, today } from '../../src/core/clock.ts';
import { runCli } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test as testWithDatabase } from './support.ts';

/**
 * Command lines as a newcomer types them, with settings in front of them, and the first line that stderr
 * must say after `eod: `; `…` stands for the rest of it. All end with the exit code 2, and write nothing.
 */
type Mistake = readonly [line: string, says: string];

const COMMAND_LINES: readonly Mistake[] = [
  ['frobnicate', `unknown command 'frobnicate' ("eod help --all" lists them)`],
  ['backfil', "unknown command 'backfil'; did you mean backfill?"],
  ['Status', "unknown command 'Status'; did you mean status?"],
  ['constructor', `unknown command 'constructor' ("eod help --all" lists them)`],
  ['help backup', `unknown command 'backup' ("eod help --all" lists them)`],
  ['--frob', `unknown option '--frob' ("eod help" lists what there is)`],
  ['-x', `unknown option '-x' ("eod help" lists what there is)`],
  ['runs -3', 'the number of the run: "-3" is not a whole number from 1'],
  ['runs resume x --json', 'the number of the run: "x" is not a whole number from 1'],
  ['runs 1 --limit 3', '--limit is for the list: leave out "1"'],
  ['findings 1 --resolved', '--resolved is for the list: leave out "1"'],
  ['runs --limit 0', '--limit: "0" is not a whole number from 1 to 9999999'],
  ['runs --jsn', "unknown option '--jsn'; did you mean --json?"],
  ['runs --limit', `option '--limit <n>' argument missing ("eod help runs" explains it)`],
  ['runs first --json', 'the number of the run: "first" is not a whole number from 1'],
  ['runs show', 'the number of the run: "show" is not a whole number from 1'],
  [
    'runs 12 13',
    `too many arguments for 'runs'. Expected 1 argument but got 2 ("eod help runs" explains it)`,
  ],
  ['runs resme 12', "unknown command 'resme' of runs; did you mean resume?"],
  ['runs resume', `missing required argument 'id' ("eod help runs resume" explains it)`],
  [
    'backfill --from 2025-02-20 --to 2025-02-27',
    'nothing to do: name operations ("eod operations" lists them) or give --all',
  ],
  ['backfill GetBhavCopyCM', '--from and --to missing: give both, e.g. --from FROM --to TO'],
  ['backfill GetBhavCopyCM --from 2025-02-20', '--to missing: give both, e.g. --from FROM --to TO'],
  [
    'backfill GetBhavCopyCM --from --to 2025-02-20',
    '--from <day>: the value is missing, --to follows at once',
  ],
  [
    'backfill --all GetBhavCopyCM --from 2025-02-20 --to 2025-02-27',
    'give names of operations or --all, not both',
  ],
  [
    'backfill --all --from 2025-02-20 --to 2025-02-27 --dry-run --detach',
    "option '--dry-run' cannot be used with option '--detach'",
  ],
  [
    'backfill --all --from 2025-02-20 --to 2025-02-27',
    'set EOD_BASE_URL (the address of the data service) and EOD_ACCESS_KEY (your key for it); "eod sandbox" starts a simulated service and prints what to set',
  ],
  [
    'backfill GetBhavCopyCM --from 2025-02-20 --to 2025-02-27 --exchange N.S.E',
    '--exchange: unknown exchange "N.S.E"; did you mean NSE?; if the source has it, name it in EOD_OPERATION_EXCHANGES',
  ],
  [
    'backfill GetBhavCopyCM --from 2025-02-20 --to 2025-02-27 --exchange ,',
    '--exchange names no exchange (BSE, NSE, …)',
  ],
  [
    'backfill GetBhavCopyCM --from 2025-02-20 --to 2025-02-27 --exchnage NSE',
    "unknown option '--exchnage'; did you mean --exchange?",
  ],
  [
    'backfill GetFinRatioEOD --from 2025-02-20 --to 2025-02-27 --instruments @nowhere.txt',
    '--instruments: @nowhere.txt cannot be read: there is no such file or folder',
  ],
  [
    'backfill GetTotalTradeHighlights --from 2025-02-20 --to 2025-02-27 --instruments TCS',
    '--instruments: GetTotalTradeHighlights cannot be requested by instrument',
  ],
  [
    'backfill GetBhavCopyCM --from 2025-02-20 --to 2025-02-27 --band H',
    'no chosen operation (GetBhavCopyCM) has a request option "band" (known: none)',
  ],
  [
    'backfill GetCircuitBreakers --from 2025-02-20 --to 2025-02-27 --param band',
    '--param: "band" is not name=value',
  ],
  [
    'backfill GetCircuitBreakers --from 2025-02-20 --to 2025-02-27 --param AccessKey=x',
    '--param: AccessKey is set by EOD_ACCESS_KEY',
  ],
  [
    'backfill GetFinancialRatios --from 2025-02-20 --to 2025-02-27 --nature-of-report X',
    'natureOfReport: GetFinancialRatios does not know "X" (known: Standalone, Consolidated)',
  ],
  [
    'backfill GetFinancialRatios --from 2025-02-20 --to 2025-02-27 --year 20245 --type Quarter --period M9',
    'year: GetFinancialRatios does not know "20245" (known: a year such as 2024)',
  ],
  [
    'gaps fill --from 2025-02-27 --to 2025-02-20',
    '--from 2025-02-27 is after --to 2025-02-20: the range is reversed',
  ],
  ['gaps 12', 'unknown operation "12" ("eod operations" lists them)'],
  ['gaps fil', "unknown command 'fil' of gaps; did you mean fill?"],
  ['gaps --exchange NYSE', '--exchange: unknown exchange "NYSE"; did you mean NSE?'],
  [
    'gaps --all GetBhavCopyCM --to 2999-12-31',
    '--to: 2999-12-31 is in the future (today is TODAY in Asia/Kolkata)',
  ],
  ['rejects retyr', "unknown command 'retyr' of rejects; did you mean retry?"],
  ['rejects retry --limit 3', `unknown option '--limit' ("eod help rejects retry" explains it)`],
  ['gap', `unknown command 'gap'; did you mean gaps?`],
  [
    'rejects --operation GetBhavCopy',
    'unknown operation "GetBhavCopy"; did you mean GetBhavCopyCM? ("eod operations" lists them)',
  ],
  ['issues --kind rejects', '--kind: unknown kind "rejects"; did you mean reject? …'],
  ['events sett', "unknown command 'sett' of events; did you mean set?"],
  [
    'events set NSE:ITC:2025-01-06:demerger --factor half',
    '--factor: "half" is not two whole numbers above 0, such as 1:2, which halves prices',
  ],
  ['events set NSE:ITC:2025-01-06:demerger --reset --ignore', 'give one of --factor, --ignore and --reset'],
  [
    'events --status aplied',
    '--status: unknown status "aplied"; did you mean applied? (known: applied, needs_review, ignored)',
  ],
  ['events --kind splits', '--kind: unknown kind "splits"; did you mean split?'],
  ['findings first', 'the number of the finding: "first" is not a whole number from 1'],
  ['findings accept', 'say which: eod findings accept 3, or --check, --exchange, --from and --to'],
  ['rejects accept', 'say which: eod rejects accept 17, or --operation, --exchange, --from and --to'],
  ['findings --check previous_clos', '--check: unknown check "previous_clos"; did you mean previous_close?'],
  ['findings --severity bad', '--severity: unknown severity "bad" (known: info, warning, error)'],
  ['import nowhere.csv', 'nowhere.csv cannot be read: there is no such file or folder'],
  [
    'operations GetFinRatio',
    'unknown operation "GetFinRatio"; did you mean GetFinRatioEOD? ("eod operations" lists them)',
  ],
  ["query 'select 1' --csv --json", 'give one of --csv and --json'],
  ["query 'select 1' --timeout 0", '--timeout: "0" is not a whole number from 1 to 86400'],
  ["query ''", 'there is no SQL: give a statement, or - to read it from stdin'],
  [
    'gaps bhavcopy_c',
    'unknown operation "bhavcopy_c"; did you mean bhavcopy_cm? ("eod operations" lists them)',
  ],
  ['export bhavcopy_cm --format xls --out x', '--format: unknown value "xls" (known: parquet, csv, ndjson)'],
  ['export --series EQ --out x', 'name the table or view to export'],
  [
    'export bhavcopy_cm prices --out x',
    'one table or view is exported to a file; several with --partition year --out DIR',
  ],
  ['export bhavcopy_cm --out x --partition week', '--partition: unknown value "week" (known: month, year)'],
  [
    'export bhavcopy_cm --partition month',
    '--partition needs --out DIR, the folder that it keeps up to date',
  ],
  [
    'export bhavcopy_cm --partition month --out x --symbol INFY',
    '--symbol cannot be used with --partition, whose files have all rows',
  ],
  [
    'export bhavcopy_cm --from 2025-02-30 --symbol TCS --decimals',
    '--from: "2025-02-30" is not a day; write it as 2025-02-27',
  ],
  ['web --port 99999', '--port: "99999" is not a whole number from 0 to 65535'],
  [
    'up --roles wroker',
    '--roles: unknown role "wroker"; did you mean worker? (known: scheduler, worker, web)',
  ],
  ['up --roles ,', '--roles names no role (scheduler, worker, web)'],
  ['init /nowhere/at/all/.env', '/nowhere/at/all/.env cannot be written: there is no such file or folder'],
  ['doctor --source', 'set EOD_BASE_URL (the address of the data service) and EOD_ACCESS_KEY…'],
  ['doctor --save folder', '--save keeps what --source requests: give both'],
  ['doctor --source --offline', "option '--source' cannot be used with option '--offline'"],
  ['doctor --alert', '--alert: set EOD_ALERT_WEBHOOK to the address that alerts are posted to'],
  ['doctor --alert --source', "option '--source' cannot be used with option '--alert'"],
  [
    'sandbox --casing pascall',
    '--casing: unknown value "pascall"; did you mean pascal? (known: pascal, camel)',
  ],
  ['sandbox --fault staus=503', '--fault: unknown kind "staus"; did you mean status?'],
  ['help statsu', "unknown command 'statsu'; did you mean status?"],
  ['help rejects rety', "unknown command 'rety' of rejects; did you mean retry?"],
  [
    'help backfill GetBhavCopyCM',
    `unknown command 'GetBhavCopyCM' of backfill ("eod help backfill" explains it)`,
  ],
  ['-q -v status', "option '-q, --quiet' cannot be used with option '-v, --verbose'"],
  [
    'backfill GetBhavCopyCM --exchange NYSE --from 2025-02-27 --to 2025-02-27',
    '--exchange: unknown exchange "NYSE"; did you mean NSE?; if the source has it, name it in EOD_OPERATION_EXCHANGES',
  ],
  ['--demo status', 'nothing has been loaded by "eod demo" yet: run it first'],
  ['--quite status', "unknown option '--quite'; did you mean --quiet?"],
  ['status --no-colour', "unknown option '--no-colour'; did you mean --no-color?"],
  [
    'status --json now',
    `too many arguments for 'status'. Expected 0 arguments but got 1 ("eod help status" explains it)`,
  ],
  ['import --force --strict --json', `missing required argument 'paths' ("eod help import" explains it)`],
  [
    'nightly --dry-run --json --date soon',
    '--date: "soon" is not a day; write it as 2025-02-27, today or yesterday',
  ],
  ['operations --json GetNothing', 'unknown operation "GetNothing" ("eod operations" lists them)'],
  [
    'state --at 2025-02-30 --json',
    '--at: "2025-02-30" is not a time; write a day, 2025-02-27, or a time with its zone, 2025-02-27T21:00:00+05:30',
  ],
  [
    'init a b --force --json',
    `too many arguments for 'init'. Expected 1 argument but got 2 ("eod help init" explains it)`,
  ],
  ['config --json --all', `unknown option '--all' ("eod help config" explains it)`],
  [
    'backfill GetCircuitBreakers --from 2025-02-20 --to 2025-02-27 --param from=1 --json --force',
    '--param: from is set by --from',
  ],
  ['events ignore --yes --json', 'give --below, such as --below 5: what moves the price by less is ignored'],
  ['events ignore --dry-run --below x', '--below: "x" is not a percentage above 0 and up to 100, such as 5'],
  ['reconcile --json --fail-on all', '--fail-on: unknown severity "all" (known: info, warning, error)'],
  ['sandbox --fault status=503,every=x', '--fault: every: "x" is not a whole number from 1'],
  ['sandbox --now noon', '--now: "noon" is not a time such as 2025-09-05T22:00:00+05:30'],
  [
    'operations GetBulkDeal',
    'unknown operation "GetBulkDeal"; did you mean GetBulkDeals? ("eod operations" lists them)',
  ],
  [
    'backfill GetBulkDeals --from 2025-02-24 --to 2025-02-28',
    'Bulk deals, bulk_deals is never requested ("eod import" fills it from files of the exchanges)',
  ],
  ['wait', 'give the day of the night: --night 2025-02-27, today or yesterday'],
  ['wait --night 2025-13-01', '--night…'],
  ['wait --night today --timeout soon', '--timeout: "soon" is not a time such as 90s, 30m or 2h'],
];

const SETTINGS: readonly Mistake[] = [
  [
    'EOD_OPERATIONS=default,GetBhavcopyFX status',
    'EOD_OPERATIONS: unknown operation "GetBhavcopyFX"; did you mean GetBhavCopyFO? ("eod operations" lists them)',
  ],
  [
    'EOD_OPERATIONS=default,GetBulkDeals nightly',
    'EOD_OPERATIONS: Bulk deals, bulk_deals is never requested ("eod import" fills it from files of the exchanges)',
  ],
  [
    'EOD_OPERATIONS=-GetSeriesChange up',
    'EOD_OPERATIONS leaves out GetSeriesChange, which it does not name: write default,-GetSeriesChange',
  ],
  [
    'EOD_DATABASE_URL=postgres://h/d config',
    'a setting is wrong: EOD_DATABASE_URL is no setting; did you mean DATABASE_URL?',
  ],
  [
    'EOD_INSTRUMENTS=@nowhere.txt status',
    'a setting is wrong: EOD_INSTRUMENTS cannot be read: there is no such file or folder (it is "@nowhere.txt")',
  ],
  [
    'DATABASE_URL=mysql://u:hunter2@h/d status',
    'a setting is wrong: DATABASE_URL must be an address that starts with postgres:// or postgresql://',
  ],
  [
    'DATABASE_URL=postgres://eod:hunter2@127.0.0.1:1/eod status',
    'cannot use Postgres at 127.0.0.1:1/eod: connect ECONNREFUSED 127.0.0.1:1 (see DATABASE_URL)',
  ],
  [
    'REDIS_URL=localhost:6379 status',
    'a setting is wrong: REDIS_URL must be an address that starts with redis:// or rediss://',
  ],
  [
    'EOD_BASE_URL=nowhere nightly',
    'a setting is wrong: EOD_BASE_URL must be an address that starts with http:// or https:// (it is "nowhere")',
  ],
  [
    'EOD_BASE_URL=https://h/?key=hunter2 config',
    'a setting is wrong: EOD_BASE_URL must be an address without user, password, query (?) and fragment (#): set the key in EOD_ACCESS_KEY; eod adds the rest of each URL',
  ],
  [
    'EOD_BASE_URL=http://127.0.0.1:1 nightly',
    'set EOD_ACCESS_KEY (your key for it); "eod sandbox" starts a simulated service and prints what to set',
  ],
  [
    'EOD_ACCESS_KEY=k nightly',
    'set EOD_BASE_URL (the address of the data service); "eod sandbox" starts a simulated service and prints what to set',
  ],
  [
    'EOD_ACESS_KEY=hunter2 status',
    'a setting is wrong: EOD_ACESS_KEY is no setting; did you mean EOD_ACCESS_KEY?',
  ],
  ['EOD_CONCURRENCY=many status', 'a setting is wrong: EOD_CONCURRENCY is not a number (it is "many")'],
  ['EOD_CONCURRENCY=0 status', 'a setting is wrong: EOD_CONCURRENCY must be at least 1 (it is "0")'],
  ['EOD_CONCURRENCY=65 status', 'a setting is wrong: EOD_CONCURRENCY must be at most 64 (it is "65")'],
  ['EOD_CONCURRENCY=2.5 status', 'a setting is wrong: EOD_CONCURRENCY must be a whole number (it is "2.5")'],
  ['EOD_CONCURRENCY=-1 EOD_ATTEMPTS=0 status', 'the settings have 2 problems:'],
  [
    'EOD_LOG_LEVEL=INFO config',
    'a setting is wrong: EOD_LOG_LEVEL must be fatal, error, warn, info, debug, trace or silent (it is "INFO")',
  ],
  ['EOD_TLS_VERIFY=yes status', 'a setting is wrong: EOD_TLS_VERIFY must be true or false (it is "yes")'],
  [
    'EOD_TIMEZONE=IST status',
    'a setting is wrong: EOD_TIMEZONE is not the full name of a time zone, e.g. Asia/Kolkata (it is "IST")',
  ],
  [
    'EOD_PUBLISHED_AT=25:00 status',
    'a setting is wrong: EOD_PUBLISHED_AT must be a time of day such as 21:15 (it is "25:00")',
  ],
  ['EOD_EXCHANGES=MCX status', 'a setting is wrong: EOD_EXCHANGES knows BSE and NSE only (it is "MCX")'],
  ['EOD_EXCHANGES=, status', 'a setting is wrong: EOD_EXCHANGES names no exchange (it is ",")'],
  [
    'EOD_OPERATION_EXCHANGES=GetSeriesChange status',
    'a setting is wrong: EOD_OPERATION_EXCHANGES "GetSeriesChange" is not NAME=EXCHANGE+EXCHANGE (it is "GetSeriesChange")',
  ],
  [
    'EOD_WINDOW_DAYS=GetBhavCopyCM=0 status',
    'a setting is wrong: EOD_WINDOW_DAYS "GetBhavCopyCM=0" is not NAME=days (it is "GetBhavCopyCM=0")',
  ],
  [
    'EOD_NIGHTLY_RESERVE=130% status',
    'a setting is wrong: EOD_NIGHTLY_RESERVE must be a share such as 30% (it is "130%")',
  ],
  [
    'EOD_FINDING_SEVERITY=previous_close=bad status',
    'a setting is wrong: EOD_FINDING_SEVERITY "previous_close=bad" is not check=info, warning, error or off (it is "previous_close=bad")',
  ],
  [
    'EOD_FINDING_SEVERITY=previos_close=error reconcile',
    'EOD_FINDING_SEVERITY: unknown check "previos_close"; did you mean previous_close?',
  ],
  [
    'EOD_ALERT_ON=everything status',
    'a setting is wrong: EOD_ALERT_ON knows run_failed, access_key, source_down, cannot_store, late_data, gaps, suspicious, run_completed, night_completed only (it is "everything")',
  ],
  ['EOD_ALERT_SECRET=short status', 'a setting is wrong: EOD_ALERT_SECRET must have at least 16 characters'],
  ['EOD_HTTP_PORT=80800 up', 'a setting is wrong: EOD_HTTP_PORT must be at most 65535 (it is "80800")'],
  [
    'EOD_TRUSTED_PROXIES=10.0.0 status',
    'a setting is wrong: EOD_TRUSTED_PROXIES must list addresses or ranges of addresses, such as 10.0.0.7 or 10.0.0.0/24 (it is "10.0.0")',
  ],
  [
    'EOD_TRIAL_DAY=2025-02-30 status',
    'a setting is wrong: EOD_TRIAL_DAY must be a day such as 2025-02-27 (it is "2025-02-30")',
  ],
  [
    'EOD_ACCESS_KEY_FILE=missing status',
    'a setting is wrong: EOD_ACCESS_KEY_FILE names a file that cannot be read: there is no such file or folder (missing)',
  ],
  [
    'EOD_QUEUE_PREFIX=My-Queue status',
    'a setting is wrong: EOD_QUEUE_PREFIX must be lower-case letters, digits and _ (it is "My-Queue")',
  ],
  [
    'HTTPS_PROXY=ftp://proxy status',
    'a setting is wrong: HTTPS_PROXY must be an address that starts with http:// or https://',
  ],
  [
    'DATABASE_URL=postgres://u:50%off@h/eod status',
    'a setting is wrong: DATABASE_URL has a % that does not begin the code of a character: in its user name, password and path, % has to be written as %25, @ as %40, : as %3A, / as %2F, ? as %3F and # as %23',
  ],
  [
    'REDIS_URL=redis://u:12/34@h config',
    'a setting is wrong: REDIS_URL has an @ after /, ? or #, where no server is named: in its user name, password and path, % has to be written as %25, @ as %40, : as %3A, / as %2F, ? as %3F and # as %23',
  ],
];

/** Mistakes that only a database shows; the one of the test is empty. */
const UNKNOWN_IDS: readonly Mistake[] = [
  ['runs 999', 'there is no run 999 ("eod runs" lists them)'],
  ['runs resume 999', 'there is no run 999 ("eod runs" lists them)'],
  ['runs cancel 999 --yes', 'there is no run 999 ("eod runs" lists them)'],
  ['rejects 999', 'there is no reject 999 ("eod rejects" lists the open ones)'],
  ['withdrawals 999', 'no withdrawal 999 is withheld ("eod withdrawals" lists them)'],
  ['withdrawals accept 999', 'no withdrawal 999 is withheld ("eod withdrawals" lists them)'],
  ['findings 999', 'there is no finding 999 ("eod findings" lists the open ones)'],
  [
    'events NSE:NOPE:2025-01-06:split',
    'there is no event "NSE:NOPE:2025-01-06:split" ("eod events" lists them)',
  ],
  [
    'events set NSE:NOPE:2025-01-06:split --ignore',
    'there is no event "NSE:NOPE:2025-01-06:split" ("eod events" lists them)',
  ],
  ['export bhavcopy', 'there is no table or view market.bhavcopy; did you mean bhavcopy_cm?'],
  ['replay GetBhavCopyCM', 'nothing to replay: no kept response matches'],
];

/** The words of a line, and the settings in front of them. */
function parseLine(line: string): { readonly env: Record<string, string>; readonly args: string[] } {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  const start = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
  const env = words.slice(0, start).map((word) => /^(.*?)=(.*)$/.exec(word)?.slice(1) ?? []);
  return { env: Object.fromEntries(env) as Record<string, string>, args: words.slice(start) };
}

async function expectMistake([line, says]: Mistake, options: { cwd: string; env?: Record<string, string> }) {
  const { env, args } = parseLine(line);
  const { code, stdout, stderr } = await runCli(args, { ...options, env: { ...options.env, ...env } });
  const [first = ''] = stderr.split('\n');
  const { from, to } = exampleDays();
  const message = says
    .replace('TODAY', today(systemClock, 'Asia/Kolkata'))
    .replace('FROM', from)
    .replace('TO', to);
  if (message.endsWith('…')) expect(first.slice(0, message.length + 4)).toBe(`eod: ${message.slice(0, -1)}`);
  else expect(first).toBe(`eod: ${message}`);
  expect(stderr).not.toMatch(/^\s+at |hunter2/m);
  expect(code).toBe(2);
  if (args.includes('--json')) expect(JSON.parse(stdout)).toMatchObject({ error: { exitCode: 2 } });
  else expect(stdout).toBe('');
}

const cwd = temporaryFolder();

describe.concurrent('mistakes on the command line', () => {
  test.each(COMMAND_LINES)('eod %s', (...mistake) => expectMistake(mistake, { cwd }));
});

describe.concurrent('mistakes in the settings', () => {
  test.each(SETTINGS)('%s', (...mistake) => expectMistake(mistake, { cwd }));
});

test('none of these commands has written anything', () => {
  expect(readdirSync(cwd)).toEqual([]);
});

testWithDatabase('ids and names that there are not', async ({ url }) => {
  for (const mistake of UNKNOWN_IDS) await expectMistake(mistake, { cwd, env: { DATABASE_URL: url } });
  const { stdout } = await runCli(['runs', '--json'], { cwd, env: { DATABASE_URL: url } });
  expect(JSON.parse(stdout)).toEqual([]);
});
