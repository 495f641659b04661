import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import pg, { type ClientBase, type PoolClient } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { usageError } from '../../core/errors.ts';
import { plural } from '../../core/wording.ts';
import type { Database } from '../database/database.ts';
import { type ReadLimits, readOnly } from '../database/read-only.ts';
import {
  chosenRows,
  columnList,
  findRelation,
  orderSql,
  type Relation,
  type RowChoice,
  shortName,
  yearsOf,
} from './relation.ts';

type Format = 'parquet' | 'csv' | 'ndjson';

interface ExportRequest extends RowChoice {
  /** A table or view, with its schema unless that is `market`. */
  readonly table: string;
  readonly format: Format;
  /** A file for each year; else one for all. */
  readonly byYear: boolean;
  /** Numerics as DOUBLE in Parquet. */
  readonly doubles: boolean;
  /** The file for the rows of a year, or of all. */
  readonly fileFor: (name: string, year: number | null) => string;
  /** Called with the name of each temporary file before it is written. */
  readonly onPartial: (file: string) => void;
}

interface ExportedFile {
  readonly file: string;
  readonly rows: number;
  readonly bytes: number;
}

interface Exported {
  /** `market.bhavcopy_cm`. */
  readonly table: string;
  readonly rows: number;
  readonly files: readonly ExportedFile[];
  /** What is written differently from how the database stores it, and symbols without a row, a sentence each. */
  readonly notices: readonly string[];
}

/**
 * Writes rows of a table or view to files, all from one snapshot. The files get their names when all of them are
 * complete: an export that fails leaves nothing behind.
 *
 * @param onBytes called with the number of further bytes that have come from Postgres.
 */
export function exportTable(
  db: Database,
  request: ExportRequest,
  limits: ReadLimits,
  onBytes: (bytes: number) => void,
): Promise<Exported> {
  return readOnly(db, limits, async (client) => {
    // Timestamps in UTC, whatever the server's time zone is.
    await client.query("set local timezone to 'UTC'");
    const relation = await findRelation(client, request.table);
    const name = shortName(relation);
    const parts = await partsOf(client, relation, request);
    const write = await writerOf(client, relation, request, onBytes);
    const written: (ExportedFile & { readonly partial: string; readonly target: string })[] = [];
    const partials: string[] = [];
    try {
      for (const { year, choice } of parts) {
        const file = request.fileFor(name, year);
        const target = await replaceable(file);
        const partial = join(dirname(target), `.${basename(target)}.${process.pid}.part`);
        partials.push(partial);
        request.onPartial(partial);
        const handle = await open(partial, 'w');
        try {
          const rows = await write.file(handle, `${chosenRows(relation, choice)}${orderSql(relation)}`);
          await handle.sync();
          written.push({ file, partial, target, rows, bytes: (await handle.stat()).size });
        } finally {
          await handle.close();
        }
      }
      // A year between two others may have no rows.
      const kept = written.filter(({ rows }) => rows > 0 || !request.byYear);
      const rows = kept.reduce((sum, one) => sum + one.rows, 0);
      // One symbol has rows where any has; an export without rows is reported as such.
      const isPartial = rows > 0 && (request.symbols?.length ?? 0) > 1;
      const missing = isPartial ? await missingSymbols(client, relation, request) : [];
      const notice = `no matching row has the symbol ${missing.join(' or ')}`;
      for (const { partial, target } of kept) await rename(partial, target);
      return {
        table: `${relation.schema}.${relation.name}`,
        rows,
        files: kept.map(({ file, rows, bytes }) => ({ file, rows, bytes })),
        notices: [
          ...write.notices,
          ...(missing.length === 0 ? [] : [notice]),
          ...(await lackingEvents(client, relation, request)),
        ],
      };
    } finally {
      for (const partial of partials) await rm(partial, { force: true });
    }
  });
}

/**
 * The file to write for a path, behind links. A pipe or a device would be replaced by a file, and be gone for every other
 * program.
 *
 * @throws PipelineError `usage` if there is something else than a file.
 */
async function replaceable(path: string): Promise<string> {
  const found = await stat(path).catch(() => null);
  if (found === null) return path;
  if (!found.isFile()) throw usageError(`${path} is no regular file, so it is not replaced`);
  return realpath(path);
}

