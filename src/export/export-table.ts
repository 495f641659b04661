import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import pg, { type ClientBase, type PoolClient } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { usageError } from '../core/errors.ts';
import { plural } from '../core/wording.ts';
import type { Database } from '../postgres/database.ts';
import { type ReadLimits, readOnly } from '../postgres/read-only.ts';
import {
  chosenRows,
  columnList,
  findRelation,
  orderSql,
  type Relation,
  type RowChoice,
  shortName,
} from './relation.ts';

export type Format = 'parquet' | 'csv' | 'ndjson';

interface ExportRequest extends RowChoice {
  /** A table or view, with its schema unless that is `market`. */
  readonly table: string;
  readonly format: Format;
  /** Numerics as DOUBLE in Parquet. */
  readonly doubles: boolean;
  /** The file for a table or view of this name. */
  readonly fileFor: (name: string) => string;
  /** Called with the name of the temporary file before it is written. */
  readonly onPartial: (file: string) => void;
}

/**
 * Writes rows of a table or view to a file, which gets its name when it is complete: an export that fails leaves nothing
 * behind.
 */
export function exportTable(db: Database, request: ExportRequest, limits: ReadLimits) {
  return readOnly(db, limits, async (client) => {
    // Timestamps in UTC, whatever the server's time zone is.
    await client.query("set local timezone to 'UTC'");
    const relation = await findRelation(client, request.table);
    const file = request.fileFor(shortName(relation));
    const chosen = chosenRows(relation, request);
    const write = await planWriter(client, relation, { ...request, rows: chosen });
    const target = await findTarget(file);
    const isOfSome = (request.symbols?.length ?? 0) > 1;
    const missing = isOfSome ? await missingSymbols(client, relation, request) : [];
    const lacking = await lackingEvents(client, relation, request);
    const [rows, bytes] = await replaceFile(target, request.onPartial, (handle) =>
      write.file(handle, `${chosen}${orderSql(relation)}`),
    );
    return {
      table: `${relation.schema}.${relation.name}`,
      rows,
      files: [{ file, rows, bytes }],
      // What is written differently from how the database stores it, and symbols without a row, a sentence each.
      notices: [
        ...write.notices,
        // An export without rows is reported as such.
        ...(missing.length === 0 || rows === 0
          ? []
          : [`no matching row has the symbol ${missing.join(' or ')}`]),
        ...lacking,
      ],
    };
  });
}

/**
 * Replaces a file as a whole.
 *
 * @param onPartial called with the name of the temporary file before it is written.
 * @returns what `write` does, and how many bytes the file has.
 */
export async function replaceFile<Result>(
  path: string,
  onPartial: (file: string) => void,
  write: (handle: FileHandle) => Promise<Result>,
): Promise<[Result, number]> {
  const partial = join(dirname(path), `.${basename(path)}.${process.pid}.part`);
  onPartial(partial);
  const handle = await open(partial, 'w');
  try {
    const result = await write(handle);
    await handle.sync();
    const { size } = await handle.stat();
    await rename(partial, path);
    return [result, size];
  } catch (error) {
    // What a full disk says does not name the file.
    const isOfFile = error instanceof Error && 'syscall' in error && !('path' in error);
    throw isOfFile ? Object.assign(error, { path }) : error;
  } finally {
    await handle.close();
    await rm(partial, { force: true });
  }
}

/**
 * The file to write for a path, behind links. A pipe or a device would be replaced by a file, and be gone for every other
 * program.
 *
 * @throws PipelineError `usage` if there is something else than a file.
 */
async function findTarget(path: string): Promise<string> {
  const stats = await stat(path).catch(() => null);
  if (stats === null) return path;
  if (!stats.isFile()) throw usageError(`${path} is no regular file, so it is not replaced`);
  return realpath(path);
}

interface FileWriter {
  /** Names and types of the columns as they are in the file. */
  readonly columns: string;
  readonly notices: readonly string[];
  /** @returns how many rows. */
  file(handle: FileHandle, rows: string): Promise<number>;
}

/** With delimiter and quote characters that JSON always escapes, COPY in CSV format writes JSON unchanged. */
const UNCHANGED = "with (format csv, delimiter e'\\x01', quote e'\\x02')";

