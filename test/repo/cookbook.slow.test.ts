import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { importFiles } from '../../src/jobs/import/import-files.ts';
import { fixture } from '../support/import-support.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../support/pipeline.ts';

const PAGE = fileURLToPath(new URL('../../docs/cookbook.md', import.meta.url));
const page = readFileSync(PAGE, 'utf8');

// Responses and files about one day come one after the other.
let files = 0;
const clock = { now: () => Date.parse('2025-09-12T23:30:00+05:30') + files };

const FILES = [
  'cookbook/prices.csv',
  'cookbook/sec_bhavdata_full.csv',
  'cookbook/MTO_12092025.DAT',
  'cookbook/events.csv',
  'cookbook/correction.csv',
  'lists/fo13JUN2022bhav.csv.zip',
  'lists/corporate-pledgedata.json',
];

/** A question of the page: its title, its SQL, and the answer after it, which may be missing. */
const QUESTION =
  /### ([^\n]+)\n(?:(?!### )[\s\S])*?```sql\n([\s\S]*?);\n```\n(?:\n```text\n(?:(?!```)[^\n]*\n)+```\n)?/g;
const questions = [...page.matchAll(QUESTION)].map(([, title, sql]) => ({
  title: title as string,
  sql: sql as string,
}));

let pipeline: Pipeline;
const answers = new Map<string, Record<string, string | null>[]>();
const answerTo = (title: string) => answers.get(title) ?? [];

