import { beforeAll, describe, expect, test } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import { nightlyRequest } from '../../src/jobs/runs/nightly-request.ts';
import { operations, tables } from '../../src/operations/registry.ts';
import { type Behaviour, CONTRARY } from '../../src/sandbox/index.ts';
import { testDatabase } from '../support/database.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';

/** An evening in India, after publication: the same for the pipeline and the sources. */
const clock = { now: () => Date.parse('2025-09-10T22:05:00+05:30') };
const BEFORE = { from: '2025-09-09', to: '2025-09-09' };
const TONIGHT = '2025-09-10';

/** A source without a snapshot of ratios has the price under other names. */
const NOT_OF_SNAPSHOTS = "variant <> 'snapshot'";

/**
 * What another reading of the service does not tell us: columns, with the rows in which they are known in spite of it
 * (SQL). Every other value must be the same.
 */
const UNKNOWN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  // The spelling of the source is kept.
  bhavcopy_cm: { source_exchange: 'false' },
  series_changes: { scrip_id: 'false' },
  // An action without an id gets one of ours, and where days are sent without a time there is none.
  corporate_actions: { action_id: 'false', announced_at: 'false' },
  financial_ratios: {
    eod_close_price: NOT_OF_SNAPSHOTS,
    current_price: NOT_OF_SNAPSHOTS,
    stock_price: NOT_OF_SNAPSHOTS,
  },
};

/** Whichever of its days the source selects by: announced on a day of the night, and for one that it requests ahead. */
const KNOWN_ACTION = `announcement_date >= '${BEFORE.from}' and prov_xdate <= '${addDays(TONIGHT, 30)}'`;

/** Rows that are only there in one reading. */
const ROWS: Readonly<Record<string, string>> = {
  financial_ratio_facts: `${NOT_OF_SNAPSHOTS} or fact_key !~ 'Price$'`,
  corporate_actions: KNOWN_ACTION,
  corporate_events: `(symbol, ex_date) in (select symbol, prov_xdate from market.corporate_actions where ${KNOWN_ACTION})`,
};

/** Digits that JSON has of a number in every reading. */
const DIGITS = 15;

type Shapes = Behaviour['shapes'];

/** Loads a night and the day before it, of every operation. @returns the rows of every table, as far as they can be known. */
async function load(behaviour: Partial<Behaviour>, settings: Readonly<Record<string, string>> = {}) {
  const pipeline = await openPipeline({
    sandbox: { instrumentsPerExchange: 100, behaviour },
    clock,
    settings: { EOD_INSTRUMENT_LIMIT: '1', EOD_LOOKBACK_SESSIONS: '1', ...settings },
  });
  const night = await runToEnd(pipeline, await nightlyRequest(pipeline, { date: TONIGHT }));
  const rows = await rowsOf(pipeline);
  const unread = "select from etl.windows where warnings::text like '%no column reads%'";
  expect((await pipeline.db.pool.query(unread)).rowCount).toBe(0);
  await pipeline.close();
  return { night, rows };
}

async function rowsOf({ db }: Pipeline): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const { name, fields } of tables) {
    const columns = fields.map(({ column }) => {
      const known = UNKNOWN[name]?.[column] ?? 'true';
      return `case when ${known} then ${column}::text end as ${column}`;
    });
    const { rows } = await db.pool.query<Record<string, string | null>>(
      `select ${columns.join(', ')} from market.${name} where ${ROWS[name] ?? 'true'}`,
    );
    const numbers = new Set(fields.filter(({ kind }) => kind === 'numeric').map(({ column }) => column));
    const texts = rows.map((row) =>
      JSON.stringify(
        Object.entries(row).map(([column, value]) =>
          numbers.has(column) && value !== null ? Number(value).toPrecision(DIGITS) : value,
        ),
      ),
    );
    found[name] = texts.sort();
  }
  return found;
}

