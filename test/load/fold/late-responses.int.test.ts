import { describe, expect } from 'vitest';
import { planReplay } from '../../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../../src/jobs/replay/work-replay.ts';
import { buildFoldSettings } from '../../../src/jobs/responses/store-response.ts';
import { acceptWithdrawal } from '../../../src/load/accept-withdrawal.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import { listSuspiciousWindows } from '../../../src/state/windows/suspicious.ts';
import { listWithheldWithdrawals } from '../../../src/state/withdrawals.ts';
import { openStore, test } from '../../support/import-support.ts';
import {
  ALWAYS,
  acceptRefused,
  all,
  DAY,
  fetched,
  live,
  physicalRows,
  records,
  replay,
  replayAnew,
  requestAndLoad,
  rowsOf,
  type SourceRecord,
} from '../../support/replay-support.ts';

describe('a response that is loaded after one that was fetched later', () => {
  test('removes nothing, brings nothing back and leaves the coverage as it is', async ({ context }) => {
    await fetched(1, records(0, 53))(context);
    await fetched(3, records(2, 53))(context);
    const before = await live(context);
    const coverage = await all(context, 'select day, state, records, window_id from etl.coverage');
    // It lacks the last two and lists the first two, which the newer one does not.
    const late = await fetched(2, records(0, 51))(context);
    expect(late).toMatchObject({ counts: { withdrawn: 0, inserted: 0, updated: 0 }, suspicious: null });
    expect(await live(context)).toEqual(before);
    expect(await all(context, 'select day, state, records, window_id from etl.coverage')).toEqual(coverage);
  });

  test('opens no reject of a record that the later response has without a problem, and keeps the reject as resolved', async () => {
    const context = await openStore();
    const bad = { ...records(0, 1)[0], ClosePrice: 'unknown' };
    const rejects = () =>
      all(
        context,
        `select record->>'Symbol' as symbol, resolved_at is null as open, first_seen_at, last_seen_at
           from etl.rejects order by 1`,
      );
    const worse = { ...records(1, 2)[0], ClosePrice: 'unknown' };
    await fetched(3, [...records(0, 1), worse, ...records(2, 20)])(context);
    await fetched(2, [bad, worse, ...records(2, 20)])(context);
    const minute = (at: number) => new Date(Date.UTC(2025, 7, 29, 16, at));
    const expected = [
      { symbol: 'S000', open: false, first_seen_at: minute(2), last_seen_at: minute(2) },
      { symbol: 'S001', open: true, first_seen_at: minute(2), last_seen_at: minute(3) },
    ];
    expect(await rejects()).toEqual(expected);
    await fetched(2, [bad, worse, ...records(2, 20)])(context);
    expect(await rejects()).toEqual(expected);
  });

  test('leaves a reject open that was seen in a later response of the same millisecond', async () => {
    const context = await openStore();
    const sent = (day: string, more: SourceRecord = {}) => records(0, 2, { TradDt: day, ...more });
    await fetched(2, sent('08-22-2025', { ClosePrice: 'unknown' }), 1)(context, { day: '2025-08-22' });
    await fetched(
      2,
      [...sent('08-21-2025'), ...sent('08-22-2025')],
      0,
    )(context, {
      day: '2025-08-21',
      to: '2025-08-22',
    });
    expect(await all(context, 'select from etl.rejects where resolved_at is null')).toHaveLength(2);
  });

  test('changes a row only where it was saved later', async ({ context }) => {
    await fetched(3, records(0, 2))(context);
    const [same, newer] = [
      { ...records(0, 1)[0], ClosePrice: 7 },
      { ...records(1, 2)[0], ClosePrice: 7, SavedAt: '08-29-2025 21:15:00' },
    ];
    expect(await fetched(2, [same, newer])(context)).toMatchObject({
      counts: { updated: 1, unchanged: 1, stale: 0 },
    });
    expect(await all(context, 'select symbol, close_price::int from market.bhavcopy_cm order by 1')).toEqual([
      { symbol: 'S000', close_price: 100 },
      { symbol: 'S001', close_price: 7 },
    ]);
  });

  test('withdraws what it does not list, but for what a later response for some instruments lists', async () => {
    const context = await openStore();
    await fetched(1, records(0, 20))(context);
    await fetched(3, records(0, 2))(context, { instruments: ['S000', 'S001'] });
    const whole = await fetched(2, records(3, 20))(context);
    expect(whole).toMatchObject({ counts: { withdrawn: 1 }, suspicious: null });
    expect(await live(context)).toEqual(
      records(0, 20).flatMap(({ Symbol: symbol }) => (symbol === 'S002' ? [] : [symbol])),
    );
  });

  test('changes nothing where the body of the later response is lost, and names that response', async ({
    context,
  }) => {
    await fetched(1, records(0, 20))(context);
    await fetched(3, records(0, 2))(context, { instruments: ['S000', 'S001'] });
    await context.db.pool.query(`update etl.responses set hash = null where id = 2`);
    const before = await rowsOf(context, 'market');
    await expect(fetched(2, records(2, 21, { ClosePrice: 7 }))(context)).rejects.toThrow(
      'the response of load 2 is not kept',
    );
    expect(await rowsOf(context, 'market')).toEqual(before);
  });

  test('says that its day is loaded where a response fetched later had nothing and its rows stay', async () => {
    const context = await openStore();
    const coverage = () => all(context, 'select day::text, state, records::int from etl.coverage');
    await fetched(2, [])(context);
    expect(await coverage()).toEqual([{ day: DAY, state: 'not_published', records: 0 }]);
    await fetched(1, records(0, 20))(context);
    expect(await live(context)).toHaveLength(20);
    expect(await coverage()).toEqual([{ day: DAY, state: 'loaded', records: 20 }]);
  });

  test('does not make a day empty whose later response was rejected as a whole', async ({ context }) => {
    const day = '2025-08-01';
    await fetched(3, [{ Unknown: 1 }])(context, { day });
    await fetched(2, [])(context, { day });
    expect(await all(context, 'select state from etl.coverage')).toEqual([{ state: 'failed' }]);
  });

  test('leaves a day suspicious if a later response without rows should have withdrawn its rows', async () => {
    const context = await openStore();
    const day = '2025-08-01';
    const sent = records(0, 14, { TradDt: '08-01-2025' });
    await fetched(3, [])(context, { day });
    await fetched(2, sent)(context, { day, instruments: sent.map(({ Symbol: name }) => String(name)) });
    expect(await live(context)).toHaveLength(14);
    const coverage = await all(context, `select state from etl.coverage where instrument = ''`);
    expect(coverage).toEqual([{ state: 'failed' }]);
  });

  test('leaves its rejects open if a later response came before the data was published', async () => {
    const context = await openStore();
    await fetched(3, [])(context);
    await fetched(2, [{ Unknown: 1 }])(context);
    expect(await all(context, 'select resolved_at from etl.rejects')).toEqual([{ resolved_at: null }]);
  });

  test('is applied with those fetched later in the order in which they were fetched', async ({ context }) => {
    await fetched(1, records(0, 20))(context);
    // Four rows less may be, three more then not: with the second in between, the third is not believed.
    const third = await fetched(3, records(4, 20))(context);
    expect(third).toMatchObject({ counts: { withdrawn: 4 }, suspicious: null });
    const second = await fetched(2, [...records(0, 20), ...records(20, 23)])(context);
    expect(second).toMatchObject({ counts: { inserted: 3, updated: 4, withdrawn: 0 } });
    expect(second.suspicious).toMatch(/^7 of 23 rows of market\.bhavcopy_cm were not listed any more/);
    expect(await live(context)).toHaveLength(23);
    const [withheld] = await listWithheldWithdrawals(context.db.drizzle, 10, 3);
    const accepting = { by: 'me', ...buildFoldSettings(context) };
    // A response for one of them was fetched later still, and wrote nothing.
    await fetched(4, records(1, 2, { ClosePrice: 101 }))(context, { instruments: ['S001'] });
    expect(await acceptWithdrawal(context.db, withheld?.id ?? 0, accepting)).toMatchObject({
      withdrawn: 6,
      left: 17,
    });
    expect(await live(context)).toEqual(['S001', ...records(4, 20).map(({ Symbol: symbol }) => symbol)]);
    const before = await physicalRows(context);
    await replay(context, {});
    expect(await physicalRows(context)).toEqual(before);
  });
});

