import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { tablesFilledBy } from '../../src/operations/operation.ts';
import { inCatalogue } from '../support/catalogue.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { readerSql } from '../support/documented-roles.ts';
import { runEod, spawnEod } from '../support/eod.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const cwd = temporaryFolder();
const reader = `reader_${randomBytes(4).toString('hex')}`;
let url: string;
const options = () => ({ cwd, env: { DATABASE_URL: url, EOD_OPERATIONS_DIR: join(cwd, 'operations') } });

beforeAll(async () => {
  url = (await testDatabase()).url;
  await execute(url, `create role ${reader} login password 'kiwi'`);
  await runJson(['migrate'], options());
  await execute(url, readerSql(reader));
});
afterAll(async () => {
  await execute(url, `drop owned by ${reader}`);
  await execute(inject('databaseAdminUrl'), `drop role ${reader}`);
});

test('processes that enable the same and other operations at once all end well, and a reader reads the tables', async () => {
  const named = [
    ['GetMei', 'GetBulkDeals'],
    ['GetMei', 'GetBulkDeals'],
    ['GetBulkDeals', 'GetBhavCopyFO', 'GetSectors'],
  ];
  const ended = await Promise.all(
    named.map((names) => runEod(['operations', 'enable', ...names], options())),
  );
  for (const { code, stderr } of ended) expect({ code, stderr }).toMatchObject({ code: 0 });
  const names = [...new Set(named.flat())].sort();
  const enabled = await query<{ name: string }>(
    url,
    'select name from etl.operations where is_enabled order by 1',
  );
  expect(enabled.map(({ name }) => name)).toEqual(names);

  const login = new URL(url);
  login.username = reader;
  login.password = 'kiwi';
  for (const table of names.map(inCatalogue).flatMap(tablesFilledBy)) {
    const [found] = await query(
      login.href,
      `select (select count(*)::int from market.${table.name}) as now,
              (select count(*)::int from market_history.${table.name}) as history,
              (select count(*)::int from market_history.${table.name}_at(market.state())) as at,
              (select count(*)::int from market_history.${table.name}_changes(0, market.state())) as changes,
              (select array_agg(attname::text order by 1) from pg_attribute
                where attrelid = 'market.${table.name}'::regclass and attnum > 0) @> $1 as has_columns`.replace(
        '$1',
        `'{${table.fields.map(({ column }) => column).join(', ')}}'`,
      ),
    );
    expect(found).toEqual({ now: 0, history: 0, at: 0, changes: 0, has_columns: true });
  }
});

/** What the catalog says of a table, its history and its functions, with T for its name and O for that of the operation. */
async function catalogOf(operation: string, table: string) {
  const relation = `select c.oid, n.nspname as schema from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('market', 'market_history') and c.relname = '${table}'`;
  const found = await query(
    url,
    `with relation as (${relation})
     select 'table' as what, schema, concat_ws(' | ', c.relkind, c.reloptions, c.relacl, obj_description(c.oid, 'pg_class')) as said
       from relation r join pg_class c using (oid)
     union all
     select 'column', schema, concat_ws(' | ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attstorage,
            pg_get_expr(d.adbin, d.adrelid), a.attacl, col_description(a.attrelid, a.attnum))
       from relation r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
       left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     union all
     select 'index', schema, pg_get_indexdef(i.indexrelid) from relation r join pg_index i on i.indrelid = r.oid
     union all
     select 'constraint', schema, concat_ws(' | ', k.conname, pg_get_constraintdef(k.oid)) from relation r join pg_constraint k on k.conrelid = r.oid
     union all
     select 'trigger', schema, pg_get_triggerdef(t.oid) from relation r join pg_trigger t on t.tgrelid = r.oid where not t.tgisinternal
     union all
     select 'function', 'market_history', concat_ws(' | ', pg_get_functiondef(p.oid), p.proacl, obj_description(p.oid, 'pg_proc'))
       from pg_proc p where p.pronamespace = 'market_history'::regnamespace and p.proname ~ '^${table}_'
     order by 1, 2, 3`,
  );
  return found.map((row) => JSON.stringify(row).replaceAll(table, 'T').replaceAll(operation, 'O')).sort();
}

test('an operation that is enabled gets what a migration would make: columns, keys, comments, functions and rights', async () => {
  // The declaration of a default, under other names, in a file of the user.
  const read = (path: string) =>
    readFileSync(new URL(`../../src/operations/${path}`, import.meta.url), 'utf8');
  const declared = read('GetTotalTradeHighlights.ts')
    .replaceAll('defineBuiltIn', 'defineOperation')
    .replace(
      /\}\);\n$/,
      `  publishedAt: '21:15',\n  sample: ${read('samples/GetTotalTradeHighlights.json').trim()},\n});\n`,
    )
    .replaceAll(/'\.\/[\w-]+\.ts'/g, "'eod-pipeline/operations'")
    .replaceAll('GetTotalTradeHighlights', 'GetCopied')
    .replaceAll('total_trade_highlights', 'copied_rows');
  mkdirSync(join(cwd, 'operations'));
  writeFileSync(join(cwd, 'operations', 'GetCopied.mjs'), declared);
  const { code, stdout, stderr } = await runCli(['operations', 'enable', 'GetCopied'], options());
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toContain('fills market.copied_rows');
  const [migrated, copied] = [
    await catalogOf('GetTotalTradeHighlights', 'total_trade_highlights'),
    await catalogOf('GetCopied', 'copied_rows'),
  ];
  for (const what of ['table', 'column', 'index', 'constraint', 'function']) {
    expect(migrated.filter((row) => row.startsWith(`{"what":"${what}"`)).length).toBeGreaterThan(1);
  }
  expect(copied).toEqual(migrated);
});

test('a worker that was started before loads what is enabled after it', async () => {
  const sandbox = await openSandbox();
  const { env } = options();
  const settings = { cwd, env: { ...env, EOD_BASE_URL: sandbox.url, EOD_ACCESS_KEY: 'kiwi' } };
  const worker = spawnEod(['up', '--roles', 'worker'], {
    cwd,
    env: { ...settings.env, EOD_HTTP_PORT: '0' },
  });
  await worker.output(/eod is up/);
  expect(await runCli(['operations', 'enable', 'GetIndustries'], settings)).toMatchObject({ code: 0 });
  const { json } = await runJson<{ runId: number }>(
    ['backfill', 'GetIndustries', '--from', '2025-02-27', '--to', '2025-02-27', '--detach'],
    settings,
  );
  const stateOf = async () =>
    (await query<{ state: string }>(url, `select state from etl.runs where id = ${json.runId}`))[0]?.state;
  await waitFor(async () => (await stateOf()) === 'completed', { what: 'the end of the run' });
  expect(await query(url, 'select 1 from market.industries limit 1')).toHaveLength(1);
});