/** An answer as text of the page, with its columns aligned. */
function textOf(rows: readonly Record<string, string | null>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const lines = [names, ...rows.map((row) => names.map((name) => row[name] ?? ''))];
  const widths = names.map((_, at) => Math.max(...lines.map((cells) => cells[at]?.length ?? 0)));
  const text = lines.map((cells) => cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  '));
  return ['```text', ...text.map((line) => line.trimEnd()), '```', ''].join('\n');
}

beforeAll(async () => {
  const sandbox = { instrumentsPerExchange: 150 };
  pipeline = await openPipeline({ sandbox, clock, settings: { EOD_INSTRUMENT_LIMIT: '40' } });
  const both = { to: '2025-09-12', exchanges: ['BSE', 'NSE'] };
  const operations = ['GetBhavCopyCM', 'GetCircuitBreakers', 'GetConsolidatedPledge', 'GetSeriesChange'];
  const runs = [
    backfill({ ...both, from: '2025-08-01', operations }),
    backfill({
      to: '2025-09-12',
      from: '2025-09-12',
      exchanges: ['BSE'],
      operations: ['GetSectoralClassification', 'GetFinRatioEOD'],
    }),
  ];
  for (const run of runs) expect((await runToEnd(pipeline, run)).state).toBe('completed');
  for (const file of FILES) {
    files += 1;
    const report = await importFiles(pipeline, { paths: [fixture(file)], force: false });
    expect(report).toMatchObject({ state: 'completed', rejected: 0 });
  }
  for (const { title, sql } of questions) {
    const types = { getTypeParser: () => String };
    const { rows } = await pipeline.db.pool.query<Record<string, string | null>>({ text: sql, types });
    answers.set(title, rows);
  }
}, 240_000);

test('each table is analyzed by the run that fills it first, so that joins of views are fast at once', async () => {
  const { rows } = await pipeline.db.pool.query(
    `select relname from pg_class where relkind in ('r', 'p') and reltuples < 0
        and (relnamespace = any ('{market, market_history, market_partitions}'::regnamespace[]) or relname = 'alias_owners')
        and pg_relation_size(oid) > 0`,
  );
  expect(rows).toEqual([]);
});

test('each query of docs/cookbook.md has a result, and it is the one that the page shows', async () => {
  expect(questions.length).toBeGreaterThanOrEqual(18);
  expect(page.match(/```sql/g)).toHaveLength(questions.length);
  expect(questions.filter(({ title }) => answerTo(title).length === 0)).toEqual([]);
  const answered = page.replace(QUESTION, (block, title: string) => {
    const sql = block.slice(0, block.indexOf(';\n```\n') + ';\n```\n'.length);
    return `${sql}\n${textOf(answerTo(title))}`;
  });
  // `npx vitest run -u test/repo/cookbook.slow.test.ts` writes the answers into the page.
  await expect(answered).toMatchFileSnapshot(PAGE);
});

test('what the page shows of the made-up files follows from them', () => {
  const column = (title: string, name: string) => answerTo(title).map((row) => row[name]);
  // A close of 500 before the split one into five, and one of 143 a year later; Rs 4 of 136 were paid out.
  const percent = (growth: number) => ((growth - 1) * 100).toFixed(2);
  const [price, total] = [143 / (500 / 5), 143 / ((500 / 5) * ((136 - 4) / 136))];
  const year = 'What did each share return in 2024, adjusted for splits and bonuses?';
  expect(column(year, 'return_percent')).toEqual([percent(price), percent(9 / 20)]);
  expect(column('And with dividends reinvested?', 'total_return_percent')[0]).toBe(percent(total));
  // MEADOWS has a bond of its symbol.
  const renamed = answerTo('The same share through a change of its symbol');
  expect(renamed.map(({ symbol, close_price: close }) => [symbol, Number(close)])).toEqual([
    ['MEADOW', 550],
    ['MEADOW', 580],
    ['MEADOWS', 600],
    ['MEADOWS', 625],
    ['MEADOWS', 650],
  ]);
  // Shares of a file without ISIN: DAWN had one before.
  const traded = answerTo('Most traded, both exchanges together').map((row) => [row.nse_symbol, row.share]);
  expect(traded).toEqual(
    expect.arrayContaining([
      ['DAWN', 'INE902A01017'],
      ['OATS', 'NSE:OATS'],
    ]),
  );
  expect(
    answerTo('What was tradable on a day, and what of it has been delisted?').map(({ symbol, gone }) => [
      symbol,
      gone,
    ]),
  ).toEqual([
    ['DUSTY', 't'],
    ['MEADOW', 'f'],
  ]);
});

test('what it shows of the market is what the bhav copies of the day say', async () => {
  const numbers = async (sql: string) =>
    Object.values((await pipeline.db.pool.query(sql)).rows[0] as object).map(Number);
  const [rose, fell] = await numbers(
    `select count(*) filter (where close_price > previous_close_price) as rose, count(*) filter (where close_price < previous_close_price) as fell
       from market.bhavcopy_cm where exchange = 'NSE' and trade_date = '2025-09-12' and previous_close_price > 0`,
  );
  const breadth = answerTo('How many rose, how many fell?').at(-1);
  expect(breadth).toMatchObject({ exchange: 'NSE', rose: String(rose), fell: String(fell) });
  const [traded] = await numbers(
    "select count(distinct trade_date) from market.bhavcopy_cm where exchange = 'NSE' and symbol = 'DAWN' and trade_date between '2025-06-23' and '2025-07-04'",
  );
  expect(answerTo('On which trading days did a share not trade?')).toHaveLength(10 - (traded ?? 0));
});

test('asked about an earlier day, no query counts the trading days after it', async () => {
  const dated = questions.filter(({ sql }) => sql.includes("'2025-09-12'"));
  expect(dated.length).toBeGreaterThanOrEqual(6);
  const client = await pipeline.db.pool.connect();
  const responsesOn = async (day: string) => {
    const rows: [string, unknown[]][] = [];
    for (const { title, sql } of dated) {
      rows.push([title, (await client.query(sql.replaceAll('2025-09-12', day))).rows]);
    }
    return rows;
  };
  try {
    const known = await responsesOn('2025-09-05');
    await client.query("begin; delete from market.bhavcopy_cm where trade_date > '2025-09-05'");
    expect(await responsesOn('2025-09-05')).toEqual(known);
  } finally {
    await client.query('rollback');
    client.release();
  }
});
