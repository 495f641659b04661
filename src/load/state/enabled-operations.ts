import { getTableName, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Config } from '../../core/config.ts';
import type { Operation } from '../../operations/operation.ts';
import { isInUse, operationNamed, type UsedOperation, useOperations } from '../../operations/registry.ts';
import { storedOperations } from './schema/knowledge.ts';
import { loads } from './schema/load-results.ts';
import { runs } from './schema/work.ts';

/**
 * The operations besides the defaults that this database has tables of; none if there are no tables of eod, or the role
 * may not read them. From the catalog first, which any role may read.
 */
export async function readStoredOperations(db: NodePgDatabase): Promise<UsedOperation[]> {
  const { name, is_enabled } = storedOperations;
  const readable = await db.execute(sql`
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'etl' and c.relname = ${getTableName(storedOperations)}
       and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')`);
  if (readable.rowCount === 0) return [];
  // Not looked up for what is requested: every command starts with this, and its loads may be many.
  const isFilled = sql<boolean>`not ${is_enabled} and exists (select from ${loads} l join ${runs} r on r.id = l.run_id
    where l.operation = ${storedOperations}.name and r.kind = 'import')`;
  return db.select({ name, isEnabled: is_enabled, isFilled }).from(storedOperations).orderBy(name);
}

/** Operations that get tables, are requested from now on, or are no longer. */
export interface OperationsChange {
  readonly names: readonly string[];
  /** `filled`: not requested, unless they are already; their tables are filled from files. */
  readonly to: 'enabled' | 'disabled' | 'filled';
  /** Who changes it: user and host. */
  readonly by: string;
}

/** Notes what is requested from now on, or no longer. */
export async function noteOperations(db: NodePgDatabase, { names, to, by }: OperationsChange): Promise<void> {
  if (names.length === 0) return;
  const isEnabled = to === 'enabled';
  const noted = { is_enabled: isEnabled, changed_at: sql`now()`, changed_by: by };
  const inserted = db.insert(storedOperations).values(names.map((name) => ({ name, ...noted })));
  if (to === 'filled') await inserted.onConflictDoNothing();
  else
    await inserted.onConflictDoUpdate({
      target: storedOperations.name,
      set: noted,
      setWhere: sql`${storedOperations.is_enabled} <> ${isEnabled}`,
    });
}

/** Uses the operations of this database from now on; see `useOperations`. */
export async function useStoredOperations(
  db: NodePgDatabase,
  folder: string | undefined,
): ReturnType<typeof useOperations> {
  return useOperations(await readStoredOperations(db), folder);
}

/**
 * The operation of a window. One that was enabled after this process looked is looked up in the database.
 *
 * @throws PipelineError `usage` if no file declares it.
 */
export async function knownOperation(
  {
    db,
    config,
  }: {
    readonly db: { readonly drizzle: NodePgDatabase };
    readonly config: Pick<Config, 'EOD_OPERATIONS_DIR'>;
  },
  name: string,
): Promise<Operation> {
  if (!isInUse(name)) await useStoredOperations(db.drizzle, config.EOD_OPERATIONS_DIR);
  return operationNamed(name);
}
