import fc from 'fast-check';
import { expect, expectTypeOf, test } from 'vitest';
import { errorCode, isPipelineError, PipelineError, readMember } from '../../src/core/errors.ts';
import { forAll } from '../support/for-all.ts';

const KINDS = ['aborted', 'credential', 'database', 'defect', 'timeout', 'too_large'] as const;

test('a guard recognizes the kinds that it names, and nothing else that can be thrown', () => {
  const thrown = fc.oneof(
    fc.constantFrom(...KINDS).map((kind) => new PipelineError('why', { kind })),
    fc.anything(),
    fc.constantFrom(...KINDS).map((kind) => Object.assign(new Error('why'), { kind })),
  );
  const recognized = { yes: 0, no: 0 };
  forAll([thrown, fc.subarray([...KINDS])], { numRuns: 300 }, (error, kinds) => {
    const isOne = error instanceof PipelineError && kinds.some((kind) => kind === error.kind);
    expect(isPipelineError(error, ...kinds)).toBe(isOne);
    recognized[isOne ? 'yes' : 'no'] += 1;
  });
  expect(recognized.yes).toBeGreaterThan(10);
  expect(recognized.no).toBeGreaterThan(10);
});

test('an error is named, and has its cause and the facts of its kind', () => {
  const cause = new Error('refused');
  const error = new PipelineError('the source responded with HTTP status 503', {
    kind: 'http_status',
    status: 503,
    retryAfterMs: 1_000,
    cause,
  });
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ name: 'PipelineError', kind: 'http_status', status: 503, cause });
  expect(error.constructor.name).toBe('PipelineError');
  expectTypeOf(error.status).toEqualTypeOf<number>();
  expectTypeOf(error.limitDays).toEqualTypeOf<undefined>();
});

test('the code of an error is its text, whatever was thrown', () => {
  expect(errorCode(Object.assign(new Error('none'), { code: 'ENOENT' }))).toBe('ENOENT');
  for (const thrown of [undefined, null, 'ENOENT', { code: 7 }, new Error('none')])
    expect(errorCode(thrown)).toBeUndefined();
  expect(readMember({ detail: 'why' }, 'detail')).toBe('why');
  expect(readMember('text', 'length')).toBeUndefined();
});

test('a fact of another kind does not compile', () => {
  const unknown: unknown = null;
  const mistakes = [
    // @ts-expect-error an HTTP error has its status.
    () => new PipelineError('why', { kind: 'http_status' }),
    // @ts-expect-error only a refused range has a limit.
    () => new PipelineError('why', { kind: 'too_large', limitDays: 5 }),
    // @ts-expect-error only usage errors have a remedy.
    () => new PipelineError('why', { kind: 'database', remedy: 'migrate' }),
    // @ts-expect-error there is no such kind.
    () => new PipelineError('why', { kind: 'broken' }),
    // @ts-expect-error no error is of two kinds.
    () => isPipelineError(unknown, 'usage') && unknown.kind === 'database',
    // @ts-expect-error there is no such kind to recognize.
    () => isPipelineError(unknown, 'broken'),
    // @ts-expect-error a response that is too large has no status.
    () => isPipelineError(unknown, 'too_large') && unknown.status.toFixed(),
  ];
  expect(mistakes).toHaveLength(7);
});
