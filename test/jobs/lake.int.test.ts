import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import type { LakeResult } from '../../src/load/export/lake.ts';
import type { Manifest } from '../../src/load/export/lake-manifest.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { pythonWith, runPython } from '../support/python.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { importInto, newFile, openStore } from './import-support.ts';
import { replay } from './replay-support.ts';

const HEADER =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty';

let files = 0;
/** Bhav copies of NSE: a file a day, of `day symbol isin close`. */
function bhavCopies(lines: readonly string[]): string[] {
  return [...new Set(lines.map((line) => line.slice(0, 10)))].map((day) => {
    const rows = lines
      .filter((line) => line.startsWith(day))
      .map((line) => {
        const [, symbol, isin, close] = line.split(' ');
        const prices = Array(6).fill(close).join();
        return `${day},${day},CM,NSE,STK,1,${isin},${symbol},EQ,${symbol} LTD,${prices},100,1000,3,F1,1`;
      });
    files += 1;
    return newFile(`nse-${files}-${day}.csv`, [HEADER, ...rows]);
  });
}
const events = (...lines: string[]) => {
  files += 1;
  return newFile(`events-${files}.csv`, ['exchange,symbol,ex_date,kind,ratio,note', ...lines]);
};

const ISIN = { ALPHA: 'INE000A01011', BETA: 'INE000B01019', OMEGA: 'INE000C01017' };
const sessions = (day: string, price: number) =>
  Object.entries(ISIN).map(([symbol, isin], at) => `${day} ${symbol} ${isin} ${price + at * 10}`);

let context: Context;
let env: Record<string, string>;
let lake: string;

beforeAll(async () => {
  const { url } = await testDatabase();
  env = { DATABASE_URL: url };
  context = await openStore(url);
  lake = join(temporaryFolder(), 'lake');
  await importInto(
    context,
    bhavCopies([
      '2022-05-10 OMEGA INE000C01017 31.5',
      ...['2023-12-28', '2023-12-29', '2024-01-02', '2024-01-03'].flatMap((day, at) =>
        sessions(day, 100 + at),
      ),
    ]),
  );
  await importInto(context, [events('NSE,BETA,2024-01-02,split,5:1,')]);
}, 120_000);

const exported = async (...args: string[]) =>
  (await runJson<LakeResult>(['export', ...args], { cwd: temporaryFolder(), env })).json;
const update = (folder = lake) => exported('--all', '--lake', folder);
const manifestOf = (folder: string) =>
  JSON.parse(readFileSync(join(folder, '_manifest.json'), 'utf8')) as Manifest;

/** The rows that a manifest lists, by table and partition. */
async function contentOf(folder: string): Promise<Record<string, string[]>> {
  const content: Record<string, string[]> = {};
  for (const { table, partition, file, rows } of manifestOf(folder).files) {
    const found = await parquetReadObjects({ file: await asyncBufferFromFile(join(folder, file)) });
    expect(found).toHaveLength(rows);
    content[`${table} ${partition}`] = found
      .map((row) =>
        Object.values(row)
          .map((value) => (value instanceof Date ? value.toISOString() : String(value)))
          .join('|'),
      )
      .sort();
  }
  return content;
}
const written = ({ tables }: LakeResult) =>
  Object.fromEntries(
    tables.filter((one) => one.written + one.replaced > 0).map((one) => [one.table, one.written]),
  );
const partitionsOf = (folder: string, table: string, state: number) =>
  manifestOf(folder)
    .files.filter((one) => one.table === table && one.state === state)
    .map(({ partition }) => partition);

