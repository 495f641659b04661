import type { Field } from '../operations/fields.ts';
import type { Row } from '../operations/table.ts';
import type { Layout } from './layout.ts';
import { readersOf } from './record-schema.ts';
import { InvalidValue, isBlank, type ValueReader, WHOLE_RANGES } from './values.ts';

/**
 * Reads a record whose keys are those of the layout; `known` has, by column, the values that do not come from the
 * record.
 *
 * @returns null if a value is not valid; then the zod schema says why.
 */
export type GeneratedReader = (
  record: Readonly<Record<string, unknown>>,
  known: Readonly<Record<string, unknown>>,
) => Row | null;

/** How many readers are kept, the newest ones; an operation has only one or two layouts. */
const MOST_READERS = 200;

const readers = new Map<string, GeneratedReader | null>();

/**
 * A reader for records of one layout, as generated code: it names each key and column, so that V8 remembers where each
 * property is, and all rows have the same hidden class. It converts values with the functions of the zod schema. Null
 * if a key cannot safely be part of code.
 */
export function generatedReader(layout: Layout, timeZone: string): GeneratedReader | null {
  if (layout.shape === null) return null;
  const { table } = layout.shape;
  const name = JSON.stringify([table.name, timeZone, layout.sources.map(({ keys }) => keys)]);
  let reader = readers.get(name);
  if (reader === undefined) {
    reader = generate(layout, table.fields, readersOf(table, timeZone));
    if (readers.size >= MOST_READERS) readers.delete(readers.keys().next().value as string);
    readers.set(name, reader);
  }
  return reader;
}

/** Only these keys may be part of code, because the source decides what they are. */
const PLAIN_KEY = /^[\w -]{1,100}$/;

function generate(
  layout: Layout,
  fields: readonly Field[],
  reads: ReadonlyMap<string, ValueReader>,
): GeneratedReader | null {
  const keysOf = new Map(layout.sources.map(({ field, keys }) => [field.column, keys]));
  if (![...keysOf.values()].flat().every((key) => PLAIN_KEY.test(key))) return null;
  const setUp = fields.map((_, at) => `const read${at} = reads[${at}]; let last${at} = reads, as${at};`);
  const steps = fields.map(
    (field, at) => `${takeValue(field, keysOf.get(field.column))}\n${readAs(field, at)}`,
  );
  const row = fields.map(({ column }, at) => `${JSON.stringify(column)}: value${at}`);
  const code = `${setUp.join('\n')}
    return (record, known) => {
      let sent;
      ${steps.join('\n')}
      return { ${row.join(', ')} };
    };`;
  const make = new Function('reads', 'InvalidValue', 'isBlank', code);
  return make(
    fields.map(({ column }) => reads.get(column)),
    InvalidValue,
    isBlank,
  ) as GeneratedReader;
}

/** Code that gets a field's value as sent. */
function takeValue({ column }: Field, keys: readonly string[] | undefined): string {
  if (keys === undefined) return `sent = known[${JSON.stringify(column)}];`;
  const [first, ...others] = keys.map((key) => `record[${JSON.stringify(key)}]`);
  return [`sent = ${first ?? null};`, ...others.map((other) => `if (isBlank(sent)) sent = ${other};`)].join(
    ' ',
  );
}

/** Longer texts are not remembered, because they would take up memory. */
const REMEMBERED_LENGTH = 64;

/** Code that converts the value: numbers are checked inline, other values compared with that of the record before. */
function readAs({ kind }: Field, at: number): string {
  const read = `value${at} = read${at}(sent); if (value${at} instanceof InvalidValue) return null;`;
  if (kind === 'numeric') {
    return `let value${at}; if (typeof sent === 'number' && sent - sent === 0) value${at} = sent + 0; else { ${read} }`;
  }
  const range = kind === 'int2' || kind === 'int4' || kind === 'int8' ? WHOLE_RANGES[kind] : null;
  if (range !== null) {
    return `let value${at}; if (typeof sent === 'number' && sent >= ${range.low} && sent <= ${range.high} && Math.floor(sent) === sent) value${at} = sent + 0; else { ${read} }`;
  }
  return `let value${at}; if (sent === last${at}) value${at} = as${at}; else { ${read}
    if (typeof sent !== 'string' || sent.length <= ${REMEMBERED_LENGTH}) { last${at} = sent; as${at} = value${at}; } }`;
}
