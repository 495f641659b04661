import type { AnswerField } from '../operations/fields.ts';
import type { DataSet, Shape } from '../operations/operation.ts';

/** Where one answer field finds its value in records that share a list of keys. */
interface FieldSource {
  readonly field: AnswerField;
  /** The record's own keys for it, in the order they are tried; most fields have one or none. */
  readonly keys: readonly string[];
}

/**
 * How records with one particular list of keys are read. Worked out once per distinct list, because
 * the records of an answer share theirs: no key is lower-cased per record.
 */
export interface Layout {
  readonly keys: readonly string[];
  /** Null when the keys fit none of the operation's shapes. */
  readonly shape: Shape | null;
  readonly sources: readonly FieldSource[];
  /** The record's key for each source name in lower case. */
  readonly keyOf: ReadonlyMap<string, string>;
  /** Keys no declared field of the shape matches. */
  readonly unknown: readonly string[];
  /** Keys that repeat an earlier one but for case; the earlier one counts. */
  readonly repeated: readonly string[];
}

/** Reads a list of keys: the shape they make, and which key carries which field. */
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

/** Do these names make up a record of the operation? */
export function fitsAnyShape(operation: DataSet, names: readonly string[]): boolean {
  return layoutOf(operation, names).shape !== null;
}

/** The function that finds the layout of each record of one answer. */
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
      // An answer whose records all differ must not fill the memory with layouts.
      if (known.size < 1_000) known.set(name, layout);
    }
    last = layout;
    return layout;
  };
}

/** Are these the record's keys, in this order? Asked without a list of its keys, which would be one for each record. */
function hasKeys(record: object, keys: readonly string[]): boolean {
  let at = 0;
  for (const key in record) {
    if (key !== keys[at]) return false;
    at += 1;
  }
  return at === keys.length;
}
