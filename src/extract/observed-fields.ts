import { type FieldType, plainName } from '../operations/fields.ts';
import { unsafeNumberText } from './decimals.ts';
import type { Layout } from './layout.ts';
import { printable, sanitizeRecord } from './sanitize.ts';
import type { ValueScanner } from './scanned-values.ts';
import { isBlank } from './values.ts';

/** The fields of a response with records, by name. */
export type ObservedFields = NonNullable<ReturnType<FieldObserver['finish']>>;

/** At most this many fields of a response are observed, so that no response can fill a table with names. */
const MOST_FIELDS = 300;
const LONGEST_NAME = 200;
const LONGEST_EXAMPLE = 100;

/**
 * Of a response, the values of so many records are looked at, and of one in so many after that: all would cost a tenth
 * of reading.
 */
const FIRST_RECORDS = 8;
const EVERY = 8;
const isLookedAt = (position: number): boolean => position < FIRST_RECORDS || position % EVERY === 0;

/** The bits of the types that the values of a field have. */
const BITS: Readonly<Record<Exclude<FieldType, 'mixed'>, number>> = {
  number: 1,
  digits: 2,
  text: 4,
  boolean: 8,
  list: 16,
  object: 32,
};

interface Field {
  readonly name: string;
  values: number;
  bits: number;
  example: string | null;
}

/** A number in a text. */
const NUMBER_TEXT = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;
/** What services send where they have no value. */
const NO_VALUE = /^[-.\s]*$/;

// Declared here as in json-values.ts, because V8 looks up an imported constant at every use.
const NULL = 0;
const WHOLE = 3;
const DECIMAL = 4;
const ZERO = 48;
const NINE = 57;
const BACKSLASH = 92;
const FIRST_BEYOND_ASCII = 128;

/**
 * Observes which fields the records of one response have: the names in all records, the values in some. The same
 * whether a record is parsed or scanned.
 */
export function createFieldObserver() {
  const fields = new Map<string, Field>();
  const ofLayouts = new Map<Layout, readonly Field[]>();
  /** Values that scanners have counted. */
  const scanned: { readonly all: readonly Field[]; readonly counts: Int32Array }[] = [];
  let position = 0;
  let records = 0;

  const fieldNamed = (name: string): Field => {
    const field = fields.get(name) ?? { name, values: 0, bits: 0, example: null };
    if (fields.size < MOST_FIELDS) fields.set(name, field);
    return field;
  };
  const fieldsOf = (layout: Layout): readonly Field[] => {
    const found = ofLayouts.get(layout) ?? layout.keys.map(fieldNamed);
    // As many as there are layouts at most, see `createLayouts`.
    if (ofLayouts.size < 1_000) ofLayouts.set(layout, found);
    return found;
  };

  return {
    /** Observes a record that was parsed. */
    add(layout: Layout, record: Readonly<Record<string, unknown>>): void {
      const all = fieldsOf(layout);
      if (!isLookedAt(position++)) return;
      records += 1;
      for (let at = 0; at < all.length; at++) addValue(all[at] as Field, record[(all[at] as Field).name]);
    },
    /**
     * Makes the function that observes the record which a scanner has found last.
     *
     * @param isText true if all values are texts, as those of CSV are.
     */
    ofScanned(body: Buffer, layout: Layout, values: ValueScanner, isText: boolean): () => void {
      const all = fieldsOf(layout);
      const { types, froms, tos } = values;
      const numberBit = isText ? BITS.digits : BITS.number;
      // By position: 1 if it is known that the field has numbers, or texts. Then another one is counted only.
      const hasNumbers = new Uint8Array(all.length);
      const hasTexts = new Uint8Array(all.length);
      const counts = new Int32Array(all.length);
      scanned.push({ all, counts });
      const addScanned = (at: number) => {
        const field = all[at] as Field;
        addValue(field, values.parse(types[at] as number, froms[at] as number, tos[at] as number));
        hasNumbers[at] = field.bits & numberBit;
        hasTexts[at] = field.bits & BITS.text;
      };
      return () => {
        if (!isLookedAt(position++)) return;
        records += 1;
        for (let at = 0; at < types.length; at++) {
          const type = types[at] as number;
          if (type === NULL) continue;
          if (type >= WHOLE) {
            if (type <= DECIMAL && hasNumbers[at] !== 0) counts[at] = (counts[at] as number) + 1;
            else addScanned(at);
            continue;
          }
          const from = froms[at] as number;
          if (from === tos[at]) continue;
          const first = body[from] as number;
          // Beginning with a letter or digit, so it is not blank.
          if (hasTexts[at] !== 0 && first >= ZERO && first < FIRST_BEYOND_ASCII && first !== BACKSLASH)
            counts[at] = (counts[at] as number) + 1;
          else addScanned(at);
        }
      };
    },
    /** What was observed, in how many records that were looked at; undefined if the response has none. */
    finish() {
      if (records === 0) return undefined;
      for (const { all, counts } of scanned.splice(0))
        for (const [at, field] of all.entries()) field.values += counts[at] as number;
      const observed = [...fields.values()].map(({ name, values, bits, example }) => ({
        /** The name as it was sent, and as names are compared. */
        name: printable(name.slice(0, LONGEST_NAME)),
        plain: printable(plainName(name).slice(0, LONGEST_NAME)),
        /** Null if no record has a value. */
        type: typeOf(bits),
        /** The first value, shortened; null if there is none. */
        example,
        /** How many of the records that were looked at have a value. */
        values,
      }));
      // `records` were looked at.
      return { records, fields: observed.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name))) };
    },
  };
}

export type FieldObserver = ReturnType<typeof createFieldObserver>;

function addValue(field: Field, value: unknown): void {
  if (isBlank(value)) return;
  let bit: number = BITS.text;
  if (typeof value === 'number') bit = BITS.number;
  else if (typeof value === 'boolean') bit = BITS.boolean;
  else if (Array.isArray(value)) bit = BITS.list;
  else if (typeof value === 'object') bit = BITS.object;
  else if (typeof value === 'string') {
    const first = value.charCodeAt(0);

    if (first <= NINE || first >= FIRST_BEYOND_ASCII) {
      const text = value.trim();
      if (unsafeNumberText(value) !== null) bit = BITS.number;
      else if (NO_VALUE.test(text)) return;
      else if (NUMBER_TEXT.test(text)) bit = BITS.digits;
    }
  }
  field.values += 1;
  field.bits |= bit;
  field.example ??= exampleOf(value);
}

function exampleOf(value: unknown): string {
  const text =
    typeof value === 'object'
      ? JSON.stringify(sanitizeRecord(value))
      : (unsafeNumberText(value) ?? String(value));
  return printable(text.trim().slice(0, LONGEST_EXAMPLE));
}

/** The one type of values of these types. Digits are a number where others are, and a text where others are. */
function typeOf(bits: number): FieldType | null {
  const others = bits & ~BITS.digits;
  const kept = others === 0 ? bits : others;
  for (const [type, bit] of Object.entries(BITS)) if (kept === bit) return type as keyof typeof BITS;
  return kept === 0 ? null : 'mixed';
}
