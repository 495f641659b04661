import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Clock, today } from '../../../src/core/clock.ts';
import type { Operation, Shape } from '../../../src/declaration/operation.ts';
import type { Context } from '../../../src/jobs/context.ts';
import { operations, tables } from '../../../src/operations/registry.ts';
import { loadResponse, type Response } from '../../support/as-worker.ts';
import { differingCoverage } from '../../support/differing-coverage.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { openStore } from '../../support/import-support.ts';
import { positionOf } from '../../support/position.ts';
import { replay, replayAnew, rowsOf, type SourceRecord } from '../../support/replay-support.ts';
import { newRun, openPool } from '../support.ts';
import { contentOf, DAYS, SYMBOLS, truncateSql } from './commute-support.ts';

/** Of which times a record says that it was saved; 0: of none; the last is not believed. */
const SAVED = ['', '08-21-2025 09:02:14', '08-21-2025 09:15:00', '01-01-2199 00:00:00'] as const;
/** The first response may be fetched before the data of the last day is expected. */
const FIRST_CALL = Date.UTC(2025, 7, 21, 5);
const MINUTE = 60_000;

interface Listed {
  readonly day: number;
  readonly symbol: number;
  readonly saved: number;
  readonly value: number;
  /** Which of the operation's shapes it has. */
  readonly shape: number;
}

/** COMMUTE_ONLY: the responses are of a single operation. */
const only = operations.findIndex(({ name }) => name === process.env.COMMUTE_ONLY);

const drawnOf = fc.record({
  operation: fc.nat(operations.length - 1),
  exchange: fc.constantFrom('BSE', 'BSE', 'NSE'),
  from: fc.nat(DAYS.length - 1),
  length: fc.nat(2),
  entry: fc.nat(30),
  part: fc.constantFrom('full', 'full', 'full', 'filtered', 'instruments'),
  shapes: fc.constantFrom<readonly number[]>([0], [1], [1], [0, 1]),
  ...contentOf(SAVED.length),
  rejected: fc.constantFrom(false, false, false, true),
  /** Minutes since the call before. */
  minutes: fc.constantFrom(1, 1, 1, 400, 1_600, 40_000),
});
type Drawn = typeof drawnOf extends fc.Arbitrary<infer T> ? T : never;

/** All responses are to few requests, so that most of them are about the same rows. */
const responsesOf = fc
  .tuple(
    only >= 0
      ? fc.constant([only])
      : fc.uniqueArray(fc.nat(operations.length - 1), { minLength: 1, maxLength: 2 }),
    fc.array(drawnOf, { minLength: 3, maxLength: 9 }),
  )
  .map(([chosen, drawn]) => {
    let calledAt = FIRST_CALL;
    return drawn.map((response, at) => {
      calledAt += response.minutes * MINUTE;
      const operation = operations[chosen[response.operation % chosen.length] ?? 0] as Operation;
      return { ...responseOf(operation, response, calledAt), position: positionOf(calledAt, at) };
    });
  });

function responseOf(operation: Operation, drawn: Drawn, calledAt: number): Omit<Response, 'position'> {
  const calledOn = today({ now: () => calledAt } satisfies Clock, 'Asia/Kolkata');
  const entry = requestOf(operation, drawn, calledOn);
  const { exchanges } = operation;
  const exchange = exchanges.includes(drawn.exchange) ? drawn.exchange : (exchanges[0] as string);
  const { from, to, instruments } = entry;
  const shapes = drawn.shapes.map((shape) => shape % operation.shapes.length);
  const records: Listed[] = [];
  const dated = operation.shapes.some((shape) => shape.dated);
  for (let day = 0; day < (dated ? DAYS.length : 1); day += 1) {
    if (dated && !(from <= (DAYS[day] as string) && (DAYS[day] as string) <= to)) continue;
    for (let symbol = 0; symbol < SYMBOLS; symbol += 1) {
      if (instruments.length > 0 && !instruments.includes(`S${symbol}`)) continue;
      if (entry.filtered && symbol % 2 === 1) continue;
      if (drawn.missing.includes((symbol + day * 3) % SYMBOLS)) continue;
      const cell = drawn.cells[(symbol + day * 5) % SYMBOLS] ?? { saved: 0, value: 0 };
      const shape = shapes[symbol % shapes.length] ?? 0;
      records.push({ ...cell, day, symbol, shape });
    }
  }
  const again = records.slice(0, drawn.twice).map((record) => ({
    ...record,
    value: (record.value + 1) % 3,
    saved: (record.saved + 1) % SAVED.length,
  }));
  const sent = [...records, ...again].map((record) => recordOf(operation, exchange, record));
  if (drawn.rejected) sent.push({ Unknown: drawn.cells[0]?.value ?? 0 });
  const body = Buffer.from(JSON.stringify({ Value: sent }));
  return { operation, exchange, ...entry, calledAt, body };
}