test('a lake that follows has what one written anew has, and writes only what changed', async () => {
  const first = await update();
  expect(first).toMatchObject({ isChanged: true, stateBefore: null });
  const names = manifestOf(lake).tables.map(({ table }) => table);
  expect(names).toEqual(expect.arrayContaining(['bhavcopy_cm', 'prices', 'prices_adjusted', 'instruments']));
  expect(manifestOf(lake).files.filter(({ table }) => table === 'bhavcopy_cm')).toMatchObject([
    { partition: '2022-05', rows: 1, file: expect.stringMatching(/^bhavcopy_cm\/year=2022\/month=5\/\d+-/) },
    { partition: '2023-12', rows: 6 },
    { partition: '2024-01', rows: 6 },
  ]);
  expect(await update()).toMatchObject({ isChanged: false });

  const steps: [string, () => Promise<unknown>, (result: LakeResult) => void][] = [
    [
      'a correction',
      () => importInto(context, bhavCopies(sessions('2023-12-29', 150))),
      ({ state }) => {
        expect(partitionsOf(lake, 'bhavcopy_cm', state)).toEqual(['2023-12']);
        expect(partitionsOf(lake, 'prices_adjusted', state)).toEqual(['2023-12']);
      },
    ],
    [
      'a split',
      () => importInto(context, [events('NSE,ALPHA,2024-01-03,split,5:1,')]),
      (result) => {
        expect(written(result)).not.toHaveProperty('bhavcopy_cm');
        // Of OMEGA alone there is a session in 2022.
        expect(partitionsOf(lake, 'prices_adjusted', result.state)).toEqual(['2023-12', '2024-01']);
      },
    ],
    [
      'a day',
      () => importInto(context, bhavCopies(sessions('2024-02-01', 90))),
      ({ state }) => expect(partitionsOf(lake, 'bhavcopy_cm', state)).toEqual(['2024-02']),
    ],
    [
      'a new name',
      () => importInto(context, bhavCopies(['2024-02-02 GAMMA INE000C01017 33.5'])),
      ({ state }) => expect(partitionsOf(lake, 'bhavcopy_cm', state)).toEqual(['2024-02']),
    ],
    [
      'a number with more digits than any before',
      () => importInto(context, bhavCopies(['2024-02-05 BETA INE000B01019 33.123456'])),
      // All files of a table have the same types.
      ({ state }) => expect(partitionsOf(lake, 'bhavcopy_cm', state)).toHaveLength(4),
    ],
    [
      'a rebuild',
      () => replay(context, {}, { rebuild: true }),
      ({ state }) => expect(partitionsOf(lake, 'bhavcopy_cm', state)).toHaveLength(4),
    ],
  ];
  for (const [name, change, check] of steps) {
    await change();
    const result = await update();
    check(result);
    const anew = join(temporaryFolder(), name);
    await update(anew);
    expect(await contentOf(lake), name).toEqual(await contentOf(anew));
    expect(await update(), name).toMatchObject({ isChanged: false });
  }
  const { rows } = await context.db.pool.query(
    'select symbol, trade_date::text as day, close_price::float8 as close from market.prices_adjusted order by 1, 2',
  );
  const adjusted = manifestOf(lake).files.filter(({ table }) => table === 'prices_adjusted');
  const read = await Promise.all(
    adjusted.map(async ({ file }) =>
      parquetReadObjects({ file: await asyncBufferFromFile(join(lake, file)) }),
    ),
  );
  expect(
    read
      .flat()
      .map(({ symbol, trade_date, close_price }) => ({
        ...{ symbol, day: (trade_date as Date).toISOString().slice(0, 10) },
        close: Number(close_price),
      }))
      .sort((a, b) => (`${a.symbol} ${a.day}` < `${b.symbol} ${b.day}` ? -1 : 1)),
  ).toEqual(rows);
});

test('a view whose rows exchange their values is written again', async () => {
  const folder = join(temporaryFolder(), 'exchanged');
  const write = (low: string) =>
    context.db.pool.query(
      `create or replace view market.exchanged as select n as id, n % 2 = 0 as is_even, case (n + ${low}) % 2 when 0 then 1.5 else 2.5 end as value from generate_series(1, 6) n`,
    );
  await write('0');
  await exported('exchanged', '--lake', folder);
  await write('1');
  expect(await exported('exchanged', '--lake', folder)).toMatchObject({ isChanged: true });
  await context.db.pool.query('drop view market.exchanged');
});

test('adjusted prices are written again if they are computed in another way, and a reader may export', async () => {
  const folder = join(temporaryFolder(), 'computed');
  const login = new URL(env.DATABASE_URL ?? '');
  const role = `reader_${login.pathname.slice(-8)}`;
  await execute(inject('databaseAdminUrl'), `create role ${role} login password 'kiwi'`);
  expect(await runCli(['migrate', '--reader', role], { cwd: temporaryFolder(), env })).toMatchObject({
    code: 0,
  });
  login.username = role;
  login.password = 'kiwi';
  const asReader = async () => {
    const options = { cwd: temporaryFolder(), env: { DATABASE_URL: login.href } };
    return (await runJson<LakeResult>(['export', '--all', '--lake', folder], options)).json;
  };
  await asReader();
  const { rows } = await context.db.pool.query<{ definition: string }>(
    `select pg_get_functiondef('market.adjusted_prices'::regproc) as definition`,
  );
  const definition = rows[0]?.definition ?? '';
  await context.db.pool.query(
    definition.replace('b.close_price * f.ratio_old', 'b.close_price * 2 * f.ratio_old'),
  );
  expect(written(await asReader())).toMatchObject({ prices_adjusted: 4 });
  await context.db.pool.query(definition);
  await context.db.pool.query(`drop owned by ${role}`);
  await execute(inject('databaseAdminUrl'), `drop role ${role}`);
});

