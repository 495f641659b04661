import { expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { backfill, openPipeline, runToEnd } from '../support/pipeline.ts';
import { openSetup } from './support.ts';
import { DAY, expectRetried, FAULTS, USUAL_FAULTS } from './transport-support.ts';

test.each(FAULTS.filter(([name]) => USUAL_FAULTS.includes(name)))(
  '%s is retried: a passing one does no harm, a lasting one fails its window',
  expectRetried,
);

test.each([400, 403, 404])('status %i says that the request is wrong: it is not repeated', async (status) => {
  const setup = await openSetup({ behaviour: { faults: [{ kind: 'status', value: String(status) }] } });
  const report = await setup.run(DAY);
  expect(report).toMatchObject({ state: 'failed', requests: 1, windows: { failed: 1 } });
});

test('a call that does not reach the source is not counted', async () => {
  const pipeline = await openPipeline({
    sourceUrl: `http://127.0.0.1:${await freePort()}`,
    settings: { EOD_ATTEMPTS: '1', EOD_OUTAGE_PATIENCE_MS: '1000' },
  });
  const options = { ...DAY, operations: ['GetBhavCopyCM'], exchanges: ['NSE'] };
  const report = await runToEnd(pipeline, backfill(options));
  expect(report).toMatchObject({ state: 'failed', requests: 0, windows: { failed: 1 } });
  const budget = await pipeline.db.pool.query('select calls from etl.call_budget where calls <> 0');
  expect(budget.rows).toEqual([]);
});
