import { beforeEach, describe, expect, test } from 'vitest';
import { readGaps } from '../../src/jobs/runs/read-gaps.ts';
import { operationNamed, operations } from '../../src/operations/registry.ts';
import type { SeenRequest } from '../../src/sandbox/index.ts';
import { startServer } from '../support/http-server.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../support/pipeline.ts';
import { openSandbox } from '../support/sandbox.ts';

const NAME = 'GetSectoralClassification';
/** A Wednesday evening in India, after publication: the same for the pipeline and the source. */
const clock = { now: () => Date.parse('2025-09-10T22:05:00+05:30') };
const WEEK = { from: '2025-09-01', to: '2025-09-05', operations: [NAME] };
const EXCHANGES = ['BSE', 'NSE'];
const { windows } = operationNamed(NAME);
const SECTORS = windows.per === 'range' ? (windows.parts?.values ?? []) : [];

const rowsOf = async <Row>({ db }: Pipeline, query: string): Promise<Row[]> =>
  (await db.pool.query(query)).rows;

/** The companies in the table, as `exchange ISIN`. */
const companiesOf = async (pipeline: Pipeline) =>
  (
    await rowsOf<{ company: string }>(
      pipeline,
      "select distinct exchange || ' ' || isin as company from market.sectoral_classification order by 1",
    )
  ).map(({ company }) => company);

describe('at a source where a range of days selects only what has changed', () => {
  const open = async () => {
    const behaviour = { classificationByChange: true };
    const sandbox = await openSandbox({ clock, instrumentsPerExchange: 300, behaviour });
    const pipeline = await openPipeline({ sourceUrl: sandbox.url, clock });
    const seen = async () => {
      const list = await (await fetch(`${sandbox.url}/_sandbox/requests?last=1000`)).json();
      return (list as SeenRequest[]).map(({ params }) => params);
    };
    return { sandbox, pipeline, seen };
  };

  /** Every company of the exchanges, as the source lists them when it is asked for each sector. */
  async function listed(url: string): Promise<string[]> {
    const found: string[] = [];
    for (const exchange of EXCHANGES) {
      for (const sector of SECTORS) {
        const query = new URLSearchParams({ accessKey: 'k', exchange, sector, format: 'Json' });
        const { Value } = await (await fetch(`${url}/${NAME}?${query}`)).json();
        for (const { ISIN } of Value) found.push(`${exchange} ${ISIN}`);
      }
    }
    return found.sort();
  }

  test('a backfill ends with every company of both exchanges, and asks for a sector without dates', async () => {
    const { sandbox, pipeline, seen } = await open();
    const report = await runToEnd(pipeline, backfill(WEEK));
    expect(report).toMatchObject({ state: 'completed', rejected: 0, withdrawn: 0 });
    const asked = await seen();
    expect(asked.filter(({ sector }) => sector !== undefined)).toHaveLength(2 * SECTORS.length);
    for (const { sector, from, to } of asked) {
      expect([from === undefined, to === undefined]).toEqual(Array(2).fill(sector !== undefined));
    }
    const companies = await listed(sandbox.url);
    expect(companies.length).toBeGreaterThan(300);
    expect(await companiesOf(pipeline)).toEqual(companies);
    expect((await readGaps(pipeline, { operations: [operationNamed(NAME)] })).gaps).toEqual([]);
    // The sectors are asked for once a day, each range of days once.
    const again = await runToEnd(pipeline, backfill({ ...WEEK, from: '2025-08-25' }));
    expect(again).toMatchObject({ state: 'completed', requests: 2, inserted: 0, updated: 0 });
  });

  test('the filters of the user are sent without dates, and withdraw and cover nothing', async () => {
    const { pipeline, seen } = await open();
    await runToEnd(pipeline, backfill(WEEK));
    const before = await companiesOf(pipeline);
    const coverage = 'select count(*)::int as rows from etl.coverage';
    const covered = await rowsOf(pipeline, coverage);
    const asked = (await seen()).length;
    for (const filter of [
      { options: { sector: 'Power' } },
      { options: { industry: 'Banks' } },
      { options: { basicIndustry: 'Sugar' } },
      { instruments: ['TCS', 'RELIANCE'] },
    ]) {
      const report = await runToEnd(pipeline, backfill({ ...WEEK, ...filter, exchanges: ['NSE'] }));
      expect(report).toMatchObject({ state: 'completed', requests: 1, withdrawn: 0, rejected: 0 });
      expect(report.unchanged).toBe(report.fetched);
    }
    const filtered = (await seen()).slice(asked);
    expect(filtered).toHaveLength(4);
    for (const { from, to } of filtered) expect([from, to]).toEqual([undefined, undefined]);
    expect(filtered[3]?.instrumentIdentifiers).toBe('TCS RELIANCE');
    expect(await companiesOf(pipeline)).toEqual(before);
    expect(await rowsOf(pipeline, coverage)).toEqual(covered);
  });
});

