import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import { bhavRow, loadBhav, openPool } from '../load/support.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { isSlowLayer } from '../support/layer.ts';
import { query } from '../support/query.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** Rows with whatever text, numbers and days may be odd. */
const ODD = `
create table market.odd as
  select n, (n % 3)::smallint as small, 9007199254740993 + n as big, n % 2 = 0 as yes, n * 0.1::float8 as double,
    case when n % 10 = 0 then null else (n * 1.0305 - 5000)::numeric end as price,
    (n * 1000003.123456789012345678901)::numeric as wide,
    case n % 7 when 0 then null when 1 then '' when 2 then E'tab\\tline\\nback\\\\slash\\r' when 3 then '\\N' when 4 then 'é𝄞"quote",'
      else 'a longer text number ' || n end as symbol,
    date '2023-12-01' + n % 60 as trade_date, timestamptz '2025-02-27 21:00:00.123456+05:30' + n * interval '1 second' as moment,
    timestamp '1969-12-31 23:59:59.5' as local, jsonb_build_object('n', n, 'text', E'a\\nb') as facts, array['a', null, 'b c'] as list,
    case when n = 1 then 'infinity' when n = 2 then '-infinity' else date '2024-01-01' end as until,
    case when n = 1 then 'NaN' else 1.5 end::numeric as nan, null::numeric as nothing, n / 8.0 + 0.00000000000000000000 as quotient, E'["x",\\n 1]'::json as plain
  from generate_series(1, 60000) n`;

/** Rows of several row groups; the values of `late` are distinct only at first. */
const MANY = `
create table market.many as select date '2024-01-01' + n / 1000 as trade_date, 'SYM' || lpad((n % 1000)::text, 4, '0') as symbol,
    case when n % 11 > 0 then (n * 7919 % 1000003) / 100.0 * case n % 3 when 0 then -1 else 1 end end::numeric(12, 2) as price,
    (n * 12345678901.000001 - 5e14)::numeric(24, 6) as wide, (n * 7919) % 1000003 as quantity, least(n, 20000) as late,
    timestamp '2024-01-01' + n * interval '0.1 second' as moment, n % 5 = 0 as flag from generate_series(0, 249999) n`;

const { url } = await testDatabase();
await execute(url, ODD);
await execute(
  url,
  "create view market.isolation as select current_setting('transaction_isolation') as level, current_setting('transaction_read_only') as read_only",
);
const options = (cwd: string) => ({ cwd, env: { DATABASE_URL: url } });

interface Exported {
  table: string;
  rows: number;
  files: { file: string; rows: number; bytes: number }[];
  notices: string[];
}

const exported = (cwd: string, ...args: string[]) => runJson<Exported>(['export', ...args], options(cwd));

/** A Parquet file as another program reads it: the type of each column, its row groups, and each value as exact text. */
async function readParquet(path: string) {
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file);
  const columns = metadata.schema.slice(1);
  const types = Object.fromEntries(
    columns.map(({ name, type, converted_type: converted, precision, scale }) => [
      name,
      converted === 'DECIMAL' ? `DECIMAL(${precision}, ${scale})` : (converted ?? type ?? ''),
    ]),
  );
  const scales = new Map<string, number>();
  for (const column of columns) {
    if (column.converted_type !== 'DECIMAL') continue;
    // The reader makes doubles of decimals: without this it gives their digits.
    scales.set(column.name, column.scale ?? 0);
    delete column.converted_type;
    delete column.logical_type;
  }
  const parsers = {
    timestampFromMicroseconds: (micros: bigint) => {
      const fraction = String(((micros % 1_000_000n) + 1_000_000n) % 1_000_000n).padStart(6, '0');
      const seconds = new Date(Number((micros - BigInt(fraction)) / 1000n)).toISOString().slice(0, 19);
      return `${seconds}.${fraction}` as unknown as Date;
    },
    dateFromDays: (days: number) => new Date(days * 86_400_000).toISOString().slice(0, 10) as unknown as Date,
  };
  const rows = await parquetReadObjects({ file, metadata, parsers });
  const texts = rows.map((row) =>
    Object.entries(row).map(([name, value]) => {
      const scale = scales.get(name);
      if (value === null || value === undefined) return null;
      return scale === undefined ? String(value) : decimalText(value as Uint8Array | bigint | number, scale);
    }),
  );
  return { types, rows: texts, groups: metadata.row_groups };
}

