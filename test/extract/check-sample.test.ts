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
    expect(problemsOf(items, { response: { Value: [record] } })).toEqual([
      'sample.response has a record (the 1.) that is a reject: Year "soon" is not a whole number',
      'sample.response has no record that would be stored: give one of the source',
    ]);
  });

  test('no records, no response, no request', () => {
    expect(problemsOf(deals, {})).toEqual([
      'sample.response has no record that would be stored: give one of the source',
    ]);
    expect(problemsOf(items, { response: 'Function not enabled.' })).toEqual([
      expect.stringMatching(/^sample\.response is not a response: /),
    ]);
    expect(problemsOf(items, { requested: { ...items.sample.requested, instruments: [] } })[0]).toBe(
      'sample.requested makes no request: GetTestItems needs instruments, got none',
    );
  });

  test('the request that it responds', () => {
    expect(checkSample(details, ZONE).request).toBe(
      'exchange=BSE&instrumentIdentifier=TCS&year=2024&natureOfReport=Standalone&format=Json',
    );
  });
});
