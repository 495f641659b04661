import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { addDays, dayAt } from '../../../src/core/days.ts';
import { nightlyRequest } from '../../../src/jobs/runs/nightly-request.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { corporateActions } from '../../../src/sandbox/datasets/corporate-action-responses.ts';
import type { Sandbox, SandboxOptions, SeenRequest } from '../../../src/sandbox/index.ts';
import { importInto } from '../../support/import-support.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../../support/pipeline.ts';
import { openSandbox, rangeLimit } from '../../support/sandbox.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** A Friday evening in India, after publication; a Monday and a Wednesday before it have splits. */
const TONIGHT = '2026-11-20';
const clock = { now: () => Date.parse(`${TONIGHT}T22:05:00+05:30`) };
const WEEK = { from: '2026-11-13', to: TONIGHT, operations: ['GetBhavCopyCM'] };

/** A night requests all of the week. */
const settings = { EOD_LOOKBACK_SESSIONS: '5' };

const CF_CA =
  '"SYMBOL","COMPANY NAME","SERIES","PURPOSE","FACE VALUE","EX-DATE","RECORD DATE","BOOK CLOSURE START DATE","BOOK CLOSURE END DATE"';
const BSE =
  'Security Code,Security Name,Company Name,Ex Date,Purpose,Record Date,BC Start Date, BC End Date,ND Start Date,ND End Date,Actual Payment Date';

interface Action {
  readonly code: number;
  readonly symbol: string;
  readonly type: string;
  readonly terms: string | null;
  readonly exDate: string;
}

const sourceWith = (options: Pick<SandboxOptions, 'behaviour' | 'dataSets'> = {}) =>
  openSandbox({ clock, instrumentsPerExchange: 300, splits: true, ...options });

/** A source whose corporate actions are others. */
const sourceOf = (records: (typeof corporateActions)['records']) =>
  sourceWith({ dataSets: { GetCorporateActions: { ...corporateActions, records } } });

/** A pipeline with a week of prices. */
async function withPrices({ url }: Sandbox): Promise<Pipeline> {
  const pipeline = await openPipeline({ sourceUrl: url, clock, settings });
  await runToEnd(pipeline, backfill(WEEK));
  return pipeline;
}

async function night(pipeline: Pipeline) {
  const operation = operationNamed('GetCorporateActions');
  return runToEnd(pipeline, await nightlyRequest(pipeline, { date: TONIGHT, operation }));
}

const query = async <Row>({ db }: Pipeline, sql: string): Promise<Row[]> => (await db.pool.query(sql)).rows;

const actionsOf = (pipeline: Pipeline) =>
  query<Action>(
    pipeline,
    `select scrip_code as code, symbol, corporate_action_type as type, ratio_amount as terms, prov_xdate::text as "exDate"
       from market.corporate_actions order by 5, 2, 3`,
  );

/** What an analyst sees: the events, without the words in which they came, and all adjusted prices. */
async function readEventsAndPrices(pipeline: Pipeline) {
  return {
    events: await query(
      pipeline,
      `select exchange, symbol, instrument_id, ex_date::text, kind, item, ratio_new, ratio_old, amount::float8, price_factor::text, status
         from market.corporate_events where status <> 'ignored' order by 1, 2, 4, 5, 6`,
    ),
    prices: await query(
      pipeline,
      `select exchange, symbol, series, trade_date::text, close_price::text, traded_quantity::text
         from market.adjusted_prices('${TONIGHT}') order by 1, 2, 3, 4`,
    ),
    returns: await query(
      pipeline,
      `select exchange, symbol, series, trade_date::text, close_price::text
         from market.adjusted_prices('${TONIGHT}', total_return => true) order by 1, 2, 3, 4`,
    ),
  };
}

const adjusted = async (pipeline: Pipeline, symbol: string) =>
  new Set(
    (
      await query<{ exchange: string }>(
        pipeline,
        `select exchange from market.adjusted_prices('${TONIGHT}')
          where symbol = '${symbol}' and close_price <> unadjusted_close_price`,
      )
    ).map(({ exchange }) => exchange),
  );

