import { expect, test } from 'vitest';
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
