import { beforeAll, describe, expect, test } from 'vitest';
import { checkQuality } from '../../src/jobs/quality/check-quality.ts';
import { lostDayChecks } from '../../src/load/market/checks/count-checks.ts';
import { eventChecks } from '../../src/load/market/checks/event-checks.ts';
import { checks } from '../../src/load/market/checks/index.ts';
import { listFindings } from '../../src/load/state/findings.ts';
import { dataSetNamed } from '../../src/operations/registry.ts';
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

test('an empty rank among the gainers is a finding; a side that was not requested is not', async () => {
  const remove = (where: string) =>
    spoiled(
      'market.top_gainers_losers',
      `delete from market.top_gainers_losers where trade_date = '${DAY}' and ${where}`,
    );
  expect(await remove('not is_loser and rank = 5')).toMatchObject([
    {
      check: 'top_movers_ranking',
      date: DAY,
      found: 'no share at that rank',
      expected: expect.stringMatching(/^rank 5 of the gainers: \d/),
    },
  ]);
  expect(await remove('is_loser')).toEqual([]);
});

const LINE = `exchange = 'BSE' and trade_date = '${DAY}' and symbol = (
  select symbol from market.bhavcopy_cm where exchange = 'BSE' and trade_date = '${DAY}' and symbol not like '%#'
    and previous_close_price > 0 order by turnover desc limit 1)`;
const RAISE_CLOSE = `update market.bhavcopy_cm set close_price = high_price + 1 where ${LINE}`;

/** What only files bring is counted as loaded here, though it is not. */
const countOf = (
  dataSet: string,
) => `insert into etl.coverage (operation, exchange, day, instrument, variant, last_position, last_said, last_records, run_id)
  select '${dataSet}', exchange, day, '', '', last_position, 'loaded', 7, run_id from etl.coverage
   where operation = 'GetBhavCopyCM' and day = '${DAY}' and instrument = ''`;

/** Of derivatives nothing is loaded here; their lost days are found by the statement of the others. */
const LOST_DAYS = lostDayChecks().filter(({ name }) => name !== 'lost_day_bhavcopyfo');

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
  ...LOST_DAYS.map(({ name, operation }): [string, string, string] => {
    const { name: table = '', dateColumn } = dataSetNamed(operation).shapes.at(-1)?.table ?? {};
    const ofDay = `(exchange, ${dateColumn}) = (select exchange, ${dateColumn} from market.${table} order by 2 desc limit 1)`;
    return dataSetNamed(operation).windows.per === 'file'
      ? [name, 'coverage', countOf(operation)]
      : [name, table, `delete from market.${table} where ${ofDay}`];
  }),
  [
    'missing_deliveries',
    'deliveries',
    `insert into market.deliveries (exchange, symbol, series, trade_date, first_loaded_at, last_changed_at, revision, run_id, load_id)
     select distinct on (b.trade_date) b.exchange, b.symbol, b.series, b.trade_date, now(), now(), 1, 1, 1
       from market.bhavcopy_cm b where b.exchange = 'NSE'
        and b.trade_date in (select unnest(array[min(trade_date), max(trade_date)]) from market.bhavcopy_cm where exchange = 'NSE')`,
  ],
  [
    'top_movers_values',
    'top_gainers_losers',
    `update market.top_gainers_losers set quantity = quantity + 1 where trade_date = '${DAY}' and rank = 2`,
  ],
  [
    'top_movers_ranking',
    'top_gainers_losers',
    `update market.top_gainers_losers set rank = 6 - rank where trade_date = '${DAY}' and not is_loser`,
  ],
  [
    'highlights_scrips',
    'total_trade_highlights',
    `update market.total_trade_highlights set scrip_count = scrip_count + 1 where trade_date = '${DAY}'`,
  ],
  [
    'highlights_trades',
    'total_trade_highlights',
    `update market.total_trade_highlights set trade_count = trade_count - 1 where trade_date = '${DAY}'`,
  ],
  [
    'highlights_volume',
    'total_trade_highlights',
    `update market.total_trade_highlights set shares_volume_crore = shares_volume_crore + 0.02 where trade_date = '${DAY}'`,
  ],
  [
    'highlights_turnover',
    'total_trade_highlights',
    `update market.total_trade_highlights set turnover_crore = turnover_crore * 100 where trade_date = '${DAY}' and trade_highlight = 'Total'`,
  ],
  [
    'circuit_hit',
    'circuit_breakers',
    `update market.circuit_breakers set band = case band when 'H' then 'L' else 'H' end where (scrip_id, trade_date) in (select scrip_id, trade_date from market.circuit_breakers group by 1, 2 having count(*) = 1)`,
  ],
  [
    'circuit_band',
    'bhavcopy_cm',
    `update market.bhavcopy_cm set high_price = previous_close_price * 1.137, low_price = previous_close_price * 0.87 where (exchange, symbol, trade_date) in (select exchange, symbol, trade_date from market.circuit_breakers)`,
  ],
  [
    'classification_hierarchy',
    'sectoral_classification',
    `update market.sectoral_classification set industry_code = 'IN0999' where symbol = (select min(symbol) from market.sectoral_classification)`,
  ],
  [
    'pledge_percentages',
    'consolidated_pledge',
    `update market.consolidated_pledge set depository_pledged_percent = depository_pledged_percent + 0.02 where trade_date = '${DAY}'`,
  ],
  [
    'pledge_shares',
    'consolidated_pledge',
    `update market.consolidated_pledge set total_public_holding = total_issued_shares where trade_date = '${DAY}'`,
  ],
  [
    'ratio_bounds',
    'financial_ratios',
    `update market.financial_ratios set dividend_yield = 119296.98 where as_of_date = '${DAY}'`,
  ],
];

