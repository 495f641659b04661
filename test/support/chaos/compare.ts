import { tables } from '../../../src/operations/registry.ts';
import { query } from '../query.ts';

/** Columns that say when and by which load a row came: these may differ. */
const LOAD_AUDIT = ['first_loaded_at', 'last_changed_at', 'run_id', 'load_id'];

/** Rows named in a problem. */
const SHOWN = 3;

export interface Comparison {
  /** Rows in all tables of `market`. */
  readonly rows: number;
  readonly problems: readonly string[];
}

/** Made of the tables, and kept up to date with them. */
const VIEWS = ['instruments', 'instrument_aliases'];

/** Compares every table of `market`, which instrument each symbol names, and what is known of each day, row for row and column for column. */
export async function compareDatabases(expected: string, actual: string): Promise<Comparison> {
  const problems: string[] = [];
  let rows = 0;
  for (const name of [...tables.map((table) => table.name), ...VIEWS]) {
    const statement = `select (to_jsonb(t) - $1::text[])::text as row from market."${name}" t`;
    const [expectedRows, actualRows] = await Promise.all(
      [expected, actual].map((url) => textRows(url, statement, [LOAD_AUDIT])),
    );
    rows += actualRows?.length ?? 0;
    problems.push(...difference(`market.${name}`, expectedRows ?? [], actualRows ?? []));
  }
  const known = `select concat_ws(' | ', operation, exchange, day, instrument, variant, state, records) as row from etl.coverage`;
  const [expectedRows, actualRows] = await Promise.all(
    [expected, actual].map((url) => textRows(url, known, [])),
  );
  problems.push(...difference('etl.coverage', expectedRows ?? [], actualRows ?? []));
  return { rows, problems };
}

async function textRows(url: string, statement: string, values: readonly unknown[]): Promise<string[]> {
  const rows = await query<{ row: string }>(url, statement, values);
  return rows.map(({ row }) => row);
}

/** What one list holds and the other does not; a row that is there twice counts twice (pure). */
export function difference(name: string, expected: readonly string[], actual: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const row of expected) counts.set(row, (counts.get(row) ?? 0) + 1);
  for (const row of actual) counts.set(row, (counts.get(row) ?? 0) - 1);
  const missing = [...counts].filter(([, count]) => count > 0).map(([row]) => row);
  const extra = [...counts].filter(([, count]) => count < 0).map(([row]) => row);
  if (missing.length === 0 && extra.length === 0) return [];
  const list = (rows: string[]) => rows.slice(0, SHOWN).map((row) => `\n    ${row.slice(0, 600)}`);
  return [
    [
      `${name} differs from an undisturbed load: ${missing.length} rows missing, ${extra.length} rows too many`,
      ...(missing.length > 0 ? ['\n  missing:', ...list(missing)] : []),
      ...(extra.length > 0 ? ['\n  too many:', ...list(extra)] : []),
    ].join(''),
  ];
}
