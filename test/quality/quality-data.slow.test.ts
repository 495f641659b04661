import { beforeAll, describe, expect, test } from 'vitest';
import { checkQuality } from '../../src/quality/check-quality.ts';
import { eventChecks } from '../../src/quality/event-checks.ts';
import { checks } from '../../src/quality/index.ts';
import { symbolChecks } from '../../src/quality/symbol-checks.ts';
import { listFindings } from '../../src/state/findings.ts';
import { backfill, marketContents, openPipeline, type Pipeline, runToEnd } from '../support/pipeline.ts';

const clock = { now: () => Date.parse('2025-09-12T23:30:00+05:30') };
const RANGE = { from: '2025-08-29', to: '2025-09-12' };
const DAY = '2025-09-10';

let pipeline: Pipeline;

beforeAll(async () => {
  const sandbox = { instrumentsPerExchange: 150 };
  pipeline = await openPipeline({ sandbox, clock, settings: { EOD_INSTRUMENT_LIMIT: '3' } });
  const report = await runToEnd(pipeline, backfill(RANGE));
  expect(report.state).toBe('completed');
});

const findingsNow = async () => (await listFindings(pipeline.db.drizzle, { limit: 10_000 })).findings;

/** Reconciles with other severities than those of the settings. */
const reconcileWith = (EOD_FINDING_SEVERITY: Pipeline['config']['EOD_FINDING_SEVERITY']) =>
  checkQuality({ ...pipeline, config: { ...pipeline.config, EOD_FINDING_SEVERITY } }, RANGE);

