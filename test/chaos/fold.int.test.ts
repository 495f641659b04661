import { expect, test } from 'vitest';
import { checkFold } from '../support/chaos/fold.ts';
import { openStore } from '../support/import-support.ts';
import { fetched, records } from '../support/replay-support.ts';

test('the fold of the kept responses agrees with what was stored, and notices a row that differs, is missing or is one too many', async () => {
  const context = await openStore();
  const url = context.config.DATABASE_URL ?? '';
  await fetched(3, records(2, 42, { ClosePrice: 7, SavedAt: '08-29-2025 21:20:00' }))(context);
  await fetched(1, records(0, 40))(context);
  await fetched(2, records(5, 6, { SavedAt: '08-29-2025 21:30:00' }))(context, { instruments: ['S005'] });
  expect(await checkFold(url)).toEqual([]);
  await context.db.pool.query("update market.bhavcopy_cm set close_price = 1 where symbol = 'S004'");
  expect(await checkFold(url)).toEqual([expect.stringContaining('1 rows missing, 1 too many')]);
  await context.db.pool.query("delete from market.bhavcopy_cm where symbol = 'S004'");
  expect(await checkFold(url)).toEqual([expect.stringContaining('1 rows missing, 0 too many')]);
  await context.db.pool.query("update market.bhavcopy_cm set symbol = 'S000' where symbol = 'S007'");
  expect(await checkFold(url)).toEqual([expect.stringContaining('2 rows missing, 1 too many')]);
});
