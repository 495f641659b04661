import { fillPlaceholders, type SQLWrapper, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { ClientBase, QueryResult, QueryResultRow } from 'pg';
import { sha256 } from '../core/sha256.ts';

/** Drizzle's database or transaction, as far as a prepared statement needs it. */
export interface Preparing {
  readonly $client: Pick<ClientBase, 'query'>;
}

const dialect = new PgDialect();

/**
 * Runs a statement that is prepared once on each connection: Postgres parses it once, and after some runs reuses its
 * plan. Meant for the statements that every window runs: each connection keeps all texts it has seen, so there must be
 * few. Values come as the driver reads them: drizzle does not map them, so the statement casts what has to be a number
 * or a text.
 */
export function runPrepared<Row extends QueryResultRow>(
  { $client }: Preparing,
  statement: SQLWrapper,
): Promise<QueryResult<Row>> {
  const { name, text, params: values } = compile(statement);
  return $client.query<Row>({ name, text, values });
}

/**
 * The same for a statement whose text is always the same: drizzle builds it once, because that takes longer than to send
 * it.
 *
 * @param build returns the statement, with `sql.placeholder(name)` for each value.
 */
export function prepareOnce<Values extends Record<string, unknown>, Row extends QueryResultRow>(
  build: () => SQLWrapper,
): (db: Preparing, values: Values) => Promise<QueryResult<Row>> {
  let built: ReturnType<typeof compile> | undefined;
  return ({ $client }, values) => {
    built ??= compile(build());
    const { name, text, params } = built;
    return $client.query<Row>({ name, text, values: fillPlaceholders(params, values) });
  };
}

/**
 * A statement that is written as SQL, and prepared once on each connection: `${'name'}` is the value of that name,
 * `${table}` the name of a table.
 */
export const statement = <Values extends Record<string, unknown>, Row extends QueryResultRow>(
  text: TemplateStringsArray,
  ...parts: readonly ((keyof Values & string) | SQLWrapper)[]
) =>
  prepareOnce<Values, Row>(() => {
    const inserted = parts.map((part) => (typeof part === 'string' ? sql.placeholder(part) : part));
    return sql.join(text.flatMap((piece, at) => [sql.raw(piece), inserted[at] ?? sql``]));
  });

/** The text of a statement, and the name that it is prepared by. */
function compile(statement: SQLWrapper) {
  const { sql: text, params } = dialect.sqlToQuery(statement.getSQL());
  return { name: `eod_${sha256(text).slice(0, 32)}`, text, params };
}