describe('at a source of companies that move', () => {
  /** The sector of each company, and lines that are sent instead of the answer about a sector. */
  const sectors = new Map<string, string>();
  const lines = new Map<string, string>();
  /** What a range of days selects. */
  const changed: string[] = [];
  const asked: string[] = [];
  let pipeline: Pipeline;

  beforeEach(async () => {
    sectors.clear();
    lines.clear();
    changed.length = 0;
    asked.length = 0;
    const record = ([symbol, Sector]: [string, string]) => ({
      Symbol: symbol,
      ScripCode: 500_000 + symbol.charCodeAt(0),
      CompanyName: symbol,
      AllotedFrom: '03-31-2022',
      Sector,
      ISIN: `INE${symbol}`,
    });
    const url = await startServer((request, response) => {
      const { searchParams } = new URL(`http://source${request.url}`);
      const sector = searchParams.get('sector');
      asked.push(sector ?? 'days');
      const found = [...sectors].filter(([symbol, one]) =>
        sector === null ? changed.includes(symbol) : one === sector,
      );
      response.end(lines.get(sector ?? '') ?? JSON.stringify({ Value: found.map(record) }));
    });
    pipeline = await openPipeline({ sourceUrl: url, clock, settings: { EOD_ATTEMPTS: '1' } });
  });

  const run = () => runToEnd(pipeline, backfill({ ...WEEK, exchanges: ['BSE'], force: true }));
  const stored = () =>
    rowsOf(pipeline, 'select symbol, sector from market.sectoral_classification order by symbol');

  test('a company that leaves a sector for another is updated, and never withdrawn', async () => {
    sectors.set('A', 'Power').set('B', 'Power').set('C', 'Textiles');
    expect(await run()).toMatchObject({ inserted: 3, withdrawn: 0 });
    sectors.set('B', 'Textiles');
    expect(await run()).toMatchObject({ updated: 1, withdrawn: 0 });
    expect(await stored()).toEqual([
      { symbol: 'A', sector: 'Power' },
      { symbol: 'B', sector: 'Textiles' },
      { symbol: 'C', sector: 'Textiles' },
    ]);
    const gone = await rowsOf(pipeline, 'select from market_history.sectoral_classification where withdrawn');
    expect(gone).toEqual([]);
  });

  test('a sector that an answer shows is asked for in the same run, and in the next one', async () => {
    sectors.set('A', 'Power').set('B', 'Space Mining').set('C', 'Space Mining');
    changed.push('B');
    expect(await run()).toMatchObject({ state: 'completed', inserted: 2 + 1 });
    expect((await stored()).map((row) => (row as { symbol: string }).symbol)).toEqual(['A', 'B', 'C']);
    expect(asked.filter((one) => one === 'Space Mining')).toHaveLength(1);
    expect(asked).toHaveLength(SECTORS.length + 2);
    await run();
    expect(asked.filter((one) => one === 'Space Mining')).toHaveLength(2);
  });

  test('a sector without an answer is a gap until it has one', async () => {
    sectors.set('A', 'Power').set('B', 'Textiles');
    lines.set('Power', 'A line that nobody knows.');
    const gapsNow = async () =>
      (await readGaps(pipeline, { operations: [operationNamed(NAME)], exchanges: ['BSE'] })).gaps;
    expect((await gapsNow()).map(({ reason }) => reason)).toEqual(['never_asked']);
    expect(await run()).toMatchObject({ state: 'failed' });
    expect(await gapsNow()).toMatchObject([{ reason: 'failed', detail: 'A line that nobody knows.' }]);
    lines.clear();
    asked.length = 0;
    const report = await runToEnd(pipeline, backfill({ ...WEEK, exchanges: ['BSE'] }));
    expect(report).toMatchObject({ state: 'completed', inserted: 1 });
    expect(asked).toEqual(['Power']);
    expect(await gapsNow()).toEqual([]);
  });
});

test('every operation with parts declares them with an option, and a column of its table', () => {
  const inParts = operations.filter((one) => one.windows.per === 'range' && one.windows.parts !== undefined);
  expect(inParts.map(({ name }) => name)).toEqual([NAME]);
  expect(SECTORS).toHaveLength(22);
});
