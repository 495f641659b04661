// The rows that the peers load: the records of GetBhavCopyCM as the pipeline stores them, on disk in each form
// that a peer reads. Names, dates and blanks are ready, so that no peer spends time on them.
import { createWriteStream, mkdirSync, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { type Field, type Kind, SQL_TYPES } from '../../src/declaration/fields.ts';
import type { Row } from '../../src/declaration/table.ts';
import { createRecordReader } from '../../src/extract/records.ts';
import operation from '../../src/operations/GetBhavCopyCM.ts';
import { bodyFor, EXCHANGE, renderDay, renderedDayFor, VARIANTS } from '../support/records.ts';

/** Key columns in the order of the index, as in migrations/0000_initial.sql. */
export const KEY = ['exchange', 'trade_date', 'symbol', 'series'] as const;
/** The columns of market.bhavcopy_cm without those that say which load wrote the row. */
export const fields: readonly Field[] = operation.shapes[0].table.fields;

export const sqlType = (field: Field) => SQL_TYPES[field.kind];

/** The table into which every peer loads. */
export const CREATE_TABLE = `create schema peers;
create table peers.bhavcopy_cm (
  ${fields.map((field) => `${field.column} ${sqlType(field)}`).join(',\n  ')},
  primary key (${KEY.join(', ')})
)`;

/** The indexes that `market.bhavcopy_cm` has beside its key. */
export const CREATE_INDEXES = `create index on peers.bhavcopy_cm (symbol, exchange, trade_date);
create index on peers.bhavcopy_cm using hash (isin)`;

/** A number that is the same for two tables only if they hold the same values, however each types and prints them. */
export function fingerprintSql(table: string): string {
  const printed = fields.map(({ column, kind }) => {
    const value = kind === 'numeric' ? `trim_scale(${column}::numeric)` : `${column}::${SQL_TYPES[kind]}`;
    return kind === 'datetime' ? `${value} at time zone 'UTC'` : value;
  });
  return `select count(*) as rows, coalesce(sum(hashtextextended(row(${printed.join(', ')})::text, 0)), 0)::text as hash
  from ${table} where trade_date <= $1`;
}

/** One folder of rows: the same rows in each form. */
export interface RowFiles {
  readonly folder: string;
  /** JSON lines, one file a trading day. */
  readonly jsonLines: string;
  /** Singer messages: the schema, then a record a line. */
  readonly singer: string;
  readonly csv: string;
  readonly rows: number;
  readonly lastDay: string;
}

/** Writes the rows of `days` into `folder`. */
export async function writeRows(
  folder: string,
  days: readonly string[],
  recordsPerDay: number,
): Promise<RowFiles> {
  const files = {
    folder,
    jsonLines: join(folder, 'json'),
    singer: join(folder, 'rows.singer'),
    csv: join(folder, 'rows.csv'),
    rows: days.length * recordsPerDay,
    lastDay: days.at(-1) as string,
  };
  mkdirSync(files.jsonLines, { recursive: true });
  const renderedDays = Array.from({ length: VARIANTS }, (_, variant) => renderDay(recordsPerDay, variant));
  const singer = createWriteStream(files.singer);
  const csv = createWriteStream(files.csv);
  await write(singer, `${JSON.stringify(singerSchema())}\n`);
  for (const day of days) {
    const rows = rowsOf(bodyFor(renderedDayFor(renderedDays, day), day), day);
    const json = createWriteStream(join(files.jsonLines, `${day}.jsonl`));
    await write(json, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    await end(json);
    await write(singer, rows.map(singerRecord).join(''));
    await write(csv, rows.map(csvLine).join(''));
  }
  await end(singer);
  await end(csv);
  return files;
}

/** The day's rows as the pipeline itself reads them. */
function rowsOf(response: Buffer, day: string): Row[] {
  const requested = { exchange: EXCHANGE, from: day, to: day, instruments: [], params: {}, calledOn: day };
  const reader = createRecordReader(operation, requested, 'Asia/Kolkata');
  return (JSON.parse(response.toString()) as { Value: unknown[] }).Value.map((record) => {
    const result = reader.read(record);
    if (result.table === null) throw new Error('a record was rejected');
    return Object.fromEntries(
      fields.map(({ column, kind }) => {
        const value = result.row[column] ?? null;
        // With a T between day and time, as the peers' readers of JSON expect it.
        return [column, kind === 'datetime' && value !== null ? String(value).replace(' ', 'T') : value];
      }),
    );
  });
}

const csvLine = (row: Row) => `${fields.map(({ column }) => row[column] ?? '').join(',')}\n`;

const singerRecord = (record: Row) =>
  `${JSON.stringify({ type: 'RECORD', stream: 'bhavcopy_cm', record })}\n`;

function singerSchema() {
  const types: Partial<Record<Kind, object>> = {
    int8: { type: ['integer', 'null'] },
    numeric: { type: ['number', 'null'] },
    date: { type: ['string', 'null'], format: 'date' },
    datetime: { type: ['string', 'null'], format: 'date-time' },
  };
  const properties = Object.fromEntries(
    fields.map((field) => [field.column, types[field.kind] ?? { type: ['string', 'null'] }]),
  );
  return { type: 'SCHEMA', stream: 'bhavcopy_cm', schema: { properties }, key_properties: KEY };
}

async function write(to: WriteStream, text: string): Promise<void> {
  if (!to.write(text)) await new Promise<void>((resolve) => to.once('drain', resolve));
}

async function end(stream: WriteStream): Promise<void> {
  stream.end();
  await finished(stream);
}
