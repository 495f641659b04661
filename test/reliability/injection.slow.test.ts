import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect } from 'vitest';
import { operationNamed } from '../../src/operations/registry.ts';
import type { Database } from '../../src/postgres/database.ts';
import { openStore } from '../load/support.ts';
import { bodyOf, loadBody, sampleOf } from './hostile-records.ts';
import { coverageRows, openSetup, start, test, windowsOf } from './support.ts';

/** Texts that mean something to SQL, to COPY, to JSON or to an address. */
const TEXTS = [
  "'; drop table market.bhavcopy_cm; --",
  '"; drop schema etl cascade; --',
  "' or '1'='1",
  "'' ''' ''''",
  '$1',
  '$$; drop table etl.windows; $$',
  '\\',
  '\\N',
  '\\.',
  'a\\tb',
  'a\tb',
  'first\nsecond',
  'first\r\n\\.\r\nsecond',
  "E'\\x41'",
  '%s %27%3B',
  '{"a":1}',
  '/* */ -- ;',
  "Robert'); DROP TABLE students;--",
  'ＤＲＯＰ',
  '&exchange=BSE#?x=/../',
];

const INVENTORY = `
  select string_agg(format('%s.%s.%s', table_schema, table_name, column_name), ' ' order by 1, table_schema, table_name, column_name) as all
    from information_schema.columns where table_schema in ('market', 'market_history', 'etl')`;

const inventory = async ({ pool }: Pick<Database, 'pool'>) =>
  (await pool.query<{ all: string }>(INVENTORY)).rows[0]?.all;

describe('texts of the source', () => {
  let store: Database;
  beforeAll(async () => {
    store = await openStore();
  });

  test('are stored letter for letter, as values and in keys', async () => {
    const before = await inventory(store);
    const operation = operationNamed('GetBhavCopyCM');
    const records = TEXTS.map((text) => ({
      ...sampleOf(operation),
      Symbol: text,
      ISIN: text,
      FinInstrmNm: text,
    }));
    const { counts } = await loadBody(store, operation, bodyOf(records));
    expect(counts).toMatchObject({ inserted: TEXTS.length, rejected: 0 });
    const result = await store.pool.query<{ symbol: string; isin: string }>(
      'select symbol, isin from market.bhavcopy_cm',
    );
    expect(result.rows.map(({ symbol }) => symbol).sort()).toEqual([...TEXTS].sort());
    expect(result.rows.every(({ symbol, isin }) => symbol === isin)).toBe(true);
    expect(await inventory(store)).toBe(before);
  });

  test('are kept in rejected records, and as names of fields', async () => {
    const before = await inventory(store);
    const operation = operationNamed('GetBhavCopyCM');
    const records = TEXTS.map((text) => ({ ...sampleOf(operation), [text]: text, ClosePrice: text }));
    const { windowId, extracted } = await loadBody(store, operation, bodyOf(records));
    expect(extracted.rejects).toHaveLength(TEXTS.length);
    const kept = await store.pool.query<{ record: Record<string, string> }>(
      'select record from etl.rejects where window_id = $1 order by position',
      [windowId],
    );
    expect(kept.rows.map(({ record }, at) => record[TEXTS[at] ?? ''])).toEqual(TEXTS);
    expect(await inventory(store)).toBe(before);
  });
});

describe('texts in requests', () => {
  test('instruments reach the source as they are, and are stored as they are', async ({ setup }) => {
    const before = await inventory(setup.db);
    const report = await setup.run({
      operations: ['GetFinRatioEOD'],
      exchanges: ['NSE'],
      instruments: TEXTS,
      from: '2025-09-11',
      to: '2025-09-11',
    });
    // None of them is a company: a response without a record.
    expect(report.state).toBe('completed');
    const names = [...TEXTS].sort();
    const windows = await windowsOf(setup, report.runId);
    expect([...new Set(windows.flatMap(({ instruments }) => instruments))].sort()).toEqual(names);
    expect([...new Set((await coverageRows(setup)).map(({ instrument }) => instrument))].sort()).toEqual(
      names,
    );
    const response = await fetch(`${setup.sandbox.url}/_sandbox/requests`);
    const requests = (await response.json()) as {
      params: { instrumentIdentifier: string; exchange: string };
    }[];
    expect([...new Set(requests.map(({ params }) => params.instrumentIdentifier))].sort()).toEqual(names);
    expect(new Set(requests.map(({ params }) => params.exchange))).toEqual(new Set(['NSE']));
    expect(await inventory(setup.db)).toBe(before);
  });

  test('an instrument longer than any name is an error before anything is planned', async ({ setup }) => {
    const request = { operations: ['GetFinRatioEOD'], from: '2025-09-11', to: '2025-09-11' };
    const long = 'x'.repeat(6_000);
    await expect(start(setup, { ...request, instruments: ['TCS', long] })).rejects.toMatchObject({
      kind: 'usage',
    });
    expect((await setup.db.pool.query('select from etl.runs')).rowCount).toBe(0);
  });

  test('a window whose outcome Postgres will not keep ends as failed, and is not requested again', async () => {
    const setup = await openSetup();
    // Random letters do not compress: with such an exchange no row fits its index, not even that of what is being
    // requested.
    const exchange = randomBytes(5_000).toString('hex');
    const report = await setup.run({
      operations: ['GetCircuitBreakers'],
      exchanges: [exchange],
      from: '2025-09-11',
      to: '2025-09-11',
    });
    expect(report).toMatchObject({ state: 'failed', requests: 0, windows: { failed: 1 } });
    expect(await coverageRows(setup)).toEqual([]);
  });

  test('options and exchanges are sent and stored as they are, whatever the source makes of them', async () => {
    const setup = await openSetup({ settings: { EOD_ATTEMPTS: '1' } });
    const before = await inventory(setup.db);
    for (const text of TEXTS.slice(0, 6)) {
      const report = await setup.run({
        operations: ['GetCircuitBreakers'],
        exchanges: [text],
        options: { band: text },
        from: '2025-09-11',
        to: '2025-09-11',
      });
      expect(report.windows.total).toBe(1);
    }
    expect(await inventory(setup.db)).toBe(before);
  });

  test('names of operations are known ones or errors', async ({ setup }) => {
    const before = await inventory(setup.db);
    for (const text of TEXTS) {
      expect(() => operationNamed(text)).toThrow(/unknown operation/);
      const request = { operations: ['GetBhavCopyCM'], from: text, to: text };
      await expect(start(setup, request)).rejects.toThrow();
    }
    expect(await inventory(setup.db)).toBe(before);
  });
});
