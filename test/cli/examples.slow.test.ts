import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { readEntries } from '../../src/calendar/calendar.ts';
import { closeAfterFile } from '../support/closing.ts';
import { emptyDatabase, testDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { SET_CLOCK, writePrograms } from '../support/programs.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebhook } from '../support/webhook.ts';
import { zip } from '../support/zip.ts';
import { type Block, blocksOf, contentOf, PAGES, unusedPatterns } from './examples.ts';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const fixture = (name: string) => path(`../fixtures/${name}`);

/** That of the examples. */
const KEY = 'demo-key-1234';

/** The examples name days of these weeks, which the service keeps for a month. */
const TODAY = '2026-11-24T20:00:00+05:30';

const blocks = PAGES.flatMap(blocksOf);
const READER = `examples_reader_${process.pid}`;
// Once the database in which it may read is gone.
closeAfterFile(() => execute(inject('databaseAdminUrl'), `drop role ${READER}`));
const { url: DATABASE_URL } = await testDatabase();
await execute(DATABASE_URL, `create role ${READER}`);
/** Of lines to try that start from nothing. */
const { url: NEW_URL } = await testDatabase();
const started = Date.now();
const sandbox = await openSandbox({
  instrumentsPerExchange: 10,
  clock: { now: () => Date.parse(TODAY) + Date.now() - started },
  accessKey: KEY,
});
const bin = temporaryFolder();

writePrograms(bin);

const ENVIRONMENT = {
  PATH: `${bin}:${process.env.PATH}`,
  NODE_OPTIONS: SET_CLOCK,
  TEST_CLOCK: TODAY,
  DATABASE_URL,
  RESTORED_URL: DATABASE_URL,
  FRESH_URL: (await emptyDatabase()).url,
  EOD_BASE_URL: sandbox.url,
  EOD_ACCESS_KEY: KEY,
  EOD_HTTP_PORT: '0',
  // What differs from the defaults, so that it does not take minutes.
  EOD_INSTRUMENT_LIMIT: '1',
  EOD_BACKOFF_MS: '10',
  EOD_CALLS_PER_HOUR: '100000',
};

/** What stands here for what the pages mean. */
const STAND_INS: readonly (readonly [RegExp, string])[] = [
  [/\btest\/fixtures\//g, fixture('')],
  [/\bFOLDER\b/g, fixture('bhavcopy')],
  [/'postgres:\/\/eod:…@127\.0\.0\.1:40319\/eod'/g, `'${DATABASE_URL}'`],
  [/EOD_DATA_DIR=\/tmp\/eod-try/g, `DATABASE_URL='${NEW_URL}'`],
  [/\beod_reader\b/g, READER],
];

/** Commands that end with another exit code than 0, as their page says. */
const FAIL: readonly (readonly [RegExp, number, RegExp?])[] = [
  // The dump that fills it is not restored here.
  [/^DATABASE_URL="\$FRESH_URL" eod replay/, 2],
  // Of the checks none but that of the clock, which is set to another day.
  [/^[^#]*eod doctor/, 1, /^(?!(?:.|\n)*\nfailed(?! +clock ))/],
  // There are gaps.
  [/eod (?:--demo )?gaps(?! fill)/, 1],
];

/** Commands that run until they are stopped, with what they print when they are ready. */
const SERVERS: readonly (readonly [RegExp, RegExp])[] = [
  [/^(npx )?eod sandbox/, /listening on/],
  [/^(npx )?eod up/, /./],
  [/^eod --demo web/, /http:\/\//],
];

/** A shell as of somebody who follows one page, in a folder of their own. */
async function openShell(cwd: string) {
  let env: Record<string, string> = {
    ...ENVIRONMENT,
    EOD_DATA_DIR: join(cwd, '.eod'),
    EOD_ALERT_WEBHOOK: (await startWebhook()).url,
  };
  const port = await freePort();
  const standIns: typeof STAND_INS = [
    ...STAND_INS,
    [/127\.0\.0\.1:(8090|4532)/g, `127.0.0.1:${port}`],
    [/rclone sync lake\/ remote:lake/g, 'cp -R lake/. synchronised-lake'],
    [/\beod sandbox --port 4532/g, `eod sandbox --instruments 10 --port ${port}`],
    [/\beod sandbox(?! --ins)/g, `eod sandbox --port ${port}`],
  ];
  let server: ReturnType<typeof start> | undefined;

  function start(command: string) {
    const child = spawn('bash', ['-c', command], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const printed = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        printed[name] += text;
      });
    }
    const ended = once(child, 'close').then(([code]) => code as number | null);
    const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
    const stop = async (signal: NodeJS.Signals) => {
      if (!hasEnded()) process.kill(-(child.pid as number), signal);
      await ended;
    };
    closeAfterFile(() => stop('SIGKILL'));
    return { printed, ended, hasEnded, stop };
  }

  /** As with Ctrl-C. */
  async function stopServer(): Promise<void> {
    await server?.stop('SIGINT');
    server = undefined;
  }

  async function startServer(command: string, ready: RegExp): Promise<void> {
    await stopServer();
    const started = start(command);
    server = started;
    const isReady = () => ready.test(`${started.printed.stdout}${started.printed.stderr}`);
    await waitFor(() => started.hasEnded() || isReady(), { what: `${ready} of ${command}` });
    expect({ command, hasEnded: started.hasEnded(), ...started.printed }).toMatchObject({ hasEnded: false });
  }

  async function run(text: string): Promise<string> {
    const command = standIns.reduce((line, [pattern, by]) => line.replaceAll(pattern, by), text);
    const [, ready] = SERVERS.find(([pattern]) => pattern.test(command)) ?? [];
    if (ready !== undefined) {
      await startServer(command, ready);
      return '';
    }
    const isExport = command.startsWith('export ');
    const { printed, ended } = start(isExport ? `${command}; env -0` : command);
    const code = await ended;
    const [, expected = 0, prints = /(?:)/] = FAIL.find(([pattern]) => pattern.test(command)) ?? [];
    expect.soft(code, `${command}\n${printed.stdout}${printed.stderr}`).toBe(expected);
    expect.soft(printed.stdout).toMatch(prints);
    if (!isExport) return printed.stdout;
    env = Object.fromEntries(
      printed.stdout
        .split('\0')
        .filter((pair) => pair !== '')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
    );
    return '';
  }
  return { run, stopServer };
}

/** A folder with the files that the pages name. */
function folderOfUser(): string {
  const folder = temporaryFolder();
  for (const name of ['downloads', 'archive/nse', 'archive/bse', 'bhavcopies', 'models']) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  const nse = fixture('bhavcopy/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv');
  const bse = fixture('bhavcopy/BhavCopy_BSE_CM_0_0_0_20250909_F_0000.CSV');
  for (const to of ['archive/nse', 'bhavcopies']) copyFileSync(nse, join(folder, to, basename(nse)));
  copyFileSync(bse, join(folder, 'archive/bse', basename(bse)));
  const entry = { name: basename(nse), text: readFileSync(nse) };
  writeFileSync(join(folder, 'downloads', `${basename(nse)}.zip`), zip([entry]));
  const actions = 'CF-CA-equities-01-01-2016-to-31-12-2022.csv';
  // The events of which the page decides.
  const later = [
    '"ITC","ITC Limited","EQ","Demerger","1","06-Jan-2025","06-Jan-2025","-","-"',
    '"ABC","ABC Limited","EQ","Rights 1:5 @ Premium Rs 90","10","02-May-2024","02-May-2024","-","-"',
  ];
  const list = readFileSync(fixture(`actions/${actions}`), 'utf8');
  writeFileSync(join(folder, 'downloads', actions), [list.trimEnd(), ...later, ''].join('\n'));
  copyFileSync(fixture('actions/symbolchange.csv'), join(folder, 'downloads', 'symbolchange.csv'));
  return folder;
}

/** What a page says after a block that its last command prints. */
const promised = (block: Block): string => /^\s*It prints `([^`]+)`/.exec(block.after)?.[1] ?? '';

describe.each(PAGES.filter((page) => blocks.some((block) => block.page === page)))('%s', (page) => {
  const own = blocks.filter((block) => block.page === page);
  const contents = own.map((block) => ({ block, content: contentOf(block) }));

  test('has commands that work, and print what it says', async () => {
    const shell = await openShell(folderOfUser());
    try {
      // As `npm run demo` does, on the day whose rows the page shows.
      if (page === 'README.md') await shell.run('TEST_CLOCK=2026-11-27T04:30:00+05:30 eod demo');
      for (const { block, content } of contents) {
        if (content?.kind === 'sql' || (block.language === 'sql' && READ_BY.sql?.[page] === undefined))
          await query(DATABASE_URL, block.text);
        if (content?.kind !== 'commands') continue;
        let last = '';
        for (const { text, prints, output } of content.commands) {
          last = await shell.run(text);
          expect.soft(last, text).toContain(prints);
          if (output !== '') expect.soft(last.trimEnd(), text).toBe(output.trimEnd());
        }
        expect.soft(last.replaceAll(/\s+/g, ' '), last).toContain(promised(block).replaceAll(/\s+/g, ' '));
      }
    } finally {
      await shell.stopServer();
    }
  }, 300_000);
});

test('each pattern of what is not run is needed', () => {
  expect(unusedPatterns(blocks)).toEqual([]);
});

test('a command that nobody has seen is not passed over', () => {
  const block = { page: 'page.md', line: 7, language: '', after: '' };
  expect(() => contentOf({ ...block, text: 'helm install eod' })).toThrow('page.md:7: neither run here');
  expect(() => contentOf({ ...block, language: 'sh', text: '$ curl x' })).toThrow('page.md:7');
});

/** Blocks in other languages: what reads them from their page. Text is what a query prints. */
const READ_BY: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sql: {
    'docs/adjusted-prices.md': 'jobs/pages-sql.slow.test.ts',
    'docs/analysts.md': 'jobs/instruments-docs.slow.test.ts',
    'docs/cookbook.md': 'jobs/cookbook.slow.test.ts',
    'docs/history.md': 'jobs/pages-sql.slow.test.ts',
    'docs/performance.md': 'jobs/pages-sql.slow.test.ts',
    'docs/security.md': 'reliability/roles.slow.test.ts',
  },
  text: { 'docs/cookbook.md': 'jobs/cookbook.slow.test.ts' },
  python: {
    'docs/analysts.md': 'cli/analysts.slow.test.ts',
    'docs/operations.md': 'cli/orchestrators.slow.test.ts',
  },
  jinja: { 'docs/analysts.md': 'cli/dbt.slow.test.ts' },
  ini: { 'docs/operations.md': 'cli/orchestrators.slow.test.ts' },
  crontab: { 'docs/operations.md': 'cli/orchestrators.slow.test.ts' },
  js: { 'docs/monitoring.md': 'jobs/late-alerts.int.test.ts' },
  mermaid: { 'docs/tables.md': 'repo/docs.test.ts' },
};

describe('blocks in other languages', () => {
  const others = blocks.filter((block) => contentOf(block) === null);

  test.each(others.filter(({ language }) => language === 'csv'))('$page:$line is a calendar', ({ text }) => {
    expect(readEntries(text, 'mine.csv').length).toBeGreaterThan(0);
  });

  test.each(others.filter(({ language }) => language === 'json'))('$page:$line is JSON', ({ text }) => {
    expect(() => JSON.parse(text)).not.toThrow();
  });

  test.each(others.filter(({ language }) => /^ya?ml$/.test(language)))('$page:$line is YAML', ({ text }) => {
    expect(() => parse(text)).not.toThrow();
  });

  test('are read from their page by a test', () => {
    const unread = others
      .filter(({ page, language }) => language !== 'sql' || READ_BY.sql?.[page] !== undefined)
      .filter(({ language }) => !/^(json|ya?ml|csv)$/.test(language))
      .filter(({ page, language }) => {
        const file = READ_BY[language]?.[page];
        return file === undefined || !readFileSync(path(`../${file}`), 'utf8').includes(basename(page));
      });
    expect(unread.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([]);
  });
});
