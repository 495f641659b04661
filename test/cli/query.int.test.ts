import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { openDatabase } from '../../src/postgres/database.ts';
import { readQuery } from '../../src/postgres/read-query.ts';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { readerSql } from '../support/documented-roles.ts';
import { forAllAsync } from '../support/for-all.ts';
import { query as ask } from '../support/query.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();

const { url } = await testDatabase();

const options = { cwd, env: { DATABASE_URL: url } };

const run = (...args: string[]) => runCli(['query', ...args], options);

test('rows come as a table, as CSV and as JSON, with every digit', async () => {
  const sql = `select 2875.40 as price, 9223372036854775807 as big, 12345678901234567890.123456789012345678901 as exact,
    'a, "b"' as t, '' as e, null as n, true as b, '{"a": [1]}'::jsonb as j, date '2025-09-12' as d, 'NaN'::numeric as nan`;
  expect(
    await run('select 2875.40 as price, 7 as n, $$two\nlines$$ as t union all select 1.5, 100, null'),
  ).toEqual({
    code: 0,
    stderr: '',
    stdout: ['  price    n  t', '2875.40    7  two lines', '    1.5  100', '', '2 rows\n'].join('\n'),
  });
  expect(await run('--csv', sql)).toMatchObject({
    code: 0,
    stdout:
      'price,big,exact,t,e,n,b,j,d,nan\n' +
      '2875.40,9223372036854775807,12345678901234567890.123456789012345678901,"a, ""b""","",,t,"{""a"": [1]}",2025-09-12,NaN\n',
  });
  for (const comment of ['-- why', '--why = because', '/* why */']) {
    expect(await run('--csv', `${comment}\nselect 1 as n;`)).toMatchObject({ code: 0, stdout: 'n\n1\n' });
  }
  // Other commands take no SQL.
  const mistaken = await runCli(['state', '-- why'], options);
  expect(mistaken).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown option '-- why'") });
  const { stdout } = await run('--json', sql);
  expect(stdout).toContain(
    '"price":2875.40,"big":9223372036854775807,"exact":12345678901234567890.123456789012345678901,',
  );
  expect(JSON.parse(stdout)).toMatchObject([
    { t: 'a, "b"', e: '', n: null, b: true, j: { a: [1] }, d: '2025-09-12', nan: 'NaN' },
  ]);
  expect(await runJson(['query', 'select 1 as a, 2 as a'], options)).toMatchObject({
    json: [{ a: 1, a_2: 2 }],
  });
  expect(await runJson(['query', 'select 1 where false'], options)).toMatchObject({ json: [] });
  expect((await run('--csv', 'select 1 as a where false')).stdout).toBe('a\n');
  // Quoted as COPY does it, which would otherwise read it as the end of the data.
  const ends = String.raw`values ('\.', 'x'), ('\.', null)`;
  expect((await run('--csv', `select column1 as a from (${ends}) v`)).stdout).toBe('a\n"\\."\n"\\."\n');
  expect((await run('--csv', `select * from (${ends}) v (a, b)`)).stdout).toBe('a,b\n\\.,x\n\\.,\n');
  expect((await run('explain select 1')).stdout).toMatch(/^Result {2}\(cost/);
  expect((await run('show server_version_num')).stdout).toMatch(/^server_version_num\n\d+\n/);
});

test('nothing that is printed can control a terminal; CSV in a file is what is stored', async () => {
  // ESC, CSI, DEL, a mark of direction, CR.
  const hostile = String.raw`U&'a\001b[31m \009b \007f \202e \000d z'`;
  const raw = 'a\u001b[31m \u009b \u007f \u202e \r z';
  const controlsIn = (text: string) =>
    [...'\u001b\u009b\u007f\u202e\r'].filter((control) => text.includes(control));
  for (const sql of [
    `select ${hostile} as t`,
    `select 1 as ${hostile.replaceAll("'", '"')}`,
    `select json_build_object('k', ${hostile}) as j`,
    `select jsonb_build_object(${hostile}, 1) as j`,
    `select (e'{\\r"k":\\n1}')::json as j`,
  ]) {
    const { stdout } = await run('--json', sql);
    expect({ sql, controls: controlsIn(stdout) }).toEqual({ sql, controls: [] });
    expect(Object.values((JSON.parse(stdout) as object[])[0] ?? {})).toHaveLength(1);
  }
  expect(JSON.parse((await run('--json', `select ${hostile} as t`)).stdout)).toEqual([{ t: raw }]);
  const plan = await run(`explain select where current_setting('application_name') = ${hostile}`);
  expect(plan.stdout).toContain('a\\u001b[31m');
  expect(controlsIn(plan.stdout)).toEqual([]);
  expect(controlsIn((await run(`select ${hostile} as t`)).stdout)).toEqual([]);
  expect((await run('--csv', `select ${hostile} as t`)).stdout).toBe(`t\n"${raw}"\n`);
  const onTerminal = await runCli(['query', '--csv', `select ${hostile} as t`], { ...options, isTTY: true });
  expect(controlsIn(onTerminal.stdout)).toEqual([]);
});

test('a table has at most a thousand rows unless set otherwise, and says so', async () => {
  const sql = 'select generate_series(1, 1200) as n';
  const cut = await run(sql);
  expect(cut.stdout).toContain('1,000 rows');
  expect(cut.stderr).toBe(
    'eod: only the first 1000 rows are shown; --limit shows more, --csv and --json show all\n',
  );
  expect(await run('--limit', '1200', sql)).toMatchObject({
    stderr: '',
    stdout: expect.stringContaining('1,200 rows'),
  });
  expect((await run('--csv', sql)).stdout.split('\n')).toHaveLength(1_202);
  expect((await run('--csv', '--limit', '3', sql)).stdout).toBe('n\n1\n2\n3\n');
});

test('why a past state has no row is printed once', async () => {
  const sql = "select symbol from market_history.bhavcopy_cm_as_of('2024-06-30')";
  const { code, stdout, stderr } = await run(sql);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: 'eod: market.bhavcopy_cm has no row in state 0: nothing has been loaded yet\n',
  });
  expect(stdout).toContain('0 rows');
  expect((await runCli(['-q', 'query', sql], options)).stderr).toBe('');
});

