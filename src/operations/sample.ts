import { readFileSync } from 'node:fs';
import type { Operation } from './operation.ts';

type Sample = Operation['sample'];

/**
 * The sample of an operation that comes with eod, from the file `samples/GetX.json` beside its declaration `GetX.ts`. It is
 * read when it is used for the first time, because most commands use none.
 *
 * @param declaration `import.meta.url` of the declaration.
 */
export function sampleOf(declaration: string): Sample {
  let known: Sample | undefined;
  const read = (): Sample => {
    const name = declaration.replace(/^.*\/(\w+)\.\w+$/, '$1');
    known ??= JSON.parse(readFileSync(new URL(`samples/${name}.json`, declaration), 'utf8')) as Sample;
    return known;
  };
  return {
    get requested() {
      return read().requested;
    },
    get response() {
      return read().response;
    },
  };
}
