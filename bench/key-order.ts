// Which indexes market.bhavcopy_cm should have: `npm run bench:keys`. The layouts compared, the figures and
// the decision: bench/README.md.
import type pg from 'pg';
import { loadCalendar } from '../src/calendar/index.ts';
import { openDatabase } from '../src/load/database/database.ts';
import { migrateDatabase } from '../src/load/database/migrate.ts';
import { mergeSql } from '../src/load/market/merge/merge-sql.ts';
import { tables } from '../src/operations/registry.ts';
import { hasSystemPostgres15, startSystemPostgres15 } from '../test/support/postgres-15.ts';
import { machineFacts, median, table } from './support/figures.ts';
import { parseFlags } from './support/flags.ts';
import { dropDatabase, freshDatabase, measured, startBenchServer, withClient } from './support/postgres.ts';

const EXCHANGE = 'NSE';
const LAST_SESSION = '2025-10-31';
const TARGET = 'market.bhavcopy_cm';
/** Different values each query is asked with; the median counts. */
const ASKED = 25;

const BY_SYMBOL = 'primary key (exchange, symbol, series, trade_date)';
const BY_DAY = 'primary key (exchange, trade_date, symbol, series)';
const LAYOUTS = [
  { name: 'a', key: BY_SYMBOL },
  { name: 'b', key: BY_SYMBOL, second: 'brin (trade_date)' },
  { name: 'c', key: BY_DAY, second: 'btree (symbol, trade_date)' },
  { name: 'd', key: BY_DAY },
  { name: 'e', key: BY_SYMBOL, second: 'btree (trade_date)' },
  { name: 'f', key: BY_DAY, second: 'btree (symbol, exchange, trade_date)' },
] as const;
type By = 'symbol' | 'day' | 'nothing';
type Layout = { readonly name: string; readonly key: string; readonly second?: string };

const QUERIES = [
  {
    what: 'one symbol',
    by: 'symbol',
    sql: `select * from ${TARGET} where exchange = '${EXCHANGE}' and symbol = $1 order by trade_date`,
  },
  {
    what: 'one symbol, any exchange',
    by: 'symbol',
    sql: `select trade_date, close_price from ${TARGET} where symbol = $1 order by trade_date`,
  },
  {
    what: 'sums of a day',
    by: 'day',
    sql: `select count(*), sum(turnover) from ${TARGET} where exchange = '${EXCHANGE}' and trade_date = $1`,
  },
  {
    what: 'all of a day',
    by: 'day',
    sql: `select symbol, series, close_price, traded_quantity from ${TARGET}
           where exchange = '${EXCHANGE}' and trade_date = $1 order by symbol, series`,
  },
  {
    what: 'newest day',
    by: 'nothing',
    sql: `select max(trade_date) from ${TARGET} where exchange = '${EXCHANGE}'`,
  },
] as const;

const flags = parseFlags({
  sessions: { type: 'string', default: '250' },
  instruments: { type: 'string', default: '8000' },
  layouts: { type: 'string', default: LAYOUTS.map((layout) => layout.name).join('') },
  json: { type: 'boolean', default: false },
});
const instruments = Number(flags.instruments);
const days = loadCalendar().lastSessions(EXCHANGE, LAST_SESSION, Number(flags.sessions));

interface Figures {
  readonly server: string;
  readonly layout: string;
  readonly loadSeconds: number;
  readonly loadWalMb: number;
  readonly reloadSeconds: number;
  readonly reloadWalMb: number;
  readonly indexMb: number;
  readonly queryMs: readonly number[];
}

async function measureLayout(adminUrl: string, server: string, layout: Layout): Promise<Figures> {
  const url = await freshDatabase(adminUrl, 'bench_keys');
  const database = openDatabase({ url, connections: 1 });
  await migrateDatabase(database);
  await database.close();
  await withClient(url, (client) => applyLayout(client, layout));
  const load = await measured(url, () => withClient(url, (client) => mergeDays(client)));
  const reload = await measured(url, () => withClient(url, (client) => mergeDays(client)));
  const figures = await withClient(url, async (client) => {
    await client.query(`vacuum analyze ${TARGET}`);
    const queryMs: number[] = [];
    for (const query of QUERIES) queryMs.push(await medianMs(client, query.sql, query.by));
    return { indexMb: (await indexBytes(client)) / 1e6, queryMs };
  });
  await dropDatabase(adminUrl, 'bench_keys');
  return {
    server,
    layout: `${layout.name}: ${layout.key}${layout.second ? ` + ${layout.second}` : ''}`,
    loadSeconds: load.result,
    loadWalMb: load.walBytes / 1e6,
    reloadSeconds: reload.result,
    reloadWalMb: reload.walBytes / 1e6,
    ...figures,
  };
}

/** The migrated table, with this layout's indexes in place of its own. */
async function applyLayout(client: pg.Client, layout: Layout): Promise<void> {
  const own = await client.query<{ name: string }>(
    `select indexrelid::regclass::text as name from pg_index
      where indrelid = $1::regclass and not indisprimary`,
    [TARGET],
  );
  for (const index of own.rows) await client.query(`drop index ${index.name}`);
  await client.query(`alter table ${TARGET} drop constraint bhavcopy_cm_pkey`);
  await client.query(`alter table ${TARGET} add ${layout.key}`);
  if (layout.second !== undefined) await client.query(`create index on ${TARGET} using ${layout.second}`);
  for (const year of new Set(days.map((day) => Number(day.slice(0, 4))))) {
    await client.query("select etl.ensure_year_partition('bhavcopy_cm', $1)", [year]);
  }
}

