import { brotliCompressSync } from 'node:zlib';
import { drizzle } from 'drizzle-orm/node-postgres';
import { expect, test } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import { countSuspiciousWindows } from '../../../src/state/windows/suspicious.ts';
import { newRun, openPool } from '../../load/support.ts';
import { copyResponses } from '../../support/copy-responses.ts';
import { differingCoverage } from '../../support/differing-coverage.ts';
import { openStore } from '../../support/import-support.ts';
import { fixReading, physicalRows, replay, requestAndLoad } from '../../support/replay-support.ts';
import { waitFor } from '../../support/wait-for.ts';

let responses = 0;

/** Loads a response to any request, made at a moment; the counts that it states are taken as they are. */
function loadRequested(context: Context, { at, ...entry }: TimedRequest) {
  responses += 1;
  return requestAndLoad(context, {
    ...entry,
    calledAt: Date.parse(at),
    microseconds: responses % 1000,
    count: 'accept',
  });
}
type TimedRequest = Omit<Parameters<typeof requestAndLoad>[1], 'calledAt' | 'microseconds' | 'count'> & {
  readonly at: string;
};

const all = async (context: Context, query: string) => (await context.db.pool.query(query)).rows;
const us = (day: string) => `${day.slice(5)}-${day.slice(0, 4)}`;
const change = (day: string, n: number, more: Record<string, unknown> = {}) => ({
  ChangeDate: us(day),
  ScripId: `S${n}`,
  ScripName: `N${n}`,
  PrevSeries: 'EQ',
  ToSeries: 'BE',
  ...more,
});
const bhav = (day: string, n: number, close: unknown = 100, more: Record<string, unknown> = {}) => ({
  TradDt: us(day),
  Src: 'NSE',
  Symbol: `S${n}`,
  SctySrs: 'EQ',
  ClosePrice: close,
  ...more,
});
const sums = (context: Context, operations: string[], exchange = 'NSE') =>
  differingCoverage(context.db.drizzle, operations, [exchange]);

const _never = new AbortController().signal;
const DAY = '2025-08-20';
const BHAV_COPY = { operation: 'GetBhavCopyCM', from: DAY };
const SERIES_CHANGES = { operation: 'GetSeriesChange' };
const PLEDGES = { operation: 'GetConsolidatedPledge', exchange: 'BSE' };
const many = (close: unknown, n = 20) => Array.from({ length: n }, (_, at) => bhav(DAY, at, close));
const pledge = (day: string, n: number) => ({
  ScripCode: n + 1,
  ScripId: `S${n}`,
  TradeDate: us(day),
  CompanyName: `C${n}`,
  TotalIssuedShares: 1,
});
const _action = (n: number) => ({ ScripCode: n + 1, ActionId: `A${n}`, CompanyName: `C${n}` });
const SAMPLE = operationNamed('GetFinRatioEOD').sample.response as Record<string, unknown>;
const ratios = (symbol: string, from = DAY) => ({
  operation: 'GetFinRatioEOD',
  from,
  instruments: [symbol],
  params: { variant: 'eod', natureOfReport: 'Standalone' },
  variant: 'eod/Standalone',
});
const state = async (c: Parameters<typeof all>[0], day: string) =>
  (await all(c, `select state from etl.coverage where day = '${day}' and instrument = ''`))[0]?.state;

test('a part of a replay says nothing of days that it does not fold', async () => {
  const context = await openStore();
  await loadRequested(context, {
    ...SERIES_CHANGES,
    from: '2025-08-18',
    to: DAY,
    at: '2025-08-21T05:00:00Z',
    sent: Array.from({ length: 20 }, (_, n) => change('2025-08-18', n, { ScripId: '' })),
  });
  await loadRequested(context, {
    ...SERIES_CHANGES,
    from: DAY,
    to: '2025-08-22',
    at: '2025-08-23T05:00:00Z',
    sent: [change('2025-08-22', 3)],
  });
  await fixReading(context, (sent) =>
    sent.forEach((record, n) => {
      if (record.ScripId === '') record.ScripId = `S${n}`;
    }),
  );
  await replay(context, { from: '2025-08-21', to: '2025-08-22' });
  const rows = (await all(context, "select from market.series_changes where change_date = '2025-08-18'"))
    .length;
  const open = (await all(context, 'select from etl.rejects where resolved_at is null')).length;
  expect([
    [0, 20, 'failed'],
    [20, 0, 'loaded'],
  ]).toContainEqual([rows, open, await state(context, '2025-08-18')]);
});

