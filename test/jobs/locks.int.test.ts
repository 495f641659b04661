import { basename } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import { startRestartablePostgres } from '../support/chaos/postgres.ts';
import { closeAfterFile } from '../support/closing.ts';
import { testDatabase } from '../support/database.ts';
import { prepareTemplate } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { fixture, importInto, openStore, query } from './import-support.ts';
import { replay } from './replay-support.ts';

/** Breaks off in its last row. */
const CUT = 'sec_bhavdata_full_18112024.csv';

/** Notes how many advisory locks each load holds at its end; its row is the last that it writes. */
const COUNT_LOCKS = `
  create table public.held (operation text, locks int);
  create function public.note_locks() returns trigger language plpgsql as $$ begin
    insert into public.held select new.operation, count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory';
    return null;
  end $$;
  create trigger note_locks after insert on etl.loads for each row execute function public.note_locks()`;

describe('on a server with the settings that Postgres comes with', () => {
  let context: Context;
  beforeAll(async () => {
    const settings = { max_connections: '100', max_locks_per_transaction: '64' };
    const server = await startRestartablePostgres(temporaryFolder(), settings);
    closeAfterFile(() => server.stop());
    await prepareTemplate(server.adminUrl);
    context = await openStore((await testDatabase(server.adminUrl)).url);
    await query(context, COUNT_LOCKS);
  });

  test('files of all kinds, of 27 years, are imported and loaded again with few locks at a time', async () => {
    const folders = ['actions', 'files', 'bhavcopy'].map(fixture);
    const imported = await importInto(context, folders);
    const failed = imported.files.filter(({ state }) => state === 'failed');
    expect(failed.map(({ file }) => basename(file))).toEqual([CUT]);
    const rows = await query(context, 'select count(*)::int as changes from market.symbol_changes');
    expect(rows).toEqual([{ changes: 264 }]);
    await importInto(context, folders, { force: true });
    expect(await replay(context, {}, { rebuild: true })).toMatchObject({ state: 'completed' });
    const held = await query<{ operation: string; locks: number }>(
      context,
      'select operation, max(locks) as locks from public.held group by 1 order by 1',
    );
    expect(held.map(({ operation }) => operation)).toContain('SymbolChanges');
    expect(held.filter(({ locks }) => locks > 200)).toEqual([]);
  });
});
