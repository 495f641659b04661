import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { buildProgram, runProgram } from '../../src/cli/program.ts';
import { systemClock, today } from '../../src/core/clock.ts';
import { daysBetween } from '../../src/core/days.ts';
import { dataSets } from '../../src/operations/registry.ts';
import { captureCli, runCli, runJson, startCli } from '../support/cli.ts';
import { runEod } from '../support/eod.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();
const COMMANDS = [
  'demo',
  'up',
  'backfill',
  'nightly',
  'runs',
  'status',
  'schedules',
  'operations',
  'migrate',
  'sandbox',
  'config',
];

test('eod sandbox behaves as its flags say', async () => {
  const flags =
    '--port 0 --instruments 30 --access-key k --now 2025-09-12T22:00:00+05:30 --casing camel --calls-per-hour 2 --fault status=503,first=1';
  const sandbox = startCli(['sandbox', ...flags.split(' ')], { cwd });
  const [, url] = await sandbox.output(/listening on (\S+)/);
  const request = async (accessKey: string) => {
    const query = new URLSearchParams({ accessKey, exchange: 'BSE' });
    const response = await fetch(`${url}/GetCorporateActionsCategories?${query}`);
    return { status: response.status, date: response.headers.get('date'), text: await response.text() };
  };
  expect((await request('another')).text).toBe('Access Denied. Key not found.');
  expect(await request('k')).toMatchObject({
    status: 503,
    date: expect.stringMatching(/^Fri, 12 Sep 2025 16:30:/),
  });
  expect((await request('k')).text).toMatch(/^\{"value":\[\{"/);
  expect((await request('k')).text).toBe('Calls per hour are limited.');
  sandbox.signal('SIGTERM');
  expect(await sandbox.ended).toMatchObject({ code: 0 });
});

describe.concurrent('with --json an error is a document too', () => {
  test.each([
    [['runs', '--limit', '0'], 'usage', /^--limit: "0" is not a whole number/],
    [['runs', '--limti', '0'], 'usage', /^unknown option '--limti'; did you mean --limit\?$/],
    [['operations', 'GetNothing'], 'usage', /\("eod operations" lists them\)$/],
    [['frobnicate'], 'usage', /^unknown command 'frobnicate' \("eod help --all" lists them\)$/],
  ])('eod %j', async (args, kind, message) => {
    const { code, stdout, stderr } = await runCli([...args, '--json'], { cwd });
    const { error } = JSON.parse(stdout) as { error: { message: string } };
    expect(error).toEqual({ kind, message: expect.stringMatching(message), exitCode: 2 });
    expect(code).toBe(2);
    expect(stderr).toBe(`eod: ${error.message}\n`);
  });

  test('a server that cannot be reached, without its password', async () => {
    const env = { DATABASE_URL: 'postgres://eod:hunter2@127.0.0.1:1/eod' };
    const { code, stdout } = await runCli(['status', '--json'], { cwd, env });
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ error: { kind: 'usage', exitCode: 2 } });
    expect(stdout).toContain('ECONNREFUSED');
    expect(stdout).not.toContain('hunter2');
  });

  test('a signal', async () => {
    const { cli, stdout, signal } = captureCli({ cwd });
    signal('SIGINT');
    expect(await runProgram(cli, ['runs', '--json'])).toBe(130);
    expect(JSON.parse(stdout())).toEqual({
      error: { kind: 'aborted', message: 'stopped by a signal', exitCode: 130 },
    });
  });
});

describe.concurrent('mistakes in the settings', () => {
  test('all are reported at once, without secrets', async () => {
    const env = { EOD_CONCURRENCY: 'many', EOD_LOG_LEVEL: 'loud', DATABASE_URL: 'mysql://u:hunter2@h/d' };
    const { code, stderr } = await runCli(['status'], { cwd, env });
    expect(code).toBe(2);
    for (const name of Object.keys(env)) expect(stderr).toContain(name);
    expect(stderr).not.toContain('hunter2');
  });

  test.each([
    ['EOD_CALL_PER_HOUR', 'EOD_CALLS_PER_HOUR'],
    ['EOD_TIMEOUT', 'EOD_TIMEOUT_MS'],
  ])('%s for %s is an error', async (name, meant) => {
    const { code, stdout, stderr } = await runCli(['config'], { cwd, env: { [name]: '5' } });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toBe(`eod: a setting is wrong: ${name} is no setting; did you mean ${meant}?\n`);
  });

  test('files of secrets: one that is missing, empty, of several lines, too short, or given twice', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'empty'), ' \n');
    writeFileSync(join(folder, 'lines'), 'hunter2\nhunter3\n');
    writeFileSync(join(folder, 'short'), 'hunter4\n');
    writeFileSync(join(folder, '.env'), 'EOD_ALERT_SECRET=hunter5-hunter5-hunter5\n');
    const env = {
      EOD_ACCESS_KEY_FILE: 'missing',
      DATABASE_URL_FILE: 'empty',
      REDIS_URL_FILE: 'lines',
      EOD_WEB_PASSWORD_FILE: 'short',
      EOD_ALERT_SECRET_FILE: 'short',
      EOD_ACESS_KEY_FILE: 'short',
    };
    const { code, stdout, stderr } = await runCli(['status'], { cwd: folder, env });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.split('\n')).toEqual([
      'eod: the settings have 6 problems:',
      '  EOD_ACESS_KEY_FILE is no setting; did you mean EOD_ACCESS_KEY_FILE?',
      '  EOD_ACCESS_KEY_FILE names a file that cannot be read: there is no such file or folder (missing)',
      '  DATABASE_URL_FILE names a file that is empty (empty)',
      '  REDIS_URL_FILE names a file of several lines (lines)',
      '  EOD_ALERT_SECRET and EOD_ALERT_SECRET_FILE are both set: remove one of them',
      '  EOD_WEB_PASSWORD must have at least 8 characters (it comes from EOD_WEB_PASSWORD_FILE)',
      '',
    ]);
  });

  test('other names that begin with EOD_ are ignored, and named', async () => {
    const { code, stdout, stderr } = await runCli(['config'], { cwd, env: { EOD_IMAGE_TAG: 'v1' } });
    expect(code).toBe(0);
    expect(stdout).toContain('EOD_CONCURRENCY');
    expect(stderr).toBe('eod: EOD_IMAGE_TAG is not a setting and is ignored\n');
  });

  test.each([
    ['DATABASE_URL', 'postgres://eod:hunter2@127.0.0.1:1/eod', 'status'],
    ['DATABASE_URL', 'postgres://eod:hunter2@localhost:1/eod', 'migrate'],
    ['REDIS_URL', 'redis://:hunter2@127.0.0.1:1', 'up'],
  ])('a %s nobody listens at: %s', async (name, value, command) => {
    const source = { EOD_BASE_URL: 'http://127.0.0.1:1', EOD_ACCESS_KEY: 'key' };
    // Commands that work on runs would wait for it; those that only look fail at once.
    const env = {
      ...source,
      [name]: value,
      ...(command === 'status' ? {} : { EOD_SERVER_PATIENCE_MS: '0' }),
    };
    const { code, stderr } = await runCli([command], { cwd, env });
    expect(stderr).toMatch(new RegExp(`cannot use .*:1.*ECONNREFUSED.*${name}`));
    expect(stderr).not.toContain('hunter2');
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(code).toBe(2);
  });

  test('a data folder that cannot be made', async () => {
    const file = join(cwd, 'a-file');
    writeFileSync(file, '');
    const { code, stderr } = await runCli(['runs'], { cwd, env: { EOD_DATA_DIR: file } });
    expect(stderr).toMatch(/^eod: EOD_DATA_DIR cannot be used: .*\n$/);
    expect(code).toBe(2);
  });

  test('a stack is shown at the level debug only', async () => {
    const args = ['runs', 'x'];
    const plain = await runCli(args, { cwd });
    const debug = await runCli(args, { cwd, env: { EOD_LOG_LEVEL: 'debug' } });
    expect(plain.stderr).not.toMatch(/^\s+at /m);
    expect(debug.stderr).toMatch(/^\s+at /m);
  });

  test('.env is honoured, and the shell wins over it', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, '.env'), 'EOD_CONCURRENCY=7\nEOD_FORMAT=Csv\n');
    const { stdout } = await runCli(['config', '--json'], { cwd: folder, env: { EOD_FORMAT: 'CsvContent' } });
    expect(JSON.parse(stdout)).toMatchObject({
      EOD_CONCURRENCY: { value: 7, from: '.env' },
      EOD_FORMAT: { value: 'CsvContent', from: 'environment' },
      EOD_TIMEZONE: { value: 'Asia/Kolkata', from: 'default' },
    });
  });
});