/** Merges one session after the other, as the worker does; only the merges and commits are timed. */
async function mergeDays(client: pg.Client): Promise<number> {
  const definition = tables.find((candidate) => TARGET.endsWith(`.${candidate.name}`));
  if (definition === undefined) throw new Error(`no operation declares ${TARGET}`);
  const sql = mergeSql(definition);
  await client.query(sql.createStage);
  let seconds = 0;
  for (const day of days) {
    await client.query('begin');
    await client.query(STAGE_DAY, [day, instruments, EXCHANGE]);
    const start = performance.now();
    await client.query({ ...sql.merge, values: [1, 1] });
    await client.query('commit');
    seconds += (performance.now() - start) / 1000;
  }
  return seconds;
}

/** A session of invented rows as wide as real ones; the order of the tickers is that of a hash. */
const STAGE_DAY = `
  insert into pg_temp.stage_bhavcopy_cm (_ord, exchange, symbol, series, trade_date, business_date, segment,
    source_exchange, instrument_type, exchange_instrument_id, isin, instrument_full_name, open_price, high_price, low_price,
    close_price, last_price, previous_close_price, settlement_price, traded_quantity, turnover, trade_count,
    session_id, board_lot_quantity, source_received_at, source_saved_at)
  select n, $3::text, upper(substr(md5(n::text), 1, 9)), (array['EQ', 'BE', 'SM', 'GS'])[n % 4 + 1], $1::date, $1::date, 'CM',
    $3::text, 'STK', 500000 + n, 'INE' || lpad(n::text, 6, '0') || '01018', 'COMPANY NUMBER ' || n || ' LIMITED',
    p, p + 1.05, p - 1.1, p + 0.45, p + 0.5, p - 0.35, p + 0.45, q, q * p, q % 9000, 'F1', 1,
    $1::date + time '21:02:11', $1::date + time '21:02:14'
  from generate_series(1, $2::integer) as n,
    lateral (select 10 + ((n * 37 + ($1::date - date '2020-01-01') * 11) % 400000) / 100.0 as p,
      1 + (n::bigint * 7919 + ($1::date - date '2020-01-01') * 104729) % 9000000 as q) as v`;

async function medianMs(client: pg.Client, text: string, by: By): Promise<number> {
  const symbols = await client.query<{ symbol: string }>(
    'select upper(substr(md5(n::text), 1, 9)) as symbol from generate_series(1, $1::integer, $2::integer) as n',
    [instruments, Math.ceil(instruments / ASKED)],
  );
  const values: Record<By, readonly unknown[]> = {
    symbol: symbols.rows.map(({ symbol }) => symbol),
    day: days.filter((_, at) => at % Math.ceil(days.length / ASKED) === 0),
    nothing: Array.from({ length: ASKED }),
  };
  const times: number[] = [];
  for (const value of values[by]) {
    const start = performance.now();
    const found = await client.query(text, value === undefined ? [] : [value]);
    times.push(performance.now() - start);
    if (found.rowCount === 0) throw new Error(`nothing found by ${text} with ${value}`);
  }
  return median(times);
}

async function indexBytes(client: pg.Client): Promise<number> {
  const found = await client.query<{ bytes: string }>(
    `select sum(pg_relation_size(i.indexrelid)) as bytes
       from pg_partition_tree($1::regclass) t join pg_index i on i.indrelid = t.relid where t.isleaf`,
    [TARGET],
  );
  return Number(found.rows[0]?.bytes);
}

async function measureServer(url: string): Promise<Figures[]> {
  const { rows } = await withClient(url, (client) => client.query('show server_version'));
  const server = `Postgres ${String(rows[0]?.server_version).split(' ')[0]}`;
  const all: Figures[] = [];
  for (const layout of LAYOUTS.filter(({ name }) => flags.layouts.includes(name))) {
    const figures = await measureLayout(url, server, layout);
    console.error(`${server}, ${figures.layout}: load ${figures.loadSeconds.toFixed(1)} s`);
    all.push(figures);
  }
  return all;
}

const results: Figures[] = [];
const embedded = await startBenchServer();
try {
  results.push(...(await measureServer(embedded.url)));
} finally {
  await embedded.stop();
}
if (hasSystemPostgres15) {
  const system = await startSystemPostgres15();
  try {
    results.push(...(await measureServer(system.url)));
  } finally {
    await system.stop();
  }
} else console.error('there is no Postgres 15 on this machine: measured on the private one only');

if (flags.json) console.log(JSON.stringify({ machine: machineFacts(), instruments, days, results }));
else {
  console.log(
    `\n${machineFacts()}\n${days.length} sessions of ${instruments} rows, ${days[0]} to ${days.at(-1)}\n`,
  );
  console.log(
    table(
      [
        '',
        'load s',
        'WAL MB',
        'reload s',
        'WAL MB',
        'index MB',
        ...QUERIES.map((query) => `${query.what}, ms`),
      ],
      results.map((figures) => [
        `${figures.server}\n${figures.layout.replace(' + ', '\n + ')}`,
        figures.loadSeconds.toFixed(1),
        figures.loadWalMb.toFixed(0),
        figures.reloadSeconds.toFixed(1),
        figures.reloadWalMb.toFixed(1),
        figures.indexMb.toFixed(0),
        ...figures.queryMs.map((ms) => ms.toFixed(2)),
      ]),
    ),
  );
}
