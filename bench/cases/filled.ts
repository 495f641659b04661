import type { Client } from 'pg';
import { timeAdjusted, WHOLE } from '../support/adjusted.ts';
import { type Case, check, type Figures, type Site } from '../support/bench.ts';
import { median } from '../support/figures.ts';
import { fillDatabase } from '../support/fill.ts';
import { exportPrices, keepFolders } from '../support/flows.ts';
import { bhavRequest, startPipeline, tradingDaysBefore } from '../support/pipeline.ts';
import { dropDatabase, explainAnalyze, measured, migratedDatabase, withClient } from '../support/postgres.ts';
import { EXCHANGE } from '../support/records.ts';
import { checkCounts } from './load.ts';

const FILLED = 'bench_filled';
const EMPTY = 'bench_empty';
/** The filled table has so many times as many rows as are loaded. */
const TIMES = 20;
/** So many different values each query is run with; the median counts. */
const VALUES_EACH = 15;
const LIMIT_MS = 50;

/** What an analyst asks of a filled table. $1 and so on are values of a stored row, by the names in `uses`. */
const QUERIES = {
  symbolMs: {
    uses: ['exchange', 'symbol'],
    sql: 'select * from market.bhavcopy_cm where exchange = $1 and symbol = $2 order by trade_date',
    rows: 'days',
  },
  dayMs: {
    uses: ['exchange', 'day'],
    sql: `select symbol, series, close_price, traded_quantity, turnover from market.bhavcopy_cm
           where exchange = $1 and trade_date = $2 order by symbol, series`,
    rows: 'instruments',
  },
  highsMs: {
    uses: ['exchange', 'day'],
    // Looks back from day to day until one was higher, which is soon for most: the maximum of each would read the whole year.
    sql: `select t.symbol, t.series, t.high_price from market.bhavcopy_cm t
           where t.exchange = $1 and t.trade_date = $2 and (
             select y.trade_date from market.bhavcopy_cm y
              where y.exchange = t.exchange and y.symbol = t.symbol and y.series = t.series
                and y.trade_date > $2::date - 364 and y.trade_date < $2 and y.high_price > t.high_price
              order by y.trade_date desc limit 1) is null`,
    rows: null,
  },
  asOfMs: {
    uses: ['exchange', 'day'],
    sql: `select symbol, close_price from market_history.bhavcopy_cm_as_of(now()) where exchange = $1 and trade_date = $2`,
    rows: 'instruments',
  },
  isinMs: {
    uses: ['isin'],
    sql: 'select exchange, trade_date, close_price from market.bhavcopy_cm where isin = $1 order by trade_date',
    rows: 'days of both exchanges',
  },
  renamesMs: {
    uses: ['instrument'],
    sql: `select b.trade_date, b.symbol, b.close_price from market.aliases_of($1) a
            join market.bhavcopy_cm b on b.exchange = a.exchange and b.symbol = a.alias and b.series = a.series
             and b.trade_date >= a.valid_from and b.trade_date < a.valid_to
           where a.kind = 'series' order by b.trade_date`,
    rows: 'days',
  },
  changesMs: {
    uses: ['state'],
    sql: 'select * from market_history.bhavcopy_cm_changes($1::bigint - 1, $1::bigint)',
    rows: 'instruments',
  },
} as const;

type QueryName = keyof typeof QUERIES;
const NAMES = Object.keys(QUERIES) as QueryName[];