describe.concurrent('as a process', () => {
  test.each([
    [['--version'], 0],
    [['frobnicate'], 2],
    [['runs', 'x'], 2],
    // A response that is longer than the buffer of a pipe is printed whole.
    [['operations', '--json'], 0],
  ])('eod %j prints what it prints in process, and ends with its exit code', async (args, code) => {
    const ended = await runEod(args, { cwd });
    const inProcess = await runCli(args, { cwd });
    expect(ended).toEqual({ ...inProcess, signal: null });
    expect(ended.code).toBe(code);
  });

  test('a list of operations is longer than the buffer of a pipe', async () => {
    const { stdout } = await runCli(['operations', '--json'], { cwd });
    expect(stdout.length).toBeGreaterThan(65_536);
    expect(JSON.parse(stdout)).toHaveLength(dataSets.length);
  });
});

describe('help', () => {
  const { cli, stdout } = captureCli();
  const program = buildProgram(cli);

  test('every command explains itself and ends with an example', () => {
    expect(program.commands.map((command) => command.name())).toEqual(expect.arrayContaining(COMMANDS));
    for (const command of program.commands) {
      const before = stdout().length;
      command.outputHelp();
      expect(command.description()).not.toBe('');
      const text = stdout().slice(before);
      // The examples of a verb may be those of its command.
      if (command.name().includes(' ') && !text.includes('Example')) continue;
      expect(text).toMatch(new RegExp(`Examples?:\\n  \\$ (.*)eod ${command.name()}`));
    }
  });

  test.each([40, 60, 80, 200])('on a terminal of %i columns no line of any help is longer', (columns) => {
    const terminalBefore = { isTTY: process.stdout.isTTY, columns: process.stdout.columns };
    onTestFinished(() => void Object.assign(process.stdout, terminalBefore));
    Object.assign(process.stdout, { isTTY: true, columns });
    const { cli, stdout } = captureCli();
    const program = buildProgram(cli);
    program.outputHelp();
    for (const command of program.commands) command.outputHelp();
    const lines = stripVTControlCharacters(stdout()).split('\n');
    // A word that is longer than the page is not broken.
    const tooLong = lines.filter((line) => [...line].length > Math.min(80, columns) && / \S+ \S/.test(line));
    expect(tooLong).toEqual([]);
    expect(stdout()).toContain('first day: YYYY-MM-DD');
  });

  test('eod --help lists what is needed first, eod help --all every command by what it is for', async () => {
    const first = await runCli(['--help'], { cwd });
    const commonCommands = [...first.stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name]) => name);
    expect(commonCommands).toEqual('demo init doctor import backfill nightly up status query'.split(' '));
    const all = await runCli(['help', '--all'], { cwd });
    const listed = all.stdout.match(/^ {2}[a-z]+ {2,}/gm) ?? [];
    expect(first.stdout).toContain(
      `\n${listed.length - commonCommands.length} more commands: eod help --all\n`,
    );
    for (const command of COMMANDS) expect(all.stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'));
    expect(all.stdout.match(/^[A-Z][a-z ]+:$/gm)).toEqual(['Load:', 'Look:', 'Repair:', 'Set up:']);
    const help = await runCli(['runs', '--help'], { cwd });
    expect(help.stdout).toContain('$ eod runs 12');
    expect([first.code, all.code, help.code]).toEqual([0, 0, 0]);
    expect(first.stderr + all.stderr + help.stderr).toBe('');
  });

  test.each([
    ['operations bhavcopy_cm', 'operations GetBhavCopyCM'],
    ['operations MARKET.BHAVCOPY_CM --json', 'operations getbhavcopycm --json'],
  ])('a data set has the name of its operation and that of its table: %s', async (byTable, byOperation) => {
    const [first, second] = await Promise.all(
      [byTable, byOperation].map((words) => runCli(words.split(' '), { cwd })),
    );
    expect(first).toEqual(second);
  });

  test('eod help does the same', async () => {
    const all = await runCli(['help'], { cwd });
    expect(all).toEqual(await runCli(['--help'], { cwd }));
    const help = await runCli(['help', 'backfill'], { cwd });
    expect(help).toEqual(await runCli(['backfill', '--help'], { cwd }));
    expect(help.stdout).toMatch(/--nature-of-report <value> +only Standalone/);
  });

  test('knows commands of commands', async () => {
    const help = await runCli(['help', 'rejects', 'retry'], { cwd });
    expect(help).toEqual(await runCli(['rejects', 'retry', '--help'], { cwd }));
  });

  test('gives examples of days that a source still has', async () => {
    const { commands } = buildProgram(captureCli().cli);
    const texts = await Promise.all(
      ['', ...commands.map((command) => command.name())].map((name) =>
        runCli(['help', ...(name === '' ? [] : [name])], { cwd }),
      ),
    );
    const lines = texts.flatMap(({ stdout }) => stdout.split('\n').filter((line) => /^ +\$ /.test(line)));
    const days = lines.flatMap((line) => line.match(/\b20\d\d-\d\d-\d\d/g) ?? []);
    const now = today(systemClock, 'Asia/Kolkata');
    expect(days.length).toBeGreaterThan(10);
    for (const day of days) {
      expect(day < now).toBe(true);
      expect(daysBetween(day, now)).toBeLessThan(30);
    }
  });

  test('eod alone shows the help as a mistake', async () => {
    const { code, stdout, stderr } = await runCli([], { cwd });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^Usage: eod/);
  });
});

test('a table that several operations fill shows each of them', async () => {
  const options = { cwd: temporaryFolder() };
  const names = ['GetFinRatioEOD', 'GetFinRatioSnapshot', 'GetFinancialRatios'];
  const { code, stdout } = await runCli(['operations', 'financial_ratios'], options);
  expect(code).toBe(0);
  expect(stdout.match(/^Get\w+(?=:)/gm)?.sort()).toEqual(names);
  const { json } = await runJson<{ name: string }[]>(['operations', 'market.financial_ratios'], options);
  expect(json.map(({ name }) => name).sort()).toEqual(names);
  expect((await runJson(['operations', 'bhavcopy_cm'], options)).json).toMatchObject({
    name: 'GetBhavCopyCM',
  });
});