/** The rows of each file. */
async function partsOf(
  client: PoolClient,
  relation: Relation,
  request: ExportRequest,
): Promise<{ readonly year: number | null; readonly choice: RowChoice }[]> {
  if (!request.byYear) return [{ year: null, choice: request }];
  // Fails for a table without days before anything is read.
  chosenRows(relation, { from: '2000-01-01' });
  return (await yearsOf(client, relation, request)).map((year) => {
    const [first, last] = [`${year}-01-01`, `${year}-12-31`];
    const from = request.from !== undefined && request.from > first ? request.from : first;
    const to = request.to !== undefined && request.to < last ? request.to : last;
    return { year, choice: { ...request, from, to } };
  });
}

interface FileWriter {
  readonly notices: readonly string[];
  /** @returns how many rows. */
  file(handle: FileHandle, rows: string): Promise<number>;
}

/** With delimiter and quote characters that JSON always escapes, COPY in CSV format writes JSON unchanged. */
const UNCHANGED = "with (format csv, delimiter e'\\x01', quote e'\\x02')";

async function writerOf(
  client: PoolClient,
  relation: Relation,
  request: ExportRequest,
  onBytes: (bytes: number) => void,
): Promise<FileWriter> {
  const { columns } = relation;
  const list = columnList(relation);
  if (request.format === 'parquet') {
    const { planParquet, writeParquet } = await import('./parquet.ts');
    const plan = await planParquet(client, columns, chosenRows(relation, request), request.doubles);
    return {
      notices: plan.notices,
      async file(handle, rows) {
        const { chunks, rowCount } = copied(client, `copy (select ${list} ${rows}) to stdout`, onBytes);
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
  }[request.format];
  return {
    notices: [],
    async file(handle, rows) {
      const { chunks, rowCount } = copied(client, copy(rows), onBytes);
      for await (const chunk of chunks) await handle.appendFile(chunk);
      return rowCount();
    },
  };
}

/** Postgres sends a few rows at a time, which are joined to chunks of about this size. */
const CHUNK_BYTES = 1_000_000;

/** The chunks that COPY sends, and, once they are read, how many rows that was. */
export function copied(client: PoolClient, statement: string, onBytes: (bytes: number) => void) {
  const stream = client.query(copyTo(statement));
  async function* chunks(): AsyncGenerator<Buffer> {
    let pieces: Buffer[] = [];
    let size = 0;
    for await (const chunk of stream) {
      pieces.push(chunk as Buffer);
      size += (chunk as Buffer).length;
      if (size < CHUNK_BYTES) continue;
      onBytes(size);
      yield Buffer.concat(pieces);
      pieces = [];
      size = 0;
    }
    onBytes(size);
    yield Buffer.concat(pieces);
  }
  return { chunks: chunks(), rowCount: () => stream.rowCount };
}

/** How adjusted prices lack events that are not known, in a sentence for each exchange and reason. */
async function lackingEvents(client: ClientBase, relation: Relation, choice: RowChoice): Promise<string[]> {
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
              case when listed_from = 'infinity' then 'after ' || listed_to else format('between %s and %s', listed_to, listed_from) end
              order by listed_to desc) as stretches
       from etl.unlisted_days
      where ($1::text[] is null or exchange = any ($1)) and listed_from > coalesce($2, '-infinity'::date)
      group by exchange order by exchange`,
    [exchanges ?? null, from ?? null],
  );
  return rows.map(({ exchange, stretches: [latest, ...others] }) => {
    const older = others.length === 0 ? '' : ` (and in ${plural(others.length, 'earlier stretch')} of days)`;
    return `the loaded lists of corporate actions of ${exchange} have no ex-date ${latest}${older}: prices before that time lack its splits and bonuses, unless another exchange or a list of your own has them`;
  });
}

/** The chosen symbols that none of the chosen rows has. */
async function missingSymbols(client: ClientBase, relation: Relation, choice: RowChoice): Promise<string[]> {
  const symbol = pg.escapeIdentifier(relation.symbolColumn ?? '');
  const { rows } = await client.query<{ symbol: string }>(
    `select distinct ${symbol} as symbol ${chosenRows(relation, choice)}`,
  );
  const found = new Set(rows.map((row) => row.symbol));
  return (choice.symbols ?? []).filter((wanted) => !found.has(wanted));
}
