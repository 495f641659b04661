import type { Field } from '../operations/fields.ts';
import type { Row } from '../operations/table.ts';
import type { Layout } from './layout.ts';
import { readersOf } from './record-schema.ts';
import { InvalidValue, isBlank, type ValueReader, WHOLE_RANGES } from './values.ts';

/**
 * Reads a record whose keys are those of the layout; `known` holds, by column, what does not come from the record.
 *
 * @returns null where a value is not valid: the zod schema says why.
 */
export type GeneratedReader = (
  record: Readonly<Record<string, unknown>>,
  known: Readonly<Record<string, unknown>>,
) => Row | null;

/** Readers that are kept, the newest of them: an operation has one or two ways to write its records. */
const MOST_READERS = 200;

const readers = new Map<string, GeneratedReader | null>();

/**
 * A reader for records of one layout, as code of its own: each key and column stands in it by name, so that V8
 * finds them where they were in the record before, and every row has the same hidden class. Its values come from
 * the functions the zod schema is made of. Null where a key would not be plain in code.
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

/** Only such keys get into code: the source decides what they are. */
const PLAIN_KEY = /^\w{1,100}$/;

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

/** Code that takes a field's value as sent. */
function takeValue({ column }: Field, keys: readonly string[] | undefined): string {
  if (keys === undefined) return `sent = known[${JSON.stringify(column)}];`;
  const [first, ...others] = keys.map((key) => `record[${JSON.stringify(key)}]`);
  return [`sent = ${first ?? null};`, ...others.map((other) => `if (isBlank(sent)) sent = ${other};`)].join(
    ' ',
  );
}

/** Longer texts are not remembered, since they would hold on to memory. */
const REMEMBERED_LENGTH = 64;

/** Code that reads the value: numbers are looked at in place, others compared with the one of the record before. */
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