/** How rows become a file. @param form.rows `from … where …`, all rows that the file, or several of one form, may have. */
export async function planWriter(
  client: PoolClient,
  relation: Relation,
  form: { readonly format: Format; readonly doubles: boolean; readonly rows: string },
): Promise<FileWriter> {
  const { columns } = relation;
  const list = columnList(relation);
  if (form.format === 'parquet') {
    const { planParquet, writeParquet } = await import('./parquet.ts');
    const plan = await planParquet(client, columns, form.rows, form.doubles);
    return {
      columns: JSON.stringify(plan.columns.map(({ element }) => element)),
      notices: plan.notices,
      async file(handle, rows) {
        const { chunks, rowCount } = startCopy(client, `copy (select ${list} ${rows}) to stdout`);
        await writeParquet(handle, plan.columns, chunks);
        return rowCount();
      },
    };
  }
  // Values of type json may contain line breaks; jsonb has none.
  const oneLine = columns
    .map(({ name, type }) => [pg.escapeIdentifier(name), type] as const)
    .map(([name, type]) => (type === 'json' ? `${name}::jsonb as ${name}` : name));
  const copy = {
    csv: (rows: string) => `copy (select ${list} ${rows}) to stdout with (format csv, header)`,
    ndjson: (rows: string) =>
      `copy (select row_to_json(one_row) from (select ${oneLine.join(', ')} ${rows}) one_row) to stdout ${UNCHANGED}`,
  }[form.format];
  return {
    columns: JSON.stringify(columns),
    notices: [],
    async file(handle, rows) {
      const { chunks, rowCount } = startCopy(client, copy(rows));
      for await (const chunk of chunks) await handle.appendFile(chunk);
      return rowCount();
    },
  };
}

/** Postgres sends a few rows at a time, which are joined to chunks of about this size. */
const CHUNK_BYTES = 1_000_000;

/** The chunks that COPY sends, and, once they are read, how many rows that was. */
function startCopy(client: PoolClient, statement: string) {
  const stream = client.query(copyTo(statement));
  async function* chunks(): AsyncGenerator<Buffer> {
    let pieces: Buffer[] = [];
    let size = 0;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      pieces.push(chunk);
      size += chunk.length;
      if (size < CHUNK_BYTES) continue;
      yield Buffer.concat(pieces);
      pieces = [];
      size = 0;
    }
    yield Buffer.concat(pieces);
  }
  return { chunks: chunks(), rowCount: () => stream.rowCount };
}

/** How adjusted prices lack events that are not known, in a sentence for each exchange and reason. */
export async function lackingEvents(
  client: ClientBase,
  relation: Relation,
  choice: RowChoice,
): Promise<string[]> {
  if (relation.columns.every(({ name }) => name !== 'is_before_event_lists')) return [];
  return [...(await beforeEventLists(client, choice)), ...(await afterEventLists(client, choice))];
}

async function beforeEventLists(client: ClientBase, { from, exchanges }: RowChoice): Promise<string[]> {
  const { rows } = await client.query<{ exchange: string; from: string | null }>(
    `select e.exchange, l.known_from::text as from
       from (select distinct exchange from market.instruments) e left join etl.event_lists l using (exchange)
      where ($1::text[] is null or e.exchange = any ($1)) and exists (
        select from market.bhavcopy_cm b where b.exchange = e.exchange and b.trade_date >= coalesce($2, '-infinity'::date)
           and b.trade_date < coalesce(l.known_from, 'infinity'))
      order by 1`,
    [exchanges ?? null, from ?? null],
  );
  return rows.map(({ exchange, from: known }) =>
    known === null
      ? `no list of corporate actions of ${exchange} is loaded: its prices are adjusted only for events that another exchange or a list of your own has (is_before_event_lists)`
      : `the loaded lists of corporate actions of ${exchange} begin on ${known}: earlier prices are adjusted only for events that another exchange or a list of your own has (is_before_event_lists)`,
  );
}

/** Of events on days, after the first list, that the lists of an exchange do not have. */
async function afterEventLists(client: ClientBase, { from, exchanges }: RowChoice): Promise<string[]> {
  const { rows } = await client.query<{ exchange: string; stretches: string[] }>(
    `select exchange, array_agg(
              case when listed_from = 'infinity' then 'end on ' || listed_to else format('have a hole from %s to %s', listed_to, listed_from) end
              order by listed_to desc) as stretches
       from etl.unlisted_days
      where ($1::text[] is null or exchange = any ($1)) and listed_from > coalesce($2, '-infinity'::date)
      group by exchange order by exchange`,
    [exchanges ?? null, from ?? null],
  );
  return rows.map(({ exchange, stretches: [latest, ...others] }) => {
    const older = others.length === 0 ? '' : ` (with ${plural(others.length, 'earlier hole')})`;
    return `the loaded lists of corporate actions of ${exchange} ${latest}${older}: prices are not adjusted for splits and bonuses in those periods, unless another exchange or a list of your own has them`;
  });
}

/** The chosen symbols that none of the chosen rows has. */
async function missingSymbols(client: ClientBase, relation: Relation, choice: RowChoice): Promise<string[]> {
  const symbol = pg.escapeIdentifier(relation.symbolColumn ?? '');
  const { rows } = await client.query<{ symbol: string }>(
    `select distinct ${symbol} as symbol ${chosenRows(relation, choice)}`,
  );
  const storedSymbols = new Set(rows.map((row) => row.symbol));
  return (choice.symbols ?? []).filter((wanted) => !storedSymbols.has(wanted));
}
