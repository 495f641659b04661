import type { Socket } from 'node:net';
import pg, { type ClientBase } from 'pg';
import { errorCode, messageOf, PipelineError, readMember } from '../core/errors.ts';
import type { Database } from './database.ts';
import { CANCELED, READ_ONLY } from './database-errors.ts';
import { type ReadLimits, readOnly } from './read-only.ts';

/** A column of a result; `type` is the oid of its type. */
export interface ResultColumn {
  readonly name: string;
  readonly type: number;
}

/** Values as Postgres writes them. */
export type ResultRow = readonly (string | null)[];

/** Takes the rows of a result in batches, so that it need not fit into memory. */
export interface RowSink {
  /** Called once, even if there are no rows. */
  begin(columns: readonly ResultColumn[]): Promise<void> | void;
  /** @returns whether more rows are wanted. */
  rows(rows: readonly ResultRow[]): Promise<boolean>;
  /** Called with each notice of the statement; functions called twice give the same one twice. */
  notice?(text: string): void;
}

/** SQLSTATE. */
const SYNTAX_ERROR = '42601';

/** What Postgres says of a statement that would change rows through a view that cannot be changed. */
const WRITES_VIEW = /^cannot (?:insert into|update|delete from|merge into) view /;

/** Only a single statement can be prepared, and none that Postgres calls a utility: COPY, DO, SET, CREATE. */
const PREPARE = 'prepare eod_query as ';

/** The utility statements that only read. */
const READING_UTILITY = /^(?:explain|show)\b/i;

/**
 * Runs one statement that reads, and passes its rows on as they arrive.
 *
 * @returns how many milliseconds that took.
 * @throws PipelineError `database` that shows what is wrong with the statement, and where.
 */
export function readQuery(db: Database, text: string, limits: ReadLimits, sink: RowSink): Promise<number> {
  return readOnly(db, limits, async (client) => {
    // Positions in errors count from the beginning of the text that was sent.
    let prefixLength = PREPARE.length;
    client.on('notice', ({ message }) => sink.notice?.(message ?? ''));
    const began = performance.now();
    try {
      const isPrepared = await prepare(client, text);
      if (!isPrepared) prefixLength = 0;
      await streamRows(client, isPrepared ? 'execute eod_query' : text, sink);
      return performance.now() - began;
    } catch (error) {
      throw explainError(error, text, prefixLength);
    }
  });
}

/**
 * Prepares a statement. Only Postgres knows where comments and quotes end, so it is also Postgres that says whether the
 * statement is EXPLAIN or SHOW: it then refuses to prepare it, because of that word.
 *
 * @returns false if Postgres stopped at EXPLAIN or SHOW. The text can then be run as it is: it begins with that word, or
 *   with one that can be prepared, and fails again. Any other utility statement (COPY, SET) is refused at its first word.
 */
async function prepare(client: ClientBase, text: string): Promise<boolean> {
  await client.query('savepoint eod_query');
  try {
    await client.query({ text: PREPARE + text, queryMode: 'extended' } as pg.QueryConfig);
    return true;
  } catch (error) {
    const position = readMember(error, 'position');
    if (errorCode(error) !== SYNTAX_ERROR || position === undefined) throw error;
    // Postgres counts code points.
    const rest = [...text].slice(Number(position) - 1 - PREPARE.length).join('');
    if (!READING_UTILITY.test(rest)) throw error;
    await client.query('rollback to savepoint eod_query');
    return false;
  }
}

/** A Postgres error with the line of the statement that it points at. */
function explainError(error: unknown, text: string, prefixLength: number): unknown {
  const code = errorCode(error);
  const [position, hint] = ['position', 'hint'].map((name) => readMember(error, name));
  if (code === undefined || code === CANCELED || !/^[0-9A-Z]{5}$/.test(code)) return error;
  const offset = position === undefined ? undefined : Number(position) - 1 - prefixLength;
  const isWrite = code === READ_ONLY || WRITES_VIEW.test(messageOf(error));
  const isNoQuery = code === SYNTAX_ERROR && offset !== undefined && text.slice(0, offset).trim() === '';
  // Postgres points at nothing then, as it does at a mistake in a text that a function runs.
  const areSeveral =
    code === SYNTAX_ERROR && offset === undefined && readMember(error, 'internalPosition') === undefined;
  const [word] = text.trim().split(/[\s;(]/);
  const lines = [
    // Of a statement that writes Postgres says that its syntax is wrong, because it cannot be prepared.
    isNoQuery && word
      ? `"${word}" begins no statement that reads`
      : `Postgres: ${messageOf(error)} (${code})`,
    ...(offset === undefined || offset < 0 ? [] : markPosition(text, offset)),
    // How Postgres could be made to write is no advice here.
    ...(hint === undefined || isWrite ? [] : [`  ${hint}`]),
    ...(isWrite ? ['  nothing was changed'] : []),
    ...(isWrite || isNoQuery || areSeveral
      ? ['  only one statement that reads can be run: select, with, values, table, explain or show']
      : []),
  ];
  return new PipelineError(lines.join('\n'), { kind: 'database', cause: error });
}

/** The line with this character, and a mark below it. */
function markPosition(text: string, characters: number): string[] {
  // Postgres counts code points.
  const before = [...text].slice(0, characters).join('');
  const start = before.lastIndexOf('\n') + 1;
  const [line = ''] = text.slice(start).split('\n');
  const name = `  line ${before.split('\n').length}: `;
  const indent = before.slice(start).replace(/[^\t]/gu, ' ');
  return [name + line.trimEnd(), `${' '.repeat(name.length)}${indent}^`];
}

/** How many rows are passed on at once. */
const BATCH = 500;

/** Runs a statement; while a batch of rows is being handled, no more are read from the connection. */
function streamRows(client: ClientBase, text: string, sink: RowSink): Promise<void> {
  const query = new pg.Query<(string | null)[], unknown[]>({
    text,
    rowMode: 'array',
    queryMode: 'extended',
    types: { getTypeParser: () => (value: string | Buffer) => value },
  } as pg.QueryConfig<unknown[]>);
  const socket = (client as unknown as { connection: { stream: Socket } }).connection.stream;
  let batch: (string | null)[][] = [];
  let columns: pg.FieldDef[] | undefined;
  return new Promise((resolve, reject) => {
    const passOn = async (fields: pg.FieldDef[]) => {
      if (columns === undefined) {
        columns = fields;
        await sink.begin(fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID })));
      }
      while (batch.length > 0) {
        const rows = batch;
        batch = [];
        if (!(await sink.rows(rows))) return false;
      }
      return true;
    };
    let passing: Promise<boolean> | undefined;
    query.on('row', (row, result) => {
      batch.push(row);
      if (batch.length < BATCH || passing !== undefined) return;
      socket.pause();
      passing = passOn(result?.fields ?? []);
      passing.then((more) => {
        passing = undefined;
        // The rest is not read: `readOnly` closes the connection.
        if (!more) return resolve();
        socket.resume();
      }, reject);
    });
    query.on('end', (result) => {
      Promise.resolve(passing)
        .then(() => passOn(result.fields))
        .then(() => resolve(), reject);
    });
    query.on('error', reject);
    client.query(query);
  });
}
