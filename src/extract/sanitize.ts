import { readMarkedNumber } from '../declaration/decimals.ts';

const MAX_STRING = 2_000;
const MAX_DEPTH = 20;
const MAX_ENTRIES = 200;
/** The most bytes of JSON of a copy, less some for the notes about what was left out. */
const MAX_BYTES = 64 * 1024 - 4 * 1024;

/**
 * A copy of a rejected record that jsonb can store: NUL and halves of surrogate pairs are escaped, strings are cut
 * after 2,000 characters, and there are at most 200 entries per level, 20 levels and 64 KB in all. A note replaces what
 * is left out. Keys become own properties, `__proto__` as well.
 */
export function sanitizeRecord(record: unknown): unknown {
  return copy(record, 1, { bytes: MAX_BYTES });
}

function copy(value: unknown, depth: number, budget: { bytes: number }): unknown {
  if (typeof value === 'string') return spend(printable(readMarkedNumber(value) ?? value), budget);
  if (typeof value !== 'object' || value === null) {
    budget.bytes -= 26;
    return value ?? null;
  }
  if (depth > MAX_DEPTH) return `… nested deeper than ${MAX_DEPTH} levels`;
  return Array.isArray(value) ? copyList(value, depth, budget) : copyObject(value, depth, budget);
}

function copyList(list: readonly unknown[], depth: number, budget: { bytes: number }): unknown[] {
  const copies: unknown[] = [];
  budget.bytes -= 2;
  for (const item of list) {
    if (copies.length === MAX_ENTRIES || budget.bytes < 64) {
      copies.push(`… ${list.length - copies.length} more`);
      break;
    }
    copies.push(copy(item, depth + 1, budget));
  }
  return copies;
}

function copyObject(value: object, depth: number, budget: { bytes: number }): object {
  const entries: [string, unknown][] = [];
  const keys = Object.keys(value);
  budget.bytes -= 2;
  for (const key of keys) {
    if (entries.length === MAX_ENTRIES || budget.bytes < 64) {
      entries.push(['…', `${keys.length - entries.length} more`]);
      break;
    }
    const name = spend(printable(key), budget);
    entries.push([name, copy(Reflect.get(value, key), depth + 1, budget)]);
  }
  return Object.fromEntries(entries);
}

/** The text, or a note if the budget does not allow it. */
function spend(text: string, budget: { bytes: number }): string {
  const size = Buffer.byteLength(JSON.stringify(text)) + 2;
  if (size <= budget.bytes) {
    budget.bytes -= size;
    return text;
  }
  budget.bytes = 0;
  return '… left out: the record is too large to keep in full';
}

/** The text, cut to a length, with the characters that jsonb cannot store escaped. */
export function printable(text: string): string {
  const kept = text.length > MAX_STRING ? `${text.slice(0, MAX_STRING)}… (${text.length} characters)` : text;
  return kept.replace(
    /[\0\p{Surrogate}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
