import { getTableName } from 'drizzle-orm';
import pg, { type ClientBase } from 'pg';
import { usageError } from '../../core/errors.ts';
import { didYouMean } from '../../core/input.ts';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';
import { observedAliases, priceFactors } from './schema/instrument-tables.ts';
import { expectations, findings, sessions, storedOperations } from './schema/knowledge.ts';
import { coverage, loads, pastBegins, withdrawals } from './schema/load-results.ts';
import { runs } from './schema/work.ts';

/**
 * The tables of `etl` that say where the rows of `market` come from and what is missing. Not among them are tables
 * about access keys, kept responses, and those that only the work itself needs.
 */
const READABLE = [
  coverage,
  expectations,
  findings,
  loads,
  observedAliases,
  pastBegins,
  priceFactors,
  runs,
  sessions,
  storedOperations,
  withdrawals,
]
  .map<string>(getTableName)
  .concat('completeness', 'event_lists', 'issues', 'rejects', 'unlisted_days');

/** The schemas in which a reader may read everything. */
const READ_IN_FULL = 'market, market_history';

const quote = pg.escapeIdentifier;

interface Reader {
  readonly role: string;
  /** The role whose new tables it may read. */
  readonly owner: string;
}

// Queries of Postgres's own catalogs, which no drizzle schema declares.

/**
 * The readers: roles whose default privileges let them read, but not change, new tables of `market`. There is no other
 * record of who is a reader.
 */
async function listReaders(client: ClientBase): Promise<Reader[]> {
  const { rows } = await client.query<Reader>(`
    select pg_get_userbyid(a.grantee) as role, pg_get_userbyid(d.defaclrole) as owner
      from pg_default_acl d cross join aclexplode(d.defaclacl) a
     where d.defaclnamespace = 'market'::regnamespace and d.defaclobjtype = 'r' and a.grantee <> 0
     group by a.grantee, d.defaclrole having array_agg(a.privilege_type) = array['SELECT'] order by 1, 2`);
  return rows;
}

/** Lets a role read what exists, and what the current role will create in the schemas of READ_IN_FULL. */
async function grantReading(client: ClientBase, role: string): Promise<void> {
  const to = `to ${quote(role)}`;
  await client.query(`
    grant usage on schema ${READ_IN_FULL}, etl ${to};
    grant select on all tables in schema ${READ_IN_FULL} ${to};
    grant execute on all functions in schema ${READ_IN_FULL} ${to};
    grant select on ${READABLE.map((name) => `etl.${quote(name)}`).join(', ')} ${to};
    alter default privileges in schema ${READ_IN_FULL} grant select on tables ${to};
    alter default privileges in schema ${READ_IN_FULL} grant execute on functions ${to}`);
}

/** Revokes everything that `grantReading` grants. */
async function revokeReading(client: ClientBase, { role, owner }: Reader): Promise<void> {
  const from = `from ${quote(role)}`;
  const defaults = `alter default privileges for role ${quote(owner)} in schema`;
  await client.query(`
    ${defaults} ${READ_IN_FULL} revoke select on tables ${from};
    ${defaults} ${READ_IN_FULL} revoke execute on functions ${from};
    revoke select on all tables in schema ${READ_IN_FULL}, etl ${from};
    revoke execute on all functions in schema ${READ_IN_FULL} ${from};
    revoke usage on schema ${READ_IN_FULL}, etl ${from}`);
}

/** Grants readers the new tables of `etl`, a schema without default privileges. For after a migration. */
export async function grantReadersAgain(client: ClientBase): Promise<void> {
  for (const { role } of await listReaders(client)) await grantReading(client, role);
}

/** Roles that become readers, and roles that stop being readers: those named, or all. */
interface ReaderChange {
  readonly add: readonly string[];
  readonly remove: readonly string[] | 'all';
}

interface ReadersAfter {
  readonly readers: readonly string[];
  /** What is left to somebody else: a clause about a reader, and the statements to run. */
  readonly left: readonly { readonly role: string; readonly problem: string; readonly statements: string }[];
}

/**
 * Limits of a reader's sessions, which may take any advisory lock, those of loads too, and hold back what waits for their
 * locks on tables. They are defaults that a session may change, against accidents. A session that listens is idle.
 */
const LIMITS = {
  statement_timeout: '1h',
  idle_in_transaction_session_timeout: '5min',
  idle_session_timeout: '1d',
};

