import { describe, expect, test } from 'vitest';
import { checkSample } from '../../src/cli/check-operations.ts';
import type { Operation } from '../../src/operations/operation.ts';
import { operations } from '../../src/operations/registry.ts';
import { contracts, deals, details, items } from '../support/declared.ts';

const ZONE = 'Asia/Kolkata';

test.each(
  [...operations, items, details, contracts].map((operation) => [operation.name, operation] as const),
)('the sample of %s is read', (_, operation) => {
  const { records, problems } = checkSample(operation, ZONE);
  expect(problems).toEqual([]);
  expect(records.length).toBeGreaterThan(0);
});

describe('a sample that is not', () => {
  const problemsOf = (operation: Operation, sample: Partial<Operation['sample']>) =>
    checkSample({ ...operation, sample: { ...operation.sample, ...sample } }, ZONE).problems;

  test('a record that is a reject, with its field', () => {
    const record = { Instrument: 'TCS', Year: 'soon', Nature: 'Standalone' };
    expect(problemsOf(items, { answer: { Value: [record] } })).toEqual([
      'sample.answer has a record (the 1.) that is a reject: Year "soon" is not a whole number',
      'sample.answer has no record that would be stored: give one of the source',
    ]);
  });

  test('no records, no answer, no request', () => {
    expect(problemsOf(deals, {})).toEqual([
      'sample.answer has no record that would be stored: give one of the source',
    ]);
    expect(problemsOf(items, { answer: 'Function not enabled.' })).toEqual([
      expect.stringMatching(/^sample\.answer is no answer: /),
    ]);
    expect(problemsOf(items, { asked: { ...items.sample.asked, instruments: [] } })[0]).toBe(
      'sample.asked is no request of it: GetTestItems asks for instruments, got none',
    );
  });

  test('the request that it answers', () => {
    expect(checkSample(details, ZONE).request).toBe(
      'exchange=BSE&instrumentIdentifier=TCS&year=2024&natureOfReport=Standalone&format=Json',
    );
  });
});
