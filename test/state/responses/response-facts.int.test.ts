import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import { sumCoverage } from '../../../src/state/coverage/sum-of-facts.ts';
import { COVERAGE_STATES, type CoverageEntry } from '../../../src/state/registers.ts';
import { buildFact } from '../../../src/state/responses/response-facts.ts';
import { newRun } from '../../load/support.ts';
import { differingCoverage } from '../../support/differing-coverage.ts';
import { sample } from '../../support/for-all.ts';
import { openStore, query } from '../../support/import-support.ts';
import {
  fetched,
  fixReading,
  records,
  replay,
  requestAndLoad,
  type SourceRecord,
} from '../../support/replay-support.ts';

/** What is said of a response besides its entries. */
const LOADED = { outcome: { state: 'loaded' }, doubts: [] } as const;

const LAST = '2025-08-29';
const DAYS: readonly string[] = ['2025-08-27', '2025-08-28', LAST];
const SYMBOLS = ['', 'A', 'B', 'M&M, "x"', '{}'] as const;

/** What a response may say of its entries: often the same of all, and mostly of one day. */
const said = fc
  .record({
    instruments: fc.subarray(SYMBOLS.slice(1)),
    days: fc.oneof(fc.constant([LAST as string]), fc.subarray([...DAYS])),
    states: fc.subarray([...COVERAGE_STATES], { minLength: 1 }),
    records: fc.subarray([0, 1, 2_145], { minLength: 1 }),
    diagnostics: fc.subarray([undefined, '', 'none of its records was stored; see its rejects'], {
      minLength: 1,
    }),
    drawn: fc.array(fc.nat(), { minLength: 12, maxLength: 12 }),
  })
  .map(({ instruments, days, states, records, diagnostics, drawn }) => {
    const entryInstruments = instruments.length === 0 ? [''] : instruments;
    const of = <Value>(values: readonly Value[], at: number) =>
      values[(drawn[at] ?? 0) % values.length] as Value;
    const coverage = days.flatMap((day, row) =>
      entryInstruments.map((instrument, column): CoverageEntry => {
        const at = (row * entryInstruments.length + column) % drawn.length;
        const diagnostic = of(diagnostics, at);
        return {
          ...{ day, instrument, variant: '', state: of(states, at), records: of(records, at) },
          ...(diagnostic !== undefined && { diagnostic }),
        };
      }),
    );
    return { instruments, coverage };
  });

test('what a response says of its entries comes back as it was kept, in a few bytes where it is the same of all', async () => {
  const { db } = await openStore();
  const sets = sample(said, { numRuns: 2_000, seed: 11 });
  const facts = sets.map(({ coverage, instruments }) =>
    buildFact({ coverage, ...LOADED }, { to: LAST, instruments }),
  );
  const kept = sets.map(({ instruments }, id) => ({ id, instruments, to_date: LAST, ...facts[id] }));
  const result = await db.drizzle.execute<{ id: number } & Record<string, unknown>>(sql`
    select r.id::int, entry.day::text, entry.instrument, entry.said as state, entry.records::int, entry.diagnostic
      from jsonb_populate_recordset(null::etl.responses, ${JSON.stringify(kept)}::jsonb) r,
           etl.said_of_entries(r.to_date, r.instruments, r.said, r.records, r.diagnostic, r.entries)
             as entry(day, instrument, said, records, diagnostic)`);
  const text = ({ day, instrument, state, records, diagnostic }: Record<string, unknown>) =>
    JSON.stringify([day, instrument, state, records, diagnostic ?? null]);
  const decoded = sets.map((): string[] => []);
  for (const row of result.rows) decoded[row.id]?.push(text(row));
  for (const [id, { coverage }] of sets.entries()) {
    const entries = coverage.map((entry) => text({ ...entry }));
    expect(decoded[id]?.sort()).toEqual(entries.sort());
  }
  const plain = facts.filter(({ said, entries }) => said !== null && entries === null);
  expect(plain.length).toBeGreaterThan(200);
  expect(buildFact({ coverage: [], ...LOADED }, { to: LAST, instruments: [] })).toMatchObject({
    said: null,
    entries: [],
  });
});

const sums = ({ db }: Context) => differingCoverage(db.drizzle, ['GetBhavCopyCM'], ['NSE']);
const coverageOf = (context: Context) =>
  query(context, 'select day::text, state, records::int from etl.coverage order by day');

