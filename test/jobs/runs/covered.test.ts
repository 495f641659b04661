import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { expectedVariants } from '../../../src/declaration/operation.ts';
import { areCovered, classifyCount, countsAwaited, markCovered } from '../../../src/jobs/runs/covered.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { forAll } from '../../support/for-all.ts';

const DAY = '2025-09-12';
const WHOLE_EXCHANGE = operationNamed('GetBhavCopyCM');
const BY_INSTRUMENT = operationNamed('GetFinRatioEOD');
const QUARTERLY = operationNamed('GetFinancialRatios');
const OF_A_QUARTER = expectedVariants(QUARTERLY)?.[0] as string;

const counted = (responses: number, awaited: number, variant = '') => ({
  day: DAY,
  variant,
  ofExchange: null,
  responses,
  awaited,
});

describe('areCovered', () => {
  test('is true of all or no instruments without bits, and of the whole exchange', () => {
    expect(areCovered('all', 3, 5)).toBe(true);
    expect(areCovered('all', 0, 0)).toBe(true);
    expect(areCovered(undefined, 3, 5)).toBe(false);
    expect(areCovered(undefined, 0, 0)).toBe(false);
  });

  test('is false of the whole exchange where only some instruments have a response', () => {
    expect(areCovered(new Uint8Array([255]), 0, 0)).toBe(false);
    expect(areCovered(new Uint8Array([255]), 8, 8)).toBe(false);
  });

  test('is true if and only if each position was marked', () => {
    const positions = fc.nat({ max: 40 });
    forAll([fc.uniqueArray(positions), positions, positions], (marked, first, length) => {
      const bits = new Uint8Array(11);
      markCovered(bits, marked);
      const days = Array.from({ length: length + 1 }, (_, nth) => first + nth);
      expect(areCovered(bits, first, first + length + 1)).toBe(days.every((day) => marked.includes(day)));
    });
  });

  test('marks nothing where there are no bits', () => {
    expect(() => markCovered(undefined, [1])).not.toThrow();
  });
});

test.each([
  [
    'of an operation that requests data per instrument, up to half of the responses',
    BY_INSTRUMENT,
    4,
    2,
    '',
    true,
  ],
  ['of such an operation, more than half of them', BY_INSTRUMENT, 5, 3, '', false],
  ['of an operation that requests whole exchanges', WHOLE_EXCHANGE, 4, 1, '', false],
  ['of the figures of a quarter', QUARTERLY, 4, 1, OF_A_QUARTER, false],
  ['of another request of that operation', QUARTERLY, 4, 1, 'another', true],
])('countsAwaited %s', (_, operation, responses, awaited, variant, expected) => {
  expect(countsAwaited(operation, counted(responses, awaited, variant))).toBe(expected);
});

describe('classifyCount', () => {
  test('a response about the whole exchange is one for each instrument, unless it is awaited', () => {
    const whole = { ...counted(1, 0), ofExchange: 'loaded' } as const;
    expect(classifyCount(WHOLE_EXCHANGE, 0, whole)).toBe('all');
    expect(classifyCount(WHOLE_EXCHANGE, 7, whole)).toBe('all');
    const awaited = { ...counted(1, 1), ofExchange: 'not_published' } as const;
    expect(classifyCount(WHOLE_EXCHANGE, 7, awaited)).toBe('none');
    // Most of the responses about the same day have data, so this one is not awaited any more.
    expect(classifyCount(BY_INSTRUMENT, 7, { ...awaited, responses: 4 })).toBe('all');
  });

  test('counts the responses that are not awaited', () => {
    expect(classifyCount(BY_INSTRUMENT, 4, counted(4, 0))).toBe('all');
    expect(classifyCount(BY_INSTRUMENT, 4, counted(3, 0))).toBe('some');
    expect(classifyCount(BY_INSTRUMENT, 4, counted(0, 0))).toBe('none');
    expect(classifyCount(BY_INSTRUMENT, 4, counted(4, 3))).toBe('some');
    expect(classifyCount(BY_INSTRUMENT, 4, counted(3, 3))).toBe('none');
    // Those awaited count where they are few.
    expect(classifyCount(BY_INSTRUMENT, 4, counted(4, 1))).toBe('all');
  });
});
