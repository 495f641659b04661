import { createHash } from 'node:crypto';
import type pg from 'pg';
import { request } from 'undici';
import { withClient } from './postgres.ts';

// The least that a pipeline with a ledger does for a window of one row: a claim, a call, and one transaction with the
// row, the response, coverage, the end of the window and its load. Tables have no index but their key, nothing is
// validated, compared, counted or logged, and every statement is written by hand and prepared. What a window costs
// beyond this is the pipeline's own work.

/** Creates the tables, with so many windows. */
export async function prepareLeast(url: string, windows: number): Promise<void> {
  await withClient(url, (client) =>
    client.query(`
      create schema least;
      create table least.windows (id int primary key, state text not null, attempts int not null default 0, ended_at timestamptz);
      create table least.prices (instrument text, day date, price numeric, load_id bigint, primary key (instrument, day));
      create table least.responses (id bigint generated always as identity primary key, window_id bigint, hash text, fetched_at timestamptz);
      create table least.bodies (hash text primary key, body bytea);
      create table least.coverage (day date, instrument text, state text, window_id bigint, primary key (day, instrument));
      create table least.loads (id bigint generated always as identity primary key, window_id bigint, state bigint);
      insert into least.windows select id, 'pending' from generate_series(0, ${windows - 1}) as id;`),
  );
}

/** Does the least for one of these windows. */
export async function loadLeast(pool: pg.Pool, responseUrl: string, window: number): Promise<void> {
  const instrument = `SYMBOL${window}`;
  await pool.query(
    statement(
      'claim',
      `update least.windows set state = 'running', attempts = attempts + 1 where id = $1 and state in ('pending', 'running')`,
      window,
    ),
  );
  const response = await request(responseUrl);
  const body = Buffer.from(await response.body.arrayBuffer());
  JSON.parse(body.toString());
  // As if all responses were different.
  const hash = createHash('sha256').update(body).update(instrument).digest('hex');
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query(
      statement(
        'lock',
        `select pg_advisory_xact_lock(hashtextextended($2, 0)) from least.windows where id = $1 for update`,
        window,
        instrument,
      ),
    );
    await client.query(
      statement(
        'price',
        `insert into least.prices values ($1, '2025-10-31', 1, $2)
         on conflict (instrument, day) do update set price = excluded.price where prices.price is distinct from excluded.price`,
        instrument,
        window,
      ),
    );
    await client.query(
      statement(
        'response',
        `with kept as (insert into least.bodies values ($1, $2) on conflict do nothing)
         insert into least.responses (window_id, hash, fetched_at) values ($3, $1, now())`,
        hash,
        body,
        window,
      ),
    );
    await client.query(
      statement(
        'coverage',
        `insert into least.coverage values ('2025-10-31', $1, 'loaded', $2)
         on conflict (day, instrument) do update set state = excluded.state`,
        instrument,
        window,
      ),
    );
    await client.query(
      statement(
        'end',
        `with ended as (update least.windows set state = 'loaded', ended_at = now() where id = $1 returning id)
         insert into least.loads (window_id, state) select id, 1 from ended`,
        window,
      ),
    );
    await client.query('commit');
  } finally {
    client.release();
  }
}

const statement = (name: string, text: string, ...values: unknown[]) => ({
  name: `least_${name}`,
  text,
  values,
});
