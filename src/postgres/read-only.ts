import type { Socket } from 'node:net';
import pg, { type ClientBase, type PoolClient } from 'pg';
import { errorCode, messageOf, PipelineError, readMember, throwIfStopped } from '../core/errors.ts';
import { type Database, endIfSilent } from './database.ts';
import { CANCELED, databaseError, isCanceled, READ_ONLY } from './database-errors.ts';

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

export interface ReadLimits {
  /** Postgres cancels a statement that takes longer; 0: never. */
  readonly timeoutMs: number;
  /** The flag or setting that this comes from, for the message. */
  readonly timeoutName?: string;
  /** Cancels the statement on the server at once. */
  readonly signal: AbortSignal;
}

/** SQLSTATE. */
const SYNTAX_ERROR = '42601';

/**
 * Runs `work` on a connection in a read-only transaction, which sees one snapshot throughout. The connection is closed
 * afterwards.
 */
export async function readOnly<T>(
  db: Database,
  { timeoutMs, timeoutName, signal }: ReadLimits,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await db.pool.connect();
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  // On another connection, because this one is busy. If it were just closed, the server would notice only later.
  const cancel = () => db.pool.query('select pg_cancel_backend($1)', [rows[0]?.pid]).catch(() => undefined);
  const onAbort = () => void cancel();
  signal.addEventListener('abort', onAbort);
  const began = Date.now();
  let done = false;
  try {
    await client.query(
      `begin transaction isolation level repeatable read, read only;
       set local statement_timeout = ${timeoutMs}; set local idle_in_transaction_session_timeout = 0`,
    );
    endIfSilent(client, timeoutMs);
    // After a first query, not even a function can make the transaction read-write.
    await client.query('select 1');
    throwIfStopped(signal);
    const result = await work(client);
    done = true;
    return result;
  } catch (error) {
    if (!isCanceled(error)) throw error;
    throwIfStopped(signal);
    if (timeoutMs === 0 || Date.now() - began < timeoutMs) throw databaseError(error);
    const name = timeoutName === undefined ? '' : ` (${timeoutName})`;
    throw new PipelineError(
      `the statement took longer than ${timeoutMs / 1_000} s${name} and was cancelled`,
      {
        kind: 'database',
      },
    );
  } finally {
    signal.removeEventListener('abort', onAbort);
    if (!done) await cancel();
    client.release(true);
  }
}

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
    let prefix = PREPARE.length;
    client.on('notice', ({ message }) => sink.notice?.(message ?? ''));
    const began = performance.now();
    try {
      const isPrepared = await prepare(client, text);
      if (!isPrepared) prefix = 0;
      await streamRows(client, isPrepared ? 'execute eod_query' : text, sink);
      return performance.now() - began;
    } catch (error) {
      throw explained(error, text, prefix);
    }
  });
}

/**
 * Prepares a statement. Only Postgres knows where comments and quotes end, so it is also Postgres that says whether the
 * statement is EXPLAIN or SHOW: it then refuses to prepare it, because of that word.
 *
 * @returns false for EXPLAIN and SHOW, which can be run as they are: a text that begins with another word is refused
 *   because of that word, and what begins with SELECT, or another word that can be prepared, is no utility statement.
 */
async function prepare(client: ClientBase, text: string): Promise<boolean> {
  await client.query('savepoint eod_query');
  try {
    await client.query({ text: PREPARE + text, queryMode: 'extended' } as pg.QueryConfig);
    return true;
  } catch (error) {
    const position = readMember(error, 'position');
    // Postgres counts code points.
    const at = [...text].slice(Number(position) - 1 - PREPARE.length).join('');
    if (errorCode(error) !== SYNTAX_ERROR || position === undefined || !READING_UTILITY.test(at)) throw error;
    await client.query('rollback to savepoint eod_query');
    return false;
  }
}

/** A Postgres error with the line of the statement that it points at. */
function explained(error: unknown, text: string, prefix: number): unknown {
  const code = errorCode(error);
  const [position, hint] = ['position', 'hint'].map((name) => readMember(error, name));
  if (code === undefined || code === CANCELED || !/^[0-9A-Z]{5}$/.test(code)) return error;
  const at = position === undefined ? undefined : Number(position) - 1 - prefix;
  const isWrite = code === READ_ONLY || WRITES_VIEW.test(messageOf(error));
  const isOther = code === SYNTAX_ERROR && (at === undefined || text.slice(0, at).trim() === '');
  const [word] = text.trim().split(/[\s;(]/);
  const lines = [
    // Of a statement that writes Postgres says that its syntax is wrong, because it cannot be prepared.
    isOther && word ? `"${word}" begins no statement that reads` : `Postgres: ${messageOf(error)} (${code})`,
    ...(at === undefined || at < 0 ? [] : pointedAt(text, at)),
    // How Postgres could be made to write is no advice here.
    ...(hint === undefined || isWrite ? [] : [`  ${hint}`]),
    ...(isWrite ? ['  nothing was changed'] : []),
    ...(isWrite || isOther
      ? ['  only one statement that reads can be run: select, with, values, table, explain or show']
      : []),
  ];
  return new PipelineError(lines.join('\n'), { kind: 'database', cause: error });
}

/** The line with this character, and a mark below it. */
function pointedAt(text: string, characters: number): string[] {
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
  let waiting: (string | null)[][] = [];
  let columns: pg.FieldDef[] | undefined;
  return new Promise((resolve, reject) => {
    const handOn = async (fields: pg.FieldDef[]) => {
      if (columns === undefined) {
        columns = fields;
        await sink.begin(fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID })));
      }
      while (waiting.length > 0) {
        const rows = waiting;
        waiting = [];
        if (!(await sink.rows(rows))) return false;
      }
      return true;
    };
    let working: Promise<boolean> | undefined;
    query.on('row', (row, result) => {
      waiting.push(row);
      if (waiting.length < BATCH || working !== undefined) return;
      socket.pause();
      working = handOn(result?.fields ?? []);
      working.then((more) => {
        working = undefined;
        if (!more) return resolve();
        socket.resume();
      }, reject);
    });
    query.on('end', (result) => {
      Promise.resolve(working)
        .then(() => handOn(result.fields))
        .then(() => resolve(), reject);
    });
    query.on('error', reject);
    client.query(query);
  });
}
