import { numberWithoutCommas } from '../../operations/fields.ts';
import { decodeText } from '../body.ts';
import { readHeader } from '../csv.ts';
import { fileDay } from '../files/file-columns.ts';
import { type DraftInput, guessKey, keyReason, listText, partsOf, quoted, tableName } from './draft.ts';
import { guessColumns, type SavedRecord } from './guess-columns.ts';

/** How a day may be written in the name of a file, with what the declaration writes instead; the first that fits. */
const DAYS_IN_NAMES: readonly (readonly [RegExp, string])[] = [
  [/\d{2}[a-z]{3}\d{4}/i, 'DDMMMYYYY'],
  [/\d{2}-[a-z]{3}-\d{4}/i, 'DD-MMM-YYYY'],
  [/\d{4}-\d{2}-\d{2}/, 'YYYY-MM-DD'],
  [/\d{2}-\d{2}-\d{4}/, 'DD-MM-YYYY'],
  [/20\d{6}/, 'YYYYMMDD'],
  [/\d{8}/, 'DDMMYYYY'],
  [/\d{6}/, 'DDMMYY'],
];

/** The name of files like this one, whose day is another: `weekly_01092025.csv` is `weekly_DDMMYYYY.csv`. */
export function patternOf(fileName: string): string {
  const found = DAYS_IN_NAMES.find(([pattern]) => pattern.test(fileName));
  return found === undefined ? fileName : fileName.replace(found[0], found[1]);
}

/** How many titles and notes, lines of one cell, stand before the header of a file. */
export function linesBeforeHeader(body: Buffer): number {
  const lines = decodeText(body).split(/\r\n?|\n/, 10);
  const isHeader = (line: string) => readHeader(`${line}\n`).filter((name) => name !== '').length > 1;
  return Math.max(0, lines.findIndex(isHeader));
}

/** Days and numbers of a file as they are read; other values stay. */
const asRead = (record: SavedRecord): SavedRecord =>
  Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name,
      typeof value === 'string' ? numberWithoutCommas(fileDay(value.trim())) : value,
    ]),
  );

/** Writes the text of a module that declares a format of files and its table; what is guessed says so (pure). */
export function draftFormat(input: DraftInput & { readonly fileName: string }): string {
  const { name, records, fileName } = input;
  const guessed = guessColumns(records.map(asRead), { ...input, taken: [] });
  const { columns } = guessed;
  const key = guessKey(columns, records.length, false);
  const pattern = patternOf(fileName);
  const isDated = key.day !== null;
  const isNamed = !isDated && pattern !== fileName;
  const parts = partsOf(guessed, key, {
    keyNames: isNamed ? ['trade_date'] : [],
    fields: isNamed ? ["date('day', 'trade_date', 'Day in the name of the file.', { required: true }),"] : [],
    makers: ['defineFileSet', 'defineFormat', 'defineTable', ...(isNamed ? ['date'] : [])],
    whyCounted: 'equal records are counted',
  });
  const header = Object.keys(records[0] ?? {}).filter((column) => column.trim() !== '');
  return `// @ts-check
import { ${parts.makers} } from 'eod-pipeline/operations';

// What was inferred from ${records.length === 1 ? 'one row' : `${records.length} rows`} is marked "guessed": correct it, and remove the mark.
const table = defineTable({
  name: ${quoted(tableName(name, input.taken))}, // guessed: from the name
  comment: ${quoted(`Rows of ${pattern}.`)}, // guessed: say what a row is
  key: [${parts.keyNames}], // guessed: ${keyReason(key, records.length, false)}
  fields: [
${parts.fields}
  ],
});

export default defineFormat({
  name: ${quoted(name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '-').toLowerCase())},
  files: [${quoted(pattern)}], // guessed: what such files are called, with DD, MM, MMM, YY and YYYY for the day
  // guessed: for a table that there is already, the name of its data set, such as 'GetSeriesChange'
  dataSet: defineFileSet({
    name: ${quoted(name)},
    summary: ${quoted(`Rows of ${pattern}`)}, // guessed: say what the rows are
    shapes: [{ table, has: [${listText(columns.slice(0, 1).map(({ source }) => source))}], dated: ${isDated || isNamed}, fullSet: 'none' }],
  }),
  exchange: 'NSE', // guessed: the exchange that publishes it
  marks: [${listText(header)}], // guessed: the columns by which a header is recognized
  columns: {
${columns.map(({ source }) => `    ${quoted(source)}: ${quoted(source)},`).join('\n')}
  },
  bySession: ${isDated || isNamed}, // guessed: true if the rows are about sessions, which are stored one by one${isNamed ? "\n  day: { field: 'day' }," : ''}
});
`;
}
