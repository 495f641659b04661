import { describe, expect, test } from 'vitest';
import { readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { operationNamed, operations } from '../../../src/operations/registry.ts';
import type { CheckedRequest } from '../../../src/sandbox/checked-request.ts';
import { classification } from '../../../src/sandbox/datasets/company-responses.ts';
import type { SeenRequest } from '../../../src/sandbox/index.ts';
import type { Market } from '../../../src/sandbox/market/market.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../../support/pipeline.ts';
import { openSandbox } from '../../support/sandbox.ts';

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
    const dataSets = {
      [NAME]: {
        ...classification,
        // No company's classification has changed in the range.
        records: (market: Market, request: CheckedRequest) =>
          request.range === null ? classification.records(market, request) : [],
      },
    };
    const sandbox = await openSandbox({ clock, instrumentsPerExchange: 300, dataSets });
    const pipeline = await openPipeline({ sourceUrl: sandbox.url, clock });
    const sentParams = async () => {
      const list = await (await fetch(`${sandbox.url}/_sandbox/requests`)).json();
      return (list as SeenRequest[]).map(({ params }) => params);
    };
    return { sandbox, pipeline, sentParams };
  };

  /** Every company of the exchanges, as the source lists them when it is asked for each sector. */
  async function listed(url: string): Promise<string[]> {
    const companies: string[] = [];
    for (const exchange of EXCHANGES) {
      for (const sector of SECTORS) {
        const query = new URLSearchParams({ accessKey: 'k', exchange, sector, format: 'Json' });
        const { Value } = await (await fetch(`${url}/${NAME}?${query}`)).json();
        for (const { ISIN } of Value) companies.push(`${exchange} ${ISIN}`);
      }
    }
    return companies.sort();
  }

  test('a backfill ends with every company of both exchanges, and requests a sector without dates', async () => {
    const { sandbox, pipeline, sentParams } = await open();
    const report = await runToEnd(pipeline, backfill(WEEK));
    expect(report).toMatchObject({ state: 'completed', rejected: 0, withdrawn: 0 });
    const params = await sentParams();
    expect(params.filter(({ sector }) => sector !== undefined)).toHaveLength(2 * SECTORS.length);
    for (const { sector, from, to } of params) {
      expect([from === undefined, to === undefined]).toEqual(Array(2).fill(sector !== undefined));
    }
    const companies = await listed(sandbox.url);
    expect(companies.length).toBeGreaterThan(300);
    expect(await companiesOf(pipeline)).toEqual(companies);
    expect((await readGaps(pipeline, { operations: [operationNamed(NAME)] })).gaps).toEqual([]);
    // The sectors are requested once a day, each range of days once.
    const again = await runToEnd(pipeline, backfill({ ...WEEK, from: '2025-08-25' }));
    expect(again).toMatchObject({ state: 'completed', requests: 2, inserted: 0, updated: 0 });
  });

  test('the filters of the user are sent without dates, and withdraw and cover nothing', async () => {
    const { pipeline, sentParams } = await open();
    await runToEnd(pipeline, backfill(WEEK));
    const before = await companiesOf(pipeline);
    const coverage = 'select count(*)::int as rows from etl.coverage';
    const coverageBefore = await rowsOf(pipeline, coverage);
    const requestsBefore = (await sentParams()).length;
    for (const filter of [
      { options: { sector: 'Power' } },
      { options: { industry: 'Banks' } },
      { options: { basicIndustry: 'Hotels & Resorts' } },
      { instruments: ['TCS', 'RELIANCE'] },
    ]) {
      const report = await runToEnd(pipeline, backfill({ ...WEEK, ...filter, exchanges: ['NSE'] }));
      expect(report).toMatchObject({ state: 'completed', requests: 1, withdrawn: 0, rejected: 0 });
      expect(report.unchanged).toBe(report.fetched);
    }
    const filtered = (await sentParams()).slice(requestsBefore);
    expect(filtered).toHaveLength(4);
    for (const { from, to } of filtered) expect([from, to]).toEqual([undefined, undefined]);
    expect(filtered[3]?.instrumentIdentifiers).toBe('TCS RELIANCE');
    expect(await companiesOf(pipeline)).toEqual(before);
    expect(await rowsOf(pipeline, coverage)).toEqual(coverageBefore);
  });
});

test('every operation with parts declares them with an option, and a column of its table', () => {
  const inParts = operations.filter(
    (operation) => operation.windows.per === 'range' && operation.windows.parts !== undefined,
  );
  expect(inParts.map(({ name }) => name)).toEqual([NAME]);
  expect(SECTORS).toHaveLength(22);
});
