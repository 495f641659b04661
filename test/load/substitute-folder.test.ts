import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { clusterPlace, substituteFolder } from '../../src/load/database/embedded/account.ts';
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

test('where a private Postgres would be is told, and nothing is created for that', () => {
  const home = temporaryFolder();
  const other = { uid: account.uid + 4711, gid: account.gid + 4711 };
  const own = { path: join(home, 'data'), why: null };
  expect(clusterPlace(home, other)).toEqual(own);
  expect(clusterPlace(home, null)).toEqual(own);
  chmodSync(home, 0o700);
  const why = expect.stringContaining(`may not enter ${home}`);
  const place = account.uid === 0 ? '/var/lib' : '/var/tmp';
  expect(clusterPlace(home, account)).toEqual(own);
  const { path, ...reason } = clusterPlace(home, other);
  expect(path).toMatch(new RegExp(`^${place}/eod-data-[0-9a-f]{16}/data$`));
  expect(reason).toEqual({ why });
  // An account that has yet to be created gives its folder a name only then.
  expect(clusterPlace(home, null)).toEqual({ path: place, why });
  expect(readdirSync(place)).not.toContain(basename(dirname(path)));
});