test('rejects of a copy are read again as responses to what was requested', async () => {
  const context = await openStore();
  await loadRequested(context, { ...ratios('AAA'), at: `${DAY}T18:00:00Z`, sent: [{ ...SAMPLE, EPS: 1 }] });
  await loadRequested(context, {
    ...ratios('ZZZ'),
    at: `${DAY}T18:00:00Z`,
    sent: [{ ...SAMPLE, EPS: 'unread' }],
  });
  const copy = await openStore();
  await copyResponses(context.db, copy.db);
  await replay(copy, {});
  await fixReading(copy, ([record]) => {
    if (record?.EPS === 'unread') record.EPS = 7;
  });
  await replay(copy, {}, { rejectsOnly: true });
  expect(await all(copy, 'select symbol, eps from market.financial_ratios order by 1')).toEqual([
    { symbol: 'AAA', eps: '1' },
    { symbol: 'ZZZ', eps: '7' },
  ]);
});

test('a failed call beside a replay does not keep the coverage from being written', async () => {
  const context = await openStore();
  await loadRequested(context, { ...BHAV_COPY, at: `${DAY}T16:30:00Z`, sent: many('unread') });
  await fixReading(context, (sent) => {
    for (const record of sent) record.ClosePrice = 5;
  });
  const runId = await newRun(context.db);
  const client = await openPool(context.config.DATABASE_URL ?? '', 2).pool.connect();
  await client.query('begin');
  const tx = Object.assign(drizzle(client), { client });
  await writeCoverage(tx, {
    operation: BHAV_COPY.operation,
    exchange: 'NSE',
    runId,
    windowId: null,
    position: await takePosition(tx),
    coverage: [
      { day: DAY, instrument: '', variant: '', state: 'failed', records: 0, diagnostic: 'no response' },
    ],
  });
  const done = replay(context, {});
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await waitFor(async () => (await all(context, waiting)).length > 0, {
    what: 'the replay waits for the call',
  });
  await client.query('commit');
  client.release();
  await done;
  expect(await state(context, DAY)).toBe('loaded');
  expect(await sums(context, [BHAV_COPY.operation])).toEqual([]);
});

test('a replay settles no suspicious window on its own', async () => {
  const context = await openStore();
  await loadRequested(context, { ...BHAV_COPY, at: `${DAY}T16:30:00Z`, sent: many(5), more: { Count: 25 } });
  const before = await countSuspiciousWindows(context.db.drizzle);
  await replay(context, {});
  expect.soft(await countSuspiciousWindows(context.db.drizzle)).toEqual(before);
  const other = await openStore();
  await loadRequested(other, { ...BHAV_COPY, at: `${DAY}T16:30:00Z`, sent: many(5) });
  await loadRequested(other, { ...BHAV_COPY, at: `${DAY}T16:20:00Z`, sent: many(4) });
  const unsettled = () => all(other, 'select id::int from etl.windows where unsettled is not null');
  const late = await unsettled();
  await replay(other, {});
  expect.soft(await unsettled()).toEqual(late);
});

test('two parts that have a response in common agree on what it said', async () => {
  const context = await openStore(undefined, { EOD_CONCURRENCY: '1' });
  await loadRequested(context, {
    ...PLEDGES,
    from: '2025-08-19',
    to: DAY,
    at: '2025-08-21T10:00:00Z',
    sent: [pledge(DAY, 1)],
  });
  await loadRequested(context, {
    ...PLEDGES,
    from: '2025-08-19',
    at: '2025-08-21T09:00:00Z',
    sent: [pledge('2025-08-19', 1)],
  });
  await replay(context, {});
  const before = await physicalRows(context);
  await replay(context, {});
  expect(await physicalRows(context)).toEqual(before);
});

test('where responses are lacking, nothing is said of what was not changed', async () => {
  const context = await openStore();
  await loadRequested(context, { ...BHAV_COPY, at: `${DAY}T16:31:00Z`, sent: many('unread') });
  await loadRequested(context, {
    ...BHAV_COPY,
    instruments: ['S0'],
    at: `${DAY}T16:32:00Z`,
    sent: many(7, 1),
  });
  await context.db.pool.query("update etl.responses set hash = null where instruments <> '{}'");
  await fixReading(context, (sent) => {
    for (const record of sent) record.ClosePrice = 5;
  });
  await replay(context, {});
  const rows = (await all(context, 'select from market.bhavcopy_cm')).length;
  expect([
    [1, 'failed'],
    [20, 'loaded'],
  ]).toContainEqual([rows, await state(context, DAY)]);
});

test('a part that cannot read a response names it', async () => {
  const context = await openStore();
  await loadRequested(context, { ...BHAV_COPY, at: `${DAY}T16:30:00Z`, sent: many(5) });
  await context.db.pool.query('update etl.response_bodies set body = $1', [brotliCompressSync('<html>')]);
  await replay(context, {});
  expect((await all(context, 'select error from etl.windows order by id desc limit 1'))[0].error).toContain(
    'GetBhavCopyCM NSE',
  );
});
