import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { expect, test } from 'vitest';
import { exportPartitions } from '../../src/export/export-partitions.ts';
import { decideEvent } from '../../src/jobs/events/decide-event.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { spawnEod } from '../support/eod.ts';
import { forAllAsync } from '../support/for-all.ts';
import { importInto, openStore } from '../support/import-support.ts';
import { isSlowLayer } from '../support/layer.ts';
import { query } from '../support/query.ts';
import { replay } from '../support/replay-support.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { bhavCopies, events, openExports, tradingDays } from './partition-support.ts';

const { context, url, env } = await openExports();

interface Exported {
  readonly state: number;
  readonly tables: readonly {
    readonly table: string;
    readonly written: readonly { readonly file: string; readonly rows: number }[];
    readonly removed: readonly string[];
  }[];
}

const exported = async (...args: string[]) =>
  (await runJson<Exported>(['export', ...args], { cwd: temporaryFolder(), env })).json;

/** Which files each table's export has written and removed. */
const changesOf = ({ tables }: Exported) =>
  Object.fromEntries(
    tables.map(({ table, written, removed }) => [
      table.replace('market.', ''),
      [...written.map(({ file }) => file), ...removed.map((file) => `-${file}`)].sort().join(' '),
    ]),
  );

const filesOf = (folder: string) => readdirSync(folder).filter((name) => name !== '_manifest.json');

/** The lines of the files of a folder, by month. */
const exportedLines = (folder: string) =>
  Object.fromEntries(
    filesOf(folder).map((name) => [
      name.replace('.ndjson', ''),
      readFileSync(join(folder, name), 'utf8').trimEnd().split('\n').sort(),
    ]),
  );

/** The rows of a table or view as JSON, by month. */
async function storedLines(database: string, table: string): Promise<Record<string, string[]>> {
  const rows = await query<{ month: string; lines: string[] }>(
    `${database}?options=-c%20timezone%3DUTC`,
    `select to_char(trade_date, 'YYYY-MM') as month, array_agg(row_to_json(r)::text) as lines from market.${table} r group by 1`,
  );
  return Object.fromEntries(rows.map(({ month, lines }) => [month, lines.sort()]));
}

const TABLES = ['bhavcopy_cm', 'prices_adjusted'];

/** Exports as JSON lines in this process; fails before the temporary file with this number is written. */
function exportTo(store: typeof context, folder: string, failsAt = Number.POSITIVE_INFINITY) {
  let partials = 0;
  const onPartial = () => {
    partials += 1;
    if (partials === failsAt) throw new Error('stopped here');
  };
  return exportPartitions(
    store.db,
    {
      tables: TABLES,
      folder,
      format: 'ndjson',
      by: 'month',
      doubles: true,
      onPartial,
    },
    { timeoutMs: 0, signal: new AbortController().signal },
  );
}

const DAYS = [
  '2023-11-30',
  '2023-12-28',
  '2023-12-29',
  '2024-01-02',
  '2024-01-31',
  '2024-02-01',
  '2024-03-04',
];
const SYMBOLS = Array.from({ length: 24 }, (_, at) => `SHARE${at}`);

/** The lines of a day, at 50 rupees or this price. */
const linesOfDay = (day: string, missing: readonly string[], raised: readonly string[], price: number) =>
  SYMBOLS.filter((symbol) => !missing.includes(symbol)).map((symbol) => {
    const isin = `INE${String(SYMBOLS.indexOf(symbol)).padStart(6, '0')}01017`;
    return `${day} ${symbol} ${isin} ${raised.includes(symbol) ? price : 50}`;
  });

const step = fc.oneof(
  // A day with these prices: a load, a backfill or a correction; without some shares, a withdrawal.
  fc.record({
    day: fc.constantFrom(...DAYS),
    raised: fc.subarray(SYMBOLS, { maxLength: 2 }),
    missing: fc.subarray(SYMBOLS, { maxLength: 1 }),
  }),
  fc.record({ split: fc.constantFrom(...SYMBOLS), exDate: fc.constantFrom(...DAYS) }),
  fc.constant('replay' as const),
);
const round = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 3 }),
  failsAt: fc.option(fc.integer({ min: 1, max: 8 })),
});