describe('a lake of its own', () => {
  test('keeps replaced files for an hour, and deletes them and what an interrupted export left after it', async () => {
    const folder = join(temporaryFolder(), 'kept');
    await exported('bhavcopy_cm', '--lake', folder, '--partition', 'year');
    const before = manifestOf(folder).files.find(({ partition }) => partition === '2024')?.file ?? '';
    const stray = join(folder, dirname(before), '7-0123abcd.parquet.part');
    writeFileSync(stray, 'half a file');
    await importInto(context, bhavCopies(sessions('2024-03-01', 80)));
    await exported('bhavcopy_cm', '--lake', folder);
    expect(manifestOf(folder).replaced).toMatchObject([{ file: before }]);
    expect(existsSync(join(folder, before))).toBe(true);
    const manifest = manifestOf(folder);
    const longAgo = new Date(Date.now() - 3_700_000);
    const replaced = manifest.replaced.map((one) => ({ ...one, since: longAgo.toISOString() }));
    writeFileSync(join(folder, '_manifest.json'), JSON.stringify({ ...manifest, replaced }));
    utimesSync(stray, longAgo, longAgo);
    const theirs = join(folder, 'bhavcopy_cm', 'notes.parquet');
    writeFileSync(theirs, 'a file of somebody else');
    utimesSync(theirs, longAgo, longAgo);
    expect(await exported('bhavcopy_cm', '--lake', folder)).toMatchObject({ isChanged: false });
    expect(
      [before, stray, theirs].map((path) => existsSync(path.startsWith('/') ? path : join(folder, path))),
    ).toEqual([false, false, true]);
    expect(manifestOf(folder).replaced).toEqual([]);
  });

  test('since a state has what changed after it', async () => {
    const folder = join(temporaryFolder(), 'since');
    const { rows } = await context.db.pool.query<{ state: string }>('select market.state()::text as state');
    const state = rows[0]?.state ?? '';
    await importInto(context, bhavCopies(sessions('2024-04-01', 81)));
    await exported('bhavcopy_cm', '--lake', folder, '--since-state', state);
    expect(manifestOf(folder)).toMatchObject({
      tables: [{ table: 'bhavcopy_cm', sinceState: Number(state) }],
      files: [{ partition: '2024-04', rows: 3 }],
    });
    // Of other types, none of its rows can stay as they were.
    const all = join(temporaryFolder(), 'types');
    await exported('bhavcopy_cm', '--lake', all);
    const doubles = await exported(
      ...['bhavcopy_cm', 'market.BHAVCOPY_CM', '--lake', all, '--doubles', '--since-state', state],
    );
    expect(doubles.tables).toMatchObject([{ rows: manifestOf(all).tables[0]?.rows }]);
    expect(doubles.tables[0]?.written).toBe(doubles.tables[0]?.files);
    // Nothing has changed since: a file that tells the columns, without rows, until there are some.
    const none = join(temporaryFolder(), 'none');
    const now = String(Number(state) + 1);
    await exported('bhavcopy_cm', '--lake', none, '--since-state', now);
    expect(manifestOf(none).files).toMatchObject([{ partition: 'all', rows: 0 }]);
    await importInto(context, bhavCopies(sessions('2024-04-02', 82)));
    await exported('bhavcopy_cm', '--lake', none);
    expect(manifestOf(none).files).toMatchObject([{ partition: '2024-04' }]);
    const tooLate = await runCli(['export', 'bhavcopy_cm', '--lake', folder, '--since-state', '100000'], {
      cwd: folder,
      env,
    });
    expect(tooLate).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the lake has bhavcopy_cm in state'),
    });
  });

  test('runs a command after a change, and again until it succeeds', async () => {
    const folder = join(temporaryFolder(), 'change');
    mkdirSync(folder);
    const run = (command: string) =>
      runCli(['export', 'bhavcopy_cm', '--lake', folder, '--on-change', command], { cwd: folder, env });
    const failed = await run('exit 3');
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(
      /the command of --on-change ended with exit code 3; the next export runs it again/,
    );
    const tell = 'echo "$EOD_LAKE_STATE $EOD_LAKE" >> told; test -f "$EOD_LAKE_MANIFEST"';
    expect((await run(tell)).code).toBe(0);
    expect((await run(tell)).code).toBe(0);
    expect(readFileSync(join(folder, 'told'), 'utf8')).toBe(`${manifestOf(folder).state} ${folder}\n`);
  });

  test('is refused where it has another partitioning or manifest, and written anew from another database', async () => {
    const folder = join(temporaryFolder(), 'refused');
    await exported('bhavcopy_cm', '--lake', folder);
    const by = await runCli(['export', 'bhavcopy_cm', '--lake', folder, '--partition', 'year'], {
      cwd: folder,
      env,
    });
    expect(by).toMatchObject({ code: 2, stderr: expect.stringContaining('is partitioned by month') });
    const other = await testDatabase();
    const anew = await runJson<LakeResult>(['export', 'bhavcopy_cm', '--lake', folder], {
      ...{ cwd: folder, env: { DATABASE_URL: other.url } },
    });
    expect(anew.stderr).toContain('so all of its files are written anew');
    expect(manifestOf(folder).files).toMatchObject([{ partition: 'all', rows: 0 }]);
    writeFileSync(join(folder, '_manifest.json'), '{"format": 9}');
    const unknown = await runCli(['export', 'bhavcopy_cm', '--lake', folder], { cwd: folder, env });
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('export to an empty folder') });
  });

  test('is complete at whatever moment its export is killed', async () => {
    const folder = join(temporaryFolder(), 'killed');
    const args = ['export', 'bhavcopy_cm', 'prices_adjusted', '--lake'];
    await exported(...args.slice(1), folder);
    for (const kill of [1, 2]) {
      await importInto(context, bhavCopies(sessions(`2024-0${5 + kill}-03`, 70 + kill)));
      const before = await contentOf(folder);
      const there = () => readdirSync(folder, { recursive: true }).length;
      const known = there();
      const child = spawn(process.execPath, ['bin/eod.mjs', ...args, folder], {
        env: { ...process.env, ...env },
      });
      const ended = new Promise((resolve) => child.once('close', resolve));
      await waitFor(() => there() > known + kill || child.exitCode !== null);
      child.kill('SIGKILL');
      await ended;
      const between = await contentOf(folder);
      await exported(...args.slice(1), folder);
      const anew = join(temporaryFolder(), `anew-${kill}`);
      await exported(...args.slice(1), anew);
      const after = await contentOf(anew);
      expect(await contentOf(folder)).toEqual(after);
      expect([before, after]).toContainEqual(between);
    }
  });
});

