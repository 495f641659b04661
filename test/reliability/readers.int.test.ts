import { expect, inject, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { documentedSql, nameOf, prepareRoles } from '../support/documented-roles.ts';
import { query, withClient } from '../support/query.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const READER = 'owner: what a reader may do';

/** The relations of `etl` that docs/security.md lets readers read. */
const readable = [...documentedSql(READER).matchAll(/etl\.(\w+)/g)].map(([, name]) => name as string);

const { urls, grant } = await prepareRoles();
const reader = nameOf(urls.reader);

const migrate = () => runCli(['migrate'], { env: { DATABASE_URL: urls.owner }, cwd: temporaryFolder() });

await grant('owner: what the worker may do');
expect(await migrate()).toMatchObject({ code: 0 });
await grant(READER);
// A later version creates views and functions again: some of market after it has dropped them, the others in place.
await execute(
  urls.owner,
  'drop view market.prices_adjusted; drop view market.share_events; drop function market.state(); delete from etl.repeatable_migrations',
);
expect(await migrate()).toMatchObject({ code: 0, stderr: '' });

/** The tables and views of some schemas. */
async function relationsOf(...schemas: string[]): Promise<string[]> {
  const relations = await query<{ name: string }>(
    urls.owner,
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = any ($1) and c.relkind in ('r', 'p', 'v', 'm') order by 1`,
    [schemas],
  );
  return relations.map(({ name }) => name);
}

/** A value for each type of argument that functions of `market` take. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  bigint: 'market.state()',
  boolean: 'true',
  date: 'current_date',
  text: "'NSE'",
  'timestamp with time zone': 'now()',
};

/** A call of each function of `market` and its history. */
async function calls(): Promise<string[]> {
  const functions = await query<{ name: string; types: string[] }>(
    urls.owner,
    `select format('%s.%I', pronamespace::regnamespace, proname) as name, array(select format_type(t, null) from unnest(proargtypes) t) as types
       from pg_proc where pronamespace in ('market'::regnamespace, 'market_history'::regnamespace) and prokind = 'f' order by 1`,
  );
  return functions.map(
    ({ name, types }) => `${name}(${types.map((type) => `${ARGUMENTS[type]}::${type}`).join(', ')})`,
  );
}

/** What a reader is told by each of these statements, which are rolled back: the SQLSTATE, or none. */
const codesOf = (statements: readonly string[]) =>
  withClient(urls.reader, async (client) => {
    const codes: Record<string, string> = {};
    for (const statement of statements) {
      await client.query('begin');
      const code = await client.query(statement).then(
        () => '',
        (error: { code: string }) => error.code,
      );
      codes[statement] = code;
      await client.query('rollback');
    }
    return codes;
  });

const DENIED = '42501';

test('a reader reads every table, view and function of market and its history, after a later migration too', async () => {
  const all = [...(await relationsOf('market', 'market_history')), ...(await calls())];
  expect(all.length).toBeGreaterThan(60);
  expect(all.filter((name) => name.includes('undefined'))).toEqual([]);
  expect(all).toContain('market.prices_adjusted');
  const codes = await codesOf(all.map((name) => `select * from ${name} limit 1`));
  // 22023 comes from the function itself, which was run and does not know the argument.
  expect(Object.entries(codes).filter(([, code]) => code !== '' && code !== '22023')).toEqual([]);
  await query(urls.owner, 'create view market.later as select 1 as one');
  await query(urls.owner, 'drop view market.later; create table market.later (one int)');
  expect(await query(urls.reader, 'select * from market.later')).toEqual([]);
  await query(urls.owner, 'drop table market.later');
});

test('of etl and the queue a reader reads what is named, so that responses, bodies and keys stay closed', async () => {
  const relations = await relationsOf('etl', 'eod_queue', 'market_partitions');
  expect(relations).toEqual(
    expect.arrayContaining(['etl.response_bodies', 'etl.responses', 'etl.source_state', 'etl.windows']),
  );
  const codes = await codesOf(relations.map((name) => `select * from ${name} limit 1`));
  const open = Object.entries(codes).filter(([, code]) => code !== DENIED);
  expect(open.map(([statement]) => statement.split(' ')[3]).sort()).toEqual(
    readable.map((name) => `etl.${name}`).sort(),
  );
  expect(open.filter(([, code]) => code !== '')).toEqual([]);
});

test('a reader changes nothing', async () => {
  const relations = await relationsOf('market', 'market_history', 'etl');
  const [first] = await query<{ name: string }>(
    urls.owner,
    "select attname as name from pg_attribute where attrelid = 'market.bhavcopy_cm'::regclass and attnum = 1",
  );
  const codes = await codesOf([
    ...relations.flatMap((name) => [
      `delete from ${name}`,
      `insert into ${name} default values`,
      `truncate ${name}`,
    ]),
    `update market.bhavcopy_cm set ${first?.name} = null`,
    ...['market', 'market_history', 'etl', 'public'].map((schema) => `create table ${schema}.mine ()`),
    "select etl.ensure_year_partition('bhavcopy_cm', 1999)",
  ]);
  // A view that cannot be written by anybody is refused as such.
  expect(Object.entries(codes).filter(([, code]) => ![DENIED, '55000', '42809'].includes(code))).toEqual([]);
  // Of functions with the owner's rights it may only run those that cannot write.
  const volatile = await query<{ name: string }>(
    urls.owner,
    `select oid::regprocedure::text as name from pg_proc
      where prosecdef and provolatile = 'v' and pronamespace in ('market'::regnamespace, 'market_history'::regnamespace, 'etl'::regnamespace)
        and has_function_privilege($1, oid, 'execute')`,
    [reader],
  );
  expect(volatile).toEqual([]);
});

test('sessions of a reader have limits, and nothing is left of one that is dropped', async () => {
  const settings = await query<{ name: string; setting: string }>(
    urls.reader,
    "select name, setting from pg_settings where name ~ '^(idle_.*session|statement)_timeout$' order by name",
  );
  expect(settings.map(({ name, setting }) => `${name}=${setting}`)).toEqual([
    'idle_in_transaction_session_timeout=300000',
    'idle_session_timeout=86400000',
    'statement_timeout=3600000',
  ]);
  const administrator = new URL(urls.owner);
  const { username, password } = new URL(inject('databaseAdminUrl'));
  Object.assign(administrator, { username, password });
  await execute(administrator.href, `drop owned by ${reader}; drop role ${reader}`);
});