test('what is wrong with a statement is shown where it is', async () => {
  expect(await run("select 'é' as e,\n\tclose_prices\n  from market.bhavcopy_cm")).toEqual({
    code: 1,
    stdout: '',
    stderr: [
      'eod: Postgres: column "close_prices" does not exist (42703)',
      '  line 2: \tclose_prices',
      '          \t^',
      '  Perhaps you meant to reference the column "bhavcopy_cm.close_price".\n',
    ].join('\n'),
  });
  const { code, stdout } = await run('--json', 'select from nowhere');
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ error: { kind: 'database', exitCode: 1 } });
  expect(await run('')).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no SQL') });
  expect(await run('--csv', '--json', 'select 1')).toMatchObject({ code: 2 });
  expect(await run('--timeout', '0', 'select 1')).toMatchObject({ code: 2 });
});

test('nothing can be written', async () => {
  await execute(
    url,
    'create table public.mine (n int); insert into public.mine values (1); create sequence public.numbers',
  );
  await execute(
    url,
    'create function public.write() returns void language plpgsql as $$ begin insert into public.mine values (2); end $$',
  );
  for (const sql of [
    'insert into mine values (2)',
    'update mine set n = 2',
    'with gone as (delete from mine returning n) select * from gone',
    'select write()',
    "select set_config('transaction_read_only', 'off', false), write()",
    "select nextval('numbers')",
    'select * into other from mine',
    'explain analyze insert into mine values (2)',
    'drop table mine',
    'commit; drop table mine',
    'select 1; commit; drop table mine',
    'commit',
    'rollback',
    'set transaction read write',
    'do $$ begin commit; drop table mine; end $$',
    'copy mine from stdin',
    "copy (select 1) to program 'cat >/dev/null'",
    'truncate mine',
    'call write()',
    'vacuum mine',
    'lock table mine',
    'update market.prices set close_price = 1',
    'insert into market.prices_adjusted (close_price) values (1)',
    'prepare p as select 1',
  ]) {
    const { code, stdout, stderr } = await run('--csv', sql);
    expect({ sql, code }).toEqual({ sql, code: 1 });
    expect({ sql, stderr }).toEqual({
      sql,
      stderr: expect.stringMatching(/^eod: (Postgres: |"\w+" begins no statement that reads)/),
    });
    expect(stdout.split('\n').length, sql).toBeLessThan(3);
    expect(stderr, sql).not.toMatch(/trigger|rule/i);
  }
  expect((await run('create table x (n int)')).stderr).toBe(
    'eod: "create" begins no statement that reads\n  line 1: create table x (n int)\n          ^\n' +
      '  only one statement that reads can be run: select, with, values, table, explain or show\n',
  );
  expect((await run('select 1; select 2')).stderr).toBe(
    'eod: Postgres: cannot insert multiple commands into a prepared statement (42601)\n' +
      '  only one statement that reads can be run: select, with, values, table, explain or show\n',
  );
  await execute(
    url,
    "create function wrong() returns int language plpgsql as $$ begin execute 'selec 1'; return 1; end $$",
  );
  expect((await run('select wrong()')).stderr).toBe(
    'eod: Postgres: syntax error at or near "selec" (42601)\n',
  );
  const onlyReads = 'nothing was changed\n  only one statement that reads can be run: select,';
  for (const sql of [
    'update mine set n = 2',
    'update market.prices set close_price = 1',
    'delete from market.prices',
  ])
    expect((await run(sql)).stderr, sql).toContain(onlyReads);
  expect(
    await ask(
      url,
      "select n, to_regclass('other') as other, (select last_value from numbers)::int as last from mine",
    ),
  ).toEqual([{ n: 1, other: null, last: 1 }]);
});

