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

/** The days whose events adjusted prices lack, because no list of the exchange is loaded: a sentence for each exchange. */
export async function lackingEvents(
  client: ClientBase,
  relation: Relation,
  { from, exchanges }: RowChoice,
): Promise<string[]> {
  if (relation.columns.every(({ name }) => name !== 'is_before_event_lists')) return [];
  const { rows } = await client.query<{ exchange: string; periods: string[] }>(
    `select exchange, array_agg(
              case when listed_to = '-infinity' and listed_from = 'infinity' then 'all days'
                   when listed_to = '-infinity' then 'the days before ' || listed_from
                   when listed_from = 'infinity' then 'the days after ' || listed_to
                   else format('the days from %s to %s', listed_to, listed_from) end
              order by listed_to desc) as periods
       from (select exchange, listed_to, listed_from from etl.unlisted_days
             union all
             select priced.exchange, '-infinity', coalesce(lists.known_from, 'infinity')
               from (select distinct exchange from market.instruments) as priced
               left join etl.event_lists as lists using (exchange)
              where exists (select from market.bhavcopy_cm as prices
                             where prices.exchange = priced.exchange
                               and prices.trade_date >= coalesce($2, '-infinity'::date)
                               and prices.trade_date < coalesce(lists.known_from, 'infinity'))) as unlisted
      where ($1::text[] is null or exchange = any ($1)) and listed_from > coalesce($2, '-infinity'::date)
      group by exchange order by exchange`,
    [exchanges ?? null, from ?? null],
  );
  return rows.map(({ exchange, periods: [latest, ...earlier] }) => {
    const others = earlier.length === 0 ? '' : ` and ${plural(earlier.length, 'earlier period')}`;
    return `the loaded lists of corporate actions of ${exchange} lack ${latest}${others}: prices are adjusted only for splits and bonuses of that time that another exchange or a list of your own has`;
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