test('coverage takes back what a response does not say any more when it is read with other code', async () => {
  const context = await openStore();
  await fetched(1, records(0, 5))(context, { day: LAST, to: '2025-08-30' });
  expect(await coverageOf(context)).toEqual([{ day: LAST, state: 'loaded', records: 5 }]);
  // An entry that an earlier version requested, because its calendar had a trading day on that Saturday.
  await query(context, `update etl.responses set entries = entries || '[{"day": "2025-08-30"}]'`);
  await query(
    context,
    `insert into etl.coverage (operation, exchange, day, last_position, last_said, last_records, loaded_position, loaded_records)
     select operation, exchange, '2025-08-30', last_position, last_said, last_records, loaded_position, loaded_records from etl.coverage`,
  );
  expect(await sums(context)).toEqual([]);
  await fixReading(context, (sent) => sent.splice(0));
  await replay(context, {});
  expect(await coverageOf(context)).toEqual([{ day: LAST, state: 'not_published', records: 0 }]);
  expect(await sums(context)).toEqual([]);
});

test('of several responses that took the last row of a day the newest counts, also after a late one', async () => {
  const context = await openStore();
  const load = (minute: number, sent: readonly SourceRecord[]) =>
    requestAndLoad(context, {
      operation: 'GetSeriesChange',
      from: LAST,
      sent,
      calledAt: Date.UTC(2025, 9, 29, 16, minute),
      microseconds: 0,
    });
  const row = { ChangeDate: '08-29-2025', ScripId: 'A', PrevSeries: 'EQ', ToSeries: 'BE' };
  await load(1, [row]);
  await load(3, [row]);
  await load(4, []);
  await load(2, []);
  expect(await coverageOf(context)).toEqual([{ day: LAST, state: 'empty', records: 0 }]);
});

test('a response that a late one leaves nothing to take says so no more', async () => {
  const context = await openStore();
  const row = { ChangeDate: '08-29-2025', ScripId: 'A', PrevSeries: 'EQ', ToSeries: 'BE' };
  const load = (exchange: string, minute: number, sent: readonly SourceRecord[]) =>
    requestAndLoad(context, {
      ...{ operation: 'GetSeriesChange', exchange, from: LAST, sent },
      calledAt: Date.UTC(2025, 9, 29, 16, minute),
      microseconds: exchange === 'NSE' ? 0 : 1,
    });
  for (const exchange of ['NSE', 'BSE']) {
    await load(exchange, 1, [row]);
    await load(exchange, 3, []);
  }
  await load('NSE', 2, []);
  const took = `select exchange, extract(minute from position)::int as minute, day::text, state, unlisted_rows, remaining_rows
                  from etl.withdrawals order by 1, 2`;
  const withdrawn = { day: LAST, state: 'withdrawn', unlisted_rows: 1, remaining_rows: 0 };
  expect(await query(context, took)).toEqual([
    { exchange: 'BSE', minute: 3, ...withdrawn },
    { exchange: 'NSE', minute: 2, ...withdrawn },
  ]);
});

test('a new response is kept with what it said by the statement that keeps it, and no other statement', async () => {
  const context = await openStore();
  const statements: string[] = [];
  context.db.pool.on('connect', (client) => {
    const { query } = client;
    Object.assign(client, {
      query: (...args: unknown[]) => {
        statements.push(typeof args[0] === 'string' ? args[0] : ((args[0] as { text?: string }).text ?? ''));
        return Reflect.apply(query, client, args);
      },
    });
  });
  const writing = async (load: ReturnType<typeof fetched>) => {
    statements.splice(0);
    await load(context);
    return statements.filter((text) => /(?:insert into|update) "etl"."responses"/.test(text)).length;
  };
  // Later on, connections that were open before are closed.
  await Promise.all([...Array(8).keys()].map(() => context.db.pool.query('select 1')));
  expect(await writing(fetched(2, records(0, 60)))).toBe(1);
  expect(await writing(fetched(4, records(0, 59)))).toBe(1);
  expect(await writing(fetched(3, records(0, 60)))).toBe(1);
  expect(await sums(context)).toEqual([]);
});

test('a sum of facts that does not come to rest is an error that is tried again, and not a silent end', async () => {
  const { db } = await openStore();
  await db.pool.query(`
    create function lose() returns trigger language plpgsql as 'begin return null; end';
    create trigger lose before insert on etl.coverage for each row execute function lose()`);
  const runId = await newRun(db);
  await db.pool.query(
    `insert into etl.responses (position, run_id, window_id, operation, exchange, from_date, to_date, instruments, params, variant,
       is_filtered, called_on, fetched_at, content_type, said, records)
     select clock_timestamp(), $1, 0, 'GetSeriesChange', 'NSE', '2025-01-01', '2025-01-01', '{}', '{}', '', false, '2025-01-01', now(), null, 'empty', 0`,
    [runId],
  );
  const scope = { operations: ['GetSeriesChange'], exchange: 'NSE', days: null };
  await expect(sumCoverage(db.drizzle, scope)).rejects.toMatchObject({ kind: 'database_locked' });
});
