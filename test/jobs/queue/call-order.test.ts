import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addDays } from '../../../src/core/days.ts';
import { isByInstrument } from '../../../src/declaration/operation.ts';
import { computePriority } from '../../../src/jobs/queue/call-order.ts';
import { operations } from '../../../src/operations/registry.ts';
import { forAll } from '../../support/for-all.ts';

const windows = fc.record({
  kind: fc.constantFrom('nightly' as const),
  operation: fc.constantFrom(...operations.map(({ name }) => name)),
  to: fc.integer({ min: 0, max: 36_000 }).map((days) => addDays('2000-01-01', days)),
  piece: fc.boolean(),
  prepared: fc.boolean(),
});

const orderOf = (name: string) =>
  operations.find((operation) => operation.name === name)?.schedule.order ?? 0;

test('a night requests what is prepared, pieces, then prices, lists and details, each with the newest day first', () => {
  forAll([windows, windows], { numRuns: 2_000 }, (a, b) => {
    const ranks = [a, b].map(({ prepared, piece, operation, to }) =>
      prepared ? [0] : [1, piece ? 0 : orderOf(operation), to],
    );
    const [[before, order = 0, day = ''] = [], [after, other = 0, otherDay = ''] = []] = ranks;
    const expected =
      Math.sign(Number(before) - Number(after)) ||
      Math.sign(Number(order) - Number(other)) ||
      (day === otherDay ? 0 : day > otherDay ? -1 : 1);
    expect(Math.sign(computePriority(a) - computePriority(b))).toBe(expected);
  });
});

test('priorities are within the limit of BullMQ, and backfills have the newest day first', () => {
  forAll([windows, fc.constantFrom('nightly' as const, 'backfill' as const)], (window, kind) => {
    const priority = computePriority({ ...window, kind });
    expect(Number.isInteger(priority)).toBe(true);
    expect(priority).toBeGreaterThan(0);
    expect(priority).toBeLessThanOrEqual(2 ** 21 - 1);
    const older = { ...window, kind: 'backfill' as const, prepared: false, to: addDays(window.to, -1) };
    expect(computePriority({ ...older, to: window.to })).toBeLessThan(computePriority(older));
  });
});

test('prices come first, and every operation that is about instruments last', () => {
  const ofOrder = (order: number) => operations.filter(({ schedule }) => schedule.order === order);
  expect(ofOrder(1).map(({ name }) => name)).toEqual(['GetBhavCopyCM', 'GetBhavCopyFO']);
  expect(ofOrder(3).map(({ name }) => name)).toEqual(
    operations.filter(isByInstrument).map(({ name }) => name),
  );
});
