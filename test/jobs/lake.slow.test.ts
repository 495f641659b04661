import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { describe, expect, inject, test } from 'vitest';
import type { LakeResult } from '../../src/load/export/lake.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';
import { importInto, newFile } from './import-support.ts';
import { bhavCopies, events, manifestOf, openLake, sessions } from './lake-support.ts';
import { replay } from './replay-support.ts';

const { context, env, lake, exported } = await openLake();

/** A process of its own, for signals. */
function startProcess(...args: string[]) {
  const child = spawn(process.execPath, ['bin/eod.mjs', ...args], {
    ...{ env: { ...process.env, ...env }, stdio: 'ignore' },
  });
  return { child, ended: new Promise((resolve) => child.once('close', resolve)) };
}

const update = (folder = lake) => exported('--all', '--lake', folder);

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

/** Tables and views of every kind; all of them would take four times as long. */
const FOLLOWED = [
  'bhavcopy_cm',
  'prices',
  'prices_adjusted',
  'instruments',
  'corporate_events',
  'deliveries',
];

test('a lake that follows has what one written anew has, and writes only what changed', async () => {
  const follow = (folder: string) => exported(...FOLLOWED, '--lake', folder, '--decimals');
  const first = await follow(lake);
  expect(first).toMatchObject({ isChanged: true, stateBefore: null });
  expect(manifestOf(lake).files.filter(({ table }) => table === 'bhavcopy_cm')).toMatchObject([
    { partition: '2022-05', rows: 1, file: expect.stringMatching(/^bhavcopy_cm\/year=2022\/month=5\/\d+-/) },
    { partition: '2023-12', rows: 6 },
    { partition: '2024-01', rows: 6 },
  ]);
  expect(await follow(lake)).toMatchObject({ isChanged: false });

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
      'the first list of an exchange, with nothing of any share that has prices',
      () =>
        importInto(context, [
          newFile('list.csv', [
            'SYMBOL,COMPANY NAME,SERIES,PURPOSE,FACE VALUE,EX-DATE,RECORD DATE,BOOK CLOSURE START DATE,BOOK CLOSURE END DATE',
            'OTHER,OTHER LTD,EQ,Dividend - Rs 5 Per Share,1,01-Jan-2024,01-Jan-2024,-,-',
          ]),
        ]),
      // is_before_event_lists.
      ({ state }) => expect(partitionsOf(lake, 'prices_adjusted', state)).toHaveLength(4),
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
    const result = await follow(lake);
    check(result);
    const anew = join(temporaryFolder(), name);
    await follow(anew);
    expect(await contentOf(lake), name).toEqual(await contentOf(anew));
    expect(await follow(lake), name).toMatchObject({ isChanged: false });
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
        // The reader multiplies decimals as doubles.
        close: Number(Number(close_price).toFixed(4)),
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
  const alone = ['export', 'prices_adjusted', '--out', join(temporaryFolder(), 'prices.csv')];
  expect(await runCli(alone, { cwd: temporaryFolder(), env: { DATABASE_URL: login.href } })).toMatchObject({
    code: 0,
  });
  const { rows } = await context.db.pool.query<{ definition: string }>(
    `select pg_get_functiondef('market.adjusted_prices(date)'::regprocedure) as definition`,
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

  test('stops the command and what it has started after a signal', async () => {
    const folder = join(temporaryFolder(), 'stopped');
    mkdirSync(folder);
    const args = ['export', 'bhavcopy_cm', '--lake', folder, '--on-change'];
    const pidFile = join(folder, 'pid');
    const command = `sleep 1000 & echo $! > ${pidFile}; wait`;
    const { child, ended } = startProcess(...args, command);
    const pid = await waitFor(async () => existsSync(pidFile) && Number(readFileSync(pidFile, 'utf8')));
    child.kill('SIGTERM');
    expect(await ended).toBe(143);
    // Where nobody collects it, it stays in the list of processes as a zombie.
    await waitFor(() => {
      const path = `/proc/${pid}/stat`;
      return !existsSync(path) || readFileSync(path, 'utf8').includes(') Z ');
    });
  });

  test('writes again what somebody deleted or cut, and leaves alone a lake that is kept in it', async () => {
    const folder = join(temporaryFolder(), 'damaged');
    const inner = join(folder, 'bhavcopy_cm', 'inner');
    await exported('bhavcopy_cm', 'prices_adjusted', 'instruments', '--lake', folder);
    await exported('bhavcopy_cm', '--lake', inner);
    const before = await contentOf(folder);
    const innerFiles = manifestOf(inner).files.map(({ file }) => join(inner, file));
    const longAgo = new Date(Date.now() - 3_700_000);
    for (const file of innerFiles) utimesSync(file, longAgo, longAgo);
    const [first, second, ...others] = manifestOf(folder).files;
    rmSync(join(folder, first?.file ?? ''));
    writeFileSync(join(folder, second?.file ?? ''), 'PAR1');
    rmSync(join(folder, others.find(({ table }) => table === 'instruments')?.file ?? ''));
    writeFileSync(join(folder, manifestOf(folder).tables[1]?.namesFile ?? ''), '{');
    const again = await runJson<LakeResult>(
      ['export', 'bhavcopy_cm', 'prices_adjusted', 'instruments', '--lake', folder],
      { cwd: folder, env },
    );
    expect(again.stderr).toContain(`${first?.file} is missing or damaged, and is written again`);
    expect(written(again.json)).toMatchObject({ bhavcopy_cm: 2, instruments: 1 });
    expect(await contentOf(folder)).toEqual(before);
    expect(innerFiles.map((file) => existsSync(file))).not.toContain(false);
  });

  test('follows views with names and days of any kind, and leaves out what was dropped', async () => {
    const folder = join(temporaryFolder(), 'views');
    await context.db.pool.query(`
      create view market."Capital" as select 'INFY'::text as symbol, 1 as n;
      create view market."my.view" as select 1 as n;
      create view market."Year" as select 7 as "Year", date '2024-01-01' as trade_date;
      create view market.text_days as select '2024-01-01'::text as trade_date, 1 as n;
      create view market.odd_days as select d::date as trade_date, n from (values
        ('infinity', 1), (null, 2), ('2024-01-02', 3)) v(d, n)`);
    const { tables } = await update(folder);
    expect(tables.map(({ table }) => table)).toEqual(expect.arrayContaining([...FOLLOWED, 'band_hits']));
    const files = (table: string) =>
      manifestOf(folder)
        .files.filter((one) => one.table === table)
        .map(({ file, rows }) => `${dirname(file)} ${rows}`);
    expect([...files('Capital'), ...files('text_days')]).toEqual(['Capital 1', 'text_days 1']);
    expect([files('Year'), files('my.view')]).toEqual([['Year/2024-01 1'], []]);
    expect((await update(folder)).notices).toEqual([
      'market."my.view" is left out: its name cannot be that of a folder',
    ]);
    expect(files('odd_days').sort()).toEqual([
      'odd_days/year=2024/month=1 1',
      'odd_days/year=__HIVE_DEFAULT_PARTITION__/month=__HIVE_DEFAULT_PARTITION__ 2',
    ]);
    await context.db.pool.query(`
      drop view market."Capital", market."my.view", market."Year", market.text_days, market.odd_days;
      create view market.broken as select date '0044-03-15 BC' as day`);
    const broken = await runCli(['export', '--all', '--lake', folder], { cwd: folder, env });
    expect(broken).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('broken: Parquet cannot hold the time 0044-03-15 BC'),
    });
    await context.db.pool.query('drop view market.broken');
    expect(written(await update(folder))).toMatchObject({ Capital: 0, text_days: 0, odd_days: 0 });
    expect(files('Capital')).toEqual([]);
    expect(await update(folder)).toMatchObject({ isChanged: false });
  });

  test('writes only the month of a new event, though a list of events has all of their days', async () => {
    const folder = join(temporaryFolder(), 'events');
    await exported('corporate_events', '--lake', folder);
    const before = manifestOf(folder).files.length;
    await importInto(context, [events('NSE,OMEGA,2024-04-03,split,2:1,')]);
    const { state } = await exported('corporate_events', '--lake', folder);
    expect(before).toBeGreaterThan(0);
    expect(partitionsOf(folder, 'corporate_events', state)).toEqual(['2024-04']);
  });

  test('ends after a signal, and leaves the manifest as it was', async () => {
    const folder = join(temporaryFolder(), 'ended');
    const { child, ended } = startProcess('export', '--all', '--lake', folder);
    await waitFor(() => existsSync(folder) && readdirSync(folder).length > 1);
    child.kill('SIGTERM');
    expect(await ended).toBe(143);
    expect(existsSync(join(folder, '_manifest.json'))).toBe(false);
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

  test('deletes nothing outside its folder, whatever its manifest names', async () => {
    const around = temporaryFolder();
    const folder = join(around, 'lake');
    await exported('bhavcopy_cm', '--lake', folder);
    const manifest = manifestOf(folder);
    const [table, file] = [manifest.tables[0], manifest.files[0]];
    const victim = join(around, 'victim', '7-0123abcd.parquet');
    mkdirSync(dirname(victim));
    writeFileSync(victim, 'of another lake');
    const longAgo = new Date(Date.now() - 3_700_000);
    utimesSync(victim, longAgo, longAgo);
    const named = '../victim/7-0123abcd.parquet';
    const since = longAgo.toISOString();
    const changed: object[] = [
      { tables: [{ ...table, table: '../victim' }] },
      { tables: [{ ...table, table: 'market_history.../../victim' }] },
      { tables: [{ ...table, namesFile: named }] },
      { tables: [{ ...table, table: '' }] },
      { files: [{ ...file, file: named }] },
      { files: [{ ...file, file: victim }] },
      { files: [{ ...file, file: 'bhavcopy_cm/../../victim/7-0123abcd.parquet' }] },
      { files: [{ ...file, table: '..' }] },
      { replaced: [{ file: named, since }] },
    ];
    for (const change of changed) {
      writeFileSync(join(folder, '_manifest.json'), JSON.stringify({ ...manifest, ...change }));
      const found = await runCli(['export', 'bhavcopy_cm', '--lake', folder], { cwd: folder, env });
      expect({ change, code: found.code, stderr: found.stderr }).toEqual({
        change,
        code: 2,
        stderr: expect.stringContaining('is not a manifest that this version of eod wrote'),
      });
      expect(existsSync(victim)).toBe(true);
    }
    writeFileSync(join(folder, '_manifest.json'), JSON.stringify(manifest));
    expect(await exported('bhavcopy_cm', '--lake', folder)).toMatchObject({ isChanged: false });
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
      const { child, ended } = startProcess(...args, folder);
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
