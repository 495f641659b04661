import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NonEmpty } from '../core/iterables.ts';
import { CODE } from '../core/package-folders.ts';
import type { TableDefinition, WithShapes } from './declaration.ts';
import type { Operation } from './operation.ts';

type Sample = Operation['sample'];

/** What most operations have. */
const USUAL = { publishedAt: '21:15' };

/**
 * Declares an operation. Its sample is the file of its name in `samples/`, which is read when the
 * sample is used for the first time, because most commands use none.
 */
export function defineOperation<const Tables extends Readonly<NonEmpty<TableDefinition>>>(
  operation: WithShapes<
    Omit<Operation, 'sample' | keyof typeof USUAL> & Partial<Pick<Operation, keyof typeof USUAL>>,
    Tables
  >,
): WithShapes<Operation, Tables> {
  let known: Sample | undefined;
  const read = (): Sample => {
    const file = join(CODE, 'operations', 'samples', `${operation.name}.json`);
    known ??= JSON.parse(readFileSync(file, 'utf8')) as Sample;
    return known;
  };
  return {
    ...USUAL,
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
