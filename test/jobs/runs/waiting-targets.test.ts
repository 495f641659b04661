import { expect, test } from 'vitest';
import { listedBy, planUnlessWaiting } from '../../../src/jobs/runs/covered.ts';
import { operationNamed } from '../../../src/operations/registry.ts';

const LISTS: Readonly<Record<string, string>> = { Facts: 'Bhav', Items: 'Bhav' };
const target = (operation: string, exchange = 'BSE') => ({ operation, exchange });

/** What is planned, in which order, and what waits; `nothing`: what has nothing to request. */
async function divided(names: readonly string[], nothing: readonly string[] = []) {
  const planned: string[] = [];
  const targets = names.map((name) => target(...(name.split(' ') as [string])));
  const waiting = await planUnlessWaiting(
    targets,
    ({ operation, exchange }) => {
      const list = LISTS[operation];
      return list === undefined ? null : { operation: list, exchange };
    },
    async ({ operation }) => {
      planned.push(operation);
      return () => !nothing.includes(operation);
    },
  );
  return { planned, waiting: waiting.map(({ operation }) => operation) };
}

test('what shows the requests of others is planned first, and those wait', async () => {
  expect(await divided(['Facts', 'Other', 'Items', 'Bhav'])).toEqual({
    planned: ['Other', 'Bhav'],
    waiting: ['Facts', 'Items'],
  });
  expect(await divided(['Facts'])).toEqual({ planned: ['Facts'], waiting: [] });
});

test('nothing waits for what has nothing to request, or is of another exchange', async () => {
  expect(await divided(['Facts', 'Items', 'Bhav'], ['Bhav'])).toEqual({
    planned: ['Bhav', 'Facts', 'Items'],
    waiting: [],
  });
  expect((await divided(['Items NSE', 'Bhav BSE'])).waiting).toEqual([]);
});

test('what shows the requests of an operation', () => {
  expect(listedBy(operationNamed('GetFinRatioEOD'), false)).toBe('GetBhavCopyCM');
  expect(listedBy(operationNamed('GetFinRatioEOD'), true)).toBeNull();
  expect(listedBy(operationNamed('GetSeriesChange'), false)).toBeNull();
});