test.runIf(isSlowLayer)(
  'after any loads, corrections, withdrawals and backfills a folder has the rows of the table, and files that need no change stay',
  async () => {
    const counts = { withdrawn: 0, kept: 0, stopped: 0 };
    await forAllAsync([fc.array(round, { minLength: 3, maxLength: 5 })], { numRuns: 1 }, async (rounds) => {
      const database = (await testDatabase()).url;
      const store = await openStore(database);
      const folder = temporaryFolder();
      // The others are backfilled.
      for (const day of DAYS.slice(2)) await importInto(store, bhavCopies(linesOfDay(day, [], [], 50)));
      let price = 100;
      let before: Record<string, Record<string, string[]>> = {};
      const identity = (table: string, month: string) => {
        const { ino, mtimeMs } = statSync(join(folder, table, `${month}.ndjson`));
        return `${ino} ${mtimeMs}`;
      };
      for (const { steps, failsAt } of rounds) {
        for (const change of steps) {
          price += 1;
          if (change === 'replay') await replay(store, {});
          else if ('split' in change)
            await importInto(store, [events(`NSE,${change.split},${change.exDate},split,5:1,`)]);
          else {
            const lines = linesOfDay(change.day, change.missing, change.raised, price);
            counts.withdrawn += (await importInto(store, bhavCopies(lines), { force: true })).withdrawn;
          }
        }
        const known = Object.fromEntries(
          TABLES.map((table) => [
            table,
            Object.fromEntries(
              Object.keys(before[table] ?? {}).map((month) => [month, identity(table, month)]),
            ),
          ]),
        );
        if (failsAt !== null)
          await exportTo(store, folder, failsAt).catch(() => {
            counts.stopped += 1;
          });
        const written = (await exportTo(store, folder)).tables.map((table) =>
          table.written.map(({ file }) => file),
        );
        for (const [at, table] of TABLES.entries()) {
          const stored = await storedLines(database, table);
          expect(exportedLines(join(folder, table))).toEqual(stored);
          for (const [month, lines] of Object.entries(stored)) {
            const isSame = JSON.stringify(before[table]?.[month]) === JSON.stringify(lines);
            if (failsAt === null)
              expect([table, month, written[at]?.includes(`${month}.ndjson`)]).toEqual([
                table,
                month,
                !isSame,
              ]);
            if (!isSame || failsAt !== null) continue;
            expect(identity(table, month)).toBe(known[table]?.[month]);
            counts.kept += 1;
          }
          before = { ...before, [table]: stored };
        }
      }
    });
    for (const number of Object.values(counts)) expect(number).toBeGreaterThan(0);
  },
);

test.runIf(isSlowLayer)(
  'an export that is stopped anywhere is completed by the next one, also if the rows are as before by then',
  async () => {
    const folder = temporaryFolder();
    await exportTo(context, folder);
    const event = 'NSE:ALPHA:2024-01-03:split';
    await importInto(context, [events('NSE,ALPHA,2024-01-03,split,5:1,')]);
    let stopped = 0;
    for (let failsAt = 1; ; failsAt += 1) {
      const isStopped = await exportTo(context, folder, failsAt).then(
        () => false,
        () => true,
      );
      await decideEvent(context, event, null);
      await exportTo(context, folder);
      for (const table of TABLES)
        expect(exportedLines(join(folder, table)), `stopped at ${failsAt}`).toEqual(
          await storedLines(url, table),
        );
      await decideEvent(context, event, 'reset');
      if (!isStopped) break;
      stopped += 1;
    }
    // Two manifests of each, and two months of adjusted prices.
    expect(stopped).toBeGreaterThan(4);
  },
);