describe('a source that reads its documentation in the other way', () => {
  const agreeable: Partial<Record<Shapes, Awaited<ReturnType<typeof load>>>> = {};
  beforeAll(async () => {
    for (const shapes of ['sample', 'declared'] as const) agreeable[shapes] = await load({ shapes });
    const loaded = Object.values(agreeable).flatMap(({ rows }) => Object.entries(rows));
    const filled = new Set(loaded.flatMap(([table, rows]) => (rows.length > 0 ? [table] : [])));
    // The comparisons are about rows of every table, and about a series change that has a suffix.
    const shapes = operations.flatMap((operation) => operation.shapes);
    expect(shapes.map(({ table }) => table.name).filter((name) => !filled.has(name))).toEqual([]);
    expect(agreeable.sample?.rows.series_changes?.join()).toMatch(/"BE","EQ"|"BE","/);
  });

  test.each([
    ['Json', 'Epoch', 'sample'],
    ['Xml', 'String', 'declared'],
    ['Csv', 'String', 'sample'],
  ] as const)(
    'fills all tables with the same rows: %s, dates as %s, the %s form',
    async (format, dates, shapes) => {
      const expected = agreeable[shapes];
      const settings = { EOD_FORMAT: format, EOD_DATE_FORMAT: dates, EOD_COUNT: 'ignore' };
      const { night, rows } = await load({ ...CONTRARY, trialDay: undefined, shapes }, settings);
      expect(night).toMatchObject({ state: 'completed', failures: [], rejected: 0, withdrawn: 0 });
      for (const [table, list] of Object.entries(rows))
        expect([table, ...list]).toEqual([table, ...(expected?.rows[table] ?? [])]);
      expect(new Set(night.operations.map(({ operation }) => operation)).size).toBe(operations.length);
    },
  );
});

test('a change of format makes one revision of the rows whose digits differ, and no second one', async () => {
  const behaviour = { shortNumbers: true };
  const sandbox = await openSandbox({ clock, instrumentsPerExchange: 20, behaviour });
  const requested = backfill({
    ...BEFORE,
    operations: ['GetFinRatioEOD'],
    instruments: ['TCS'],
    force: true,
  });
  const { url } = await testDatabase();
  const updated: number[] = [];
  for (const format of ['Json', 'Json', 'Csv', 'Csv', 'Xml']) {
    const settings = { EOD_FORMAT: format };
    const pipeline = await openPipeline({ databaseUrl: url, sourceUrl: sandbox.url, clock, settings });
    updated.push((await runToEnd(pipeline, requested)).updated);
    await pipeline.close();
  }
  const [, , changed] = updated;
  expect(changed).toBeGreaterThan(0);
  expect(updated).toEqual([0, 0, changed, 0, 0]);
});

test('a contrary trial address fills the tables for its day as if it were today', async () => {
  const DAY = '2025-02-27';
  const then = { now: () => Date.parse(`${DAY}T22:05:00+05:30`) };
  const rowsWith = async (
    behaviour: Partial<Behaviour>,
    at: typeof clock,
    settings: Readonly<Record<string, string>>,
  ) => {
    const pipeline = await openPipeline({
      sandbox: { instrumentsPerExchange: 30, behaviour },
      clock: at,
      settings: { EOD_INSTRUMENT_LIMIT: '1', ...settings },
    });
    const report = await runToEnd(pipeline, backfill({ from: DAY, to: DAY }));
    expect(report).toMatchObject({ state: 'completed', failures: [], rejected: 0 });
    return rowsOf(pipeline);
  };
  // A single day has no action that was announced on it and is for it.
  const contrary = { ...CONTRARY, shapes: 'sample', actionsByAnnouncement: false } as const;
  const settings = { EOD_TRIAL_DAY: DAY, EOD_COUNT: 'ignore' };
  expect(await rowsWith(contrary, clock, settings)).toEqual(await rowsWith({}, then, {}));
});