/** The statements that give a role the limits that it lacks. */
async function missingLimits(client: ClientBase, role: string): Promise<string> {
  const { rows } = await client.query<{ limits: string }>(
    `select coalesce(string_agg(format('alter role %I in database %I set %s = %L', $1::text, current_database(), l.key, l.value), '; '), '') as limits
       from json_each_text($2) l
      where not exists (
        select from pg_db_role_setting s cross join unnest(s.setconfig) as setting
         where s.setrole = (select oid from pg_roles where rolname = $1)
           and s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
           and starts_with(setting, l.key || '='))`,
    [role, JSON.stringify(LIMITS)],
  );
  return rows[0]?.limits ?? '';
}

/** Resets the limits that `missingLimits` gives, as far as they are still the same. */
async function resetLimits(client: ClientBase, role: string): Promise<void> {
  const { rows } = await client.query<{ reset: string }>(
    `select format('alter role %I in database %I reset %s', $1::text, current_database(), l.key) as reset
       from json_each_text($2) l join pg_db_role_setting s on l.key || '=' || l.value = any (s.setconfig)
      where s.setrole = (select oid from pg_roles where rolname = $1)
        and s.setdatabase = (select oid from pg_database where datname = current_database())`,
    [role, JSON.stringify(LIMITS)],
  );
  await tryToAlter(client, rows.map(({ reset }) => reset).join('; '));
}

/** Runs statements that need the right to alter a role. @returns false, and does nothing, without that right. */
async function tryToAlter(client: ClientBase, statements: string): Promise<boolean> {
  if (statements === '') return true;
  await client.query('savepoint limits');
  try {
    await client.query(statements);
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code !== '42501') throw error;
    await client.query('rollback to savepoint limits');
    return false;
  }
}

/**
 * Changes who may read, in one transaction.
 *
 * @throws PipelineError `usage` if a role does not exist, owns the tables, or is to be removed and is not a reader.
 */
export function changeReaders(db: Database, { add, remove }: ReaderChange): Promise<ReadersAfter> {
  return transaction(db, async ({ client }) => {
    const before = await listReaders(client);
    const names = [...new Set(before.map(({ role }) => role))];
    for (const role of remove === 'all' ? [] : remove) {
      if (names.includes(role)) continue;
      const known = names.length === 0 ? '; there is none' : `; readers: ${names.join(', ')}`;
      throw usageError(`the role "${role}" is not a reader${didYouMean(role, names) || known}`);
    }
    for (const reader of before) {
      if (remove !== 'all' && !remove.includes(reader.role)) continue;
      await revokeReading(client, reader);
      await resetLimits(client, reader.role);
    }
    const unlimited: ReadersAfter['left'][number][] = [];
    for (const role of add) {
      await checkRole(client, role);
      await grantReading(client, role);
      const statements = await missingLimits(client, role);
      if (await tryToAlter(client, statements)) continue;
      unlimited.push({
        role,
        problem: 'has no limits of time; a role that may alter it can set them',
        statements,
      });
    }
    const readers = [...new Set((await listReaders(client)).map(({ role }) => role))];
    const { rows } = await client.query<{ role: string; database: string }>(
      `select role, current_database() as database from unnest($1::text[]) role
        where not has_database_privilege(role, current_database(), 'connect')`,
      [readers],
    );
    const shutOut = rows.map(({ role, database }) => ({
      role,
      problem: 'may not connect to this database; its owner can allow it',
      statements: `grant connect on database ${quote(database)} to ${quote(role)}`,
    }));
    return { readers, left: [...shutOut, ...unlimited] };
  });
}

async function checkRole(client: ClientBase, role: string): Promise<void> {
  const { rows } = await client.query<{ name: string; owns: boolean }>(
    `select rolname as name, oid = (select nspowner from pg_namespace where nspname = 'market') as owns from pg_roles
      where rolname !~ '^pg_'`,
  );
  const found = rows.find(({ name }) => name === role);
  if (found === undefined) {
    const guess = didYouMean(
      role,
      rows.map(({ name }) => name),
    );
    throw usageError(`there is no role "${role}" in this Postgres${guess}; "create role" makes one`);
  }
  if (found.owns) throw usageError(`the role "${role}" owns the tables, so it may read them already`);
}
