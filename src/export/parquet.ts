import type { FileHandle } from 'node:fs/promises';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import pg, { type ClientBase } from 'pg';
import { ColumnTexts } from './column-texts.ts';
import { type ParquetColumn, type SchemaElement, type Value, writeColumnChunk } from './parquet-column.ts';
import type { ExportColumn } from './relation.ts';

/** The rows of a row group, of which the distinct values are held in memory; as many as DuckDB writes. */
const GROUP_ROWS = 122_880;

/** A row group of long texts ends earlier. */
const GROUP_BYTES = 40_000_000;

/** The most digits that a DECIMAL of Parquet can hold. */
const MOST_DIGITS = 38;

/** How many digits the values of a numeric column need; null where a DECIMAL cannot hold them. */
type DecimalNeed = { readonly scale: number; readonly integers: number } | null;

interface ParquetPlan {
  readonly columns: readonly ParquetColumn[];
  /** What cannot be written as Postgres stores it, a sentence each. */
  readonly notices: readonly string[];
}

/**
 * Plans the columns of a file for these rows. Its numerics keep all digits: how many each needs is read from the rows.
 *
 * @param rows `from … where …`
 * @param doubles whether numerics become DOUBLE instead, which rounds them to 15 to 17 digits.
 */
export async function planParquet(
  client: ClientBase,
  columns: readonly ExportColumn[],
  rows: string,
  doubles: boolean,
): Promise<ParquetPlan> {
  const numerics = doubles ? [] : columns.filter(({ type }) => type === 'numeric');
  const endless = columns.filter(({ type }) => /^(date|timestamp)/.test(type));
  const requested = [
    ...numerics.flatMap(({ name }) => {
      const column = pg.escapeIdentifier(name);
      // One pass over rows that may be slow to compute: NaN is greater than any number, and infinity than any other.
      const widest = `greatest(max(${column}), -min(${column}))`;
      return [
        `coalesce(max(min_scale(${column})), 0)`,
        `coalesce(case when ${widest} < 'Infinity' then length(trunc(${widest})::text) end, 0)`,
        `coalesce(${widest} >= 'Infinity', false)`,
      ];
    }),
    ...endless.map(({ name }) => `coalesce(bool_or(not isfinite(${pg.escapeIdentifier(name)})), false)`),
  ];
  const values: unknown[] =
    requested.length === 0
      ? []
      : ((await client.query<unknown[]>({ text: `select ${requested.join(', ')} ${rows}`, rowMode: 'array' }))
          .rows[0] ?? []);
  const notices: string[] = [];
  const decimals = new Map<string, DecimalNeed>();
  for (const { name } of numerics) {
    const [scale, integers, special] = values.splice(0, 3) as [number, number, boolean];
    const digits = scale + integers;
    decimals.set(name, !special && digits <= MOST_DIGITS ? { scale, integers } : null);
    if (special) notices.push(`${name} has NaN or infinity, which a DECIMAL cannot hold: written as text`);
    else if (digits > MOST_DIGITS)
      notices.push(
        `${name} needs ${digits} digits, and a DECIMAL holds at most ${MOST_DIGITS}: written as text`,
      );
  }
  for (const { name } of endless) {
    if (values.shift() === true)
      notices.push(`${name} has ±infinity: written as the first day of the year 1 and the last day of 9999`);
  }
  return {
    columns: columns.map((column) => parquetColumn(column, decimals.get(column.name), doubles)),
    notices,
  };
}

/** How a column is written. */
export function parquetColumn(
  { name, type }: ExportColumn,
  decimal: DecimalNeed | undefined,
  doubles: boolean,
): ParquetColumn {
  const column = (facts: Omit<SchemaElement, 'name'>, read: (text: string) => Value): ParquetColumn => ({
    name,
    element: { name, repetition_type: 'OPTIONAL', ...facts },
    read,
  });
  switch (type) {
    case 'boolean':
      return column({ type: 'BOOLEAN' }, (text) => text === 't');
    case 'smallint':
    case 'integer':
      return column({ type: 'INT32' }, Number);
    case 'bigint':
      return column({ type: 'INT64' }, BigInt);
    case 'real':
    case 'double precision':
      return column({ type: 'DOUBLE' }, Number);
    case 'date':
      return column({ type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } }, dayNumber);
    case 'timestamp with time zone':
    case 'timestamp without time zone': {
      const isAdjustedToUTC = type === 'timestamp with time zone';
      return column(
        {
          type: 'INT64',
          ...(isAdjustedToUTC ? { converted_type: 'TIMESTAMP_MICROS' } : {}),
          logical_type: { type: 'TIMESTAMP', isAdjustedToUTC, unit: 'MICROS' },
        },
        microseconds,
      );
    }
    case 'numeric': {
      if (doubles) return column({ type: 'DOUBLE' }, Number);
      if (decimal != null) {
        const { scale, integers } = decimal;
        const digits = Math.max(scale + integers, 1);
        const integer = digits <= 9 ? Number : BigInt;
        return column(decimalType({ scale, digits }), (text) => integer(unscaled(text, scale)));
      }
    }
  }
  return column({ type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } }, (text) =>
    Buffer.from(text, 'latin1'),
  );
}

