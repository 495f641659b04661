import {
  getTableColumns,
  getTableName,
  getViewName,
  getViewSelectedFields,
  isTable,
  type View,
} from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';

/** The comments of a table or view and of its columns, as `\d+` in psql and docs/tables.md show them. */
interface Description {
  readonly name: string;
  readonly kind: 'table' | 'view';
  readonly comment: string;
  readonly columns: Readonly<Record<string, string>>;
}

const descriptions: Description[] = [];

export const addDescription = (description: Description) => void descriptions.push(description);

/** Every description of the schema files that were imported, by name. */
export const etlDescriptions = (): readonly Description[] =>
  descriptions.toSorted((left, right) => (left.name < right.name ? -1 : 1));

type ColumnsOf<Relation> = Relation extends PgTable
  ? keyof Relation['_']['columns']
  : Relation extends View
    ? keyof Relation['_']['selectedFields']
    : never;

/** What columns of these names hold wherever nothing else is said. */
const COMMON = {
  operation: 'Operation of the source.',
  exchange: 'Exchange that was requested.',
  from_date: 'First day requested.',
  to_date: 'Last day requested.',
  instruments: 'Instruments requested; empty means the whole exchange.',
  key_hash: 'Hash of the access key; never the key.',
};

/** Says what a table or view of `etl` and each of its columns holds. `eod migrate` writes it into the database. */
export function describe<Relation extends PgTable | View>(
  relation: Relation,
  comment: string,
  columns: Readonly<
    Record<Exclude<ColumnsOf<Relation>, keyof typeof COMMON> & string, string> &
      Partial<Record<ColumnsOf<Relation> & keyof typeof COMMON, string>>
  >,
): void {
  const isOfTable = isTable(relation);
  const names = Object.keys(isOfTable ? getTableColumns(relation) : getViewSelectedFields(relation));
  const known: Readonly<Record<string, string>> = { ...COMMON, ...columns };
  addDescription({
    name: isOfTable ? getTableName(relation) : getViewName(relation),
    kind: isOfTable ? 'table' : 'view',
    comment,
    columns: Object.fromEntries(names.map((name) => [name, known[name] ?? ''])),
  });
}
