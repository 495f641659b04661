import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/postgres/database.ts';
import { AVOIDED, type Column, problemsOf, relationOf } from '../../support/names.ts';
import { openStore } from '../support.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

// The rules of names at the top of docs/tables.md, for every table, view and function of the database.

/** Tables and views that are not called by a plural. */
const SINGULAR: readonly string[] = [
  'etl.call_budget',
  'etl.clock',
  'etl.coverage',
  'etl.database_identity',
  'etl.derived',
  'etl.source_state',
  'market.bhavcopy_cm',
  'market.bhavcopy_fo',
  'market.consolidated_pledge',
  'market.financial_ratios_wide',
  'market.industry_classification',
  'market.prices_adjusted',
  'market.sectoral_classification',
];

describe('names', () => {
  let db: Database;
  let columns: Column[] = [];

  /** Every column, with the tables of history, and what functions take and return. */
  const readColumns = async () =>
    (
      await db.pool.query<Column>(
        `select 'relation' as kind, n.nspname as schema, c.relname as of, a.attname as name, a.atttypid = 'boolean'::regtype as "isBoolean",
                col_description(c.oid, a.attnum) as comment
           from pg_class c join pg_namespace n on n.oid = c.relnamespace
           join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          where n.nspname in ('market', 'market_history', 'etl') and c.relkind in ('r', 'p', 'v')
         union all
         select 'function', n.nspname, p.proname, u.name, u.type = 'boolean'::regtype, null
           from pg_proc p join pg_namespace n on n.oid = p.pronamespace
          cross join unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[])) as u(name, type)
          where n.nspname in ('market', 'market_history', 'etl') and u.name is not null`,
      )
    ).rows;
  // A parameter that is named in calls, as an option is.
  const wrong = (of: readonly Column[]) =>
    of
      .filter(({ name }) => name !== 'total_return')
      .flatMap((column) =>
        problemsOf(column).map((problem) => `${relationOf(column)}.${column.name}: ${problem}`),
      );

  beforeAll(async () => {
    db = await openStore();
    columns = await readColumns();
  });

  test('of columns and parameters follow the rules, in every table, view and function', () => {
    const relations = new Set(columns.map(relationOf));
    for (const of of ['market.prices', 'market.candles', 'market_history.deliveries', 'etl.rejects']) {
      expect(relations).toContain(of);
    }
    expect(wrong(columns)).toEqual([]);
  });

  test.each([
    ['close numeric', '', 'a name that ends in _price'],
    ['next_close numeric', '', 'a name that ends in _price'],
    ['week52_high numeric', '', 'a name that ends in _price'],
    ['quantity bigint', '', 'traded_quantity'],
    ['change_pct numeric', '', '_percent at the end'],
    ['percent_change numeric', '', '_percent at the end'],
    ['holding_per numeric', '', '_percent at the end'],
    ['holding numeric', 'What is held. Unit: percent.', 'percent: _percent at the end'],
    ['rise_percent numeric', 'How much more. Unit: percentage points.', '_percent_change at the end'],
    ['turnover numeric', 'Traded value. Unit: lakhs of rupees.', '_lakh at the end'],
    ['turnover_rs_crore numeric', 'Traded value. Unit: crores of rupees.', 'in the singular'],
    ['turnover_crore numeric', 'Traded value. Unit: rupees.', 'no unit at the end'],
    ['withdrawn boolean', '', 'only booleans'],
    ['is_new integer', '', 'only booleans'],
    ['ticker text', '', 'symbol or scrip_code'],
    ['"tradeDate" date', '', 'snake_case'],
  ])('are found if they do not: %s', async (column, comment, problem) => {
    const name = column.split(' ')[0] ?? '';
    await db.pool.query(`create table market.newcomers (${column})`);
    await db.pool.query(`comment on column market.newcomers.${name} is '${comment}'`);
    const problems = wrong(await readColumns());
    await db.pool.query('drop table market.newcomers');
    expect(problems).toEqual([expect.stringContaining(problem)]);
  });

  test('of booleans that a function returns in its rows or takes are found as well', async () => {
    await db.pool.query(
      "create function market.newcomers_on(only_new boolean) returns table (close numeric, latest boolean) language sql as 'select 1, true'",
    );
    const problems = wrong(await readColumns());
    await db.pool.query('drop function market.newcomers_on');
    expect(problems.map((problem) => problem.split(':')[0])).toEqual(
      ['only_new', 'close', 'latest'].map((name) => `market.newcomers_on.${name}`),
    );
  });

  test('of tables and views are plurals, but for those that have no other name', () => {
    const relations = new Set(columns.filter(({ kind }) => kind === 'relation').map(relationOf));
    const singular = [...relations].filter(
      (name) => !name.startsWith('market_history.') && !name.endsWith('s'),
    );
    expect(singular.sort()).toEqual(SINGULAR);
  });

  test('scrip_id is the id as sent: the ticker symbol is beside it', () => {
    const has = (name: string) =>
      columns
        .filter((column) => column.name === name)
        .map(relationOf)
        .sort();
    expect(has('scrip_id').length).toBeGreaterThan(0);
    expect(has('symbol')).toEqual(expect.arrayContaining(has('scrip_id')));
  });

  test('of whole-number settings end with a unit, or say what is counted', () => {
    const { properties }: { properties: Record<string, { type?: string | string[] }> } = JSON.parse(
      readFileSync(join(ROOT, 'docs/configuration.schema.json'), 'utf8'),
    );
    const numbers = Object.keys(properties).filter((name) => properties[name]?.type?.includes('integer'));
    expect(numbers.length).toBeGreaterThan(10);
    const counted =
      /^EOD_\w+_(MS|MINUTES|HOURS|DAYS|SESSIONS|MB|PER_HOUR|LIMIT|PORT)$|^EOD_(CONCURRENCY|ATTEMPTS)$/;
    expect(numbers.filter((name) => !counted.test(name))).toEqual([]);
  });

  test('of metrics and of keys of JSON have none of the short forms', () => {
    const sources = ['cli', 'web', 'jobs'].flatMap((folder) =>
      readdirSync(join(ROOT, 'src', folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.tsx?$/.test(file))
        .map((file) => readFileSync(join(ROOT, 'src', folder, file), 'utf8')),
    );
    const metrics = sources.flatMap((text) =>
      [...text.matchAll(/'(eod_\w+)'/g)].map(([, name = '']) => name),
    );
    expect(metrics).toContain('eod_source_call_duration_seconds');
    expect(metrics.filter((name) => AVOIDED.some(([pattern]) => pattern.test(name)))).toEqual([]);
    const keys = sources.flatMap((text) =>
      [...text.matchAll(/\b([a-z][A-Za-z0-9]*)\??: /g)].map(([, key = '']) => key),
    );
    const asColumn = (key: string) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const short = AVOIDED.filter(([pattern]) => !pattern.test('wait_ms_left'));
    expect(keys).toContain('finishAt');
    expect(keys.filter((key) => short.some(([pattern]) => pattern.test(asColumn(key))))).toEqual([]);
  });
});
