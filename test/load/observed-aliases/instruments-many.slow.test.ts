import { expect, test } from 'vitest';
import { deriveButEvents } from '../../support/derive.ts';
import { bhavRow, loadBhav, openStore } from '../support.ts';

const nse = (symbol: string, trade_date: string) => bhavRow({ symbol, trade_date });

test('are read, however many one response has', async () => {
  const store = await openStore();
  await loadBhav(store, [nse('A', '2025-08-28')]);
  await deriveButEvents(store);
  await loadBhav(
    store,
    // More than a statement can have parameters.
    Array.from({ length: 70_000 }, (_, at) => nse(`N${at}`, '2025-08-29')),
  );
  await deriveButEvents(store);
  expect((await store.pool.query('select from market.instruments')).rowCount).toBe(70_001);
});
