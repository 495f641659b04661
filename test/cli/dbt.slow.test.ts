import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { bhavcopy, bhavRow, loadBhav, openPool } from '../load/support.ts';
import { randomFrom } from '../support/chaos/random.ts';
import { runCli } from '../support/cli.ts';
import { emptyDatabase, testDatabase } from '../support/database.ts';
import { pythonWith } from '../support/python.ts';
import { query } from '../support/query.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { blocksOf } from './examples.ts';

const { url } = await testDatabase();
const cwd = temporaryFolder();
const options = { cwd, env: { DATABASE_URL: url } };

let python: string | null = null;
beforeAll(async () => {
  python = await pythonWith(['dbt-core>=1.10,<1.11', 'dbt-postgres<2']);
}, 1_000_000);

/** A project with the sources of this database, if it is not there. */
async function openProject(): Promise<void> {
  mkdirSync(join(cwd, 'models'), { recursive: true });
  expect(await runCli(['dbt', '--out', 'models/sources.yml'], options)).toMatchObject({ code: 0 });
  const { hostname, port, username, password, pathname } = new URL(url);
  const profile = {
    market: {
      target: 'test',
      outputs: {
        test: {
          type: 'postgres',
          host: hostname,
          port: Number(port),
          user: username,
          password,
          dbname: pathname.slice(1),
          schema: 'analysis',
          threads: 2,
        },
      },
    },
  };
  // JSON is YAML.
  writeFileSync(join(cwd, 'profiles.yml'), JSON.stringify(profile));
  writeFileSync(
    join(cwd, 'dbt_project.yml'),
    JSON.stringify({ name: 'market', version: '1.0', profile: 'market', 'model-paths': ['models'] }),
  );
}

function dbt(...args: string[]) {
  const program = join(dirname(python as string), 'dbt');
  return promisify(execFile)(program, [...args, '--profiles-dir', cwd, '--project-dir', cwd], {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd, DO_NOT_TRACK: '1', DBT_SEND_ANONYMOUS_USAGE_STATS: 'false' },
    timeout: 120_000,
  }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error) => ({ code: error.code as number, stdout: `${error.stdout}${error.stderr}` }),
  );
}

interface Source {
  name: string;
  description?: string;
  config?: { loaded_at_query?: string; freshness: unknown };
  data_tests?: unknown[];
  columns: { name: string; description?: string; data_type: string; data_tests?: string[] }[];
}

test('every table and view with its comments, key and freshness, as YAML', async () => {
  const { code, stdout } = await runCli(['dbt'], options);
  expect(code).toBe(0);
  const { version, sources } = parse(stdout) as { version: number; sources: { tables: Source[] }[] };
  expect(version).toBe(2);
  const named = new Map(sources[0]?.tables.map((table) => [table.name, table]));
  const stored = await query<{ name: string; columns: number }>(
    url,
    `select c.relname as name, count(*)::int as columns from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
      where c.relnamespace = 'market'::regnamespace and c.relkind in ('r', 'p', 'v') group by c.oid`,
  );
  expect(new Map([...named].map(([name, { columns }]) => [name, columns.length]))).toEqual(
    new Map(stored.map(({ name, columns }) => [name, columns])),
  );
  expect(named.get('series_changes')).toMatchObject({
    data_tests: [{ unique: { column_name: '(exchange, change_date, scrip_id, prev_series, to_series)' } }],
    config: { freshness: { warn_after: { count: 5, period: 'day' } } },
  });
  expect(named.get('bhavcopy_cm')?.columns.find(({ name }) => name === 'symbol')).toMatchObject({
    data_type: 'text',
    data_tests: ['not_null'],
    description: expect.stringContaining('Source field: symbol.'),
  });
  expect(named.get('symbol_changes')?.config).toEqual({ freshness: null });
  expect(named.get('prices_adjusted')).not.toHaveProperty('config');
  expect(await runCli(['dbt', '--out', 'missing/sources.yml'], options)).toMatchObject({ code: 2 });
  const empty = { cwd, env: { DATABASE_URL: (await emptyDatabase()).url } };
  expect(await runCli(['dbt'], empty)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('eod migrate'),
  });
});

/** How it is covered today, by a call or file of this moment. */
const cover = (operation: string, exchange: string, daysAgo: number, state = 'loaded', instrument = '') =>
  execute(
    url,
    `insert into etl.coverage (operation, exchange, day, instrument, variant, last_position, last_said, last_records, checked_at)
     values ('${operation}', '${exchange}', (now() at time zone 'Asia/Kolkata')::date - ${daysAgo}, '${instrument}', '', now(), '${state}', 1, now())`,
  );

/** Makes every day a session, and something that a scheduler requests. */
async function openEveryDay(): Promise<void> {
  await execute(
    url,
    `insert into etl.sessions (exchange, day, kind)
     select e, d::date, 'session' from unnest(array['BSE', 'NSE']) e, generate_series(now() - interval '500 days', now() + interval '1 day', '1 day') d
         on conflict do nothing`,
  );
  await execute(
    url,
    `insert into etl.runs (kind, state, requested_by, request, from_date, to_date)
     values ('nightly', 'completed', 'test', '{}', now(), now())`,
  );
}

