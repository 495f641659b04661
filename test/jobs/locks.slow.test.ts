import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Context } from '../../src/jobs/context.ts';
import { buildFoldSettings } from '../../src/jobs/responses/store-response.ts';
import { acceptWithdrawal } from '../../src/load/accept-withdrawal.ts';
import { checkQuality } from '../../src/quality/check-quality.ts';
import { listWithheldWithdrawals } from '../../src/state/withdrawals.ts';
import { startRestartablePostgres } from '../support/chaos/postgres.ts';
import { closeAfterFile } from '../support/closing.ts';
import { testDatabase } from '../support/database.ts';
import { fixture, importInto, linesOf, openStore, query } from '../support/import-support.ts';
import { fetched, records, replay, replayAnew } from '../support/replay-support.ts';
import { prepareTemplate } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Breaks off in its last row. */
const CUT = 'sec_bhavdata_full_18112024.csv';

/** A transaction: how many locks it held before it was committed, and its statements. */
interface LockCount {
  readonly locks: number;
  readonly statements: readonly string[];
}

const COUNT_LOCKS = 'select count(*)::int as locks from pg_locks where pid = pg_backend_pid()';

/** Counts the locks of each transaction on these connections, from now on. None may be open yet. */
function countLocks({ pool }: Context['db']): LockCount[] {
  const counts: LockCount[] = [];
  pool.on('connect', (client) => {
    const { query } = client;
    const statements: string[] = [];
    const queryAndCount = async (args: unknown[]) => {
      const counted = await Reflect.apply(query, client, [COUNT_LOCKS]);
      counts.push({ locks: counted.rows[0].locks, statements: statements.splice(0) });
      return Reflect.apply(query, client, args);
    };
    Object.assign(client, {
      query: (...args: unknown[]) => {
        const [first] = args;
        const { text } = typeof first === 'string' ? { text: first } : (first as { text?: string });
        if (text === 'commit') return queryAndCount(args);
        if (text === 'begin') statements.splice(0);
        statements.push(text ?? '');
        return Reflect.apply(query, client, args);
      },
    });
  });
  return counts;
}

/** Transactions with too many locks. */
const tooMany = (counts: readonly LockCount[]) => counts.filter((count) => count.locks > 200);

describe('on a server with the settings that Postgres comes with', () => {
  let context: Context;
  let counts: LockCount[];
  beforeAll(async () => {
    const settings = { max_connections: '100', max_locks_per_transaction: '64' };
    const server = await startRestartablePostgres(temporaryFolder(), settings);
    closeAfterFile(() => server.stop());
    await prepareTemplate(server.adminUrl);
    context = await openStore((await testDatabase(server.adminUrl)).url);
    counts = countLocks(context.db);
  });

  test('files of all kinds, of 27 years, are imported and loaded again with few locks at a time', async () => {
    const folders = ['actions', 'files', 'bhavcopy'].map(fixture);
    const imported = await importInto(context, folders);
    const failed = imported.files.filter(({ state }) => state === 'failed');
    expect(failed.map(({ file }) => basename(file))).toEqual([CUT]);
    const rows = await query(context, 'select count(*)::int as changes from market.symbol_changes');
    expect(rows).toEqual([{ changes: 264 }]);
    await importInto(context, folders, { force: true });
    expect(await replayAnew(context)).toMatchObject({ state: 'completed' });
    expect(counts.length).toBeGreaterThan(30);
    expect(tooMany(counts)).toEqual([]);
  });

  test('days of a table with 32 yearly partitions are loaded, corrected, replayed and checked with few locks at a time', async () => {
    const folder = temporaryFolder();
    const [header = '', ...rows] = linesOf(fixture('files/sec_bhavdata_full_14112024.csv'));
    const writeFiles = (change: (rows: readonly string[]) => readonly string[]) => {
      for (let year = 1994; year < 2026; year += 1) {
        const weekday = [5, 6, 7].find((day) => new Date(Date.UTC(year, 11, day)).getUTCDay() % 6 !== 0);
        const lines = change(rows.slice(0, 20)).map((row) =>
          row.replaceAll('14-Nov-2024', `0${weekday}-Dec-${year}`),
        );
        const path = join(folder, `sec_bhavdata_full_0${weekday}12${year}.csv`);
        writeFileSync(path, [header, ...lines, ''].join('\n'));
      }
    };
    writeFiles((same) => same);
    const before = counts.length;
    expect((await importInto(context, [folder])).files.filter(({ state }) => state !== 'loaded')).toEqual([]);
    const partitions = await query<{ years: number }>(
      context,
      "select count(*)::int as years from pg_inherits where inhparent = 'market.bhavcopy_cm'::regclass",
    );
    expect(partitions[0]?.years).toBeGreaterThanOrEqual(32);
    writeFiles(([first = '', ...others]) => [first.replace(/\d+$/, '1'), ...others.slice(1)]);
    await importInto(context, [folder]);
    const sent = (from: number, to: number) => records(from, to, { TradDt: '08-01-2025' });
    // A response with so few rows that the withdrawal of the others waits for a person, and one that comes late.
    await fetched(1, sent(0, 20))(context, { day: '2025-08-01' });
    await fetched(3, sent(10, 20))(context, { day: '2025-08-01' });
    const [withheld] = await listWithheldWithdrawals(context.db.drizzle, 1, 0);
    const accepting = { by: 'me', ...buildFoldSettings(context) };
    const accepted = await acceptWithdrawal(context.db, withheld?.id ?? 0, accepting);
    expect(accepted).toMatchObject({ withdrawn: 10, left: 10 });
    await fetched(2, sent(0, 15))(context, { day: '2025-08-01' });
    await replay(context, {});
    await replayAnew(context);
    await checkQuality(context, { from: '2024-01-01', to: '2024-12-31' });
    expect(counts.length - before).toBeGreaterThan(150);
    expect(tooMany(counts)).toEqual([]);
  });
});