/** Spoils a table, shows what is found then, and puts it right again. */
async function spoiled(table: string, statement: string) {
  const { pool } = pipeline.db;
  const { rows } = await pool.query<{ columns: string }>(
    `select string_agg(quote_ident(attname), ', ') as columns from pg_attribute
      where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
  );
  const columns = rows[0]?.columns;
  await pool.query(`create table kept as select * from ${table}`);
  try {
    const changed = await pool.query(statement);
    expect(changed.rowCount).toBeGreaterThan(0);
    await checkQuality(pipeline, RANGE);
    return await findingsNow();
  } finally {
    await pool.query(
      `delete from ${table}; insert into ${table} (${columns}) select ${columns} from kept; drop table kept`,
    );
    await checkQuality(pipeline, RANGE);
    expect(await findingsNow()).toEqual([]);
  }
}

test('the simulated market keeps every rule, and the checks do not change it', async () => {
  const before = await marketContents(pipeline);
  const results = await checkQuality(pipeline, RANGE);
  expect(results.map(({ check }) => check)).toEqual(checks.map(({ name }) => name));
  expect(await findingsNow()).toEqual([]);
  expect(await marketContents(pipeline)).toEqual(before);
});

const LINE = `exchange = 'BSE' and trade_date = '${DAY}' and symbol = (
  select symbol from market.bhavcopy_cm where exchange = 'BSE' and trade_date = '${DAY}' and symbol not like '%#'
    and previous_close_price > 0 order by turnover desc limit 1)`;
const RAISE_CLOSE = `update market.bhavcopy_cm set close_price = high_price + 1 where ${LINE}`;

/** How to break each rule, and every check that must notice. */
const SPOILS: readonly (readonly [string, string, string])[] = [
  ['price_order', 'bhavcopy_cm', RAISE_CLOSE],
  ['price_positive', 'bhavcopy_cm', `update market.bhavcopy_cm set low_price = -5 where ${LINE}`],
  ['previous_close', 'bhavcopy_cm', RAISE_CLOSE],
  [
    'row_count',
    'coverage',
    `update etl.coverage set last_records = 1, loaded_records = 1 where operation = 'GetBhavCopyCM' and exchange = 'NSE' and day = '${DAY}'`,
  ],
  [
    'row_count_top5gainerslosers',
    'coverage',
    `update etl.coverage set last_records = 7, loaded_records = 7 where operation = 'GetTop5GainersLosers' and day = '${DAY}'`,
  ],
  [
    'row_count_totaltradehighlights',
    'coverage',
    `update etl.coverage set last_records = 1, loaded_records = 1 where operation = 'GetTotalTradeHighlights' and day = '${DAY}'`,
  ],
  [
    'missing_deliveries',
    'deliveries',
    `insert into market.deliveries (exchange, symbol, series, trade_date, first_loaded_at, last_changed_at, revision, run_id, load_id)
     select distinct on (b.trade_date) b.exchange, b.symbol, b.series, b.trade_date, now(), now(), 1, 1, 1
       from market.bhavcopy_cm b where b.exchange = 'NSE'
        and b.trade_date in (select unnest(array[min(trade_date), max(trade_date)]) from market.bhavcopy_cm where exchange = 'NSE')`,
  ],
  [
    'ratio_bounds',
    'financial_ratios',
    `update market.financial_ratios set dividend_yield = 119296.98 where as_of_date = '${DAY}'`,
  ],
];

test('prices of 0 and below are errors, except for a price that the line does not have', async () => {
  const priceFindings = async (set: string) =>
    (await spoiled('market.bhavcopy_cm', `update market.bhavcopy_cm set ${set} where ${LINE}`))
      .filter(({ check }) => check === 'price_positive')
      .map(({ severity, found: text }) => `${severity}: ${text}`);
  expect(await priceFindings('close_price = 0')).toEqual(['error: close 0']);
  expect(await priceFindings('last_price = 0, settlement_price = 0')).toEqual([]);
  // Of prices that are all below 0, none is out of order.
  expect(
    await priceFindings(
      'open_price = -5, high_price = -5, low_price = -5, close_price = -5, last_price = -5',
    ),
  ).toEqual(['error: open -5, high -5, low -5, close -5, last -5']);
  expect(await priceFindings('previous_close_price = -0.05, settlement_price = -1')).toEqual([
    'error: previous close -0.05, settlement -1',
  ]);
});

describe('every check notices what breaks its rule', () => {
  test('and there is a case for each; others are in event-checks and symbol-checks.int.test.ts', () => {
    const others = checks.filter((check) => ![...eventChecks, ...symbolChecks].includes(check));
    expect(SPOILS.map(([check]) => check)).toEqual(others.map(({ name }) => name));
  });

  test.each(SPOILS)('%s', async (check, table, statement) => {
    const findings = await spoiled(table === 'coverage' ? 'etl.coverage' : `market.${table}`, statement);
    const findingsOfCheck = findings.filter((finding) => finding.check === check);
    expect(findingsOfCheck.length).toBeGreaterThan(0);
    for (const finding of findingsOfCheck) {
      expect(finding.expected).toBeTruthy();
      expect(finding.found).toBeTruthy();
      expect(finding.operation).toBe(checks.find(({ name }) => name === check)?.operation);
    }
  });
});

describe('a finding', () => {
  /** Moves the dividend yield of one row out of its bounds, or back. */
  const changeYield = (by: number) =>
    pipeline.db.pool.query(
      `update market.financial_ratios set dividend_yield = dividend_yield + ${by}
        where exchange = 'BSE' and as_of_date = '${DAY}'
          and symbol = (select min(symbol) from market.financial_ratios where exchange = 'BSE' and as_of_date = '${DAY}')
          and nature_of_report = 'Standalone'`,
    );
  const ratioFindings = async () =>
    (await listFindings(pipeline.db.drizzle, { check: 'ratio_bounds', limit: 10, resolved: true })).findings;

  test('is found once, resolved when it is gone, and open again when it is back', async () => {
    const { pool } = pipeline.db;
    await pool.query(`delete from etl.findings`);
    const spoil = () => changeYield(1_000);
    const repair = () => changeYield(-1_000);
    const counts = async () => {
      const all = await checkQuality(pipeline, { ...RANGE, runId: 77 });
      const { open, fresh, resolved } = all.find(({ check }) => check === 'ratio_bounds') ?? {};
      return [open, fresh, resolved];
    };
    await spoil();
    expect(await counts()).toEqual([1, 1, 0]);
    const [first] = await ratioFindings();
    expect(first).toMatchObject({
      check: 'ratio_bounds',
      severity: 'warning',
      operation: 'GetFinancialRatios',
      exchange: 'BSE',
      date: DAY,
      instrument: expect.stringMatching(/^\S+ Standalone /),
      runId: 77,
      resolvedAt: null,
    });
    expect(await counts()).toEqual([1, 0, 0]);
    expect(await ratioFindings()).toEqual([first]);

    await repair();
    expect(await counts()).toEqual([0, 0, 1]);
    const [resolved] = await ratioFindings();
    expect(resolved).toMatchObject({ id: first?.id, foundAt: first?.foundAt });
    expect(resolved?.resolvedAt).not.toBeNull();

    await spoil();
    expect(await counts()).toEqual([1, 1, 0]);
    const [reopened] = await ratioFindings();
    expect(reopened).toMatchObject({ id: first?.id, resolvedAt: null });
    expect(reopened?.foundAt).not.toBe(first?.foundAt);

    // Another range says nothing of it.
    await repair();
    await checkQuality(pipeline, { from: '2025-09-01', to: '2025-09-05' });
    expect((await ratioFindings())[0]?.resolvedAt).toBeNull();
    expect(await counts()).toEqual([0, 0, 1]);
  });

  test('has the severity that the settings say, or is switched off', async () => {
    await changeYield(1_000);
    await reconcileWith({ ratio_bounds: 'error' });
    expect((await ratioFindings())[0]).toMatchObject({ severity: 'error', resolvedAt: null });
    const results = await reconcileWith({ ratio_bounds: 'off' });
    expect(results.map(({ check }) => check)).not.toContain('ratio_bounds');
    expect((await ratioFindings())[0]?.resolvedAt).not.toBeNull();
    await expect(reconcileWith({ ratio_bound: 'off' })).rejects.toThrow(/did you mean ratio_bounds/);
    await changeYield(-1_000);
  });

  test('is recorded once when two processes check at the same time', async () => {
    const { pool } = pipeline.db;
    await pool.query('delete from etl.findings');
    await changeYield(1_000);
    const both = await Promise.all([checkQuality(pipeline, RANGE), checkQuality(pipeline, RANGE)]);
    const fresh = both.flat().filter(({ check, fresh }) => check === 'ratio_bounds' && fresh > 0);
    expect(fresh).toHaveLength(1);
    await changeYield(-1_000);
  });
});
