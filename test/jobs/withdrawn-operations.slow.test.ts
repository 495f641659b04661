import { expect, test } from 'vitest';
import { operations } from '../../src/operations/registry.ts';
import type { Behaviour } from '../../src/sandbox/index.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../support/pipeline.ts';
import { notEnabled, openSandbox } from '../support/sandbox.ts';

const clock = { now: () => Date.parse('2025-09-10T22:05:00+05:30') };
const RATIOS = ['GetFinRatioEOD', 'GetFinRatioSnapshot'];
const REQUESTED = {
  from: '2025-09-04',
  to: '2025-09-05',
  operations: RATIOS,
  exchanges: ['BSE'],
  instruments: ['TCS', 'RELIANCE'],
};

async function open(behaviour: Partial<Behaviour>) {
  const sandbox = await openSandbox({ clock, instrumentsPerExchange: 60, behaviour });
  const pipeline = await openPipeline({ sourceUrl: sandbox.url, clock });
  return { sandbox, pipeline };
}

/** Ratios as stored, without what a snapshot calls its price. */
const ratiosOf = async ({ db }: Pipeline) =>
  (
    await db.pool.query(
      `select symbol, nature_of_report, variant, as_of_date::text, period, year, last_q, market_cap_crore, pe_ratio,
         coalesce(eod_close_price, current_price) as price from market.financial_ratios order by 1, 2, 3, 4`,
    )
  ).rows;

test.each([
  ['the line that they are not enabled', { faults: notEnabled(...RATIOS) }, 'Function not enabled.'],
  [
    'status 404',
    { faults: RATIOS.map((operation) => ({ kind: 'status' as const, value: '404', operation })) },
    'HTTP status 404',
  ],
])('%s: the same ratios come from GetFinancialRatios, and it is said once', async (_, behaviour, said) => {
  const before = await open({});
  await runToEnd(before.pipeline, backfill(REQUESTED));
  const { sandbox, pipeline } = await open(behaviour);
  const report = await runToEnd(pipeline, backfill(REQUESTED));
  expect(report).toMatchObject({ state: 'completed', failures: [], rejected: 0 });
  expect(await ratiosOf(pipeline)).toEqual(await ratiosOf(before.pipeline));
  expect(report.inserted).toBe(2 * 2 * (2 + 1));
  expect(report.warnings).toHaveLength(2);
  for (const { operation, warning } of report.warnings) {
    expect(RATIOS).toContain(operation);
    expect(warning).toContain(said);
    expect(warning).toContain('GetFinancialRatios was requested with type');
  }
  // Later runs ask at once for what responses, until a week is over.
  const { byOperation } = sandbox.stats();
  const { rows } = await pipeline.db.pool.query('select operation from etl.withdrawn_operations order by 1');
  expect(rows.map(({ operation }) => operation)).toEqual(RATIOS);
  const again = await runToEnd(pipeline, backfill({ ...REQUESTED, force: true }));
  expect(again).toMatchObject({ state: 'completed', inserted: 0, updated: 0 });
  for (const name of RATIOS) expect(sandbox.stats().byOperation[name]).toBe(byOperation[name]);
  await pipeline.db.pool.query(`update etl.withdrawn_operations set noted_at = noted_at - interval '8 days'`);
  expect(await runToEnd(pipeline, backfill({ ...REQUESTED, force: true }))).toMatchObject({
    state: 'completed',
  });
  for (const name of RATIOS) {
    expect(sandbox.stats().byOperation[name]).toBeGreaterThan(byOperation[name] as number);
  }
});

test('if that operation is refused too, its windows are blocked as those of any other', async () => {
  const { pipeline } = await open({ faults: notEnabled(...RATIOS, 'GetFinancialRatios') });
  const report = await runToEnd(pipeline, backfill(REQUESTED));
  expect(report).toMatchObject({ state: 'failed', inserted: 0 });
  expect(report.windows).toMatchObject({ blocked: report.windows.total, open: 0 });
});

test('what is requested instead is an operation that knows the same shapes and parameters', () => {
  const replaced = operations.filter(({ instead }) => instead !== undefined);
  expect(replaced.map(({ name }) => name)).toEqual(RATIOS);
  for (const { instead, shapes, request, windows } of replaced) {
    const other = operations.find(({ name }) => name === instead?.operation);
    expect(other?.shapes).toEqual(shapes);
    expect(other?.request.instruments).toBe(request.instruments);
    expect(windows.per).toBe('instrument');
    const known = other?.request.options.map(({ param }) => param);
    expect(known).toEqual(expect.arrayContaining(Object.keys(instead?.params ?? {})));
    expect(known).toEqual(expect.arrayContaining(request.options.map(({ param }) => param)));
  }
});