test('Parquet, CSV and years: what a reader finds, and what is written again', async () => {
  const out = temporaryFolder();
  const args = [...TABLES, '--partition', 'year', '--out', out];
  expect(changesOf(await exported(...args))).toEqual({
    bhavcopy_cm: '2022.parquet 2023.parquet 2024.parquet',
    prices_adjusted: '2022.parquet 2023.parquet 2024.parquet',
  });
  expect(changesOf(await exported(...args))).toEqual({ bhavcopy_cm: '', prices_adjusted: '' });
  const read = async () => {
    const files = filesOf(join(out, 'prices_adjusted')).map((name) => join(out, 'prices_adjusted', name));
    const rows = await Promise.all(
      files.map(async (file) => parquetReadObjects({ file: await asyncBufferFromFile(file) })),
    );
    return rows
      .flat()
      .map((row) => `${row.symbol} ${(row.trade_date as Date).toISOString().slice(0, 10)} ${row.close_price}`)
      .sort();
  };
  const stored = async () =>
    (
      await query<{ line: string }>(
        url,
        "select concat_ws(' ', symbol, trade_date, close_price::float8) as line from market.prices_adjusted",
      )
    )
      .map(({ line }) => line)
      .sort();
  expect(await read()).toEqual(await stored());
  await importInto(context, bhavCopies(tradingDays('2023-12-29', 150)));
  expect(changesOf(await exported(...args))).toEqual({
    bhavcopy_cm: '2023.parquet',
    prices_adjusted: '2023.parquet',
  });
  // A split changes the prices of the years before it, and no row of the table.
  await importInto(context, [events('NSE,OMEGA,2024-01-02,split,2:1,')]);
  expect(changesOf(await exported(...args))).toEqual({
    bhavcopy_cm: '',
    prices_adjusted: '2022.parquet 2023.parquet',
  });
  expect(await read()).toEqual(await stored());
  // What somebody has deleted or cut is written again, and what a killed export has left is removed.
  rmSync(join(out, 'bhavcopy_cm', '2022.parquet'));
  truncateSync(join(out, 'prices_adjusted', '2024.parquet'), 100);
  writeFileSync(join(out, 'bhavcopy_cm', '.2024.parquet.4711.part'), 'half');
  writeFileSync(join(out, 'bhavcopy_cm', 'README'), 'of the user');
  expect(changesOf(await exported(...args))).toEqual({
    bhavcopy_cm: '-.2024.parquet.4711.part 2022.parquet',
    prices_adjusted: '2024.parquet',
  });
  expect(readdirSync(join(out, 'bhavcopy_cm')).sort()).toEqual([
    '2022.parquet',
    '2023.parquet',
    '2024.parquet',
    'README',
    '_manifest.json',
  ]);
  // Rows of a whole year that are gone: so is its file.
  await context.db.pool.query(
    "create view market.some_days as select date '2020-01-01' as day union select '2021-05-05'",
  );
  const days = ['some_days', '--partition', 'year', '--out', out, '--format', 'csv'];
  expect(changesOf(await exported(...days))).toEqual({ some_days: '2020.csv 2021.csv' });
  expect(readFileSync(join(out, 'some_days', '2021.csv'), 'utf8')).toBe('day\n2021-05-05\n');
  await context.db.pool.query(
    "create or replace view market.some_days as select date '2021-05-05' as day union select 'infinity' union select null",
  );
  expect(changesOf(await exported(...days))).toEqual({ some_days: '-2020.csv none.csv' });
  expect(filesOf(join(out, 'some_days')).sort()).toEqual(['2021.csv', 'none.csv']);
  await context.db.pool.query('drop view market.some_days');
});

