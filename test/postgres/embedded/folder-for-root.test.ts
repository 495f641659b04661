import { chmodSync, existsSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { clusterLocation, createFolderFor } from '../../../src/postgres/embedded/account.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const account = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
const other = { uid: account.uid + 4711, gid: account.gid + 4711 };

test('where a private Postgres would be is reported, and nothing is created for that', () => {
  const home = temporaryFolder();
  const ownFolder = { path: join(home, 'data'), why: null };
  expect(clusterLocation(home, other)).toEqual(ownFolder);
  chmodSync(home, 0o700);
  expect(clusterLocation(home, account)).toEqual(ownFolder);
  const { path, why } = clusterLocation(home, other);
  expect(path).toMatch(/^\/var\/lib\/eod\/data-[0-9a-f]{16}\/data$/);
  expect(why).toContain(`may not enter ${home}`);
  // Which account it is makes no difference.
  expect(clusterLocation(home, { uid: -1, gid: -1 })).toEqual({ path, why });
  expect(existsSync(dirname(path))).toBe(false);
});

test.runIf(account.uid === 0)('the account may enter the folder that stands in for one of root', () => {
  const home = temporaryFolder();
  chmodSync(home, 0o700);
  const { path } = clusterLocation(home, other);
  const created = createFolderFor(home, 'data', other);
  onTestFinished(() => rmSync(created, { recursive: true }));
  expect(created).toBe(dirname(path));
  expect(createFolderFor(home, 'data', other)).toBe(created);
  expect(statSync(created)).toMatchObject({ uid: other.uid, gid: other.gid });
  // Seen from within it, everything above can be entered.
  expect(clusterLocation(created, other)).toEqual({ path, why: null });
});
