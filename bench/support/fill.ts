import type { Client } from 'pg';
import { updateObservedAliases } from '../../src/load/observed-aliases/observed-aliases.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { readChangedDays } from '../../src/state/derived.ts';
import type { Site } from './bench.ts';
import { bhavRequest, startPipeline } from './pipeline.ts';
import { migratedDatabase, withClient } from './postgres.ts';

/**
 * Fills a database with these trading days of both exchanges: one as the pipeline loads it, the others as copies of its
 * rows and of its load, each under a load and a state of its own.
 */
export async function fillDatabase(site: Site, name: string, days: readonly string[]): Promise<string> {
  const url = await migratedDatabase(site.server.url, name);
  const pipeline = await startPipeline(site, url);
  await pipeline.run(bhavRequest(days.slice(0, 1)));
  await pipeline.stop();
  await withClient(url, (client) => multiply(client, days));
  const database = openDatabase({ url, connections: 2 });
  // The run of the first trading day has ended before the copies were made.
  await updateObservedAliases(database, await readChangedDays(database.drizzle, null, 0));
  await database.close();
  await withClient(url, (client) => client.query('vacuum analyze'));
  return url;
}

/** The trading days to be made, numbered after the one there is. */
const COPIES = `(select e.exchange, d.day, row_number() over (order by d.day, e.exchange) - 1 as n
   from unnest(array['BSE', 'NSE']) as e(exchange), unnest($1::date[]) as d(day))`;

async function multiply(client: Client, days: readonly string[]): Promise<void> {
  for (const year of new Set(days.map((day) => Number(day.slice(0, 4))))) {
    await client.query("select etl.ensure_year_partition('bhavcopy_cm', $1)", [year]);
  }
  await copyRows(client, 'etl.loads', days, {
    id: 's.id + c.n',
    exchange: 'c.exchange',
    from_date: 'c.day',
    to_date: 'c.day',
    changed_from: 'c.day',
    changed_to: 'c.day',
    state: 's.state + c.n',
  });
  await client.query(
    "select setval(pg_get_serial_sequence('etl.loads', 'id'), (select max(id) from etl.loads))",
  );
  await copyRows(client, 'market.bhavcopy_cm', days, {
    exchange: 'c.exchange',
    source_exchange: 'c.exchange',
    trade_date: 'c.day',
    business_date: 'c.day',
    high_price: "s.high_price + (c.day - date '2000-01-01') % 97",
    load_id: 's.load_id + c.n',
  });
}

/** Copies the rows of the first trading day for all others, with other values in some columns. */
async function copyRows(
  client: Client,
  table: string,
  days: readonly string[],
  other: Readonly<Record<string, string>>,
): Promise<void> {
  const result = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table],
  );
  const columns = result.rows.map(({ name }) => name);
  const missing = Object.keys(other).filter((name) => !columns.includes(name));
  if (missing.length > 0) throw new Error(`${table} has no column ${missing.join(', ')}`);
  await client.query(`create temp table first_day as select * from ${table}`);
  // Day by day, as a load writes them: in one statement the planner may put the rows of a symbol side by side.
  for (const day of days) {
    await client.query(
      `insert into ${table} (${columns.join(', ')}) overriding system value
       select ${columns.map((name) => other[name] ?? `s.${name}`).join(', ')}
         from (select * from ${COPIES} all_copies where n > 0 and day = $2) c, first_day s order by c.n, s.ctid`,
      [days, day],
    );
  }
  await client.query('drop table first_day');
}