/** What the planner might ask of an operation. */
function requestOf(operation: Operation, { from, length, part, entry }: Drawn, calledOn: string) {
  const { windows, request } = operation;
  const [first, last] = [DAYS[from] as string, DAYS[Math.min(DAYS.length - 1, from + length)] as string];
  const plain = { instruments: [] as string[], params: {}, variant: '', filtered: false };
  if (windows.per === 'instrument') {
    const options: Record<string, string> =
      operation.name === 'GetFinancialRatios' && entry % 2 === 0 ? { type: 'EOD' } : {};
    const requests = windows.requests({
      tradingDays: [first],
      from: '2025-06-30',
      to: last,
      today: calledOn,
      live: true,
      options,
    });
    const request = requests[entry % requests.length];
    if (request === undefined) throw new Error(`${operation.name} requests nothing`);
    const { from, to, params, variant } = request;
    return { ...plain, from, to, params, variant, instruments: [`S${entry % 2}`] };
  }
  const range =
    windows.per === 'once'
      ? { from: calledOn, to: calledOn }
      : { from: first, to: windows.per === 'session' ? first : last };
  if (part === 'instruments' && request.instruments !== 'none') {
    const instruments =
      request.instruments === 'one' ? [`S${from}`] : [`S${from}`, `S${from + 5}`, `S${from + 10}`];
    return { ...plain, ...range, instruments };
  }
  const filter = request.options.find(({ isFilter }) => isFilter);
  if (part === 'filtered' && filter !== undefined) {
    return { ...plain, ...range, filtered: true, params: { [filter.param]: filter.values?.at(-1) ?? 'A' } };
  }
  return { ...plain, ...range };
}

/** A record as the source sends it, made from the declaration of its shape. */
function recordOf(operation: Operation, exchange: string, listed: Listed): SourceRecord {
  const shape = operation.shapes[listed.shape] as Shape;
  const { table, symbolColumn, exchangeColumn } = shape;
  const [year, month, date] = (DAYS[listed.day] as string).split('-');
  const onDay = `${month}-${date}-${year}`;
  const sentValue = (column: string, kind: string) => {
    if (column === exchangeColumn) return exchange;
    const isKey = table.key.includes(column) || column === symbolColumn;
    switch (kind) {
      case 'date':
        return isKey ? (column === 'allotted_from' ? '03-31-2022' : onDay) : '08-01-2025';
      case 'boolean':
        return listed.symbol % 2 === 0;
      case 'datetime':
        return listed.saved === 0 || !column.startsWith('source_') ? null : SAVED[listed.saved];
      case 'text':
        return isKey || column === 'symbol' ? `S${listed.symbol}` : `V${listed.value}`;
      default:
        return isKey ? listed.symbol + 1 : listed.value;
    }
  };
  return Object.fromEntries(
    table.fields.flatMap((field) =>
      field.from === 'response' ? [[field.source, sentValue(field.column, field.kind)]] : [],
    ),
  );
}

let context: Context;
let pools: Context[];
let runId: number;
beforeAll(async () => {
  context = await openStore(undefined, { EOD_MAX_REJECT_SHARE: '0.9' });
  pools = [0, 1, 2].map(() => ({ ...context, db: openPool(context.config.DATABASE_URL ?? '', 2) }));
  runId = await newRun(context.db);
});

async function empty(): Promise<void> {
  await context.db.pool.query(truncateSql(tables.map(({ name }) => name)));
}

async function selected(sql: string): Promise<string[]> {
  return (await context.db.pool.query<{ row: string }>(sql)).rows.map(({ row }) => row);
}