const printed = (day: string) => {
  const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
  const [year, month, date] = day.split('-');
  return `${date}-${months[Number(month) - 1]}-${year}`;
};

/** The words of the exchanges' lists for an action of the source. */
function purposeOf({ type, terms }: Action): string | null {
  if (type === 'Stock Split') return 'Stock  Split From Rs.10/- to Rs.2/-';
  if (type === 'Consolidation of Shares') return 'Consolidation of Shares From Rs.2/- to Rs.10/-';
  return /Dividend/.test(type) && terms !== null ? `${type} - Rs. - ${Number(terms).toFixed(4)}` : null;
}

describe('corporate actions of the source service', () => {
  const folder = temporaryFolder();
  let sandbox: Sandbox;
  let alone: Pipeline;
  let report: Awaited<ReturnType<typeof night>>;
  let actions: readonly Action[];
  let traded: readonly { readonly exchange: string; readonly symbol: string }[];
  beforeAll(async () => {
    sandbox = await sourceWith();
    alone = await withPrices(sandbox);
    report = await night(alone);
    actions = await actionsOf(alone);
    traded = await query(alone, 'select distinct exchange, symbol from market.bhavcopy_cm');
  });

  /** A list of one exchange of the same actions. */
  function listOf(exchange: 'NSE' | 'BSE'): string {
    const lines = actions.flatMap((action) => {
      const purpose = purposeOf(action);
      const isListed = traded.some((share) => share.exchange === exchange && share.symbol === action.symbol);
      if (purpose === null || !isListed) return [];
      const day = printed(action.exDate);
      return exchange === 'BSE'
        ? `${action.code},${action.symbol},A Company,${day.replaceAll('-', ' ')},${purpose},${day.replaceAll('-', ' ')},-,-,-,-,-`
        : `"${action.symbol}","A Company","EQ","${purpose.replace(/(- Rs\.) -/, '$1')}","10","${day}","${day}","-","-"`;
    });
    const path = join(folder, `${exchange}.csv`);
    writeFileSync(path, `${exchange === 'BSE' ? BSE : CF_CA}\n${lines.join('\n')}\n`);
    return path;
  }

  test('are requested by two calls a night: the lookback, and the days to come', async () => {
    expect(report).toMatchObject({
      state: 'completed',
      failures: [],
      rejected: 0,
      windows: { total: 2, loaded: 2 },
    });
    const requests = (await (await fetch(`${sandbox.url}/_sandbox/requests`)).json()) as SeenRequest[];
    expect(requests.filter(({ operation }) => operation === 'GetCorporateActions')).toHaveLength(2);
    const days = actions.map(({ exDate }) => exDate);
    expect(days.filter((day) => day <= TONIGHT).length).toBeGreaterThan(0);
    expect(days.filter((day) => day > addDays(TONIGHT, 10)).length).toBeGreaterThan(0);
    // No trading day to come counts as loaded.
    const rows = await query<{ day: string }>(
      alone,
      "select max(day)::text as day from etl.coverage where operation = 'GetCorporateActions'",
    );
    expect(rows).toEqual([{ day: TONIGHT }]);
    expect(await night(alone)).toMatchObject({ inserted: 0, updated: 0, unchanged: report.fetched });
  });

  test('adjust the prices of both exchanges without a file, and pay each dividend once', async () => {
    const splits = sandbox.splits(WEEK.from, TONIGHT).filter(({ kind }) => kind === 'split');
    expect(splits.length).toBeGreaterThan(0);
    for (const { symbol } of splits) expect(await adjusted(alone, symbol)).toEqual(new Set(['BSE', 'NSE']));
    const dividends = actions.filter(({ type, terms }) => /Dividend/.test(type) && terms !== null);
    const paid = await query<{ count: number }>(
      alone,
      "select count(*)::int as count from market.corporate_events where exchange = 'BSE' and kind = 'dividend' and status = 'applied'",
    );
    expect(dividends.length).toBeGreaterThan(0);
    expect(paid).toEqual([{ count: dividends.length }]);
  });

  test('are the same events as those of lists, whichever comes first', async () => {
    const expected = await readEventsAndPrices(alone);
    for (const exchange of ['BSE', 'NSE'] as const) {
      const list = listOf(exchange);
      const before = await withPrices(sandbox);
      await importInto(before, [list]);
      await night(before);
      const stored = await readEventsAndPrices(before);
      expect(stored.prices).toEqual(expected.prices);
      expect(stored.returns).toEqual(expected.returns);
      expect(stored.events).toEqual(expected.events);
    }
    await importInto(alone, [listOf('BSE'), listOf('NSE')]);
    expect(await readEventsAndPrices(alone)).toEqual(expected);
  });

  test('with coded ratios wait for a person or a list, which then counts on both exchanges', async () => {
    const expected = (await readEventsAndPrices(alone)).prices;
    const withCodes = await sourceOf((market, query) =>
      corporateActions.records(market, query).map((action) => {
        const sides = String(action.ratioAmount).split(':');
        const isRatio = sides.length === 2;
        return isRatio
          ? { ...action, ratioAmount: sides.map((side) => side.padStart(4, '0')).join('') }
          : action;
      }),
    );
    const coded = await withPrices(withCodes);
    await night(coded);
    const [{ symbol = '' } = {}] = sandbox.splits(WEEK.from, TONIGHT).filter(({ kind }) => kind === 'split');
    expect(await adjusted(coded, symbol)).toEqual(new Set());
    expect(
      await query(
        coded,
        `select exchange, status, purpose, ratio_new from market.corporate_events where symbol = '${symbol}' order by 1`,
      ),
    ).toEqual(
      ['BSE', 'NSE'].map((exchange) => ({
        exchange,
        status: 'needs_review',
        purpose: 'Stock Split 00050001',
        ratio_new: null,
      })),
    );
    await importInto(coded, [listOf('NSE')]);
    expect((await readEventsAndPrices(coded)).prices).toEqual(expected);
  });

  test('are stored whatever their days are: the source selects by announcement', async () => {
    const byAnnouncement = await sourceOf((market, query) => {
      if (query.range === null) return [];
      const { from, to } = query.range;
      const announced = (seconds: unknown) => dayAt(Number(seconds), 'Asia/Kolkata');
      return corporateActions
        .records(market, { ...query, range: { from, to: addDays(to, 40) } })
        .filter(({ announcementDate: at }) => announced(at) >= from && announced(at) <= to);
    });
    const pipeline = await openPipeline({ sourceUrl: byAnnouncement.url, clock, settings });
    expect(await night(pipeline)).toMatchObject({
      state: 'completed',
      failures: [],
      rejected: 0,
      withdrawn: 0,
    });
    const stored = await actionsOf(pipeline);
    expect(stored.length).toBeGreaterThan(0);
    expect(stored.every(({ exDate }) => exDate > TONIGHT)).toBe(true);
  });

  test('are requested in shorter ranges where the source allows no longer ones, each time', async () => {
    const limited = await sourceWith({ behaviour: { faults: [rangeLimit('GetCorporateActions', 10)] } });
    const pipeline = await openPipeline({ sourceUrl: limited.url, clock, settings });
    expect(await night(pipeline)).toMatchObject({
      state: 'completed',
      failures: [],
      windows: { total: 4, loaded: 4 },
    });
    expect(await actionsOf(pipeline)).toEqual(actions);
    expect(await night(pipeline)).toMatchObject({
      failures: [],
      inserted: 0,
      requests: 5,
      windows: { total: 4, loaded: 4 },
    });
  });

  test('of days to come are no failure where the source refuses such days', async () => {
    const fault = { kind: 'diagnostic', value: 'Date is out of allowed range.', minDays: 30 } as const;
    const pipeline = await openPipeline({
      sourceUrl: (await sourceWith({ behaviour: { faults: [fault] } })).url,
      clock,
      settings,
    });
    expect(await night(pipeline)).toMatchObject({
      state: 'completed',
      failures: [],
      windows: { loaded: 1, skipped: 1, total: 2 },
      skips: [{ reason: 'the source does not serve days to come' }],
    });
    expect(await actionsOf(pipeline)).toEqual(actions.filter(({ exDate }) => exDate <= TONIGHT));
  });
});