describe('a replay', () => {
  test('with unchanged code writes nothing at all, whatever came before', async ({ context }) => {
    await fetched(1, records(0, 20))(context);
    await fetched(2, records(0, 20, { SavedAt: '08-29-2025 21:10:00', ClosePrice: 5 }))(context);
    await fetched(4, records(2, 21))(context);
    await fetched(3, records(0, 19, { SavedAt: '08-29-2025 21:20:00', ClosePrice: 6 }))(context);
    await fetched(5, records(2, 3, { SavedAt: '08-29-2025 21:30:00' }))(context, { instruments: ['S002'] });
    // The next is not believed, another day was empty, and calls after both failed.
    await fetched(6, records(0, 2))(context);
    await fetched(7, [])(context, { day: '2025-08-28' });
    await writeCoverage(context.db.drizzle, {
      operation: 'GetBhavCopyCM',
      exchange: 'NSE',
      runId: 1,
      windowId: null,
      position: await takePosition(context.db.drizzle),
      coverage: [DAY, '2025-08-28'].map((day) => ({
        day,
        instrument: '',
        variant: '',
        state: 'failed',
        records: 0,
        diagnostic: 'it broke',
      })),
    });
    const before = await physicalRows(context);
    const states = await all(context, 'select max(state) from etl.loads');
    for (let time = 0; time < 2; time += 1) {
      const report = await replay(context, {});
      expect(report).toMatchObject({ state: 'completed', inserted: 0, updated: 0, withdrawn: 0 });
    }
    expect(await physicalRows(context)).toEqual(before);
    expect(await all(context, 'select max(state) from etl.loads')).toEqual(states);
  });

  test('does not lose a response that is loaded after it was planned', async ({ context }) => {
    await fetched(1, records(0, 20))(context);
    const runId = (await planReplay(context, {})) ?? 0;
    await fetched(2, records(1, 22, { ClosePrice: 3, SavedAt: '08-29-2025 21:10:00' }))(context);
    const before = await physicalRows(context);
    await workReplay(context, runId, new AbortController().signal);
    expect(await physicalRows(context)).toEqual(before);
  });
});

