import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/load/database/database.ts';
import { loadWindow } from '../../src/load/market/load-window.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import type { Row } from '../../src/operations/table.ts';
import { bhavcopy, bhavRow, newRun, openPool, openStore } from './support.ts';

const DAYS = ['2025-08-27', '2025-08-28', '2025-08-29'] as const;
const SYMBOLS = ['A', 'B', 'C', 'D', 'E'] as const;
const [, categories] = operationNamed('GetCorporateActionsCategories').shapes;
if (categories === undefined) throw new Error('no shape of the categories');
const [, ratioShape] = operationNamed('GetFinRatioEOD').shapes;
if (ratioShape === undefined) throw new Error('no shape of the ratios');
const ratios = ratioShape.table;
const OPERATIONS = {
  days: 'GetBhavCopyCM',
  exchange: 'GetCorporateActionsCategories',
  instrument: 'GetFinRatioEOD',
} as const;
const TABLES = { days: bhavcopy, exchange: categories.table, instrument: ratios };

/** One answer of the source. `fetched` is its place in the order of the calls. */
interface Answer {
  readonly fetched: number;
  /**
   * `days`: of a range of days; `exchange`: of everything, `instrument`: of one instrument and day, both
   * with records that have no time.
   */
  readonly kind: 'days' | 'exchange' | 'instrument';
  readonly from: number;
  readonly to: number;
  /** Lists all rows there are; else it was asked for some instruments. */
  readonly whole: boolean;
  readonly records: readonly {
    readonly day: number;
    readonly symbol: number;
    readonly saved: number;
    readonly value: number;
  }[];
}

const recordOf = fc.record({
  day: fc.nat(DAYS.length - 1),
  symbol: fc.nat(SYMBOLS.length - 1),
  saved: fc.nat(3),
  value: fc.nat(3),
});
const answersOf = fc
  .array(
    fc.record({
      kind: fc.constantFrom('days', 'days', 'days', 'exchange', 'instrument', 'instrument') as fc.Arbitrary<
        Answer['kind']
      >,
      from: fc.nat(DAYS.length - 1),
      length: fc.nat(2),
      whole: fc.constantFrom(true, true, false),
      records: fc.array(recordOf, { maxLength: 9 }),
    }),
    { minLength: 4, maxLength: 14 },
  )
  .map((drawn) =>
    drawn.map(({ length, ...answer }, fetched): Answer => {
      if (answer.kind === 'instrument') {
        const [first] = answer.records;
        const one = { day: answer.from, symbol: 0, saved: 0, value: first?.value ?? 0 };
        return { ...answer, fetched, to: answer.from, whole: false, records: [one] };
      }
      const to = Math.min(DAYS.length - 1, answer.from + length);
      const whole = answer.whole || answer.kind === 'exchange';
      const seen = new Set<string>();
      const told = answer.records.map((one) =>
        // What was saved at one time has one content.
        answer.kind === 'days' ? { ...one, value: (one.day + one.symbol * 3 + one.saved * 7) % 10 } : one,
      );
      const records = told.filter(({ day, symbol }) => {
        const key = answer.kind === 'exchange' ? `${symbol}` : `${day} ${symbol}`;
        const asked = answer.kind === 'exchange' || (answer.from <= day && day <= to);
        return asked && !seen.has(key) && seen.add(key);
      });
      return { ...answer, fetched, to, whole, records };
    }),
  );

/** In which order they are loaded, how many at a time, and what goes wrong on the way. */
const schedule = fc.record({
  order: fc.array(fc.nat(1_000), { minLength: 14, maxLength: 14 }),
  width: fc.integer({ min: 1, max: 3 }),
  aborted: fc.array(fc.boolean(), { minLength: 14, maxLength: 14 }),
  repeated: fc.array(fc.boolean(), { minLength: 14, maxLength: 14 }),
});

/** A record of part of a day is never saved at the very time of another: see the comment of the property. */
const savedAt = ({ whole, fetched }: Answer, saved: number) =>
  new Date(Date.UTC(2025, 7, 29, 15, saved, 0, whole ? 0 : fetched + 1)).toISOString();

const fetchedAt = ({ fetched }: Answer) => new Date(Date.UTC(2025, 7, 30, 0, fetched));

