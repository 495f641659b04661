import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/core/config.ts';
import { digestOf } from '../../src/jobs/responses/repeat-response.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('a response is read again where a declaration of the user, or what these share, has changed', () => {
  const root = temporaryFolder();
  const digestWith = (name: string, files: Readonly<Record<string, string>>) => {
    const folder = join(root, name);
    for (const below of ['lib', 'node_modules']) mkdirSync(join(folder, below), { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
    return digestOf({ config: loadConfig({ EOD_OPERATIONS_DIR: folder }) }, 'body');
  };
  const first = {
    'GetVoting.mjs': 'export default 1;',
    'shared.mjs': 'export const a = 1;',
    'lib/codes.json': '{"a": 1}',
    'notes.txt': '1',
  };
  const digest = digestWith('first', first);
  expect(digestWith('same', { ...first, 'notes.txt': '2' })).toBe(digest);
  expect(digestWith('declared', { ...first, 'GetVoting.mjs': 'export default 2;' })).not.toBe(digest);
  expect(digestWith('shared', { ...first, 'shared.mjs': 'export const a = 2;' })).not.toBe(digest);
  expect(digestWith('below', { ...first, 'lib/codes.json': '{"a": 2}' })).not.toBe(digest);
  expect(digestWith('installed', { ...first, 'node_modules/x.js': '1' })).toBe(digest);
  expect(digestWith('none', {})).toBe(
    digestOf({ config: loadConfig({ EOD_OPERATIONS_DIR: join(root, 'away') }) }, 'body'),
  );
});