function decimalText(value: Uint8Array | bigint | number, scale: number): string {
  const digits =
    value instanceof Uint8Array
      ? BigInt.asIntN(value.length * 8, BigInt(`0x${Buffer.from(value).toString('hex')}`))
      : BigInt(value);
  const text = String(digits < 0n ? -digits : digits).padStart(scale + 1, '0');
  const point = text.length - scale;
  return `${digits < 0n ? '-' : ''}${text.slice(0, point)}${scale > 0 ? `.${text.slice(point)}` : ''}`;
}

describe('Parquet, read by another program', () => {
  test('every type and every row', async () => {
    const cwd = temporaryFolder();
    const { json, stderr } = await exported(cwd, 'odd', '--out', 'odd.parquet', '--decimals');
    expect(json).toMatchObject({
      table: 'market.odd',
      rows: 60_000,
      files: [{ file: join(cwd, 'odd.parquet') }],
    });
    expect(json.notices).toEqual([
      'nan has NaN or infinity, which a DECIMAL cannot hold: written as text',
      'until has ±infinity: written as the first day of the year 1 and the last day of 9999',
    ]);
    expect(stderr).toContain('eod: nan has NaN');
    const { types, rows } = await readParquet(join(cwd, 'odd.parquet'));
    expect(types).toEqual({
      n: 'INT32',
      small: 'INT32',
      big: 'INT64',
      yes: 'BOOLEAN',
      double: 'DOUBLE',
      price: 'DECIMAL(9, 4)',
      wide: 'DECIMAL(32, 21)',
      symbol: 'UTF8',
      trade_date: 'DATE',
      moment: 'TIMESTAMP_MICROS',
      // Without a zone there is only the logical type.
      local: 'INT64',
      facts: 'UTF8',
      list: 'UTF8',
      until: 'DATE',
      nan: 'UTF8',
      nothing: 'DECIMAL(1, 0)',
      quotient: 'DECIMAL(7, 3)',
      plain: 'UTF8',
    });
    const stored = await query<Record<string, string | null>>(
      url,
      `select n::text, small::text, big::text, yes::text, double::text, price::numeric(20, 4)::text, wide::numeric(60, 21)::text, symbol,
         trade_date::text, to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as moment,
         to_char(local, 'YYYY-MM-DD"T"HH24:MI:SS.US') as local, facts::text, list::text,
         case until when 'infinity' then '9999-12-31' when '-infinity' then '0001-01-01' else until::text end as until, nan::text, null as nothing, (n / 8.0)::numeric(20, 3)::text as quotient, plain::text
       from market.odd o order by o.n`,
    );
    const byNumber = rows.toSorted((a, b) => Number(a[0]) - Number(b[0]));
    const expected = stored.map((row) => Object.values(row));
    expect(rows).toHaveLength(expected.length);
    const differing = byNumber.filter((row, at) => JSON.stringify(row) !== JSON.stringify(expected[at]));
    expect(differing.slice(0, 3)).toEqual([]);
  });

  test.runIf(isSlowLayer)('row groups have bounds', async () => {
    const cwd = temporaryFolder();
    await execute(url, MANY);
    await exported(cwd, 'many', '--decimals');
    const { groups } = await readParquet(join(cwd, 'many.parquet'));
    expect(groups.map((group) => Number(group.num_rows))).toEqual([122_880, 122_880, 4_240]);
    const bounds = (name: string) =>
      groups.map(({ columns }) => {
        const statistics = columns.find(({ meta_data: data }) => data?.path_in_schema[0] === name)?.meta_data
          ?.statistics;
        return [statistics?.min_value, statistics?.max_value, Number(statistics?.null_count)];
      });
    const day = (text: string) => new Date(text);
    expect(bounds('trade_date')).toEqual([
      [day('2024-01-01'), day('2024-05-02'), 0],
      [day('2024-05-02'), day('2024-09-02'), 0],
      [day('2024-09-02'), day('2024-09-06'), 0],
    ]);
    expect(bounds('symbol')[2]).toEqual(['SYM0000', 'SYM0999', 0]);
    const [least] = await query<{ low: string; high: string; nulls: string }>(
      url,
      `select min(price)::text as low, max(price)::text as high, count(*) filter (where price is null)::text as nulls
         from (select price from market.many order by trade_date, symbol limit 122880) r`,
    );
    expect(bounds('price')[0]).toEqual([least?.low, least?.high, least?.nulls].map(Number));
  });

  test('as doubles unless decimals are requested, an empty table, and the adjusted prices', async () => {
    const cwd = temporaryFolder();
    await exported(cwd, 'odd');
    await exported(cwd, 'bhavcopy_cm');
    expect((await readParquet(join(cwd, 'odd.parquet'))).types).toMatchObject({
      price: 'DOUBLE',
      wide: 'DOUBLE',
      nan: 'DOUBLE',
    });
    expect((await readParquet(join(cwd, 'bhavcopy_cm.parquet'))).rows).toEqual([]);
    await loadBhav(openPool(url), [bhavRow({ symbol: 'INFY', close_price: '1500.05' })]);
    await exported(cwd, 'prices_adjusted');
    const adjusted = await readParquet(join(cwd, 'prices_adjusted.parquet'));
    expect(adjusted.types.close_price).toBe('DOUBLE');
    expect(adjusted.rows).toHaveLength(1);
  });
});

