import { readFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import type { Database } from '../../src/postgres/database.ts';

/** What docs/operations.md says of the small backup: the tables, and the statements that the new database needs. */
export const SMALL_BACKUP = (() => {
  const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const [, tables = ''] = /--table='(etl\.\(.*\))'/.exec(page) ?? [];
  return {
    /** As pg_dump takes them. */
    tables,
    statements: [...page.matchAll(/--command="(.*?)"/gs)].map(([, statement = '']) => statement),
  };
})();

/**
 * Fills a new database with the kept responses of another one, as docs/operations.md says. @returns how many there are.
 */
export async function copyResponses(source: Database, target: Database): Promise<number> {
  const [reader, writer] = await Promise.all([source.pool.connect(), target.pool.connect()]);
  try {
    for (const table of SMALL_BACKUP.tables
      .split(/\W+/)
      .slice(1, -1)
      .map((name) => `etl.${name}`)) {
      const columns = await source.pool.query<{ list: string }>(
        `select string_agg(quote_ident(attname), ', ' order by attnum) as list from pg_attribute
          where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
        [table],
      );
      const list = columns.rows[0]?.list ?? '';
      await pipeline(
        reader.query(copyTo(`copy ${table} (${list}) to stdout`)),
        writer.query(copyFrom(`copy ${table} (${list}) from stdin`)),
      );
    }
    // pg_dump sets the sequences, too.
    for (const table of ['responses', 'withdrawals', 'rejected_records', 'findings'])
      await writer.query(
        `select setval(pg_get_serial_sequence('etl.${table}', 'id'), (select max(id) from etl.${table}))`,
      );
    for (const statement of SMALL_BACKUP.statements) await writer.query(statement);
    const { rows } = await writer.query<{ count: number }>(
      'select count(*)::int as count from etl.responses',
    );
    return rows[0]?.count ?? 0;
  } finally {
    reader.release();
    writer.release();
  }
}
