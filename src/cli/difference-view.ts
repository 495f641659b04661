import type { RowDifference } from '../load/market/differences.ts';
import { bold, type Column, table } from './output.ts';

/** Rows that differ, for people: a table for each market table, its key column by column. */
export function differencesText(rows: readonly RowDifference[]): string {
  const names = [...new Set(rows.map((row) => row.table))];
  return names
    .map((name) => {
      const own = rows.filter((row) => row.table === name);
      return `${bold(name)}\n${table(columnsOf(own), own)}`;
    })
    .join('\n\n');
}

function columnsOf(rows: readonly RowDifference[]): Column<RowDifference>[] {
  const keys = Object.keys(rows[0]?.key ?? {});
  return [
    { head: 'change', cell: (row) => row.change },
    ...keys.map((key) => ({ head: key, cell: (row: RowDifference) => row.key[key] ?? '' })),
    // Most rows of a first load have nothing to compare with.
    ...(rows.some(({ columns }) => Object.keys(columns).length > 0)
      ? [{ head: 'columns, old → new', cell: columnsText }]
      : []),
  ];
}

function columnsText({ columns }: RowDifference): string {
  return Object.entries(columns)
    .map(([column, value]) => `${column}: ${value.old ?? 'null'} → ${value.new ?? 'null'}`)
    .join(', ');
}
