import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, inject, test } from 'vitest';
import { bhavRow, loadBhav, openPool } from '../load/support.ts';
import { runCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { pythonWith, runPython } from '../support/python.ts';
import { query } from '../support/query.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PAGE = readFileSync(new URL('../../docs/analysts.md', import.meta.url), 'utf8');
/** The code of a section, by its language; shell commands stand indented. */
const codeOf = (section: string, language: string) => {
  const text = PAGE.split('\n## ').find((part) => part.startsWith(section)) ?? '';
  const pattern =
    language === 'shell' ? /^ {4}(eod .*)$/gm : new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g');
  const found = [...text.matchAll(pattern)].map(([, code = '']) => code);
  expect(found.length, `${language} of ${section}`).toBeGreaterThan(0);
  return found;
};

const { url } = await testDatabase();
const cwd = temporaryFolder();
const role = `analyst_${new URL(url).pathname.slice(-8)}`;
const login = new URL(url);
login.username = role;
login.password = 'secret';
/** The page with the address of this database in place of its example. */
const here = (code: string) =>
  code.replaceAll('analyst:secret@127.0.0.1:5432/eod', `${role}:secret@${login.host}${login.pathname}`);

let python: string | null = null;
beforeAll(async () => {
  python = await pythonWith([
    'duckdb==1.5.5',
    'duckdb-extension-postgres-scanner==1.5.5',
    'pandas',
    'pyarrow',
    'polars',
    'sqlalchemy',
    'psycopg[binary]',
  ]);
  await execute(inject('databaseAdminUrl'), `create role ${role} login password 'secret'`);
  await runCli(['migrate', '--reader', role], { cwd, env: { DATABASE_URL: url } });
  const days = ['2025-01-02', '2025-01-03', '2026-01-05'];
  await loadBhav(
    openPool(url),
    days.flatMap((trade_date) =>
      ['INFY', 'TCS'].map((symbol) => bhavRow({ symbol, trade_date, series: 'EQ' })),
    ),
  );
  return async () => {
    await runCli(['migrate', '--no-reader'], { cwd, env: { DATABASE_URL: url } });
    await execute(inject('databaseAdminUrl'), `drop role ${role}`);
  };
}, 1_000_000);

const asReader = { cwd, env: { DATABASE_URL: login.href } };
const shell = async (section: string) => {
  for (const line of codeOf(section, 'shell')) {
    expect(await runCli(line.split(' ').slice(1), asReader), line).toMatchObject({ code: 0 });
  }
};

test('pandas and polars', async (context) => {
  if (python === null) return context.skip();
  await shell('pandas and polars');
  const [pandas = '', polars = '', sql = ''] = codeOf('pandas and polars', 'python');
  const script = `
import os, json, io, contextlib
os.chdir(${JSON.stringify(cwd)})
with contextlib.redirect_stdout(io.StringIO()) as printed:
    ${here([pandas, polars.replace('print(', 'frame = ('), sql].join('\n'))
      .trim()
      .split('\n')
      .join('\n    ')}
print(json.dumps({'returns': list(returns.shape), 'symbols': sorted(frame['symbol'].to_list()), 'gaps': list(gaps.columns)}))`;
  expect(await runPython(python, script, [])).toEqual({
    returns: [3, 2],
    symbols: ['INFY', 'TCS'],
    gaps: [
      ...['exchange', 'operation', 'day', 'state', 'reason', 'detail', 'records', 'checked_at'],
      ...['due', 'arrived', 'responded', 'requested', 'share'],
    ],
  });
});

test('DuckDB, on files and on Postgres', async (context) => {
  if (python === null) return context.skip();
  await shell('DuckDB');
  const [files = '', attached = ''] = codeOf('DuckDB', 'sql').map(here);
  // Its extensions come from its own server; here one that came as a package takes that position.
  const script = `
import os, json, glob, sys, duckdb
os.chdir(${JSON.stringify(cwd)})
db = duckdb.connect(config={'allow_unsigned_extensions': 'true'})
# A query that takes long would print it.
db.sql('set enable_progress_bar = false')
[file] = glob.glob(os.path.join(sys.prefix, 'lib/python*/site-packages/duckdb_extension_postgres_scanner/extensions/*/postgres_scanner.duckdb_extension'))
ask = lambda sql: [[str(value) for value in row] for row in db.sql(sql).fetchall()]
responses = [ask(${JSON.stringify(files)})]
statements = [one for one in ${JSON.stringify(attached)}.replace('install postgres; load postgres;', f"install '{file}'; load postgres_scanner;").split(';') if one.strip()]
for one in statements[:3]: db.sql(one)
responses += [len(ask(one)) for one in statements[3:]]
print(json.dumps(responses))`;
  const [high, ...counts] = await runPython<[string[][], ...number[]]>(python, script, []);
  expect(high.map(([symbol]) => symbol).sort()).toEqual(['INFY', 'TCS']);
  expect(counts).toEqual([3, 0]);
});

test('the queries of Grafana, with its time filter as it writes it', async () => {
  const [prices = '', gaps = ''] = codeOf('Grafana', 'sql').map((sql) =>
    sql.replace(/\$__timeFilter\((\w+)\)/g, "$1 BETWEEN '2025-01-01T00:00:00Z' AND '2026-12-31T23:59:59Z'"),
  );
  expect(await query(login.href, prices)).toHaveLength(6);
  await query(login.href, gaps);
});

test('the command for dbt writes what its own test checks', async () => {
  const [line = ''] = codeOf('dbt', 'shell');
  expect(line.startsWith('eod dbt --out ')).toBe(true);
  expect(await runCli(['dbt', '--out', join(cwd, 'sources.yml')], asReader)).toMatchObject({ code: 0 });
});