test('CSV is what COPY writes, JSON lines what row_to_json makes', async () => {
  const cwd = temporaryFolder();
  await exported(cwd, 'market.odd', '--format', 'csv');
  await exported(cwd, 'odd', '--out', 'odd.ndjson');
  const csv = readFileSync(join(cwd, 'odd.csv'), 'utf8');
  expect(csv).toMatch(/^n,small,big,yes,/);
  expect(csv).toContain('2025-02-27 15:30:01.123456+00');
  const lines = readFileSync(join(cwd, 'odd.ndjson'), 'utf8').trimEnd().split('\n');
  const stored = await query<{ line: string }>(
    `${url}?options=-c%20timezone%3DUTC`,
    `select row_to_json(r)::text as line from (select n, small, big, yes, double, price, wide, symbol, trade_date, moment, local, facts, list,
       until, nan, nothing, quotient, plain::jsonb as plain from market.odd) r`,
  );
  expect(lines.sort()).toEqual(stored.map(({ line }) => line).sort());
  expect(JSON.parse(lines[0] ?? '')).toHaveProperty('symbol');
});

test('rows are chosen by day and symbol; a whole file or none', async () => {
  const cwd = temporaryFolder();
  const some = await exported(cwd, 'odd', '--from', '2024-01-01', '--to', '2024-01-02', '--format', 'csv');
  expect(some.json.rows).toBe(2_000);
  await loadBhav(openPool(url), [bhavRow({ symbol: 'TCS' }), bhavRow({ symbol: 'WIPRO' })]);
  const two = await exported(
    cwd,
    'bhavcopy_cm',
    '--symbol',
    'tcs,WIPRO',
    '--exchange',
    'NSE',
    '--out',
    'two/',
  );
  expect(two.json).toMatchObject({ rows: 2, files: [{ file: join(cwd, 'two/bhavcopy_cm.parquet') }] });
  const partly = await runCli(
    ['export', 'bhavcopy_cm', '--symbol', 'TCS,NOSUCH,NONE', '--out', 'part.csv'],
    options(cwd),
  );
  expect(partly).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('part.csv  1 row, '),
    stderr: expect.stringContaining('eod: no matching row has the symbol NOSUCH or NONE\n'),
  });
  expect(two.json.notices).toEqual([]);
  const { stdout } = await runCli(['export', 'isolation', '--out', 'isolation.csv'], options(cwd));
  expect(stdout).toContain('isolation.csv  1 row, ');
  expect(readFileSync(join(cwd, 'isolation.csv'), 'utf8')).toBe('level,read_only\nrepeatable read,on\n');
  expect(
    await runCli(
      ['export', 'odd', '--symbol', 'nosuch', '--from', '2024-01-01', '--format', 'csv'],
      options(cwd),
    ),
  ).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('odd.csv  0 rows'),
    stderr: expect.stringContaining('eod: no row of market.odd matches --symbol nosuch --from 2024-01-01\n'),
  });
});

