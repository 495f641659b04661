import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { escapeName } from '../../../src/core/wording.ts';
import { findFiles } from '../../../src/jobs/import/files.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const find = async (...paths: string[]) =>
  (await findFiles(paths, temporaryFolder())).map(({ path, refusal = 'read' }) => [path, refusal]);

const LEADS_OUT = 'is a link that leads out of the folder that was named; name what it leads to as well';

/** Something in a folder: a file, or a link to one of these places. */
const TARGETS = {
  file: null,
  inside: 'in/target/x.csv',
  'folder inside': 'in/target',
  nothing: 'in/nowhere.csv',
  outside: 'out/x.csv',
  'folder outside': 'out',
  above: '.',
} as const;

const names = fc.array(
  fc.tuple(
    fc.string({ unit: fc.constantFrom('a', '\n', '\t', '\r', '\u001b', '\u202e', 'é', ' '), maxLength: 6 }),
    fc.constantFrom<keyof typeof TARGETS>(...(Object.keys(TARGETS) as (keyof typeof TARGETS)[])),
    fc.constantFrom('.csv', '.txt'),
    fc.boolean(),
  ),
  { maxLength: 8 },
);

test('every file of a folder is found once, on one line, and every link that leads out of it is refused', async () => {
  await forAllAsync([names], { numRuns: 40 }, async (entries) => {
    const folder = temporaryFolder();
    for (const inside of ['in/target', 'in/below', 'out'])
      mkdirSync(join(folder, inside), { recursive: true });
    for (const file of ['in/target/x.csv', 'out/x.csv']) writeFileSync(join(folder, file), '');
    // The folder that is named may be a link itself.
    symlinkSync(join(folder, 'in'), join(folder, 'named'));
    const expected = new Map([[join(folder, 'named/target/x.csv'), 'read']]);
    for (const [at, [middle, target, ending, isBelow]] of entries.entries()) {
      const name = join(isBelow ? 'below' : '.', `n${at}${middle}${ending}`);
      const to = TARGETS[target];
      if (to === null) writeFileSync(join(folder, 'in', name), '');
      else symlinkSync(join(folder, to), join(folder, 'in', name));
      const isFolderOutside = target === 'folder outside' || target === 'above';
      const isOutside = isFolderOutside || target === 'outside';
      if (ending === '.csv' || isFolderOutside)
        expected.set(escapeName(join(folder, 'named', name)), isOutside ? LEADS_OUT : 'read');
    }
    const files = await find(join(folder, 'named'));
    expect(new Map(files as [string, string][])).toEqual(expected);
    expect(files).toHaveLength(expected.size);
    for (const [path] of files) expect(path).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
  });
});

test('names that are not UTF-8 are shown and refused, of folders too', async () => {
  const folder = temporaryFolder();
  const bytes = (...names: string[]) =>
    Buffer.concat([Buffer.from(`${folder}/`), ...names.map((name) => Buffer.from(name, 'latin1'))]);
  writeFileSync(bytes('caf\xe9.csv'), '');
  writeFileSync(bytes('caf\xe9.txt'), '');
  mkdirSync(bytes('\xff'));
  writeFileSync(bytes('\xff/x.csv'), '');
  const refusal = 'has a name that is not UTF-8; rename it';
  expect(await find(folder)).toEqual([
    [join(folder, '\\xff'), refusal],
    [join(folder, 'caf\\xe9.csv'), refusal],
  ]);
  // As Node passes on an argument.
  expect(await find(join(folder, 'caf\ufffd.csv'))).toEqual([[join(folder, 'caf\ufffd.csv'), refusal]]);
});

test('a path that cannot be read is named on one line', async () => {
  await expect(find('no\nwhere.csv')).rejects.toThrow(/^no\\u000awhere\.csv cannot be read: [^\n]+$/);
  const folder = join(temporaryFolder(), 'a\nb');
  mkdirSync(folder);
  await expect(find(folder)).rejects.toThrow(/^there is no \.csv.*a\\u000ab$/);
});
