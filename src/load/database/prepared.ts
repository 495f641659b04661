import { createHash } from 'node:crypto';
import type { SQLWrapper } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { ClientBase, QueryResult, QueryResultRow } from 'pg';

/** Drizzle's database or transaction, as far as a prepared statement needs it. */
export interface Preparing {
  readonly $client: Pick<ClientBase, 'query'>;
}

const dialect = new PgDialect();
const names = new Map<string, string>();

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
  const { sql: text, params: values } = dialect.sqlToQuery(statement.getSQL());
  let name = names.get(text);
  if (name === undefined) {
    name = `eod_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
    names.set(text, name);
  }
  return $client.query<Row>({ name, text, values });
}
