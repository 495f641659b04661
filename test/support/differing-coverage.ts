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
               case when last_differs then 'last' end, case when loaded_differs then 'loaded' end,
               case when suspicious_differs then 'suspicious' end, case when emptied_differs then 'emptied' end,
               case when withheld_differs then 'withheld' end], null) as registers
       where registers <> '{}' order by operation, day, instrument, variant`);
    differing.push(...rows);
  }
  return differing;
}
