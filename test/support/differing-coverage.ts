import { sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { dataSets } from '../../src/operations/registry.ts';

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
  const differing: DifferingEntry[] = [];
  for (const exchange of exchanges) {
    const { rows } = await db.execute<DifferingEntry & Record<string, unknown>>(sql`
      select operation, day::text, instrument, variant, registers
        from etl.compared_coverage(${sql.param(operations)}::text[], ${exchange}, null, null),
             lateral array_remove(array[
               case when is_last_different then 'last' end, case when is_loaded_different then 'loaded' end,
               case when is_suspicious_different then 'suspicious' end, case when is_emptied_different then 'emptied' end,
               case when is_withheld_different then 'withheld' end], null) as registers
       where registers <> '{}' order by operation, day, instrument, variant`);
    differing.push(...rows);
  }
  return differing;
}