test('of an export that fails or is stopped nothing is left, and what was there stays', async () => {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, 'slow.csv'), 'from before');
  await execute(
    url,
    "create view market.slow as select n, repeat('x', 100000) as text, pg_sleep(0.02)::text as nap from generate_series(1, 100000) n",
  );
  await execute(
    url,
    'create view market.broken as select 1 / (30000 - n) as one, repeat(n::text, 10) as text from generate_series(1, 40000) n',
  );
  const stopped = startCli(['export', 'slow', '--format', 'csv'], options(cwd));
  await waitFor(async () => readdirSync(cwd).find((name) => name.endsWith('.part')) ?? null, {
    what: 'the file',
  });
  stopped.signal('SIGINT');
  expect(await stopped.ended).toMatchObject({ code: 130, stdout: '' });
  for (const format of ['parquet', 'csv', 'ndjson']) {
    expect(await runCli(['export', 'broken', '--format', format], options(cwd))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('division by zero'),
    });
  }
  expect(readdirSync(cwd)).toEqual(['slow.csv']);
  expect(readFileSync(join(cwd, 'slow.csv'), 'utf8')).toBe('from before');
});

test.each([
  ['prices.csv', '.prices.csv', []],
  ['prices.ndjson', '.prices.ndjson', []],
  ['prices.parquet', '.prices.parquet', []],
  ['odd/2023.csv', 'odd/.2023.csv', ['--partition', 'year', '--format', 'csv']],
])('where the disk is full, the file %s is named', async (file, partial, flags) => {
  const cwd = temporaryFolder();
  const out = flags.length === 0 ? file : '.';
  // The folder of an export by years has to be empty, or one of its own.
  if (flags.length > 0)
    expect(await runCli(['export', 'odd', '--out', out, ...flags], options(cwd))).toMatchObject({ code: 0 });
  rmSync(join(cwd, file), { force: true });
  // Each write to this device fails as on a full disk.
  symlinkSync('/dev/full', join(cwd, `${partial}.${process.pid}.part`));
  expect(await runCli(['export', 'odd', '--out', out, ...flags], options(cwd))).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining(`${join(cwd, file)}: the disk is full\n`),
  });
  expect(existsSync(join(cwd, file))).toBe(false);
});

test('a table can also be named by the operation that fills it', async () => {
  const cwd = temporaryFolder();
  const { json } = await exported(cwd, 'GetBhavCopyCM', '--format', 'csv');
  expect(json.table).toBe('market.bhavcopy_cm');
});

