import { expect, test } from 'vitest';
import { testDatabase } from '../support/database.ts';
import { runEod } from '../support/eod.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('a large table takes little memory', async () => {
  const cwd = temporaryFolder();
  const { url } = await testDatabase();
  await execute(
    url,
    'create view market.large as select n, repeat(md5(n::text), 5) as text, n * 1.25 as price, now() as moment from generate_series(1, 250000) n',
  );
  // The rows are some 50 MB as text, and several times as much as values.
  const env = { DATABASE_URL: url, NODE_OPTIONS: '--max-old-space-size=110' };
  for (const format of ['parquet', 'csv', 'ndjson']) {
    expect(await runEod(['export', 'large', '--format', format], { cwd, env })).toMatchObject({
      code: 0,
      stderr: '',
    });
  }
});
