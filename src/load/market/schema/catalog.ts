import type { Pool } from 'pg';

interface StoredColumn {
  readonly name: string;
  readonly type: string;
  readonly comment: string | null;
}

/** A table or view of `market` as it is in the database. */
interface StoredRelation {
  readonly name: string;
  readonly isView: boolean;
  readonly comment: string | null;
  readonly columns: readonly StoredColumn[];
}

/** Every table and view of `market` with its comments, by name; none if there is no such schema. */
export async function readCatalog(pool: Pool): Promise<StoredRelation[]> {
  const { rows } = await pool.query<StoredRelation>(`
    select c.relname as name, c.relkind in ('v', 'm') as "isView", obj_description(c.oid, 'pg_class') as comment,
           json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
                                      'comment', col_description(c.oid, a.attnum)) order by a.attnum) as columns
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = to_regnamespace('market') and c.relkind in ('r', 'p', 'v', 'm') group by c.oid order by c.relname`);
  return rows;
}
