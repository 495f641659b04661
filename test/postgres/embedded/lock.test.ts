import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withLock } from '../../../src/postgres/embedded/lock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test.each([
  ['is empty', ''],
  ['names no process', 'eod'],
  ['names a process that has ended', '999999999'],
  ['names this process, which does not hold it', String(process.pid)],
])('a lock file that %s is taken over', async (_, content) => {
  const file = join(temporaryFolder(), 'lock');
  writeFileSync(file, content);
  expect(await withLock(file, async () => readFileSync(file, 'utf8'))).toBe(String(process.pid));
  expect(existsSync(file)).toBe(false);
});

test('callers that want the same lock wait for each other', async () => {
  const file = join(temporaryFolder(), 'lock');
  let inside = 0;
  const work = async () => {
    inside += 1;
    expect(inside).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    inside -= 1;
  };
  await Promise.all([withLock(file, work), withLock(file, work), withLock(file, work)]);
});
