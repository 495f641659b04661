import { expect, test } from 'vitest';
import { dataSetNamed } from '../../../src/operations/registry.ts';
import { startCuttingProxy } from '../../support/chaos/cutting-proxy.ts';
import { bhavRow, loadBhav, openPool, openStore } from '../support.ts';

test('the same response again writes next to no WAL, though a checkpoint has passed', async () => {
  const store = await openStore();
  const rows = Array.from({ length: 5_000 }, (_, at) => bhavRow({ symbol: `S${at}` }));
  expect(await loadBhav(store, rows)).toMatchObject({ inserted: 5_000 });
  await store.pool.query('checkpoint');
  // One connection, so that its WAL can be counted apart from that of all others on the server.
  const alone = openPool(store.url, 1);
  const version = await alone.pool.query("select current_setting('server_version_num')::int as number");
  const bytes =
    version.rows[0].number < 180_000
      ? "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8"
      : '(select wal_bytes::float8 from pg_stat_get_backend_wal(pg_backend_pid()))';
  const written = async (): Promise<number> => {
    await alone.pool.query('select pg_stat_force_next_flush()');
    return (await alone.pool.query(`select ${bytes} as bytes`)).rows[0].bytes;
  };
  const before = await written();
  expect(await loadBhav(alone, rows)).toMatchObject({ unchanged: 5_000 });
  expect((await written()) - before).toBeLessThan(256 * 1024);
});

test('a connection makes its staging table once, and not again for the next load', async () => {
  const store = await openStore(undefined, 1);
  const notices: string[] = [];
  // "relation already exists, skipping"
  store.pool.on('connect', (client) => client.on('notice', ({ message }) => notices.push(message ?? '')));
  for (let loads = 0; loads < 2; loads++) {
    expect(await loadBhav(store, [bhavRow({ symbol: 'S' })])).toMatchObject({ fetched: 1 });
  }
  expect(notices.filter((notice) => notice.includes('stage_'))).toEqual([]);
});

test('a connection that breaks after the commit does not make a failure of what is stored', async () => {
  const store = await openStore();
  const { name } = dataSetNamed('GetBhavCopyCM').shapes[0].table;
  // What reads the days that were written: the last statement of a load.
  const statement = new RegExp(`select count\\(t\\.ctid\\) from "?market"?\\."?${name}`);
  const proxy = await startCuttingProxy(store.url, { statement, last: statement });
  const cut = openPool(proxy.url, 1);
  const rows = Array.from({ length: 2_000 }, (_, at) => bhavRow({ symbol: `S${at}` }));
  expect(await loadBhav(cut, rows)).toMatchObject({ inserted: 2_000 });
  expect(proxy.struck()).toBe(true);
  await cut.close();
  await proxy.close();
});