test('prices of 0 and below are errors, except for a price that the line does not have', async () => {
  const found = async (set: string) =>
    (await spoiled('market.bhavcopy_cm', `update market.bhavcopy_cm set ${set} where ${LINE}`))
      .filter(({ check }) => check === 'price_positive')
      .map(({ severity, found: what }) => `${severity}: ${what}`);
  expect(await found('close_price = 0')).toEqual(['error: close 0']);
  expect(await found('last_price = 0, settlement_price = 0')).toEqual([]);
  // Of prices that are all below 0, none is out of order.
  expect(
    await found('open_price = -5, high_price = -5, low_price = -5, close_price = -5, last_price = -5'),
  ).toEqual(['error: open -5, high -5, low -5, close -5, last -5']);
  expect(await found('previous_close_price = -0.05, settlement_price = -1')).toEqual([
    'error: previous close -0.05, settlement -1',
  ]);
});

test('a band of a high price is rounded to a coarser tick', async () => {
  const found = async (high: string) =>
    (
      await spoiled(
        'market.bhavcopy_cm',
        `update market.bhavcopy_cm set previous_close_price = 3214.90, high_price = ${high}, low_price = 2893.50 where (exchange, symbol, trade_date) in (select exchange, symbol, trade_date from market.circuit_breakers)`,
      )
    ).filter(({ check }) => check === 'circuit_band');
  expect(await found('3536.30')).toEqual([]);
  expect((await found('3536.10')).length).toBeGreaterThan(0);
});

describe('every check notices what breaks its rule', () => {
  test('and there is a case for each; those of events are in event-checks.int.test.ts', () => {
    const others = checks.filter(
      (check) => !eventChecks.includes(check) && check.name !== 'lost_day_bhavcopyfo',
    );
    expect(SPOILS.map(([check]) => check)).toEqual(others.map(({ name }) => name));
  });

  test.each(SPOILS)('%s', async (check, table, statement) => {
    const found = await spoiled(table === 'coverage' ? 'etl.coverage' : `market.${table}`, statement);
    const own = found.filter((finding) => finding.check === check);
    expect(own.length).toBeGreaterThan(0);
    for (const finding of own) {
      expect(finding.expected).toBeTruthy();
      expect(finding.found).toBeTruthy();
      expect(finding.operation).toBe(checks.find(({ name }) => name === check)?.operation);
    }
  });
});

