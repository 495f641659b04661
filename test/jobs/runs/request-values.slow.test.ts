import { beforeAll, describe, expect, test } from 'vitest';
import { nightlyRequest } from '../../../src/jobs/runs/nightly-request.ts';
import type { Sandbox, SeenRequest } from '../../../src/sandbox/index.ts';
import { startServer } from '../../support/http-server.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../../support/pipeline.ts';
import { openSandbox } from '../../support/sandbox.ts';

const clock = { now: () => Date.parse('2025-09-10T22:05:00+05:30') };
const DAY = { from: '2025-09-05', to: '2025-09-05' };

describe('ratios are selected', () => {
  let sandbox: Sandbox;
  let pipeline: Pipeline;
  beforeAll(async () => {
    sandbox = await openSandbox({ clock, instrumentsPerExchange: 60 });
    pipeline = await openPipeline({ sourceUrl: sandbox.url, clock });
  });

  /** What was sent for TCS, and the keys of the rows that this brought. */
  async function ask(options: Readonly<Record<string, string>>, operations = ['GetFinancialRatios']) {
    const { requests } = sandbox.stats();
    const report = await runToEnd(
      pipeline,
      backfill({ ...DAY, operations, exchanges: ['BSE'], instruments: ['TCS'], options }),
    );
    expect(report).toMatchObject({ state: 'completed', failures: [], rejected: 0 });
    const requestLog = (await (await fetch(`${sandbox.url}/_sandbox/requests`)).json()) as SeenRequest[];
    const { rows } = await pipeline.db.pool.query(
      `select distinct variant, as_of_date::text as day, period from market.financial_ratios where run_id = $1`,
      [report.runId],
    );
    const sent = requestLog.filter(({ number }) => number > requests).map(({ params }) => params);
    return { sent, rows };
  }

  const rest = { exchange: 'BSE', instrumentIdentifier: 'TCS', format: 'Json' };
  const both = (params: Readonly<Record<string, string>>) =>
    ['Standalone', 'Consolidated'].map((natureOfReport) =>
      expect.objectContaining({ ...rest, natureOfReport, ...params }),
    );

  test('by the date', async () => {
    const { sent, rows } = await ask({ type: 'EOD' });
    expect(sent).toHaveLength(2);
    expect(sent).toEqual(expect.arrayContaining(both({ type: 'EOD', date: expect.any(String) })));
    expect(rows).toEqual([{ variant: 'eod', day: DAY.to, period: '' }]);
  });

  test.each([
    ['QD', '2024', '2024-12-31'],
    ['M6', '2024', '2024-09-30'],
    ['M9', '2024', '2024-12-31'],
    ['M12', '2024', '2025-03-31'],
  ])('by the period %s with its year, whatever the range of days', async (period, year, day) => {
    const { sent, rows } = await ask({ period, year });
    expect(sent).toHaveLength(2);
    expect(sent).toEqual(expect.arrayContaining(both({ type: 'Quarter', period, year })));
    for (const params of sent) expect(params.date).toBeUndefined();
    expect(rows).toEqual([{ variant: 'quarter', day, period: `${year}${period}` }]);
  });

  test('a quarter is requested once, a longer period with the same last day is another request', async () => {
    expect((await ask({ period: 'QM', year: '2023' })).sent).toHaveLength(2);
    expect((await ask({ period: 'QM', year: '2023' })).sent).toHaveLength(0);
    expect((await ask({ period: 'M12', year: '2023' })).sent).toHaveLength(2);
  });

  test('by the type alone, or with the latest period', async () => {
    const realtime = await ask({ type: 'Realtime' });
    expect(realtime.sent).toEqual(expect.arrayContaining(both({ type: 'Realtime' })));
    for (const { date, period, year } of realtime.sent) {
      expect([date, period, year]).toEqual([undefined, undefined, undefined]);
    }
    expect(realtime.rows).toEqual([{ variant: 'realtime', day: '2025-09-10', period: '' }]);
    const latest = await ask({ period: 'Latest' });
    expect(latest.sent).toEqual(expect.arrayContaining(both({ type: 'Quarter', period: 'Latest' })));
    expect(latest.rows).toEqual([{ variant: 'quarter', day: '2025-09-10', period: 'Latest' }]);
  });
});

describe('what nobody declares', () => {
  async function open(settings: Readonly<Record<string, string>> = {}) {
    const queries: URLSearchParams[] = [];
    const url = await startServer((request, response) => {
      queries.push(new URL(`http://source${request.url}`).searchParams);
      response.end('{"Value":[]}');
    });
    return { queries, pipeline: await openPipeline({ sourceUrl: url, clock, settings }) };
  }

  test('a parameter is sent as it is with every call, and counts as a filter', async () => {
    const { queries, pipeline } = await open();
    const report = await runToEnd(
      pipeline,
      backfill({
        ...DAY,
        operations: ['GetCircuitBreakers', 'GetFinRatioEOD'],
        instruments: ['TCS'],
        options: { 'param:Segment': 'T+1 & more', band: 'U' },
      }),
    );
    expect(report.state).toBe('completed');
    expect(queries).toHaveLength(3);
    expect(queries.map((query) => query.get('Segment'))).toEqual(Array(3).fill('T+1 & more'));
    expect(queries.map((query) => query.get('band')).sort()).toEqual(['U', null, null].sort());
    const { rows } = await pipeline.db.pool.query(
      `select (select count(*)::int from etl.coverage where state <> 'holiday') as covered,
         (select bool_and(is_filtered) from etl.windows) as filtered`,
    );
    expect(rows).toEqual([{ covered: 0, filtered: true }]);
  });

  test('nights request the exchanges of EOD_OPERATION_EXCHANGES', async () => {
    const { queries, pipeline } = await open({
      EOD_OPERATION_EXCHANGES: 'GetTotalTradeHighlights=NSE+BSE_IDX',
    });
    const request = await nightlyRequest(pipeline, { date: '2025-09-10' });
    const targets = request.targets.filter(({ operation }) => operation === 'GetTotalTradeHighlights');
    expect(targets.map(({ exchange }) => exchange)).toEqual(['NSE', 'BSE_IDX']);
    expect(await runToEnd(pipeline, { ...request, targets })).toMatchObject({ state: 'completed' });
    expect(new Set(queries.map((query) => query.get('exchange')))).toEqual(new Set(['NSE', 'BSE_IDX']));
  });
});
