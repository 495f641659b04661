import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Row } from '../../../src/declaration/table.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { hasSystemPostgres15, startSystemPostgres15 } from '../../support/postgres-15.ts';
import { bhavRow, loadBhav, newRun, openPool, openStore } from '../support.ts';

/** The server of the test run (the newest), and the oldest version that is supported. */
const servers = ['the newest Postgres', ...(hasSystemPostgres15 ? ['Postgres 15'] : [])];
if (!hasSystemPostgres15) console.log('this machine has no Postgres 15: merging is not tried on it');

const SAVED = '2025-08-29 21:02:14+05:30';
const LATER = '2025-08-29 22:00:00+05:30';
const EARLIER = '2025-08-29 20:00:00+05:30';

describe.each(servers)('merging on %s', (server) => {
  let store: Database;
  let stop: () => Promise<void> = async () => undefined;

  beforeAll(async () => {
    if (server === 'the newest Postgres') {
      store = await openStore();
      return;
    }
    const old = await startSystemPostgres15();
    store = await openStore(old.url);
    stop = async () => {
      await store.close();
      await old.stop();
    };
  });
  afterAll(() => stop());
  beforeEach(async () => {
    await store.pool.query('truncate market.bhavcopy_cm, market_history.bhavcopy_cm');
  });

  /** Everything about the rows that a write would change. */
  async function physicalRows() {
    const result = await store.pool.query(
      `select symbol, close_price::text, source_saved_at, revision, run_id, first_loaded_at, last_changed_at,
         xmin::text, ctid::text from market.bhavcopy_cm order by symbol, series`,
    );
    return result.rows;
  }

  /** Bytes of WAL so far: of this connection alone where the server can tell, else of the server. */
  async function walOf({ pool }: Database): Promise<number> {
    const version = await pool.query("select current_setting('server_version_num')::int as number");
    if (version.rows[0].number < 180_000) {
      const all = await pool.query(
        "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes",
      );
      return all.rows[0].bytes;
    }
    await pool.query('select pg_stat_force_next_flush()');
    const ownWal = await pool.query(
      'select wal_bytes::float8 as bytes from pg_stat_get_backend_wal(pg_backend_pid())',
    );
    return ownWal.rows[0].bytes;
  }

  const firstRow = async (): Promise<Row> => (await physicalRows())[0];

  test('new rows are inserted with revision 1 and the run that brought them', async () => {
    const runId = await newRun(store);
    const counts = await loadBhav(store, [bhavRow({ symbol: 'A' }), bhavRow({ symbol: 'B' })], { runId });
    expect(counts).toEqual({
      fetched: 2,
      inserted: 2,
      updated: 0,
      unchanged: 0,
      stale: 0,
      duplicate: 0,
      rejected: 0,
      withdrawn: 0,
    });
    expect(await firstRow()).toMatchObject({ symbol: 'A', revision: 1, run_id: String(runId) });
  });

  test('the same response again writes no row and next to no WAL', async () => {
    const rows = Array.from({ length: 5_000 }, (_, n) =>
      bhavRow({ symbol: `S${n}`, source_saved_at: SAVED }),
    );
    expect(await loadBhav(store, rows)).toMatchObject({ fetched: 5_000, inserted: 5_000 });
    const before = await physicalRows();
    // The first reader of new rows sets their hint bits, which after a checkpoint writes WAL where pages
    // carry checksums. That is not the reload's WAL, so the rows are read before.
    await store.pool.query('vacuum market.bhavcopy_cm');
    const alone = openPool(store.url, 1);
    const bytes = await walOf(alone);
    expect(await loadBhav(alone, rows)).toMatchObject({ fetched: 5_000, unchanged: 5_000 });
    // The rows alone would take more than a megabyte. After a checkpoint by another test some 130 kB are
    // pages of the catalog that the staging table touches.
    expect((await walOf(alone)) - bytes).toBeLessThan(256 * 1024);
    expect(await physicalRows()).toEqual(before);
    await alone.close();
  });

  test('only rows that differ are written; the others stay where they are', async () => {
    await loadBhav(store, [bhavRow({ symbol: 'A' }), bhavRow({ symbol: 'B' }), bhavRow({ symbol: 'C' })]);
    const before = await physicalRows();
    const runId = await newRun(store);
    const counts = await loadBhav(
      store,
      [bhavRow({ symbol: 'A' }), bhavRow({ symbol: 'B', close_price: '11' }), bhavRow({ symbol: 'D' })],
      { runId },
    );
    expect(counts).toMatchObject({ fetched: 3, inserted: 1, updated: 1, unchanged: 1 });
    const after = await physicalRows();
    expect([after[0], after[2]]).toEqual([before[0], before[2]]);
    expect(after[1]).toMatchObject({ close_price: '11', revision: 2, run_id: String(runId) });
    expect(after[1].first_loaded_at).toEqual(before[1].first_loaded_at);
    expect(after[1].last_changed_at > before[1].last_changed_at).toBe(true);
  });

  test('a value that becomes null, or stops being null, is a difference', async () => {
    await loadBhav(store, [bhavRow({ symbol: 'A', close_price: null })]);
    expect(await loadBhav(store, [bhavRow({ symbol: 'A', close_price: '1' })])).toMatchObject({ updated: 1 });
    expect(await loadBhav(store, [bhavRow({ symbol: 'A', close_price: null })])).toMatchObject({
      updated: 1,
    });
    expect(await firstRow()).toMatchObject({ close_price: null, revision: 3 });
  });

  test('an older response changes nothing and counts as stale', async () => {
    await loadBhav(store, [bhavRow({ symbol: 'A', source_saved_at: SAVED })]);
    const before = await physicalRows();
    const counts = await loadBhav(store, [
      bhavRow({ symbol: 'A', close_price: '99', source_saved_at: EARLIER }),
    ]);
    expect(counts).toMatchObject({ fetched: 1, stale: 1, updated: 0 });
    expect(await physicalRows()).toEqual(before);
  });

  test('a newer response wins, and a newer time alone is kept too', async () => {
    await loadBhav(store, [bhavRow({ symbol: 'A', source_saved_at: SAVED })]);
    expect(await loadBhav(store, [bhavRow({ symbol: 'A', source_saved_at: LATER })])).toMatchObject({
      updated: 1,
    });
    expect((await firstRow()).source_saved_at).toEqual(new Date(LATER));
  });

  test('a response without times does not erase those the source once sent', async () => {
    await loadBhav(store, [bhavRow({ symbol: 'A', source_saved_at: SAVED })]);
    expect(await loadBhav(store, [bhavRow({ symbol: 'A' })])).toMatchObject({ unchanged: 1 });
    expect(await loadBhav(store, [bhavRow({ symbol: 'A', close_price: '12' })])).toMatchObject({
      updated: 1,
    });
    expect(await firstRow()).toMatchObject({ close_price: '12', source_saved_at: new Date(SAVED) });
  });

  test('of several records with one key the newest saved wins, the rest are duplicates', async () => {
    const counts = await loadBhav(store, [
      bhavRow({ symbol: 'A', close_price: '1', source_saved_at: SAVED }),
      bhavRow({ symbol: 'A', close_price: '2', source_saved_at: LATER }),
      bhavRow({ symbol: 'A', close_price: '3', source_saved_at: EARLIER }),
      bhavRow({ symbol: 'A', close_price: '4' }),
    ]);
    expect(counts).toMatchObject({ fetched: 4, inserted: 1, duplicate: 3 });
    expect(await firstRow()).toMatchObject({ close_price: '2' });
  });

  test.each([SAVED, null])(
    'saved at the same time (%s) the later in the response wins',
    async (source_saved_at) => {
      const counts = await loadBhav(store, [
        bhavRow({ symbol: 'A', close_price: '1', source_saved_at }),
        bhavRow({ symbol: 'A', close_price: '2', source_saved_at }),
      ]);
      expect(counts).toMatchObject({ fetched: 2, inserted: 1, duplicate: 1 });
      expect(await firstRow()).toMatchObject({ close_price: '2' });
    },
  );

  test('days of several years end in their partitions, and are found again', async () => {
    const rows = ['2019-12-31', '2024-01-01', '2024-12-31', '2025-01-01'].map((trade_date) =>
      bhavRow({ symbol: 'A', trade_date }),
    );
    expect(await loadBhav(store, rows)).toMatchObject({ inserted: 4 });
    expect(await loadBhav(store, rows)).toMatchObject({ unchanged: 4 });
    const result = await store.pool.query(
      'select tableoid::regclass::text as partition, count(*)::int as rows from market.bhavcopy_cm group by 1 order by 1',
    );
    expect(result.rows).toEqual([
      { partition: 'market_partitions.bhavcopy_cm_2019', rows: 1 },
      { partition: 'market_partitions.bhavcopy_cm_2024', rows: 2 },
      { partition: 'market_partitions.bhavcopy_cm_2025', rows: 1 },
    ]);
  });
});