export const filled: Case = {
  benches: [
    {
      name: 'scale-data',
      what: `new trading days into a table that holds ${TIMES} times as many rows, of two exchanges`,
      against: 'the same into an empty one',
      reach: [{ figure: 'ratio', atLeast: 0.9 }],
    },
    {
      name: 'analyst',
      what: 'queries of that table, in milliseconds, from memory (and when first run, mostly from disk): all days of a symbol, a day, 52-week highs (and with an index that has the high price), a day as of now, an ISIN, a share through its renames, what the newest load changed',
      against: null,
      reach: [
        { figure: 'symbolMs', atMost: LIMIT_MS },
        ...NAMES.slice(1).map((figure) => ({
          figure,
          atMost: figure === 'changesMs' ? 2 * LIMIT_MS : LIMIT_MS,
        })),
      ],
    },
    {
      name: 'adjusted',
      what: 'adjusted prices from that table: all days of a share by symbol, by id, with dividends reinvested, the last 250 trading days of both exchanges; what other views make of a share and a day; seven questions of the whole market, and how many times as long as from the table itself they take',
      against: null,
      reach: [
        { figure: 'symbolMs', atMost: LIMIT_MS },
        { figure: 'instrumentMs', atMost: LIMIT_MS },
        { figure: 'yearSeconds', atMost: 5 },
        ...Object.keys(WHOLE).map((name) => ({ figure: `${name}Times`, atMost: 2 })),
      ],
    },
    {
      name: 'exports',
      what: 'Parquet files of the adjusted prices of the last 100 trading days of both exchanges, as doubles and with all digits',
      against: 'COPY of the same rows to nowhere',
      reach: [
        { figure: 'doublesRowsPerSecond', atLeast: 100_000 },
        { figure: 'decimalsRowsPerSecond', atLeast: 60_000 },
      ],
    },
    {
      name: 'partitions',
      what: 'folders of that table and of adjusted prices by month, brought up to date after a night',
      against: 'the same written anew',
      reach: [{ figure: 'ratio', atLeast: 1.5 }],
    },
  ],
  async *rounds(site, wanted) {
    const { recordsPerDay } = site.source;
    const times = site.small ? 2 : TIMES;
    const loaded = Math.max(1, Math.round(site.records / recordsPerDay));
    const before = Math.max(2, Math.round((loaded * times) / 2));
    const days = tradingDaysBefore(before + loaded * site.rounds + 1);
    const stored = days.slice(0, before);
    const url = await fillDatabase(site, FILLED, stored);
    await checkStored(url, stored.length * 2 * recordsPerDay);
    // Before anything is added to the trading days of one exchange.
    for (let round = 0; wanted.has('adjusted') && round < site.rounds; round++) {
      yield { adjusted: await timeAdjusted(site, url, stored, round) };
    }
    const exportDays = stored.slice(-100);
    for (let round = 0; wanted.has('exports') && round < site.rounds; round++) {
      const exports = exportPrices(url, exportDays[0] ?? '', exportDays.length * 2 * recordsPerDay);
      yield { exports: await exports };
    }
    if (wanted.has('partitions'))
      yield { partitions: await keepFolders(url, () => loadDays(site, url, days.slice(-1))) };
    for (let round = 0; round < site.rounds; round++) {
      const figures: Record<string, Figures> = {};
      // The folders and the rounds before have added trading days of one exchange.
      const added = (wanted.has('partitions') ? 1 : 0) + (wanted.has('scale-data') ? round * loaded : 0);
      if (wanted.has('analyst')) {
        figures.analyst = {
          ...(await timeAll(site, url, stored, added)),
          ...(await timeWithIndex(site, url, stored)),
        };
      }
      if (wanted.has('scale-data')) {
        const next = days.slice(before + round * loaded, before + (round + 1) * loaded);
        const empty = await migratedDatabase(site.server.url, EMPTY);
        const intoEmpty = await loadDays(site, empty, next);
        await dropDatabase(site.server.url, EMPTY);
        const intoFilled = await loadDays(site, url, next);
        figures['scale-data'] = {
          ratio: intoEmpty / intoFilled,
          rowsBefore: stored.length * 2 * recordsPerDay,
          rows: next.length * recordsPerDay,
          seconds: intoFilled,
          emptySeconds: intoEmpty,
        };
      }
      yield figures;
    }
    await dropDatabase(site.server.url, FILLED);
  },
};

async function checkStored(url: string, rows: number): Promise<void> {
  const counted = await withClient(url, (client) =>
    client.query<{ rows: number }>('select count(*)::int as rows from market.bhavcopy_cm'),
  );
  check('rows stored before', { rows: [counted.rows[0]?.rows, rows] });
}