describe('a finding', () => {
  const HIGHLIGHT = `market.total_trade_highlights set trade_count = trade_count`;
  const own = async () =>
    (await listFindings(pipeline.db.drizzle, { check: 'highlights_trades', limit: 10, resolved: true }))
      .findings;

  test('is found once, resolved when it is gone, and open again when it is back', async () => {
    const { pool } = pipeline.db;
    await pool.query(`delete from etl.findings`);
    const spoil = () =>
      pool.query(`update ${HIGHLIGHT} + 5 where trade_date = '${DAY}' and trade_highlight = 'Total'`);
    const repair = () =>
      pool.query(`update ${HIGHLIGHT} - 5 where trade_date = '${DAY}' and trade_highlight = 'Total'`);
    const counts = async () => {
      const all = await checkQuality(pipeline, { ...RANGE, runId: 77 });
      const { open, fresh, resolved } = all.find(({ check }) => check === 'highlights_trades') ?? {};
      return [open, fresh, resolved];
    };
    await spoil();
    expect(await counts()).toEqual([1, 1, 0]);
    const [first] = await own();
    expect(first).toMatchObject({
      check: 'highlights_trades',
      severity: 'warning',
      operation: 'GetTotalTradeHighlights',
      exchange: 'BSE',
      date: DAY,
      instrument: 'Total',
      runId: 77,
      resolvedAt: null,
    });
    expect(await counts()).toEqual([1, 0, 0]);
    expect(await own()).toEqual([first]);

    await repair();
    expect(await counts()).toEqual([0, 0, 1]);
    const [resolved] = await own();
    expect(resolved).toMatchObject({ id: first?.id, foundAt: first?.foundAt });
    expect(resolved?.resolvedAt).not.toBeNull();

    await spoil();
    expect(await counts()).toEqual([1, 1, 0]);
    const [again] = await own();
    expect(again).toMatchObject({ id: first?.id, resolvedAt: null });
    expect(again?.foundAt).not.toBe(first?.foundAt);

    // Another range says nothing of it.
    await repair();
    await checkQuality(pipeline, { from: '2025-09-01', to: '2025-09-05' });
    expect((await own())[0]?.resolvedAt).toBeNull();
    expect(await counts()).toEqual([0, 0, 1]);
  });

  test('has the severity that the settings say, or is switched off', async () => {
    const { pool } = pipeline.db;
    await pool.query(`update ${HIGHLIGHT} + 5 where trade_date = '${DAY}' and trade_highlight = 'Total'`);
    await reconcileWith({ highlights_trades: 'error' });
    expect((await own())[0]).toMatchObject({ severity: 'error', resolvedAt: null });
    const results = await reconcileWith({ highlights_trades: 'off' });
    expect(results.map(({ check }) => check)).not.toContain('highlights_trades');
    expect((await own())[0]?.resolvedAt).not.toBeNull();
    await expect(reconcileWith({ highlight_trades: 'off' })).rejects.toThrow(
      /did you mean highlights_trades/,
    );
    await pool.query(`update ${HIGHLIGHT} - 5 where trade_date = '${DAY}' and trade_highlight = 'Total'`);
  });

  test('is recorded once when two processes check at the same time', async () => {
    const { pool } = pipeline.db;
    await pool.query('delete from etl.findings');
    await pool.query(`update ${HIGHLIGHT} + 5 where trade_date = '${DAY}'`);
    const both = await Promise.all([checkQuality(pipeline, RANGE), checkQuality(pipeline, RANGE)]);
    const fresh = both.flat().filter(({ check, fresh }) => check === 'highlights_trades' && fresh > 0);
    expect(fresh).toHaveLength(1);
    await pool.query(`update ${HIGHLIGHT} - 5 where trade_date = '${DAY}'`);
  });
});
