import { expect, test } from 'vitest';
import { importInto, newFile, openStore } from '../../support/import-support.ts';
import { backfill, openPipeline, runToEnd } from '../../support/pipeline.ts';

const HEADER =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd';

/** Symbol, previous close, high, low and close of each line; the ISIN of shares, or of a bond. */
type Line = readonly [
  symbol: string,
  previous: number,
  high: number,
  low: number,
  close: number,
  isin?: string,
];

const tradingDay = (day: string, lines: readonly Line[]) =>
  newFile(`${day}.csv`, [
    HEADER,
    ...lines.map(
      ([symbol, previous, high, low, close, isin = `INE${symbol.padEnd(4, '0')}01011`], at) =>
        `${day},${day},CM,NSE,STK,${at + 1},${isin},${symbol},EQ,${symbol} LTD,${close},${high},${low},${close},${close},${previous},10,${10 * close},3`,
    ),
  ]);

test('what moved most, and totals, are those that the source states where it states them', async () => {
  const pipeline = await openPipeline({ sandbox: { instrumentsPerExchange: 60 } });
  const days = { from: '2025-09-08', to: '2025-09-12' };
  const operations = ['GetBhavCopyCM', 'GetTop5GainersLosers', 'GetTotalTradeHighlights'];
  expect((await runToEnd(pipeline, backfill({ ...days, operations }))).state).toBe('completed');
  const query = async (sql: string) => (await pipeline.db.pool.query(sql)).rows;
  const columns = 'exchange, trade_date::text, is_loser, rank::int, close_price';
  const sourceRows = await query(`select ${columns} from market.top_gainers_losers order by 1, 2, 3, 4`);
  expect(sourceRows).toHaveLength(50);
  expect(
    await query(
      `select ${columns} from market.computed_gainers_losers where rank <= 5 and exchange = 'BSE' order by 1, 2, 3, 4`,
    ),
  ).toEqual(sourceRows);
  const totals = await query(
    `select exchange, trade_date::text, scrip_count, trade_count, turnover_crore from market.total_trade_highlights
      where trade_highlight = 'Total' order by 1, 2`,
  );
  expect(totals).toHaveLength(5);
  expect(
    await query(
      `select exchange, trade_date::text, line_count as scrip_count, trade_count, trim_scale(round(turnover / 1e7, 2)) as turnover_crore
         from market.computed_trade_totals where exchange = 'BSE' order by 1, 2`,
    ),
  ).toEqual(totals);
});

test('bands are hit by closes at the limit and at the end of the range; bonds and bands below two ticks have none', async () => {
  const context = await openStore();
  await importInto(context, [
    tradingDay('2025-09-10', [
      ['UPPR', 101.3, 111.4, 100, 111.4],
      ['LOWR', 101.3, 103, 96.25, 96.25],
      ['BACK', 100, 105, 99, 104],
      ['NEAR', 100, 104.9, 99, 104.9],
      ['PENY', 1.24, 1.3, 1.24, 1.3],
      ['CENT', 0.3, 0.31, 0.3, 0.31],
      ['HIGH', 1297.2, 1295.9, 1232.4, 1232.4],
      ['BOND', 100, 105, 99, 105, 'INE000A07011'],
    ]),
  ]);
  const { rows } = await context.db.pool.query(
    'select symbol, band, band_percent from market.computed_band_hits order by 1',
  );
  expect(rows).toEqual([
    { symbol: 'HIGH', band: 'L', band_percent: 5 },
    { symbol: 'LOWR', band: 'L', band_percent: 5 },
    { symbol: 'PENY', band: 'H', band_percent: 5 },
    { symbol: 'UPPR', band: 'H', band_percent: 10 },
  ]);

  // Of one day only its rows are read.
  for (const view of ['computed_gainers_losers', 'computed_trade_totals', 'computed_band_hits']) {
    const plan = (
      await context.db.pool.query(
        `explain select * from market.${view} where exchange = 'NSE' and trade_date = '2025-09-10'`,
      )
    ).rows.map((row) => row['QUERY PLAN']);
    const scans = plan.flatMap((line, at) =>
      / on bhavcopy_cm\S* line/.test(line) ? [`${line} ${plan[at + 1]}`] : [],
    );
    expect(scans.length, plan.join('\n')).toBeGreaterThan(0);
    for (const scan of scans) expect(scan).toMatch(/trade_date/);
  }
});
