import { plainName, type ResponseField } from '../declaration/fields.ts';
import type { DataSet, Shape } from '../declaration/operation.ts';

/** Where the value of a field is in records that share a list of keys. */
interface FieldSource {
  readonly field: ResponseField;
  /** The field's position in the table. */
  readonly at: number;
  /** The record's own keys for it, in the order they are tried; most fields have one or none. */
  readonly keys: readonly string[];
}

/**
 * How records with a particular list of keys are read. Computed once per list, because the records of a response
 * usually have the same: keys are not compared in lower case for every record.
 */
export interface Layout {
  readonly keys: readonly string[];
  /** Null if the keys fit none of the operation's shapes. */
  readonly shape: Shape | null;
  /** How records are read that do not name the instrument which the shape needs; null if they are rejects. */
  readonly nameless: Layout | null;
  /** True for records without an instrument. Whether a record has one, its keys do not show. */
  readonly isNameless: boolean;
  /** Of the fields that are stored as they were sent. */
  readonly sources: readonly FieldSource[];
  /** The record's key for each source name, by `plainName`. */
  readonly keyOf: ReadonlyMap<string, string>;
  /** Keys that no declared field of the shape matches. */
  readonly unknown: readonly string[];
  /** Keys that are spelled otherwise than an earlier one, see `plainName`; the earlier one is used. */
  readonly repeated: readonly string[];
}

/** Computes the layout of a list of keys. */
function makeLayout(operation: DataSet, keys: readonly string[]): Layout {
  const keyOf = new Map<string, string>();
  const repeated: string[] = [];
  for (const key of keys) {
    const plain = plainName(key);
    if (keyOf.has(plain)) repeated.push(key);
    else keyOf.set(plain, key);
  }
  const [shape, ...others] = findShapes(operation, keyOf);
  const facts = { keys, keyOf, repeated, nameless: null, isNameless: false };
  if (shape === undefined) return { ...facts, shape: null, sources: [], unknown: [] };
  const known = namesReadBy(shape);
  const unknown = [...keyOf].filter(([plain]) => !known.has(plain)).map(([, key]) => key);
  const layout = { ...facts, shape, sources: listSources(shape, keyOf), unknown };
  const other = others.find(({ namedBy }) => namedBy === undefined);
  if (shape.namedBy === undefined || other === undefined) return layout;
  return {
    ...layout,
    nameless: { ...layout, isNameless: true, shape: other, sources: listSources(other, keyOf) },
  };
}

function listSources(shape: Shape, keyOf: ReadonlyMap<string, string>): FieldSource[] {
  return shape.table.fields.flatMap((field, at) => {
    if (field.from !== 'response' || field.compute !== undefined) return [];
    const names = [field.source, ...(field.orElse ?? [])];
    return [{ field, at, keys: names.flatMap((name) => keyOf.get(plainName(name)) ?? []) }];
  });
}

/**
 * The shapes that records with these keys may have: first the one that reads most of them. If two read as many, the one
 * with fewer fields, of which fewer are missing.
 */
function findShapes({ shapes }: DataSet, keyOf: ReadonlyMap<string, string>): Shape[] {
  const has = (name: string) => keyOf.has(plainName(name));
  return shapes
    .filter((shape) => shape.has.every(has) && (shape.hasOneOf?.some(has) ?? true))
    .map((shape) => ({ shape, names: namesReadBy(shape) }))
    .map(({ shape, names }) => ({
      shape,
      read: [...names].filter((name) => keyOf.has(name)).length,
      fields: names.size,
    }))
    .sort((a, b) => b.read - a.read || a.fields - b.fields)
    .map(({ shape }) => shape);
}

/** The names that a shape's fields are read from, as they are compared. */
function namesReadBy({ table }: Shape): Set<string> {
  return new Set(
    table.fields.flatMap((field) =>
      field.from === 'response' ? [field.source, ...(field.orElse ?? [])].map(plainName) : [],
    ),
  );
}

/** True if these are the names of a record of the operation. */
export function fitsAnyShape(operation: DataSet, names: readonly string[]): boolean {
  return makeLayout(operation, names).shape !== null;
}

/** Creates the function that finds the layout of each record of a response. */
export function createLayouts(operation: DataSet): (record: object) => Layout {
  const known = new Map<string, Layout>();
  let last: Layout | null = null;
  return (record) => {
    if (last !== null && hasKeys(record, last.keys)) return last;
    const keys = Object.keys(record);
    const name = JSON.stringify(keys);
    let layout = known.get(name);
    if (layout === undefined) {
      layout = makeLayout(operation, keys);
      // A response whose records all have different keys must not fill the memory with layouts.
      if (known.size < 1_000) known.set(name, layout);
    }
    last = layout;
    return layout;
  };
}

/** True if these are the record's keys, in this order. Avoids `Object.keys`, which allocates a list per record. */
function hasKeys(record: object, keys: readonly string[]): boolean {
  let at = 0;
  for (const key in record) {
    if (key !== keys[at]) return false;
    at += 1;
  }
  return at === keys.length;
}
