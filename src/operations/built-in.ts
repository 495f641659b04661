import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CODE } from '../core/package-folders.ts';
import type { Operation } from './operation.ts';

type Sample = Operation['sample'];

/**
 * Declares an operation that comes with eod. Its sample is the file of its name in `samples/`, which is read when the
 * sample is used for the first time, because most commands use none.
 */
export function defineBuiltIn(operation: Omit<Operation, 'sample'>): Operation {
  let known: Sample | undefined;
  const read = (): Sample => {
    const file = join(CODE, 'operations', 'samples', `${operation.name}.json`);
    known ??= JSON.parse(readFileSync(file, 'utf8')) as Sample;
    return known;
  };
  return {
    ...operation,
    sample: {
      get requested() {
        return read().requested;
      },
      get response() {
        return read().response;
      },
    },
  };
}
