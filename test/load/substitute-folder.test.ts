import { mkdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { substituteFolder } from '../../src/load/database/embedded/account.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const account = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

test('data that cannot be in the home of root is where systems remove no old files, unless it is in /var/tmp', () => {
  const home = temporaryFolder();
  const created = substituteFolder(home, 'data', account);
  onTestFinished(() => rmSync(created, { recursive: true, force: true }));
  expect(dirname(created)).toBe(account.uid === 0 ? '/var/lib' : '/var/tmp');
  expect(substituteFolder(home, 'data', account)).toBe(created);

  rmSync(created, { recursive: true });
  const earlier = join('/var/tmp', basename(created));
  mkdirSync(earlier);
  onTestFinished(() => rmSync(earlier, { recursive: true, force: true }));
  expect(substituteFolder(home, 'data', account)).toBe(earlier);
});
