import { groupBy, largest, lastItem, type NonEmpty } from '../../core/iterables.ts';
import type { Field } from '../../declaration/fields.ts';
import type { DataSet, Shape } from '../../declaration/operation.ts';
import type { TableRows } from '../../declaration/rows.ts';
import { type Row, SOURCE_AUDIT, type TableDefinition } from '../../declaration/table.ts';
import { sanitizeRecord } from '../../extract/sanitize.ts';
import type { Extracted, Problem, Reject } from '../../extract/types.ts';
import { hasDuplicates } from '../../load/merge/merge.ts';

/** A row, and its index in its batch. */
interface IndexedRow {
  readonly row: Row;
  readonly at: number;
}

/**
 * Decides about records of one key in a response (pure). Of records that were saved at different times the newest counts,
 * and of equal records the last: the merge decides these. Others contradict each other. A record that is zero or blank
 * wherever it differs from another only lacks values: the other is loaded, with a warning. Where each of two has a value
 * that the other does not have, nobody can say which one is right: all become rejects, and what is stored stays.
 */
export function resolveConflicts(extracted: Extracted, shapes: DataSet['shapes']): Extracted {
  const batches = extracted.batches.map((batch) => {
    const shape = shapes.find(({ table }) => table === batch.table);
    return resolveBatch(batch, shape, extracted.rejects);
  });
  return {
    ...extracted,
    batches,
    rejects: [...extracted.rejects, ...batches.flatMap(({ rejects = [] }) => rejects)],
    warnings: [...extracted.warnings, ...batches.flatMap(({ warnings = [] }) => warnings)],
  };
}

interface ResolvedBatch extends TableRows {
  readonly rejects?: readonly Reject[];
  readonly warnings?: readonly string[];
}

function resolveBatch(batch: TableRows, shape: Shape | undefined, earlier: readonly Reject[]): ResolvedBatch {
  const { table } = batch;
  if (!hasDuplicates(table, batch.rows)) return batch;
  const rows = [...batch.rows];
  const fields = valueFields(table);
  const rejected = new Map<number, { readonly row: Row; readonly problems: readonly Problem[] }>();
  const incomplete: string[] = [];
  let positions: readonly number[] | undefined;
  const positionOf = (at: number) => {
    positions ??= positionsOfRows(rows.length, earlier);
    return positions[at] as number;
  };
  for (const group of groupsOfKey(table, rows)) {
    const distinct = distinctNewest(fields, group);
    const fullest = distinct.reduce((best, record) =>
      countValues(fields, record.row) > countValues(fields, best.row) ? record : best,
    );
    if (distinct.every(({ row }) => onlyLacksValues(fields, row, fullest.row))) {
      if (distinct.length === 1) continue;
      incomplete.push(keyName(table, fullest.row));
      // The merge takes the last one of a key.
      const last = lastItem(group);
      rows[fullest.at] = last.row;
      rows[last.at] = fullest.row;
      continue;
    }
    for (const { row, at } of group)
      rejected.set(at, { row, problems: describeProblems({ table, fields, row }, distinct, positionOf) });
  }
  const unnamed = incomplete.length - MOST_NAMED;
  const keys = [...incomplete.slice(0, MOST_NAMED), ...(unnamed > 0 ? [`${unnamed} more keys`] : [])];
  return {
    table,
    rows: rows.filter((_, at) => !rejected.has(at)),
    rejects: [...rejected].map(([at, { row, problems }]) => ({
      position: positionOf(at),
      record: restoreRecord(table, row),
      problems,
      ...readNames(shape, row),
    })),
    warnings:
      incomplete.length === 0
        ? []
        : [
            `several records of ${keys.join(', ')}: one that is zero or blank where another has values was not used`,
          ],
  };
}

/** The rows whose key occurs again, by key. */
function groupsOfKey(table: TableDefinition, rows: readonly Row[]): NonEmpty<IndexedRow>[] {
  const key = table.fields.filter(({ column }) => table.key.includes(column));
  const indexed = rows.map((row, at) => ({ row, at }));
  const groups = groupBy(indexed, ({ row }) => comparedText(key, row));
  return [...groups.values()].filter(({ length }) => length > 1);
}

