import { expect, test } from 'vitest';
import { slowStatementHelp } from '../../src/load/database/slow-statement.ts';
import { testDatabase } from '../support/database.ts';
import { execute } from '../support/template.ts';
import { openPool } from './support.ts';

const { url } = await testDatabase();
await execute(
  url,
  `create table market.large (symbol text, day date, owner text, kind text, price numeric) partition by range (day);
   create table market.large_1 partition of market.large for values from ('2022-01-01') to ('2023-01-01');
   create table market.large_2 partition of market.large for values from ('2023-01-01') to ('2024-01-01');
   create table market.small (day date, owner text);
   insert into market.large select 'S' || n % 1000, date '2022-01-01' + n % 730, 'O' || n % 5000, 'K' || n % 2, n from generate_series(1, 600000) n;
   insert into market.small select date '2022-01-01' + n, 'O' || n from generate_series(1, 1000) n;
   create index on market.large (symbol);
   create view market.of_large as select symbol, day, price * 2 as price from market.large where day >= '2022-06-01'`,
);
for (const table of ['large', 'small']) await execute(url, `analyze market.${table}`);

const help = (sql: string, ms = 5_000, workMem = '4MB') =>
  slowStatementHelp(
    openPool(`${url}?options=-c%20work_mem%3D${workMem}`),
    sql,
    ms,
    new AbortController().signal,
  );

const HIDDEN =
  /^all 2 parts of market\.large are read, because the condition on day is on an expression of it: compare day itself/;
// Not all rows: the condition may leave out other years.
const INDEX =
  /^[\d,]+ rows of market\.large are read to find few by (\w+), which no index begins with: create index on market\.large \(\1\)$/;
const SORT =
  /^it sorts \d+ MB by its plan, which with a work_mem of 4 MB goes through files: alter role \w+ set work_mem = '\d+MB'$/;
const RANGE = /^all 2 parts of market\.large are read: a condition on day leaves out those of other years$/;
const NONE = /^its plan shows no single reason: explain \(analyze, buffers\)/;

test.each([
  ['select sum(price) from market.large where extract(year from day) = 2022', HIDDEN],
  ["select sum(price) from market.large where date_trunc('year', day) = '2022-01-01'", HIDDEN],
  ["select sum(price) from market.large where day::text like '2022%'", HIDDEN],
  // Compared as well: partitions are left out where that is possible.
  ["select sum(price) from market.large where extract(dow from day) = 2 and day > '2021-01-01'", NONE],
  ["select sum(price) from market.large where extract(dow from day) = 2 and '2021-01-01' < day", NONE],
  // One part alone is read.
  ["select sum(price) from market.large where extract(dow from day) = 2 and day > '2023-01-01'", NONE],
  // Shown, not chosen by.
  ["select date_trunc('year', day), sum(price) from market.large where day > '2021-01-01' group by 1", NONE],

  ["select * from market.large where owner = 'O7'", INDEX],
  ["select * from market.large where owner in ('O7', 'O8') and kind = 'K1'", INDEX],
  // Many rows match, an index is there, or the condition is one of two.
  ["select sum(price) from market.large where kind = 'K1'", RANGE],
  ["select sum(price) from market.large where symbol = 'S7'", NONE],
  ["select sum(price) from market.large where owner = 'O7' or symbol = 'S7'", RANGE],
  ["select sum(price) from market.large where owner <> 'O7'", RANGE],
  // A small table.
  ["select * from market.small where owner = 'O7'", NONE],

  ['select * from market.large order by price, owner', SORT],
  // The first rows alone are kept.
  ["select * from market.large where day > '2021-01-01' order by price limit 10", NONE],

  ['select sum(price) from market.large', RANGE],
  ['select kind, sum(price) from market.large group by 1', RANGE],
  ["select sum(price) from market.large where day > '2021-06-01'", NONE],
  ['select count(*) from generate_series(1, 10)', NONE],
] as const)('%s', async (sql, sentence) => {
  expect(await help(sql)).toMatch(sentence);
});

test('a sort that fits has no such sentence', async () => {
  expect(
    await help("select * from market.large where day > '2021-01-01' order by price, owner", 5_000, '256MB'),
  ).toMatch(NONE);
});

test('a view is named where its text helps', async () => {
  expect(await help('select count(*) from market.of_large')).toMatch(
    /select pg_get_viewdef\('market\.of_large', true\) shows/,
  );
});

test('nothing is said of a fast statement, or of one without a plan', async () => {
  expect(await help('select sum(price) from market.large', 4_999)).toBeNull();
  for (const sql of ['explain select 1', 'show work_mem', 'select 1; select 2', 'no sql'])
    expect(await help(sql)).toBeNull();
});