test('a reader may query, and sees the reason where it may not', async () => {
  const role = `reader_${new URL(url).pathname.slice(-8)}`;
  await execute(inject('databaseAdminUrl'), `create role ${role} login password 'kiwi'`);
  await execute(url, readerSql(role));
  const login = new URL(url);
  login.username = role;
  login.password = 'kiwi';
  const asReader = { cwd, env: { DATABASE_URL: login.href } };
  expect(await runCli(['query', 'select count(*) from market.prices_adjusted'], asReader)).toMatchObject({
    code: 0,
  });
  expect(await runCli(['query', 'select * from etl.source_state'], asReader)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('permission denied for table source_state'),
  });
  await execute(url, `drop owned by ${role}`);
  await execute(inject('databaseAdminUrl'), `drop role ${role}`);
});

test('every column has its own name in JSON, whatever the columns are called', async () => {
  const names = fc.array(fc.constantFrom('a', 'A', 'a_2', 'a_3', 'a_2_2', '__proto__', '?column?', 'é'), {
    minLength: 1,
    maxLength: 6,
  });
  await forAllAsync(
    [names],
    { numRuns: 10, seed: 20_251_123, examples: [[['a', 'a', 'a_2']], [['a', 'a_2', 'a', 'a']]] },
    async (columns) => {
      const sql = `select ${columns.map((name, at) => `'v${at}' as "${name}"`).join(', ')}`;
      const { stdout } = await run('--json', sql);
      const [row = {}] = JSON.parse(stdout) as Record<string, unknown>[];
      // The first column of a name has that name.
      expect(Object.entries(row).map(([, value]) => value)).toEqual(columns.map((_, at) => `v${at}`));
      for (const [at, name] of columns.entries()) {
        if (columns.indexOf(name) === at) expect(Object.entries(row)[at]?.[0]).toBe(name);
      }
    },
  );
});

test('what only looks like EXPLAIN or SHOW is not run, whatever comments and quotes are around it', async () => {
  const pieces =
    `/*|*/|/* a */|--|-- b\n|\n|\r|\f| |\u00a0|'|"|$$|$a$|E'|\\|explain |Show |explain|server_version_num|select 1 |(|)`
      .split('|')
      .concat(
        "with a as (|copy (select 1) to program 'cat >/dev/null' |create temp table t (n int) |values (1)|é".split(
          '|',
        ),
      );
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const database = openDatabase({ url });
  const limits = { timeoutMs: 10_000, signal: new AbortController().signal };
  /** What Postgres itself says a text is; null for an error. */
  const commandOf = async (text: string) => {
    await client.query('begin');
    const query = { text, queryMode: 'extended' } as pg.QueryConfig;
    const command = await client.query(query).then(
      (result) => result.command ?? '',
      () => null,
    );
    await client.query('rollback');
    return command;
  };
  const commands = new Set<string | null>();
  // The program reads what is copied: to write to one that has ended is an error.
  const starts = fc.array(fc.constantFrom(...pieces), { maxLength: 6 });
  // Not at the start, where it is refused although it means nothing.
  const rests = fc.array(fc.constantFrom(';', ...pieces), { maxLength: 4 });
  const ends = fc.constantFrom(
    'explain select 1',
    "copy (select 1) to program 'cat >/dev/null'",
    'show datestyle',
    'select 1',
    '',
  );
  const asserted = forAllAsync(
    [starts, ends, rests],
    {
      numRuns: 120,
      seed: 20_251_123,
      examples: [
        [['create temp table t (n int) '], '', []],
        [[], "copy (select 1) to program 'cat >/dev/null'", []],
        [[], 'show datestyle', []],
        [[], 'explain select 1', []],
        [['/*', '/*', '*/', 'explain ', '*/'], "copy (select 1) to program 'cat >/dev/null'", []],
        [['--', '\r', 'explain '], "copy (select 1) to program 'cat >/dev/null'", []],
        [['--', ' explain ', '\r'], "copy (select 1) to program 'cat >/dev/null'", []],
      ],
    },
    async (start, end, rest) => {
      const text = [...start, end, ...rest].join('');
      const command = await commandOf(text);
      commands.add(command);
      const isRead = await readQuery(database, text, limits, {
        begin: () => undefined,
        rows: async () => true,
      }).then(
        () => true,
        () => false,
      );
      expect(isRead).toBe(command !== null && /^(SELECT|EXPLAIN|SHOW)$/.test(command));
    },
  );
  await asserted.finally(async () => {
    await client.end();
    await database.close();
  });
  expect([...commands]).toEqual(
    expect.arrayContaining([null, 'SELECT', 'EXPLAIN', 'SHOW', 'COPY', 'CREATE']),
  );
});

test('query creates no database where there is none', async () => {
  const cwd = temporaryFolder();
  expect(await runCli(['query', 'select 1'], { cwd, env: {} })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('there is no database yet'),
  });
  expect(readdirSync(cwd)).toEqual([]);
});

test('the time of a statement is shown on a terminal or with -v, not with the rows', async () => {
  const sql = 'select 1 as n';
  const time = /^Time: \d+\.\d{3} ms\n$/m;
  expect(await runCli(['-v', 'query', '--csv', sql], options)).toMatchObject({
    stdout: 'n\n1\n',
    stderr: expect.stringMatching(time),
  });
  expect(await run('--csv', sql)).toMatchObject({ stdout: 'n\n1\n', stderr: '' });
});
