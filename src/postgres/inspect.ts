import type pg from 'pg';
import { firstItem } from '../core/iterables.ts';

/** What a server says about itself and about the role of the session. */
export interface ServerFacts {
  /** As Postgres writes it, e.g. `16.4`. */
  readonly version: string;
  readonly major: number;
  /** Of the database, e.g. `UTF8`. */
  readonly encoding: string;
  readonly role: string;
  /** It only serves reads: a standby, or a session or database that is set to read only. */
  readonly readOnly: boolean;
  /** The folder of its data on its own machine; null if the role may not see it. */
  readonly dataDirectory: string | null;
}

/** The server's time, in milliseconds since the epoch. */
export async function readServerTime(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ now: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as now',
  );
  return rows[0]?.now ?? Date.now();
}

/** Queries what a server says about itself. Any role may. */
export async function readServerFacts(pool: pg.Pool): Promise<ServerFacts> {
  const { rows } = await pool.query<ServerFacts>(`
    select split_part(current_setting('server_version'), ' ', 1) as version,
           current_setting('server_version_num')::int / 10000 as major, current_setting('server_encoding') as encoding, current_user as role,
           current_setting('transaction_read_only')::bool as "readOnly",
           case when pg_has_role('pg_read_all_settings', 'usage') then current_setting('data_directory') end as "dataDirectory"`);
  return firstItem(rows);
}

/** What the current role may do in a database. */
interface RoleRights {
  /** Schemas that do not exist. */
  readonly missingSchemas: readonly string[];
  /** Schemas that it may not use. */
  readonly unusable: readonly string[];
  /** Tables that it may not read, and tables whose rows it may not change. */
  readonly unreadable: readonly string[];
  readonly unchangeable: readonly string[];
  /** Sequences that it may not use, and functions that it may not call. */
  readonly closed: readonly string[];
  /** True if it may create schemas, or tables in all of these. */
  readonly mayCreate: boolean;
  /** True if it may create temporary tables, as loads do. */
  readonly mayStage: boolean;
}

/** What the current role may do in these schemas. Any role may query this. */
export async function readRoleRights(pool: pg.Pool, schemas: readonly string[]): Promise<RoleRights> {
  const { rows } = await pool.query<RoleRights>(
    `with requested as (select name, to_regnamespace(quote_ident(name)) as id from unnest($1::text[]) name),
          tables as (
            select format('%s.%s', a.name, c.relname) as name, c.oid, c.relkind
              from pg_class c join requested a on c.relnamespace = a.id
             where c.relkind in ('r', 'p', 'v', 'm', 'S') and not c.relispartition)
     select array(select name from requested where id is null) as "missingSchemas",
            array(select name from requested where id is not null and not has_schema_privilege(id, 'usage')) as unusable,
            array(select name from tables where relkind <> 'S' and not has_table_privilege(oid, 'select') order by 1) as unreadable,
            array(select name from tables where relkind in ('r', 'p') and not (has_table_privilege(oid, 'insert')
                    and has_table_privilege(oid, 'update') and has_table_privilege(oid, 'delete')) order by 1) as unchangeable,
            array(select name from tables where case when relkind = 'S' then not has_sequence_privilege(oid, 'usage') end
                  union all
                  select format('%s.%s()', a.name, p.proname) from pg_proc p join requested a on p.pronamespace = a.id
                   where not has_function_privilege(p.oid, 'execute') order by 1) as closed,
            has_database_privilege(current_database(), 'create')
              or (select bool_and(id is not null and has_schema_privilege(id, 'create')) from requested) as "mayCreate",
            has_database_privilege(current_database(), 'temporary') as "mayStage"`,
    [schemas],
  );
  return firstItem(rows);
}