async function loadDays(site: Site, url: string, days: readonly string[]): Promise<number> {
  const rows = days.length * site.source.recordsPerDay;
  const pipeline = await startPipeline(site, url);
  const { result, seconds } = await measured(url, () => pipeline.run(bhavRequest(days)));
  await pipeline.stop();
  checkCounts('scale-data', result, { fetched: rows, inserted: rows });
  return seconds;
}

const explained = new Set<string>();

/**
 * Runs each query with different values, twice each: at first most pages come from the disk, whose speed is then
 * what is measured, and again from memory. Keeps the plan of each once.
 */
async function timeAll(site: Site, url: string, days: readonly string[], added: number): Promise<Figures> {
  return withClient(url, async (client) => {
    const figures: Record<string, number> = {};
    for (const name of NAMES) {
      const { first, again } = await timeQuery(site, client, name, days, { added });
      figures[name] = median(again);
      figures[name.replace(/Ms$/, 'FirstMs')] = median(first);
    }
    return figures;
  });
}

/** The index that docs/performance.md recommends to those who often query 52-week highs. */
const INDEX_OF_HIGHS = `create index bench_highs on market.bhavcopy_cm (symbol, exchange, trade_date)
  include (series, high_price)`;

/** Queries 52-week highs with an index that no installation has by default, and drops it again. */
async function timeWithIndex(site: Site, url: string, days: readonly string[]): Promise<Figures> {
  return withClient(url, async (client) => {
    await client.query(INDEX_OF_HIGHS);
    // As autovacuum leaves it: without it, each row found by the index would be looked up in the table.
    await client.query('vacuum analyze market.bhavcopy_cm');
    const { first, again } = await timeQuery(site, client, 'highsMs', days, {
      added: 0,
      note: 'highsIndexedMs',
    });
    await client.query('drop index market.bench_highs');
    return { highsIndexedMs: median(again), highsIndexedFirstMs: median(first) };
  });
}

async function timeQuery(
  site: Site,
  client: Client,
  name: QueryName,
  days: readonly string[],
  { added, note = name }: { readonly added: number; readonly note?: string },
) {
  const first: number[] = [];
  const again: number[] = [];
  for (let nth = 0; nth < (site.small ? 2 : VALUES_EACH); nth++) {
    const values = await valuesFor(client, name, days, nth);
    const timeOnce = async () => {
      const start = performance.now();
      const { rowCount } = await client.query(QUERIES[name].sql, values);
      return { rowCount, ms: performance.now() - start };
    };
    const { rowCount, ms } = await timeOnce();
    first.push(ms);
    again.push((await timeOnce()).ms);
    checkRowCount(site, name, rowCount, { days: days.length, added });
    // The second day has a year before it, which the first has not.
    if (nth === 1 && !explained.has(note)) {
      explained.add(note);
      site.note('analyst', await explainAnalyze(client, note, QUERIES[name].sql, values));
    }
  }
  return { first, again };
}

/** Values of a stored row, of another one each time. */
async function valuesFor(client: Client, name: QueryName, days: readonly string[], nth: number) {
  const day = days[(nth * 7919) % days.length];
  const result = await client.query<Record<string, string>>(
    `select exchange, symbol, isin, trade_date::text as day, exchange || ':' || exchange_instrument_id as instrument,
            (select max(state)::text from etl.loads where operation = 'GetBhavCopyCM' and inserted > 0) as state
       from market.bhavcopy_cm where exchange = $1 and trade_date = $2 order by symbol, series offset $3 limit 1`,
    [EXCHANGE, day, (nth * 37) % 100],
  );
  return QUERIES[name].uses.map((column) => result.rows[0]?.[column]);
}

function checkRowCount(
  site: Site,
  name: QueryName,
  rows: number | null,
  { days, added }: { readonly days: number; readonly added: number },
): void {
  const due = {
    days: days + added,
    'days of both exchanges': 2 * days + added,
    instruments: site.source.recordsPerDay,
  };
  const { rows: kind } = QUERIES[name];
  if (kind !== null) check('analyst', { [`rows of ${name}`]: [rows, due[kind]] });
}