test('what is fresh is the newest day that is there, not what was written last', async () => {
  const tables = parse((await runCli(['dbt'], options)).stdout).sources[0].tables as Source[];
  /** By table: after how many days it was the end of the newest day. */
  const ages = async (names: readonly string[]) => {
    const found = names.map(async (name) => {
      const requested = tables.find((one) => one.name === name)?.config?.loaded_at_query;
      const sql = `select ceil(extract(epoch from now() - (${requested})) / 86400)::int as age`;
      return (await query<{ age: number | null }>(url, sql))[0]?.age;
    });
    return Promise.all(found);
  };
  await openEveryDay();
  for (const exchange of ['NSE', 'BSE']) {
    await cover('GetBhavCopyCM', exchange, exchange === 'NSE' ? 0 : 6);
    // As an import and a backfill of old days leave it, and a night that brought one share only.
    await cover('GetTop5GainersLosers', exchange, 420);
    await cover('GetTop5GainersLosers', exchange, 1, 'failed');
    await cover('GetTop5GainersLosers', exchange, 0, 'not_published');
    await cover('GetTop5GainersLosers', exchange, 2, 'loaded', 'INFY');
    // Quiet days of what has them are no sign of age.
    await cover('GetSeriesChange', exchange, 3, 'loaded');
    await cover('GetSeriesChange', exchange, 0, 'not_published');
  }
  expect(await ages(['bhavcopy_cm', 'top_gainers_losers', 'series_changes', 'circuit_breakers'])).toEqual([
    6,
    420,
    0,
    null,
  ]);
  await execute(url, 'truncate etl.coverage');
});

test('dbt parses it, shows what is fresh, late and not requested yet, and makes its tests', async (context) => {
  if (python === null) return context.skip();
  await loadBhav(openPool(url), [bhavRow({ symbol: 'INFY' }), bhavRow({ symbol: 'TCS' })]);
  for (const exchange of ['NSE', 'BSE']) {
    await cover('GetBhavCopyCM', exchange, exchange === 'NSE' ? 0 : 7);
    await cover('GetTop5GainersLosers', exchange, 420);
    await cover('GetSeriesChange', exchange, 0);
  }
  await openProject();
  writeFileSync(
    join(cwd, 'models', 'last_close.sql'),
    "select symbol, close_price from {{ source('market', 'prices_adjusted') }} where trade_date = (select max(trade_date) from {{ source('market', 'bhavcopy_cm') }})",
  );
  const parsed = await dbt('--warn-error', 'parse');
  expect(parsed, parsed.stdout).toMatchObject({ code: 0 });

  await dbt('source', 'freshness');
  const { results } = JSON.parse(readFileSync(join(cwd, 'target', 'sources.json'), 'utf8')) as {
    results: { unique_id: string; status: string }[];
  };
  const status = Object.fromEntries(
    results.map((one) => [one.unique_id.split('.').at(-1) ?? '', one.status]),
  );
  expect(status).toMatchObject({
    bhavcopy_cm: 'warn',
    series_changes: 'pass',
    top_gainers_losers: 'error',
    circuit_breakers: 'error',
  });
  expect(status).not.toHaveProperty('symbol_changes');
  expect(Object.values(status).filter((one) => !['pass', 'warn', 'error'].includes(one))).toEqual([]);

  const built = await dbt('build', '--select', 'last_close', 'source:market.bhavcopy_cm');
  expect(built, built.stdout).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/PASS=6 WARN=0 ERROR=0/),
  });
  expect(await query(url, 'select symbol from analysis.last_close order by 1')).toEqual([
    { symbol: 'INFY' },
    { symbol: 'TCS' },
  ]);
}, 300_000);

/** The model of the page that follows a table. */
const MODEL = blocksOf('docs/analysts.md').find(({ language }) => language === 'jinja')?.text ?? '';
const NIGHTS = 5;

test('the model of the page that reads only what changed equals the table after each night', async (context) => {
  if (python === null) return context.skip();
  await openProject();
  writeFileSync(join(cwd, 'models', 'followed.sql'), MODEL);
  const columns = 'exchange, symbol, series, trade_date, close_price, turnover';
  const random = randomFrom(7);
  const pick = (below: number) => Math.floor(random() * below);
  const seen = new Set<string>();
  /** Of how many rows a run reported that it wrote them. */
  const run = async () => {
    const { code, stdout } = await dbt('run', '--select', 'followed');
    expect(code, stdout).toBe(0);
    expect(
      await query(
        url,
        `(select ${columns} from analysis.followed where not is_withdrawn except select ${columns} from market.bhavcopy_cm)
         union all (select ${columns} from market.bhavcopy_cm except select ${columns} from analysis.followed where not is_withdrawn)`,
      ),
    ).toEqual([]);
    return Number(/(?:SELECT|INSERT 0) (\d+)/.exec(stdout)?.[1]);
  };
  const pool = openPool(url);
  let fetched = Date.now();
  let state = 0;
  for (let night = 0; night < NIGHTS; night += 1) {
    // Several loads a night, so that a row may go and come back, or change and change back, between two runs.
    for (let load = 0; load < 3; load += 1) {
      const day = `2025-08-2${8 + pick(2)}`;
      const rows = Array.from({ length: 12 }, (_, code) =>
        bhavRow({ symbol: `S${code}`, trade_date: day, close_price: String(pick(3)) }),
      ).filter(() => pick(6) > 0);
      const fullSets = [
        { table: bhavcopy, exchange: 'NSE', days: { from: day, to: day }, mayBeEmpty: false },
      ];
      await loadBhav(pool, rows, { fullSets, fetchedAt: new Date(fetched++) });
    }
    const changes = await query<{ change: string }>(
      url,
      `select change from market_history.bhavcopy_cm_changes(${state}, market.state())`,
    );
    for (const { change } of changes) seen.add(change);
    expect(changes.length).toBeGreaterThan(0);
    // Only what changed is written, and then nothing is left to write.
    expect(await run()).toBe(changes.length);
    if (night === 1) expect(await run()).toBe(0);
    [{ state }] = (await query<{ state: number }>(url, 'select market.state()::int as state')) as [
      { state: number },
    ];
  }
  expect([...seen].sort()).toEqual(['insert', 'relist', 'update', 'withdraw']);
}, 600_000);
