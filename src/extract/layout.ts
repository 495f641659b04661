import type { AnswerField } from '../operations/fields.ts';
import type { DataSet, Shape } from '../operations/operation.ts';

/** Where the value of a field is in records that share a list of keys. */
interface FieldSource {
  readonly field: AnswerField;
  /** The record's own keys for it, in the order they are tried; most fields have one or none. */
  readonly keys: readonly string[];
}

/**
 * How records with a particular list of keys are read. Worked out once per list, because the records of an answer
 * usually have the same: keys are not compared in lower case for every record.
 */
export interface Layout {
  readonly keys: readonly string[];
  /** Null if the keys fit none of the operation's shapes. */
  readonly shape: Shape | null;
  readonly sources: readonly FieldSource[];
  /** The record's key for each source name in lower case. */
  readonly keyOf: ReadonlyMap<string, string>;
  /** Keys that no declared field of the shape matches. */
  readonly unknown: readonly string[];
  /** Keys that differ from an earlier one only in case; the earlier one counts. */
  readonly repeated: readonly string[];
}

/** Works out the layout of a list of keys. */
function layoutOf(operation: DataSet, keys: readonly string[]): Layout {
  const keyOf = new Map<string, string>();
  const repeated: string[] = [];
  for (const key of keys) {
    const lower = key.trim().toLowerCase();
    if (keyOf.has(lower)) repeated.push(key);
    else keyOf.set(lower, key);
  }
  const shape = operation.shapes.find((candidate) => fits(candidate, keyOf)) ?? null;
  if (shape === null) return { keys, shape, sources: [], keyOf, unknown: [], repeated };
  const sources = shape.table.fields
    .filter((field) => field.from === 'answer')
    .map((field) => ({
      field,
      keys: [field.source, ...(field.orElse ?? [])].flatMap((name) => keyOf.get(name.toLowerCase()) ?? []),
    }));
  const known = new Set(
    sources.flatMap(({ field }) => [field.source, ...(field.orElse ?? [])]).map(lowerCase),
  );
  const unknown = [...keyOf].filter(([lower]) => !known.has(lower)).map(([, key]) => key);
  return { keys, shape, sources, keyOf, unknown, repeated };
}

function lowerCase(text: string): string {
  return text.toLowerCase();
}

function fits(shape: Shape, keyOf: ReadonlyMap<string, string>): boolean {
  const has = (name: string) => keyOf.has(name.toLowerCase());
  return shape.has.every(has) && (shape.hasOneOf?.some(has) ?? true);
}

/** Are these the names of a record of the operation? */
export function fitsAnyShape(operation: DataSet, names: readonly string[]): boolean {
  return layoutOf(operation, names).shape !== null;
}

/** Creates the function that finds the layout of each record of an answer. */
export function createLayouts(operation: DataSet): (record: object) => Layout {
  const known = new Map<string, Layout>();
  let last: Layout | null = null;
  return (record) => {
    if (last !== null && hasKeys(record, last.keys)) return last;
    const keys = Object.keys(record);
    const name = JSON.stringify(keys);
    let layout = known.get(name);
    if (layout === undefined) {
      layout = layoutOf(operation, keys);
      // An answer whose records all have different keys must not fill the memory with layouts.
      if (known.size < 1_000) known.set(name, layout);
    }
    last = layout;
    return layout;
  };
}

/** Are these the record's keys, in this order? Avoids `Object.keys`, which allocates a list per record. */
function hasKeys(record: object, keys: readonly string[]): boolean {
  let at = 0;
  for (const key in record) {
    if (key !== keys[at]) return false;
    at += 1;
  }
  return at === keys.length;
}