describe('DuckDB, polars and Spark', () => {
  const SCRIPT = `
import json, sys, duckdb, polars as pl
folder, engine = sys.argv[1:]
files = [f"{folder}/{one['file']}" for one in json.load(open(f'{folder}/_manifest.json'))['files'] if one['table'] == 'bhavcopy_cm']
columns = ['trade_date', 'symbol', 'close_price']
if engine == 'duckdb':
  rows = duckdb.read_parquet(files, hive_partitioning=True).select(*columns).fetchall()
elif engine == 'polars':
  rows = pl.scan_parquet(files, hive_partitioning=True).select(columns).collect().rows()
else:
  from pyspark.sql import SparkSession
  spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()
  rows = [tuple(row) for row in spark.read.option('basePath', f'{folder}/bhavcopy_cm').parquet(*files).filter('year >= 2022').select(*columns).collect()]
print(json.dumps(sorted([str(day), symbol, float(close)] for day, symbol, close in rows)))
`;
  let python: string | null = null;
  beforeAll(async () => {
    python = await pythonWith(['duckdb', 'polars', 'pyspark', 'pyarrow']);
  }, 1_000_000);

  test.each(['duckdb', 'polars', 'spark'])('%s reads the files that the manifest lists', async (engine) => {
    if (python === null) return;
    const { rows } = await context.db.pool.query(
      `select jsonb_build_array(trade_date, symbol, close_price) as row from market.bhavcopy_cm order by trade_date, symbol collate "C"`,
    );
    await update();
    expect(await runPython(python, SCRIPT, [lake, engine])).toEqual(rows.map(({ row }) => row));
  });
});
