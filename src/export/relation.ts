import pg, { type ClientBase } from 'pg';
import { usageError } from '../core/errors.ts';
import { didYouMean } from '../core/input.ts';
import { dataSets, namedBy, tables } from '../operations/registry.ts';

export interface ExportColumn {
  readonly name: string;
  /** As Postgres names it, without its length: `numeric`, `timestamp with time zone`. */
  readonly type: string;
}

/** A table or view of eod, and the columns by which its rows are chosen. */
export interface Relation {
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly ExportColumn[];
  /** The column for ranges of days and for files by year; null if it has none, or several that do not decide. */
  readonly dayColumn: string | null;
  readonly symbolColumn: string | null;
}

/** Which rows to export; nothing given means all. */
export interface RowChoice {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly symbols?: readonly string[] | undefined;
  readonly series?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
}

const SCHEMAS = ['market', 'market_history', 'etl'];

/** Day columns of relations that no operation file declares; the first one that exists is taken. */
const DAY_COLUMNS = ['trade_date', 'day', 'ex_date'];

/**
 * The table or view of this name; without a schema, that of `market`. Also the first table of a data set, by its name.
 *
 * @throws PipelineError `usage` if there is none, with the most similar name.
 */
export async function findRelation(client: ClientBase, text: string): Promise<Relation> {
  const { rows } = await client.query<{ schema: string; name: string }>(
    `select n.nspname as schema, c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = any ($1) and c.relkind in ('r', 'p', 'v', 'm') order by 1, 2`,
    [SCHEMAS],
  );
  const wanted = text.includes('.') ? text : `market.${text}`;
  const findRelation = (name: string) =>
    rows.find((relation) => `${relation.schema}.${relation.name}` === name);
  const { table } = namedBy(dataSets, text)?.shapes[0] ?? {};
  const relation =
    findRelation(wanted) ?? findRelation(wanted.toLowerCase()) ?? findRelation(`market.${table?.name}`);
  if (relation === undefined) {
    const known = rows.map(({ schema, name }) => (schema === 'market' ? name : `${schema}.${name}`));
    throw usageError(`there is no table or view ${wanted}${didYouMean(text, known)}`);
  }
  const { schema, name } = relation;
  const { rows: columns } = await client.query<ExportColumn>(
    `select attname as name, format_type(atttypid, null) as type from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
    [nameInSql(relation)],
  );
  const has = (column: string) => columns.some((existing) => existing.name === column);
  const isDay = (column: string) => columns.some(({ name, type }) => name === column && type === 'date');
  const declared = schema === 'etl' ? undefined : tables.find((table) => table.name === name);
  const symbol = declared?.names[0]?.symbol ?? 'symbol';
  return {
    schema,
    name,
    columns,
    dayColumn: declared === undefined ? (DAY_COLUMNS.find(isDay) ?? null) : declared.dateColumn,
    symbolColumn: has(symbol) ? symbol : null,
  };
}

/** As an export names it: with its schema unless that is `market`. */
export const shortName = ({ schema, name }: Pick<Relation, 'schema' | 'name'>): string =>
  schema === 'market' ? name : `${schema}.${name}`;

/** Its columns, for a SELECT. */
export const columnList = ({ columns }: Pick<Relation, 'columns'>): string =>
  columns.map(({ name }) => pg.escapeIdentifier(name)).join(', ');

/** `market."bhavcopy_cm"`. */
function nameInSql({ schema, name }: Pick<Relation, 'schema' | 'name'>): string {
  return `${schema}.${pg.escapeIdentifier(name)}`;
}

/**
 * The `from` and `where` clauses of a choice of rows. COPY takes no parameters, so the values are quoted literals.
 *
 * @throws PipelineError `usage` if the relation lacks the column to choose by.
 */
export function chosenRows(relation: Relation, { from, to, symbols, series, exchanges }: RowChoice): string {
  const literal = pg.escapeLiteral;
  const by = (column: string | null, criterion: string) => {
    if (column !== null) return pg.escapeIdentifier(column);
    throw usageError(`${relation.schema}.${relation.name} has no column to choose ${criterion} by`);
  };
  const day = () => by(relation.dayColumn, 'days');
  const columnNamed = (column: string) => relation.columns.find(({ name }) => name === column)?.name ?? null;
  const isOneOf = (column: string | null, criterion: string, values: readonly string[] | undefined) =>
    values === undefined ? [] : [`${by(column, criterion)} in (${values.map(literal).join(', ')})`];
  const conditions = [
    ...(from === undefined ? [] : [`${day()} >= ${literal(from)}`]),
    ...(to === undefined ? [] : [`${day()} <= ${literal(to)}`]),
    ...isOneOf(relation.symbolColumn, 'symbols', symbols),
    ...isOneOf(columnNamed('series'), 'series', series),
    ...isOneOf(columnNamed('exchange'), 'exchanges', exchanges),
  ];
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`;
  return `from ${nameInSql(relation)}${where}`;
}

/** Names of tables that can be those of folders and files: no other one leads out of its folder, or into one of ours. */
const OF_FILES = /^[\p{L}\d][\p{L}\d_ $-]*$/u;

/** @throws PipelineError `usage` if no file can be named after a table or view, which may have its schema before it. */
export function checkNamesFiles(name: string, remedy: string): void {
  if (!OF_FILES.test(name.replace(new RegExp(`^(${SCHEMAS.join('|')})\\.`), '')))
    throw usageError(`"${name}" cannot be the name of a file or folder: ${remedy}`);
}

/** What names the rows of views that have no key of their own. */
const VIEW_KEY = ['exchange', 'symbol', 'series'];

/** The rows of a relation by day and key, so that equal rows make equal files. */
export function orderSql({
  name,
  columns,
  dayColumn,
}: Pick<Relation, 'name' | 'columns' | 'dayColumn'>): string {
  const key = tables.find((table) => table.name === name)?.key ?? VIEW_KEY;
  const sorted = [...new Set([dayColumn, ...key])].filter((columnName) =>
    columns.some((column) => column.name === columnName),
  );
  return sorted.length === 0
    ? ''
    : ` order by ${sorted.map((columnName) => pg.escapeIdentifier(columnName ?? '')).join(', ')}`;
}