/** The smallest type that holds this many digits. */
function decimalType({ scale, digits }: { scale: number; digits: number }): Omit<SchemaElement, 'name'> {
  const decimal = {
    converted_type: 'DECIMAL',
    logical_type: { type: 'DECIMAL', precision: digits, scale },
    precision: digits,
    scale,
  } as const;
  if (digits <= 9) return { type: 'INT32', ...decimal };
  if (digits <= 18) return { type: 'INT64', ...decimal };
  const bits = Math.ceil(digits * Math.log2(10)) + 1;
  return { type: 'FIXED_LEN_BYTE_ARRAY', type_length: Math.ceil(bits / 8), ...decimal };
}

/** `-2875.4` with two decimals is -287540. Digits beyond the scale are zeros, which Postgres writes after a division. */
function unscaled(text: string, scale: number): string {
  const dot = text.indexOf('.');
  if (dot === -1) return text + '0'.repeat(scale);
  return text.slice(0, dot) + text.slice(dot + 1, dot + 1 + scale).padEnd(scale, '0');
}

/** Days since 1970. */
function dayNumber(text: string): number {
  return Number(microseconds(text) / 86_400_000_000n);
}

/** Microseconds since 1970 of a day or a time in UTC, as Postgres writes them. */
function microseconds(text: string): bigint {
  if (text === '-infinity') return microseconds('0001-01-01');
  if (text === 'infinity') return microseconds('9999-12-31');
  const [, day, time = '00:00:00', decimals = ''] =
    /^(\d{4}-\d{2}-\d{2})(?: (\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(?:\+00)?)?$/.exec(text) ?? [];
  if (day === undefined) throw new Error(`Parquet cannot hold the time ${text}`);
  return BigInt(Date.parse(`${day}T${time}Z`)) * 1_000n + BigInt(decimals.padEnd(6, '0'));
}

const LINE_END = 10;

/** Writes rows to a Parquet file. @param copied what COPY sends in its text format. */
export async function writeParquet(
  file: FileHandle,
  columns: readonly ParquetColumn[],
  copied: AsyncIterable<Buffer>,
): Promise<void> {
  const bytes = new ByteWriter();
  const writer = Object.assign(bytes, {
    async flush() {
      const chunk = bytes.getBytes();
      for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
      bytes.index = 0;
    },
  });
  const schema = [{ name: 'root', num_children: columns.length }, ...columns.map(({ element }) => element)];
  const parquet = new ParquetWriter({ writer, schema, createdBy: 'eod-pipeline' });
  const texts = columns.map(() => new ColumnTexts(GROUP_ROWS));
  let rows = 0;
  const writeGroup = async () => {
    const start = bytes.offset;
    const chunks = texts.map((columnTexts, at) =>
      writeColumnChunk(bytes, columns[at] as ParquetColumn, columnTexts, rows),
    );
    const sizes = chunks.map(({ meta_data }) => meta_data?.total_uncompressed_size ?? 0n);
    parquet.num_rows += BigInt(rows);
    parquet.row_groups.push({
      columns: chunks,
      total_byte_size: sizes.reduce((sum, size) => sum + size, 0n),
      total_compressed_size: BigInt(bytes.offset - start),
      num_rows: BigInt(rows),
    });
    for (const columnTexts of texts) columnTexts.clear();
    rows = 0;
    await writer.flush();
  };
  let rest = Buffer.alloc(0);
  for await (const chunk of copied) {
    const lines = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = lines.lastIndexOf(LINE_END) + 1;
    rest = Buffer.from(lines.subarray(end));
    for (let at = 0; at < end && texts.length > 0; ) {
      for (const columnTexts of texts) at = columnTexts.add(rows, lines, at) + 1;
      rows += 1;
      if (rows === GROUP_ROWS) await writeGroup();
    }
    if (texts.reduce((sum, { size }) => sum + size, 0) > GROUP_BYTES) await writeGroup();
  }
  if (rows > 0) await writeGroup();
  parquet.finish();
  await writer.flush();
}
