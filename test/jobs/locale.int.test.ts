import { expect, test } from 'vitest';
import { openDatabase } from '../../src/load/database/database.ts';
import { migrateDatabase } from '../../src/load/database/migrate.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { clockFrom } from '../reliability/support.ts';
import { checkFold } from '../support/chaos/fold.ts';
import { closeAfterFile } from '../support/closing.ts';
import { emptyDatabase, testDatabase } from '../support/database.ts';
import { backfill, countsOf, marketContents, openPipeline, runToEnd } from '../support/pipeline.ts';
import { replay } from './replay-support.ts';

const sandbox = await startSandbox();
closeAfterFile(() => sandbox.close());

const REQUEST = backfill({ from: '2025-08-18', to: '2025-09-05', instruments: ['INFY', '20MICRONS', 'M&M'] });

/** Loads some weeks of all operations. */
async function load(databaseUrl: string) {
  const pipeline = await openPipeline({
    databaseUrl,
    sourceUrl: sandbox.url,
    clock: clockFrom('2025-09-06T09:00:00+05:30'),
  });
  const report = await runToEnd(pipeline, REQUEST);
  return { pipeline, counts: countsOf(report), contents: await marketContents(pipeline) };
}

test('a database that sorts as a language does gets the same rows as one that sorts by bytes', async () => {
  const { url } = await emptyDatabase("locale_provider icu icu_locale 'en-US'");
  const database = openDatabase({ url, connections: 1 });
  await migrateDatabase(database);
  const sorted = await database.pool.query("select 'a' < 'B' as by_language");
  expect(sorted.rows).toEqual([{ by_language: true }]);
  await database.close();

  const plain = await load((await testDatabase()).url);
  const other = await load(url);
  expect(plain.counts.inserted).toBeGreaterThan(500);
  expect(other.counts).toEqual(plain.counts);
  expect(other.contents).toEqual(plain.contents);
  expect(await checkFold(url)).toEqual([]);

  await replay(other.pipeline, {}, { rebuild: true });
  expect(await marketContents(other.pipeline)).toEqual(plain.contents);
});
