import { getTableName, getViewName, isTable, type View } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';

/** The comments of a table or view and of its columns, as `\d+` in psql and docs/tables.md show them. */
export interface Description {
  readonly name: string;
  readonly kind: 'table' | 'view';
  readonly comment: string;
  readonly columns: Readonly<Record<string, string>>;
}

const descriptions: Description[] = [];

/** Every description of the schema files that were imported, by name. */
export const etlDescriptions = (): readonly Description[] =>
  descriptions.toSorted((left, right) => (left.name < right.name ? -1 : 1));

type ColumnsOf<Relation> = Relation extends PgTable
  ? keyof Relation['_']['columns']
  : Relation extends View
    ? keyof Relation['_']['selectedFields']
    : never;

/** Says what a table or view of `etl` and each of its columns holds. `eod migrate` writes it into the database. */
export function describe<Relation extends PgTable | View>(
  relation: Relation,
  comment: string,
  columns: Readonly<Record<ColumnsOf<Relation> & string, string>>,
): void {
  descriptions.push(
    isTable(relation)
      ? { name: getTableName(relation), kind: 'table', comment, columns }
      : { name: getViewName(relation), kind: 'view', comment, columns },
  );
}
