import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { dataSets } from '../../src/operations/registry.ts';
import { comparingCoverage, REGISTER_NAMES } from '../../src/state/coverage/sum-of-facts.ts';

/** An entry, and its registers that differ. */
interface DifferingEntry extends Readonly<Record<'operation' | 'day' | 'instrument' | 'variant', string>> {
  readonly registers: readonly string[];
}

/** Entries of which the coverage is not the sum of what the responses said of them, and did. */
export async function differingCoverage(
  db: NodePgDatabase,
  operations: readonly string[] = dataSets.map(({ name }) => name),
  exchanges: readonly string[] = ['NSE', 'BSE'],
) {
  const flag = (name: string) => sql.raw(`"${name}_differs"`);
  const flags = sql.join(
    REGISTER_NAMES.map((name) => sql`case when ${flag(name)} then ${sql.raw(`'${name}'`)} end`),
    sql`, `,
  );
  const differing: DifferingEntry[] = [];
  for (const exchange of exchanges) {
    const { rows } = await db.execute<DifferingEntry & Record<string, unknown>>(sql`
      with ${comparingCoverage({ operations, exchange, days: null })}
      select operation, day::text, instrument, variant, array_remove(array[${flags}], null) as registers
        from compared where ${sql.join(REGISTER_NAMES.map(flag), sql` or `)} order by operation, day, instrument, variant`);
    differing.push(...rows);
  }
  return differing;
}