test('records of a day, quarter or exchange that was not requested are rejected, and leave no trace but rejects', async () => {
  const context = await openStore();
  const strays: SourceRecord[] = [
    { ...records(30, 31)[0], TradDt: '08-28-2025' },
    { ...records(31, 32)[0], TradDt: '01-01-2199' },
    { ...records(32, 33)[0], Src: 'BSE' },
  ];
  const loaded = await fetched(1, [...records(0, 40), ...strays])(context);
  expect(loaded).toMatchObject({
    counts: { inserted: 40, rejected: 3, withdrawn: 0 },
    suspicious: '3 records are of a day, quarter or exchange that was not requested',
  });
  const problems = await all(context, 'select problems from etl.rejects order by position');
  expect(problems.map((row) => row.problems[0].message)).toEqual([
    'is 2025-08-28, a day that was not requested',
    'is 2199-01-01, a day that was not requested',
    'is BSE, an exchange that was not requested',
  ]);
  expect(await all(context, 'select day::text, state from etl.coverage')).toEqual([
    { day: DAY, state: 'failed' },
  ]);
  expect(await all(context, "select day::text from etl.sessions where kind = 'observed'")).toEqual([]);
  expect(await all(context, "select relname from pg_class where relname like 'bhavcopy_cm_2199%'")).toEqual(
    [],
  );
});

test('lines of CSV in which ends of lines are missing leave the trading day incomplete', async () => {
  const context = await openStore();
  const sent = records(0, 30);
  const lines = sent.map((record) => Object.values(record).join());
  const csv = `${Object.keys(sent[0] ?? {}).join()}\n${lines.join('\n').replace('\n', '')}\n`;
  const loaded = await requestAndLoad(context, {
    operation: 'GetBhavCopyCM',
    from: DAY,
    sent: [],
    csv,
    calledAt: Date.UTC(2025, 7, 29, 16, 1),
    microseconds: 1,
  });
  const diagnostic =
    'a line has the cells of several rows, and it cannot be seen where one ends: its rows are missing';
  expect(loaded).toMatchObject({ counts: { inserted: 28, rejected: 1 }, suspicious: diagnostic });
  expect(await all(context, 'select state, diagnostic from etl.coverage')).toEqual([
    { state: 'failed', diagnostic },
  ]);
});

test('records of instruments that were not requested are stored, and the latest response counts', async () => {
  const closesOf = async (minutes: readonly number[]) => {
    const context = await openStore();
    for (const minute of minutes)
      await fetched(minute, records(0, 2, { ClosePrice: minute }))(context, {
        instruments: [minute === 1 ? 's000' : 'S001'],
      });
    const rows = await all(context, 'select distinct close_price::int as close from market.bhavcopy_cm');
    return rows.map(({ close }) => close);
  };
  expect(await closesOf([1, 2])).toEqual([2]);
  expect(await closesOf([2, 1])).toEqual([2]);
});

test('a window is suspicious until a good response that is later, in whatever order they are loaded', async () => {
  const ordered = async (...minutes: readonly number[]) => {
    const context = await openStore();
    for (const minute of minutes)
      await requestAndLoad(context, {
        operation: 'GetBhavCopyCM',
        from: DAY,
        sent: records(0, 40),
        // It says that it has more records than it has.
        more: { TotalCount: minute === 2 ? 41 : 40 },
        calledAt: Date.UTC(2025, 7, 29, 16, minute),
        microseconds: 1,
        count: 'accept',
      });
    return (await listSuspiciousWindows(context.db.drizzle, ALWAYS, 5)).length;
  };
  expect(await ordered(2, 1)).toBe(1);
  expect(await ordered(1, 2)).toBe(1);
  expect(await ordered(2, 3)).toBe(0);
  expect(await ordered(3, 2)).toBe(0);
});

