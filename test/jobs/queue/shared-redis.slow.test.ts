import { expect, test } from 'vitest';
import { openDatabase } from '../../../src/postgres/database.ts';
import { databaseId } from '../../../src/state/database-identity.ts';
import { testDatabase } from '../../support/database.ts';
import { backfill, openPipeline, start, workToEnd } from '../../support/pipeline.ts';
import { freePrefix } from '../../support/redis.ts';
import { openSandbox } from '../../support/sandbox.ts';
import { execute, withDatabase } from '../../support/template.ts';

const clock = { now: () => Date.parse('2025-09-10T22:05:00+05:30') };
const REQUEST = backfill({ from: '2025-09-01', to: '2025-09-05', operations: ['GetBhavCopyCM'] });

test('two databases on one Redis, with the same prefix, work each on their own windows', async () => {
  const sandbox = await openSandbox({ clock, instrumentsPerExchange: 5 });
  const prefix = freePrefix();
  const open = async () => openPipeline({ sourceUrl: sandbox.url, backend: 'redis', prefix, clock });
  const [first, second] = [await open(), await open()];
  expect(await databaseId(first.db.drizzle)).not.toBe(await databaseId(second.db.drizzle));
  // Runs and windows have the same numbers in both, and so had their jobs.
  const runs = [await start(first, REQUEST), await start(second, REQUEST)] as const;
  expect(runs[0]).toBe(runs[1]);
  expect(await workToEnd(first, runs[0])).toMatchObject({ state: 'completed', windows: { loaded: 10 } });
  const left = Object.values(await second.queues.windows.backfill.getJobCounts());
  // Until the source has accepted the key in a run, one of its windows is enqueued.
  expect(left.reduce((sum, count) => sum + count, 0)).toBe(1);
  expect(await workToEnd(second, runs[1])).toMatchObject({ state: 'completed', windows: { loaded: 10 } });
});

test('a copy of a database gets an id of its own, once; the original keeps its own', async () => {
  const original = await testDatabase();
  const idOf = async (url: string) => {
    const db = openDatabase({ url });
    const ids = await Promise.all([databaseId(db.drizzle), databaseId(db.drizzle)]);
    await db.close();
    expect(new Set(ids).size).toBe(1);
    return ids[0];
  };
  const id = await idOf(original.url);
  const name = `${new URL(original.url).pathname.slice(1)}_copy`;
  await execute(
    withDatabase(original.url, 'postgres'),
    `create database ${name} template ${new URL(original.url).pathname.slice(1)}`,
  );
  const copied = await idOf(withDatabase(original.url, name));
  expect(copied).not.toBe(id);
  expect(await idOf(withDatabase(original.url, name))).toBe(copied);
  expect(await idOf(original.url)).toBe(id);
  await execute(withDatabase(original.url, 'postgres'), `drop database ${name}`);
});
