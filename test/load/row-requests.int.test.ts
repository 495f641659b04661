import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../src/load/database/database.ts';
import { type RowScope, readRowRequests } from '../../src/load/market/row-requests.ts';
import { writeCoverage } from '../../src/load/state/coverage/coverage.ts';
import { takePosition } from '../../src/load/state/position-sql.ts';
import type { CoverageState } from '../../src/load/state/registers.ts';
import { date, datetime, int4, text } from '../../src/operations/fields.ts';
import { defineTable } from '../../src/operations/table.ts';
import { newRun, openStore } from './support.ts';

const table = defineTable({
  name: 'test_items',
  comment: 'Statements.',
  key: ['exchange', 'symbol', 'year', 'nature'],
  fields: [
    text('Instrument', 'symbol', 'Symbol.'),
    int4('Year', 'year', 'Year.'),
    text('Nature', 'nature', 'Nature.'),
    date('Day', 'quarter_end', 'Day.'),
    datetime('FiledAt', 'filed_at', 'When it was filed.'),
  ],
});

let store: Database;
let runId: number;

beforeAll(async () => {
  store = await openStore();
  runId = await newRun(store);
  await store.pool.query(`create table market.test_items (exchange text, symbol text, year int, nature text,
    quarter_end date, filed_at timestamptz, last_changed_at timestamptz)`);
  await store.pool.query(`insert into market.test_items values
    ('BSE', 'TCS', 2024, 'Standalone', '2024-03-31', '2024-05-10 23:30+00', '2025-09-10 20:00+00'),
    ('BSE', 'TCS', 2024, 'Consolidated', '2024-03-31', '2024-05-10 10:00+05:30', '2025-09-10 20:00+05:30'),
    ('BSE', 'ABB', 2023, 'Standalone', '2023-03-31', null, '2025-09-09 10:00+05:30'),
    ('BSE', 'ABB', null, 'Standalone', '2023-03-31', null, '2025-09-09 10:00+05:30'),
    ('BSE', '', 2023, 'Standalone', '2023-03-31', null, '2025-09-09 10:00+05:30'),
    ('NSE', 'INFY', 2024, 'Standalone', '2024-03-31', null, '2025-09-09 10:00+05:30')`);
});

const SCOPE: RowScope = {
  table,
  columns: { instrument: 'symbol', values: ['year', 'nature'] },
  operation: 'GetTestDetails',
  exchange: 'BSE',
  instruments: [],
  only: {},
  days: null,
  covered: ['loaded', 'empty', 'not_published'],
  timeZone: 'Asia/Kolkata',
};

const read = (changes: Partial<RowScope> = {}, most?: number) =>
  readRowRequests(store.pool, { ...SCOPE, ...changes }, most);

async function texts(changes: Partial<RowScope> = {}, most?: number): Promise<string[]> {
  const { requests } = await read(changes, most);
  return requests.map(({ instrument, values, day }) => [day, instrument, ...values].join(' '));
}

test('the newest first, as of the Indian day on which a row changed; nothing without an instrument and values', async () => {
  expect(await texts()).toEqual([
    '2025-09-11 TCS 2024 Standalone',
    '2025-09-10 TCS 2024 Consolidated',
    '2025-09-09 ABB 2023 Standalone',
  ]);
});

test('as of their own day, or the Indian day of their own time', async () => {
  const ofDay = { columns: { ...SCOPE.columns, day: 'quarter_end' } };
  expect(await texts(ofDay)).toEqual([
    '2024-03-31 TCS 2024 Consolidated',
    '2024-03-31 TCS 2024 Standalone',
    '2023-03-31 ABB 2023 Standalone',
  ]);
  expect(await texts({ columns: { ...SCOPE.columns, day: 'filed_at' } })).toEqual([
    '2024-05-11 TCS 2024 Standalone',
    '2024-05-10 TCS 2024 Consolidated',
  ]);
  expect(await texts({ ...ofDay, days: { from: '2023-01-01', to: '2023-12-31' } })).toEqual([
    '2023-03-31 ABB 2023 Standalone',
  ]);
});

test('only some instruments and values, and rows with the same values once', async () => {
  expect(await texts({ instruments: ['ABB'] })).toHaveLength(1);
  expect(await texts({ only: { nature: 'Consolidated' } })).toEqual(['2025-09-10 TCS 2024 Consolidated']);
  expect(await texts({ columns: { instrument: 'symbol', values: ['year'] } })).toEqual([
    '2025-09-11 TCS 2024',
    '2025-09-09 ABB 2023',
  ]);
  expect(await texts({ columns: { instrument: 'symbol', values: [] } })).toEqual([
    '2025-09-11 TCS',
    '2025-09-09 ABB',
  ]);
});

test('no more than a run requests', async () => {
  expect(await read({}, 2)).toMatchObject({ more: true, hasRows: true });
  expect(await texts({}, 2)).toHaveLength(2);
  expect(await read({}, 3)).toMatchObject({ more: false });
});

test('rows that are there, and rows that are not', async () => {
  expect(await read({ instruments: ['WIPRO'] })).toEqual({ requests: [], more: false, hasRows: false });
  expect((await read({ exchange: 'BFO' })).hasRows).toBe(false);
  const elsewhen = {
    columns: { ...SCOPE.columns, day: 'quarter_end' },
    days: { from: '2020-01-01', to: '2020-12-31' },
  };
  expect(await read(elsewhen)).toEqual({ requests: [], more: false, hasRows: true });
});

test('a covered request is requested again only when its row has changed, or by force', async () => {
  const response = async (day: string, instrument: string, variant: string, state: CoverageState) =>
    writeCoverage(store.drizzle, {
      operation: 'GetTestDetails',
      exchange: 'BSE',
      runId,
      windowId: null,
      position: await takePosition(store.drizzle),
      coverage: [{ day, instrument, variant, state, records: 3 }],
    });
  await response('2025-09-11', 'TCS', '2024/Standalone', 'loaded');
  await response('2025-09-10', 'TCS', '2024/Consolidated', 'failed');
  await response('2025-09-09', 'ABB', '2023/Standalone', 'empty');
  expect(await texts()).toEqual(['2025-09-10 TCS 2024 Consolidated']);
  expect(await texts({ covered: ['loaded'] })).toHaveLength(2);
  expect(await texts({ covered: [] })).toHaveLength(3);
  expect((await read({ instruments: ['ABB'] })).hasRows).toBe(true);
  await store.pool.query(
    `update market.test_items set last_changed_at = now() + interval '1 hour' where symbol = 'ABB'`,
  );
  expect(await texts({ instruments: ['ABB'] })).toHaveLength(1);
  // Its own day has not changed, but the row has.
  const ofDay = { columns: { ...SCOPE.columns, day: 'quarter_end' }, instruments: ['ABB'] };
  await response('2023-03-31', 'ABB', '2023/Standalone', 'loaded');
  expect(await texts(ofDay)).toHaveLength(1);
  await store.pool.query(
    `update market.test_items set last_changed_at = now() - interval '1 hour' where symbol = 'ABB'`,
  );
  expect(await texts(ofDay)).toEqual([]);
});