/** The rows that any order of loading has to end in, worked out from the set of answers alone. */
function model(answers: readonly Answer[]): string[] {
  const rows: string[] = [];
  const keys = new Map<string, { kind: Answer['kind']; day: number; symbol: number }>();
  for (const { kind, records } of answers) {
    for (const { day, symbol } of records) {
      const key = kind === 'exchange' ? { kind, day: 0, symbol } : { kind, day, symbol };
      keys.set(`${kind} ${key.day} ${symbol}`, key);
    }
  }
  for (const { kind, day, symbol } of keys.values()) {
    const mine = (answer: Answer) =>
      answer.kind === kind
        ? answer.records.find((one) => one.symbol === symbol && (kind === 'exchange' || one.day === day))
        : undefined;
    const speaks = (answer: Answer) =>
      answer.kind === kind &&
      (mine(answer) !== undefined ||
        (answer.whole && (kind === 'exchange' || (answer.from <= day && day <= answer.to))));
    const last = answers.filter(speaks).at(-1);
    if (last === undefined || mine(last) === undefined) continue;
    const best = answers
      .flatMap((answer) => {
        const record = mine(answer);
        return record === undefined
          ? []
          : [{ value: record.value, saved: kind === 'days' ? savedAt(answer, record.saved) : '' }];
      })
      .reduce((a, b) => (b.saved >= a.saved ? b : a));
    rows.push(
      `${kind} ${kind === 'exchange' ? '' : DAYS[day]} ${SYMBOLS[symbol]} ${best.value} ${best.saved}`,
    );
  }
  return rows.sort();
}

let store: Database;
let pools: Database[];
let runId: number;
let steps = 0;
beforeAll(async () => {
  store = await openStore();
  pools = [0, 1, 2].map(() => openPool(store.url, 2));
  runId = await newRun(store);
});

async function loadAnswer(database: Database, answer: Answer, { abort = false } = {}): Promise<void> {
  steps += 1;
  const { kind } = answer;
  const days = kind === 'days';
  const operation = OPERATIONS[kind];
  const dated = kind !== 'exchange';
  const [from, to] = [DAYS[dated ? answer.from : 0], DAYS[dated ? answer.to : 0]] as [string, string];
  const window = await database.pool.query<{ id: number }>(
    `insert into etl.windows (run_id, operation, exchange, from_date, to_date, instruments, state)
     values ($1, $2, 'NSE', $3, $4, $5, 'running') returning id::int`,
    [runId, operation, from, to, answer.whole ? [] : ['some']],
  );
  const rows = answer.records.map(({ day, symbol, saved, value }): Row => {
    if (kind === 'instrument') {
      return {
        ...Object.fromEntries(ratios.fields.map((field) => [field.column, null])),
        exchange: 'NSE',
        symbol: SYMBOLS[symbol] as string,
        nature_of_report: 'Standalone',
        variant: 'eod',
        as_of_date: DAYS[day] as string,
        period: '',
        eps: String(value),
      };
    }
    if (!days) {
      return {
        exchange: 'NSE',
        purpose_code: SYMBOLS[symbol] as string,
        corporate_action_type: String(value),
        source_received_at: null,
        source_saved_at: null,
      };
    }
    return bhavRow({
      symbol: SYMBOLS[symbol] as string,
      trade_date: DAYS[day] as string,
      close_price: String(value),
      source_saved_at: savedAt(answer, saved),
    });
  });
  const table = TABLES[kind];
  // Refused by Postgres as the last thing of the transaction: everything before is rolled back.
  const broken = [{ day: 'no day', instrument: '', variant: '', state: 'loaded' as const, records: 1 }];
  const loading = loadWindow(database, {
    windowId: window.rows[0]?.id ?? 0,
    runId,
    operation,
    exchange: 'NSE',
    batches: [{ table, rows }],
    rejects: [],
    fullSets: answer.whole
      ? [{ table, exchange: 'NSE', days: days ? { from, to } : null, mayBeEmpty: true }]
      : [],
    // How much may be withdrawn is another matter.
    maxWithdrawShare: 1,
    coverage: abort ? broken : [],
    fetchedAt: fetchedAt(answer),
    outcome: { state: 'loaded', error: null },
    bytes: 1,
    warnings: [],
    suspicions: [],
    preview: false,
  });
  if (abort) await expect(loading).rejects.toThrow();
  else await loading;
}

