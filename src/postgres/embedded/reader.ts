import { createHmac } from 'node:crypto';
import type { Logger } from '../../core/log.ts';
import { type Database, openDatabase } from '../database.ts';
import { lockUntilCommit, transaction } from '../transaction.ts';

/** The role that reads the private Postgres. */
const READER = 'eod_query';

/**
 * Opens the private Postgres for statements of users. They run as a role of their own, which may read all tables and
 * nothing else: the role that the pipeline uses is a superuser, whose SQL can read files and start programs.
 *
 * @param db opened as the superuser.
 */
export async function openAsReader(db: Database, log: Logger): Promise<Database> {
  const url = new URL(db.url);
  // Made from the password in the folder, so that a cluster of an older version needs nothing else.
  const password = createHmac('sha256', decodeURIComponent(url.password)).update(READER).digest('hex');
  await transaction(db, async (tx) => {
    await lockUntilCommit(tx, READER);
    const { rowCount } = await tx.client.query('select from pg_roles where rolname = $1', [READER]);
    if (rowCount === 1) return;
    await tx.client.query(`create role ${READER} login password '${password}' in role pg_read_all_data`);
  });
  url.username = READER;
  url.password = password;
  return openDatabase({ url: url.href, connections: 2, log, timeouts: db.timeouts });
}