/** The different ones of the records that were saved last: a record without that time is older than all others. */
function distinctNewest(fields: readonly Field[], group: readonly IndexedRow[]): readonly IndexedRow[] {
  const savedAt = ({ row }: IndexedRow) => Date.parse(String(row.source_saved_at ?? '')) || 0;
  const newest = largest(group.map(savedAt));
  const distinct = new Map<string, IndexedRow>();
  for (const record of group) {
    if (savedAt(record) === newest) distinct.set(comparedText(fields, record.row), record);
  }
  return [...distinct.values()];
}

/** The fields in which records of a key contradict each other. */
function valueFields({ key, fields }: TableDefinition): readonly Field[] {
  const others: readonly string[] = [...key, ...SOURCE_AUDIT];
  return fields.filter(({ column, from }) => from !== 'request' && !others.includes(column));
}

const differingFields = (fields: readonly Field[], row: Row, otherRow: Row) =>
  fields.filter((field) => comparable(field, row) !== comparable(field, otherRow));

/** True if the record is zero or blank wherever it differs from another. */
const onlyLacksValues = (fields: readonly Field[], row: Row, other: Row) =>
  differingFields(fields, row, other).every((field) => isBlank(field, row));

const countValues = (fields: readonly Field[], row: Row) =>
  fields.filter((field) => !isBlank(field, row)).length;

const isBlank = (field: Field, row: Row) => ['', '0'].includes(comparable(field, row));

const comparedText = (fields: readonly Field[], row: Row) =>
  // No value contains NUL.
  fields.map((field) => comparable(field, row)).join('\0');

const NUMBERS: ReadonlySet<string> = new Set(['int2', 'int4', 'int8', 'numeric']);

/** More digits than these are not all kept by a number of JavaScript. */
const SAFE_LENGTH = 15;

/** The same text for equal values: 7.50 and 7.5. */
function comparable({ kind, column }: Field, row: Row): string {
  const text = String(row[column] ?? '').trim();
  if (text === '' || !NUMBERS.has(kind)) return text;
  if (text.length <= SAFE_LENGTH || /e/i.test(text)) return String(Number(text));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** How many differing values of a record are named, and how many keys. */
const MOST_NAMED = 5;

function describeProblems(
  {
    table,
    fields,
    row,
  }: { readonly table: TableDefinition; readonly fields: readonly Field[]; readonly row: Row },
  distinct: readonly IndexedRow[],
  positionOf: (at: number) => number,
): readonly Problem[] {
  const quoted = (value: Row[string] | undefined) => `"${String(value ?? '').slice(0, 40)}"`;
  return distinct
    .slice(0, MOST_NAMED)
    .flatMap((other) =>
      differingFields(fields, row, other.row).map((field) => ({
        path: field.from === 'response' ? field.source : field.column,
        message: `is ${quoted(row[field.column])}, and ${quoted(other.row[field.column])} in record ${positionOf(other.at)}, of the same key ${keyName(table, row)}: neither is stored`,
      })),
    )
    .slice(0, MOST_NAMED);
}

/** `NSE 2025-08-29 RELIANCE EQ` */
const keyName = ({ key }: TableDefinition, row: Row) =>
  key
    .flatMap((column) => (row[column] === null || row[column] === '' ? [] : [String(row[column])]))
    .join(' ');

/** Where the rows of a response stand in it: between them are those that were rejected when they were read. */
function positionsOfRows(count: number, rejects: readonly Reject[]): readonly number[] {
  const rejected = new Set(rejects.map(({ position }) => position));
  const positions: number[] = [];
  for (let position = 0; positions.length < count; position++) {
    if (!rejected.has(position)) positions.push(position);
  }
  return positions;
}

/** The day and the instrument that a record names. */
function readNames(shape: Shape | undefined, row: Row): Pick<Reject, 'day' | 'instrument'> {
  const day = shape?.dated === true ? row[shape.table.dateColumn ?? ''] : null;
  const instrument = row[shape?.symbolColumn ?? ''];
  return {
    ...(typeof day === 'string' ? { day } : {}),
    ...(typeof instrument === 'string' ? { instrument } : {}),
  };
}

/** The record that a row was read from, as far as it is stored. */
const restoreRecord = (table: TableDefinition, row: Row) =>
  sanitizeRecord(
    Object.fromEntries(
      table.fields.flatMap((field) =>
        field.from === 'response' ? [[field.source, row[field.column] ?? null]] : [],
      ),
    ),
  );