test('a day that was loaded is suspicious again after a response with records nobody requested, until a good one comes', async () => {
  const context = await openStore();
  const coverage = () => all(context, 'select day::text, state, records::int from etl.coverage');
  await fetched(1, records(0, 40))(context);
  expect(await coverage()).toEqual([{ day: DAY, state: 'loaded', records: 40 }]);
  const stray = { ...records(30, 31)[0], TradDt: '08-28-2025' };
  expect(await fetched(3, [...records(0, 40), stray])(context)).toMatchObject({
    suspicious: 'a record is of a day, quarter or exchange that was not requested',
  });
  expect(await coverage()).toEqual([{ day: DAY, state: 'failed', records: 40 }]);
  // An older one does not resolve it, a newer one does.
  await fetched(2, records(0, 40))(context);
  expect(await coverage()).toEqual([{ day: DAY, state: 'failed', records: 40 }]);
  await replayAnew(context);
  expect(await coverage()).toEqual([{ day: DAY, state: 'failed', records: 40 }]);
  await fetched(4, records(0, 40))(context);
  expect(await coverage()).toEqual([{ day: DAY, state: 'loaded', records: 40 }]);
  await replayAnew(context);
  expect(await coverage()).toEqual([{ day: DAY, state: 'loaded', records: 40 }]);
});

test('a suspicious day is not empty because of a response without rows whose withdrawal was withheld', async () => {
  const context = await openStore();
  const day = '2025-08-22';
  const sent = records(0, 40, { TradDt: '08-22-2025' });
  const coverage = () => all(context, 'select day::text, state, records::int, diagnostic from etl.coverage');
  await fetched(1, sent)(context, { day });
  await fetched(2, [...sent, ...records(30, 31)])(context, { day });
  const empty = await fetched(3, [])(context, { day });
  expect(empty.suspicious).toMatch(/40 of 40 rows of market\.bhavcopy_cm were not listed any more/);
  expect(await live(context)).toHaveLength(40);
  const diagnostic = 'the response has no rows of this day, but some are stored';
  const expected = [{ day, state: 'failed', records: 0, diagnostic }];
  expect(await coverage()).toEqual(expected);
  await replayAnew(context);
  expect(await live(context)).toHaveLength(40);
  expect(await coverage()).toEqual(expected);
  await acceptRefused(context);
  expect(await live(context)).toEqual([]);
  expect(await coverage()).toEqual([{ day, state: 'empty', records: 0, diagnostic: null }]);
});

test('a record that says it was saved after the call is taken as saved then', async ({ context }) => {
  const odd = await fetched(1, records(0, 1, { SavedAt: '01-01-2199 00:00:00' }))(context);
  expect(odd.warnings).toEqual([expect.stringMatching(/^1 records? .*2199.*saved at the time of the call$/)]);
  expect(await all(context, 'select source_saved_at from market.bhavcopy_cm')).toEqual([
    { source_saved_at: new Date(Date.UTC(2025, 7, 29, 16, 1)) },
  ]);
  const corrected = await fetched(
    9,
    records(0, 1, { ClosePrice: 8, SavedAt: '08-29-2025 21:35:00' }),
  )(context);
  expect(corrected).toMatchObject({ counts: { updated: 1 }, warnings: [] });
  expect(await all(context, 'select close_price::int from market.bhavcopy_cm')).toEqual([{ close_price: 8 }]);
  // Repeated word for word it changes nothing, however often it is requested.
  const future = { ClosePrice: 8, SavedAt: '01-01-2199 00:00:00' };
  const other = { ...future, ClosePrice: 9 };
  const repeated = [future, { ...future, SavedAt: '01-02-2199 00:00:00' }, other, other];
  const expected = ['unchanged', 'unchanged', 'updated', 'unchanged'];
  for (const [at, sent] of repeated.entries()) {
    const { counts } = await fetched(10 + at, records(0, 1, sent))(context);
    expect(counts).toMatchObject({ updated: 0, unchanged: 0, stale: 0, [expected[at] as string]: 1 });
  }
  expect(await all(context, 'select source_saved_at from market.bhavcopy_cm')).toEqual([
    { source_saved_at: new Date('2025-08-29T21:35:00+05:30') },
  ]);
});
