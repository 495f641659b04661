import type { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { writeDataPageV2 } from 'hyparquet-writer/src/datapage.js';
import { writeDictionaryPage } from 'hyparquet-writer/src/dictionary.js';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';
import { type ColumnTexts, NULL } from './column-texts.ts';

export type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number];
type ColumnChunk = ParquetWriter['row_groups'][number]['columns'][number];
type Encoding = NonNullable<ColumnChunk['meta_data']>['encodings'][number];
type Physical = Parameters<typeof writeDictionaryPage>[2];

/** A value of a Parquet file. Decimals are whole numbers of their last digit. */
export type Value = Uint8Array | number | bigint | boolean;

/** A column of the file: its type, and how a value is made from the text that Postgres writes, a character for each byte. */
export interface ParquetColumn {
  readonly name: string;
  readonly element: SchemaElement;
  readonly read: (text: string) => Value;
}

/** How many times shorter numbers make a column, at least: they are compressed less than values. Measured on prices. */
const LEAST_GAIN = 1.2;

/**
 * Writes a column of a row group: the distinct values and a number for each row where that is shorter, else the value of
 * each row. The library's own way needs an array of values, several times as large, and finds out again which are equal.
 */
export function writeColumnChunk(
  writer: ByteWriter,
  { name, element, read }: ParquetColumn,
  texts: ColumnTexts,
  rows: number,
): ColumnChunk {
  const start = writer.offset;
  const { type } = element;
  if (type === undefined) throw new Error(`${name} has no type`);
  const column = {
    columnName: name,
    element,
    schemaPath: [{ name: 'root' }, element],
    codec: 'SNAPPY' as const,
    compressors: { SNAPPY: snappyCompress },
    stats: true,
    pageSize: 0,
    columnIndex: false,
    offsetIndex: false,
  };
  const values = texts.values(read);
  const physical =
    type === 'FIXED_LEN_BYTE_ARRAY'
      ? values.map((value) => bigEndian(value as bigint, widthOf(element)))
      : values;
  const present = rows - texts.nulls;
  const lengths =
    type === 'BYTE_ARRAY'
      ? { each: texts.total + 4 * present, distinct: texts.size + 4 * values.length }
      : { each: present * widthOf(element), distinct: values.length * widthOf(element) };
  const numbers = (present * Math.ceil(Math.log2(values.length + 1))) / 8;
  const isShorter = type !== 'BOOLEAN' && (lengths.distinct + numbers) * LEAST_GAIN < lengths.each;
  const encoding: Encoding = isShorter ? 'RLE_DICTIONARY' : type === 'BOOLEAN' ? 'RLE' : 'PLAIN';
  const dictionarySize = isShorter ? writeDictionaryPage(writer, column, physical) : 0;
  const pageStart = writer.offset;
  const pageSize = writeDataPageV2({
    writer,
    column,
    encoding,
    pageData: {
      ...pageValues(texts, rows, isShorter ? null : physical),
      repetitionLevels: [],
      maxDefinitionLevel: 1,
    },
  });
  return {
    file_offset: BigInt(start),
    meta_data: {
      type,
      encodings: isShorter ? ['PLAIN', encoding] : [encoding],
      path_in_schema: [name],
      codec: 'SNAPPY',
      num_values: BigInt(rows),
      total_compressed_size: BigInt(writer.offset - start),
      total_uncompressed_size: BigInt(dictionarySize + pageSize),
      data_page_offset: BigInt(pageStart),
      ...(isShorter && { dictionary_page_offset: BigInt(start) }),
      statistics: { null_count: BigInt(texts.nulls), ...findBounds(element, values) },
    },
  };
}

/** The values of the rows, or the numbers of the distinct ones, and of each row whether it has one. */
function pageValues(texts: ColumnTexts, rows: number, physical: Physical | null) {
  const levels = new Uint8Array(rows).fill(1);
  const numbers = texts.rows.subarray(0, rows);
  // The library copies values without the undefined ones.
  const values = physical === null && texts.nulls === 0 ? numbers : new Array(rows);
  if (values !== numbers)
    for (let row = 0; row < rows; row += 1) {
      const number = numbers[row] as number;
      if (number === NULL) levels[row] = 0;
      else values[row] = physical === null ? number : physical[number];
    }
  return { values, definitionLevels: levels as unknown as number[] };
}

/** An integer with its sign in this many bytes, the highest first. */
function bigEndian(value: bigint, width: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(16);
  bytes.writeBigInt64BE(value >> 64n, 0);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, value), 8);
  return bytes.subarray(16 - width);
}

const WIDTHS = { BOOLEAN: 0, INT32: 4, INT64: 8, DOUBLE: 8 } as const;

/** The bytes of a value of a type whose values have the same length. */
function widthOf({ type, type_length }: SchemaElement): number {
  return type_length ?? WIDTHS[type as keyof typeof WIDTHS];
}

/** The least and the greatest value, by which readers pass over row groups; none with NaN, which has no order. */
function findBounds(
  { converted_type }: SchemaElement,
  values: readonly Value[],
): { readonly min_value?: Value; readonly max_value?: Value } {
  let [min_value, max_value] = [values[0], values[0]];
  if (min_value === undefined || max_value === undefined || values.some(Number.isNaN)) return {};
  for (const value of values) {
    if (isLess(value, min_value)) min_value = value;
    if (isLess(max_value, value)) max_value = value;
  }
  // The library multiplies a number by the scale.
  const bound = (value: Value) => (converted_type === 'DECIMAL' ? BigInt(value as number) : value);
  return { min_value: bound(min_value), max_value: bound(max_value) };
}

const isLess = (a: Value, b: Value): boolean =>
  a instanceof Uint8Array ? Buffer.compare(a, b as Uint8Array) < 0 : a < b;
