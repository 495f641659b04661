import type { Database } from '../postgres/database.ts';

/**
 * Analyzes the tables that have no statistics yet, and those of whose rows more than a tenth have changed since. Each in a
 * transaction of its own, because a load that adds a partition waits for it. Without statistics, queries are slower; nothing
 * else depends on them.
 *
 * @returns their names, such as `market.bhavcopy_cm`; none if another session is analyzing.
 */
export async function analyzeTables({ pool }: Pick<Database, 'pool'>): Promise<string[]> {
  const done: string[] = [];
  for (;;) {
    // Tables that are done are passed over, because one that is locked stays as it is.
    const result = await pool.query<{ name: string | null }>('select etl.analyze_tables($1) as name', [done]);
    const name = result.rows[0]?.name ?? null;
    if (name === null) return done;
    done.push(name);
  }
}
