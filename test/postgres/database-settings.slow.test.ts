import { expect, test } from 'vitest';
import { migrateDatabase } from '../../src/migrate.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { clockFrom } from '../reliability/support.ts';
import { checkFold } from '../support/chaos/fold.ts';
import { emptyDatabase, testDatabase } from '../support/database.ts';
import { backfill, countsOf, marketContents, openPipeline, runToEnd } from '../support/pipeline.ts';
import { replayAnew } from '../support/replay-support.ts';
import { openSandbox } from '../support/sandbox.ts';
import { execute } from '../support/template.ts';

const NOW = '2025-09-06T09:00:00+05:30';
const sandbox = await openSandbox({ clock: clockFrom(NOW) });

const REQUEST = backfill({ from: '2025-08-18', to: '2025-09-05', instruments: ['INFY', '20MICRONS', 'M&M'] });

/** Loads some weeks of all operations. */
async function load(databaseUrl: string) {
  const pipeline = await openPipeline({
    databaseUrl,
    sourceUrl: sandbox.url,
    clock: clockFrom(NOW),
    // One call at a time, in a fixed order: which response comes first decides the revisions.
    settings: { EOD_CONCURRENCY: '1' },
  });
  const report = await runToEnd(pipeline, REQUEST);
  return { pipeline, counts: countsOf(report), contents: await marketContents(pipeline) };
}

const plain = await load((await testDatabase()).url);

/** What an administrator may have set for a database, for other programs. */
const SETTINGS = {
  default_transaction_isolation: 'serializable',
  datestyle: 'SQL, DMY',
  intervalstyle: 'sql_standard',
  timezone: 'America/St_Johns',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  transform_null_equals: 'on',
  quote_all_identifiers: 'on',
  xmlbinary: 'hex',
  search_path: 'market',
  row_security: 'off',
  lock_timeout: '1s',
  statement_timeout: '1s',
  idle_in_transaction_session_timeout: '1s',
};

test('a database that sorts as a language does, with settings for other programs, gets the same rows', async () => {
  const { url } = await emptyDatabase("locale_provider icu icu_locale 'en-US'");
  const name = new URL(url).pathname.slice(1);
  for (const [setting, value] of Object.entries(SETTINGS))
    await execute(url, `alter database ${name} set ${setting} to '${value}'`);
  const database = openDatabase({ url, connections: 1 });
  await migrateDatabase(database);
  const sorted = await database.pool.query("select 'a' < 'B' as by_language");
  expect(sorted.rows).toEqual([{ by_language: true }]);
  await database.close();
  const other = await load(url);
  expect(plain.counts.inserted).toBeGreaterThan(500);
  expect(other.counts).toEqual(plain.counts);
  expect(other.contents).toEqual(plain.contents);
  // The check is such a program.
  expect(await checkFold(`${url}?options=-c%20datestyle%3Diso`)).toEqual([]);
  await replayAnew(other.pipeline);
  expect(await marketContents(other.pipeline)).toEqual(plain.contents);
});