test.runIf(isSlowLayer)(
  'a killed export leaves whole files, and the next one completes the folder',
  async () => {
    const out = temporaryFolder();
    await context.db.pool.query(
      `create view market.slow_days as select date '2020-01-01' + 366 * year as day, repeat('x', 20000) as text, pg_sleep(case year when 2 then nap else 0 end)::text as pause
       from generate_series(0, 2) year, (select coalesce(current_setting('eod.nap', true), '0')::float8 as nap) n, generate_series(1, 100)`,
    );
    const args = ['export', 'slow_days', '--partition', 'year', '--format', 'csv', '--out', out];
    const slow = `${url}?options=-c%20eod.nap%3D0.05`;
    const killed = spawnEod(args, { cwd: temporaryFolder(), env: { DATABASE_URL: slow } });
    const folder = join(out, 'slow_days');
    await waitFor(async () => existsSync(join(folder, '2020.csv')), { what: 'the first file' });
    killed.kill('SIGKILL');
    await killed.ended;
    const left = readdirSync(folder);
    expect(left.filter((name) => name.endsWith('.part')).length).toBeGreaterThan(0);
    expect(left).not.toContain('2022.csv');
    await exported(...args.slice(1));
    expect(readdirSync(folder).sort()).toEqual(['2020.csv', '2021.csv', '2022.csv', '_manifest.json']);
    for (const name of filesOf(folder))
      expect(readFileSync(join(folder, name), 'utf8').trimEnd().split('\n')).toHaveLength(101);
    await context.db.pool.query('drop view market.slow_days');
  },
);

test('with --decimals all files have the same types: a longer number writes them again', async () => {
  const out = temporaryFolder();
  const args = ['bhavcopy_cm', '--partition', 'month', '--out', out, '--decimals'];
  await exported(...args);
  await importInto(context, bhavCopies(['2024-02-05 BETA INE000B01019 33.5']));
  expect(changesOf(await exported(...args))).toEqual({ bhavcopy_cm: '2024-02.parquet' });
  await importInto(context, bhavCopies(['2024-02-06 BETA INE000B01019 33.123456']));
  expect(changesOf(await exported(...args))).toEqual({
    bhavcopy_cm: '2022-05.parquet 2023-12.parquet 2024-01.parquet 2024-02.parquet',
  });
});

test('a folder with something else is refused, with what to do, and stays as it is', async () => {
  const out = temporaryFolder();
  const run = (args: readonly string[], database = url) =>
    runCli(['export', ...args, '--out', out], { cwd: temporaryFolder(), env: { DATABASE_URL: database } });
  const byMonth = ['bhavcopy_cm', '--partition', 'month'];
  expect(await run(byMonth)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/bhavcopy_cm {2}\d+ rows in \d files, \d written\n$/),
  });
  const other = await openExports();
  mkdirSync(join(out, 'corporate_events'));
  writeFileSync(join(out, 'corporate_events', '2020.parquet'), 'mine');
  const manifest = readFileSync(join(out, 'bhavcopy_cm', '_manifest.json'), 'utf8');
  mkdirSync(join(out, 'prices'));
  writeFileSync(join(out, 'prices', '_manifest.json'), manifest);
  mkdirSync(join(out, 'prices_adjusted'));
  writeFileSync(join(out, 'prices_adjusted', '_manifest.json'), '{}');
  const has = 'has market.bhavcopy_cm as parquet, by month, not ';
  const remedy = ': export to another folder, or delete this one';
  for (const [args, says, database] of [
    [['bhavcopy_cm', '--partition', 'year'], `${has}market.bhavcopy_cm as parquet, by year${remedy}`],
    [[...byMonth, '--format', 'csv'], `${has}market.bhavcopy_cm as csv, by month${remedy}`],
    [[...byMonth, '--decimals'], `${has}market.bhavcopy_cm as parquet with decimals, by month${remedy}`],
    [['prices', '--partition', 'month'], `${has}market.prices as parquet, by month${remedy}`],
    [byMonth, `of another database${remedy}`, other.url],
    [
      ['corporate_events', '--partition', 'year'],
      'is not a folder that an export has made: export to another one',
    ],
    [['prices_adjusted', '--partition', 'year'], `is not a manifest of this version${remedy}`],
    // Nothing is written if one of several is refused.
    [['deliveries', 'prices', '--partition', 'month'], has],
  ] as const) {
    const { code, stderr } = await run(args, database);
    expect({ args, code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(says) });
  }
  expect(readFileSync(join(out, 'bhavcopy_cm', '_manifest.json'), 'utf8')).toBe(manifest);
  expect(existsSync(join(out, 'deliveries'))).toBe(false);
});