/**
 * What must not depend on the order of the loads. The number of records in the coverage is left out: if a day has
 * several responses with records and a later one without, it is that of the one that was loaded last.
 */
const stored = async () => ({
  // Revisions do depend on it, except after a replay into emptied tables.
  rows: (await contentsOf('market')).map((row) => row.replace(/,\d+\)$/, '')).sort(),
  coverage: await selected(
    `select concat_ws(' ', operation, exchange, day, instrument, variant, state) as row from etl.coverage order by 1`,
  ),
  rejects: await selected(
    `select concat_ws(' ', operation, exchange, from_date, to_date, record) as row from etl.rejects where resolved_at is null order by 1`,
  ),
  withdrawals: await selected(
    `select concat_ws(' ', table_name, exchange, day, position, state, unlisted_rows, max_rows, remaining_rows) as row from etl.withdrawals order by 1`,
  ),
  facts: await selected(
    `select jsonb_build_array(position, said, records, diagnostic, entries, is_suspicious)::text as row from etl.responses
      where operation in (${operations.map(({ name }) => `'${name}'`).join(', ')}) order by 1`,
  ),
  differing: await differingCoverage(context.db.drizzle),
});

/** The rows of the tables that responses fill; others are computed from them when a run ends. */
async function contentsOf(schema: 'market' | 'market_history'): Promise<string[]> {
  const filled = operations.flatMap(({ shapes }) => shapes);
  const tableNames = new Set(filled.map(({ table }) => table.name));
  const contents = Object.entries(await rowsOf(context, schema));
  return contents.flatMap(([name, rows]) =>
    tableNames.has(name) ? rows.map((row) => `${name} ${row}`) : [],
  );
}

const revisions = async () => ({
  market: await contentsOf('market'),
  history: await contentsOf('market_history'),
});

const isEmptyResponse = ({ body }: Response) => body.equals(Buffer.from(JSON.stringify({ Value: [] })));

const describeResponse = ({ operation, body, ...rest }: Response) => ({
  operation: operation.name,
  ...rest,
  body: body.toString().slice(0, 300),
});

describe('responses of every operation in every shape', () => {
  test('leave the same rows, coverage and rejects in whatever order they are loaded, and after a replay into emptied tables', async () => {
    await forAllAsync(
      [responsesOf, fc.array(fc.nat(1_000), { minLength: 9, maxLength: 9 }), fc.integer({ min: 1, max: 3 })],
      { numRuns: 2, seed: 20_250_829, endOnFailure: true },
      async (responses, order, width) => {
        try {
          await empty();
          for (const response of responses) await loadResponse(context, runId, response);
          const inOrder = await stored();
          const past = await revisions();
          expect(inOrder.differing).toEqual([]);

          await empty();
          const queue = responses
            .map((response, at) => ({ response, position: order[at] ?? 0 }))
            .sort((a, b) => a.position - b.position)
            .map(({ response }) => response);
          while (queue.length > 0) {
            // Two responses without records do not wait for each other. If they are about the same day, it may count as
            // not published yet until it is requested again, although the later one says that there is nothing.
            const batch = queue.splice(0, width);
            const [first, ...others] = batch.filter(isEmptyResponse);
            const together = batch.filter((response) => response === first || !isEmptyResponse(response));
            await Promise.all(
              together.map((response, at) => loadResponse(pools[at] ?? context, runId, response)),
            );
            for (const response of others) await loadResponse(context, runId, response);
          }
          // A reject may stay open until the next response, but none is taken as resolved that is not.
          const same = { ...inOrder, rejects: expect.arrayContaining(inOrder.rejects) };
          expect(await stored(), 'in another order').toEqual(same);
          await replay(context, {});
          expect(await stored(), 'replayed').toEqual(same);
          await replayAnew(context);
          expect(await stored(), 'filled anew').toEqual(same);
          expect(await revisions(), 'filled anew').toEqual(past);
        } catch (error) {
          console.log(
            JSON.stringify(
              { responses: responses.map(describeResponse), order: order.slice(0, responses.length), width },
              null,
              1,
            ),
          );
          throw error;
        }
      },
    );
  }, 3_600_000);
});