test('mistakes are reported before anything is written', async () => {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, 'file'), '');
  execFileSync('mkfifo', [join(cwd, 'pipe'), join(cwd, 'odd.parquet')]);
  symlinkSync('pipe', join(cwd, 'to-pipe.csv'));
  const before = readdirSync(cwd);
  await execute(url, 'create view market."../../x" as select 1 as n');
  for (const [args, says] of [
    [['bhavcopy'], 'there is no table or view market.bhavcopy; did you mean bhavcopy_cm?'],
    [['market_history.nothing'], 'there is no table or view market_history.nothing'],
    [['pg_catalog.pg_authid'], 'there is no table or view pg_catalog.pg_authid'],
    [['corporate_action_categories', '--from', '2025-01-01'], 'has no column to choose days by'],
    [['corporate_action_categories', '--symbol', 'A'], 'has no column to choose symbols by'],
    [
      ['corporate_action_categories', '--partition', 'year', '--out', '.'],
      'market.corporate_action_categories has no column of days to partition by: export it to one file',
    ],
    [['odd', '--partition', 'month'], '--partition needs --out DIR'],
    [['odd', '--partition', 'month', '--out', '.', '--from', '2025-01-01'], '--from cannot be used with'],
    [['odd', '--partition', 'month', '--out', 'file'], '--out: '],
    [['odd', '--partition', 'week'], '--partition: unknown value "week"'],
    [['odd', '--format', 'xlsx'], '--format: unknown value "xlsx"'],
    [['odd', '--format', 'csv', '--decimals'], '--decimals applies to Parquet'],
    [['odd', '--out', 'file/below.csv'], '--out: '],
    [['odd', '--out', '-'], 'eod query --csv'],
    [['odd', '--from', '2025-02-01', '--to', '2025-01-01'], 'reversed'],
    [['odd', '--symbol', ','], '--symbol names no symbol'],
    [['odd', '--series', 'EQ'], 'has no column to choose series by'],
    [['odd', '--out', 'pipe'], 'is no regular file, so it is not replaced'],
    [['odd', '--out', 'to-pipe.csv'], 'is no regular file'],
    [['odd', '--out', './'], 'is no regular file'],
    [['market.../../x', '--out', './'], '"../../x" cannot be the name of a file'],
    [['market.../../x', '--partition', 'year', '--out', '.'], '"../../x" cannot be the name of a file'],
  ] as const) {
    const { code, stderr } = await runCli(['export', ...args], options(cwd));
    expect({ args, code }).toEqual({ args, code: 2 });
    expect(stderr).toContain(says);
  }
  expect(readdirSync(cwd)).toEqual(before);
  expect(statSync(join(cwd, 'pipe')).isFIFO()).toBe(true);
  // With --out, a view of such a name can be exported, also outside the working folder.
  const elsewhere = temporaryFolder();
  await exported(cwd, 'market.../../x', '--out', join(elsewhere, 'x.csv'));
  expect(readdirSync(elsewhere)).toEqual(['x.csv']);
  // A link stays, and the file behind it is replaced.
  mkdirSync(join(cwd, 'archive'));
  writeFileSync(join(cwd, 'archive', 'x.csv'), 'from before');
  symlinkSync('archive/x.csv', join(cwd, 'newest.csv'));
  await exported(cwd, 'market.../../x', '--out', 'newest.csv');
  expect(readFileSync(join(cwd, 'archive', 'x.csv'), 'utf8')).toBe('n\n1\n');
  await execute(url, 'drop view market."../../x"');
});

test('rows are sorted by day and key, and chosen by series', async () => {
  const cwd = temporaryFolder();
  const days = ['2024-03-04', '2024-03-01'];
  const names = [
    ['ZEE', 'EQ'],
    ['ABB', 'EQ'],
    ['ABB', 'BE'],
  ] as const;
  const rows = days.flatMap((trade_date) =>
    names.map(([symbol, series]) => bhavRow({ symbol, series, trade_date })),
  );
  await loadBhav(openPool(url), rows);
  const csv = async (...flags: string[]) => {
    await exported(
      cwd,
      'bhavcopy_cm',
      '--from',
      '2024-03-01',
      '--to',
      '2024-03-04',
      '--out',
      'sorted.csv',
      ...flags,
    );
    const [head = '', ...lines] = readFileSync(join(cwd, 'sorted.csv'), 'utf8').trimEnd().split('\n');
    const at = ['trade_date', 'symbol', 'series'].map((name) => head.split(',').indexOf(name));
    return lines.map((line) => at.map((column) => line.split(',')[column]).join(' '));
  };
  const all = days
    .toSorted()
    .flatMap((day) => ['ABB BE', 'ABB EQ', 'ZEE EQ'].map((name) => `${day} ${name}`));
  expect(await csv()).toEqual(all);
  expect(await csv('--series', 'be')).toEqual(all.filter((line) => line.endsWith('BE')));
});