async function stored(): Promise<string[]> {
  const found = await store.pool.query<{ row: string }>(
    `select 'days ' || trade_date || ' ' || symbol || ' ' || close_price || ' ' ||
       to_char(source_saved_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as row from market.bhavcopy_cm
     union all select 'instrument ' || as_of_date || ' ' || symbol || ' ' || eps || ' ' from market.financial_ratios
     union all select 'exchange  ' || purpose_code || ' ' || corporate_action_type || ' ' from market.corporate_action_categories`,
  );
  return found.rows.map(({ row }) => row).sort();
}

/** Everything of the rows and their history that a write would change. */
async function physical(): Promise<unknown[]> {
  const found = await store.pool.query(
    `select 'a', ctid::text, xmin::text, t::text from market.bhavcopy_cm t
     union all select 'b', ctid::text, xmin::text, t::text from market_history.bhavcopy_cm t
     union all select 'c', ctid::text, xmin::text, t::text from market.corporate_action_categories t
     union all select 'd', ctid::text, xmin::text, t::text from market_history.corporate_action_categories t
     union all select 'f', ctid::text, xmin::text, t::text from market.financial_ratios t
     union all select 'g', ctid::text, xmin::text, t::text from market_history.financial_ratios t
     union all select 'e', state::text, '', '' from etl.loads order by 1, 2`,
  );
  return found.rows;
}

async function empty(): Promise<void> {
  await store.pool.query(
    `truncate market.bhavcopy_cm, market_history.bhavcopy_cm, market.corporate_action_categories,
       market_history.corporate_action_categories, market.financial_ratios, market_history.financial_ratios, etl.loads, etl.day_rows, etl.withdrawals, etl.observed_aliases`,
  );
}

const overlap = (a: Answer, b: Answer) => a.kind === b.kind && a.from <= b.to && b.from <= a.to;

/**
 * The order in which answers are loaded: any, but for one thing. A whole answer is not loaded after an answer
 * for part of its days that was fetched later: then it cannot be told which of the rows it lacks the later
 * one has listed, so none is withdrawn, and the window says so (see the test below).
 */
function orderOf(answers: readonly Answer[], keys: readonly number[]): Answer[] {
  const left = [...answers].sort((a, b) => (keys[a.fetched] ?? 0) - (keys[b.fetched] ?? 0));
  const order: Answer[] = [];
  while (left.length > 0) {
    const at = left.findIndex(
      (one) =>
        one.whole || !left.some((other) => other.whole && other.fetched < one.fetched && overlap(one, other)),
    );
    order.push(...left.splice(at, 1));
  }
  return order;
}

describe('loads in any order', () => {
  test('end in the same rows: those of the answer fetched last, with the values saved last', async () => {
    await fc.assert(
      fc.asyncProperty(answersOf, schedule, async (answers, { order, width, aborted, repeated }) => {
        await empty();
        const queue = orderOf(answers, order);
        // Loads of part of the days wait for the whole ones they must follow: those come in rounds.
        while (queue.length > 0) {
          const round = queue.splice(0, width);
          const partAt = round.findIndex((one) => !one.whole);
          if (partAt > 0) queue.unshift(...round.splice(partAt));
          await Promise.all(
            round.map(async (answer, at) => {
              const database = pools[at] ?? store;
              if (aborted[answer.fetched]) await loadAnswer(database, answer, { abort: true });
              await loadAnswer(database, answer);
              if (repeated[answer.fetched]) await loadAnswer(database, answer);
            }),
          );
        }
        expect(await stored()).toEqual(model(answers));
        // Read once more in the order they were fetched, as a replay does: nothing at all is written.
        const before = await physical();
        for (const answer of answers) await loadAnswer(store, answer);
        expect(await physical()).toEqual(before);
      }),
      { numRuns: 40, seed: 20_250_829, endOnFailure: true },
    );
    console.log(`${steps} loads`);
  }, 300_000);
});
