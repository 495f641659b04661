import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fullYear, isDay, MONTHS } from '../../core/days.ts';
import { CODE } from '../../core/package-folders.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import type { FileFormat } from './file-format.ts';

const FOLDER = join(CODE, 'extract', 'files', 'formats');

/** The formats that a module declares, one or several. */
async function declaredIn(path: string): Promise<readonly FileFormat[]> {
  const module = (await import(pathToFileURL(path).href)) as {
    default: FileFormat | readonly FileFormat[];
  };
  return [module.default].flat();
}

/** Every format of the exchanges' files. */
export const FORMATS: readonly FileFormat[] = (
  await Promise.all(
    readdirSync(FOLDER)
      .filter((file) => /^[\w-]+\.(ts|js)$/.test(file))
      .sort()
      .map((file) => declaredIn(join(FOLDER, file))),
  )
).flat();

/** True if files of a known format have records of a data set. */
export const isInFiles = (name: string): boolean =>
  dataSetNamed(name).udiff !== undefined ||
  FORMATS.some(({ dataSet, also }) => dataSet === name || also?.dataSet === name);

/** A name of which only letters and digits count. */
const bareName = (name: string) => name.toLowerCase().replace(/[^a-z0-9]+/g, '');

/**
 * Finds the names of a header as they are spelled there: in any case, and if no name is so, with other spaces and marks.
 */
export function findNames(header: readonly string[]): (column: string) => string | undefined {
  const spelled = (name: string) => name.trim().replace(/\s+/g, ' ').toUpperCase();
  // Of a repeated name, the first column is read.
  const byName = new Map(header.map((name) => [spelled(name), name] as const).reverse());
  const byBareName = new Map(header.map((name) => [bareName(name), name] as const).reverse());
  return (column) => byName.get(spelled(column)) ?? byBareName.get(bareName(column));
}

/** How names of files write a day, also where marks are escaped; a name such as SUMMARY has two of its letters, too. */
const DAY = /(?:DD|YYYY|YY)(\\?[-_.])?(?:MMM|MM)\1(?:YYYY|YY|DD)/;
const DAYS = new RegExp(DAY, 'g');
const PARTS = /DD|MMM|MM|YYYY|YY/g;

/** Each part of a day, as it is found in a name, and as it is in an example. */
const IN_NAMES: Readonly<Record<string, readonly [pattern: string, example: string]>> = {
  DD: ['(?<day>\\d{2})', '07'],
  MM: ['(?<month>\\d{2})', '04'],
  MMM: ['(?<month>[A-Z]{3})', 'APR'],
  YY: ['(?<year>\\d{2})', '21'],
  YYYY: ['(?<year>\\d{4})', '2021'],
};

/**
 * An expression for the names of files of a format, whatever browsers and people make of them: `EQDDMMYY (1).CSV`, `Copy
 * of EQDDMMYY.CSV`. A day alone, and words without a day, have to be the whole name: names of other files contain them, too.
 */
function makePattern(file: string, dayPattern = (pattern: string) => pattern): RegExp {
  const words = file.replace(/\.\w+$/, '').replace(/[^\w]/g, '\\$&');
  const pattern = words.replace(DAYS, (day) =>
    day.replace(PARTS, (part) => dayPattern(IN_NAMES[part]?.[0] ?? '')),
  );
  const isWhole = words.replace(DAY, '') === '' || !DAY.test(words);
  return isWhole
    ? new RegExp(`^(?:copy of )?${pattern}(?: ?\\(\\d+\\)| - copy)?\\.[.a-z]+$`, 'gi')
    : new RegExp(`(?<![A-Z0-9])${pattern}(?![A-Z0-9])`, 'gi');
}

const lastName = (path: string) => path.split(/[\\/]/).at(-1) ?? '';

/** The day in the name of a file. Null if there is none, or several. */
export function dayInName(path: string, { files }: Pick<FileFormat, 'files'>): string | null {
  const days = files.flatMap((file) => {
    if (file.match(DAYS)?.length !== 1) return [];
    const matches = lastName(path).matchAll(makePattern(file));
    return [...matches].map(({ groups: { day = '', month = '', year = '' } = {} }) => {
      const monthNumber = MONTHS.indexOf(month.toLowerCase()) + 1;
      return `${fullYear(year)}-${monthNumber === 0 ? month : String(monthNumber).padStart(2, '0')}-${day}`;
    });
  });
  return new Set(days).size === 1 ? (days[0] ?? null) : null;
}

/** True if files of a known format are called so. */
export const isNameOfFormat = (path: string): boolean =>
  FORMATS.some(({ files }) =>
    files.some((file) =>
      makePattern(file, (pattern) => pattern.replace(/\?<\w+>/, '?:')).test(lastName(path)),
    ),
  );

/** The day that the name of a file gives to its rows, with the exchange; null if its rows have it, or an archive's names. */
export function dayOfName(path: string): { readonly exchange: string; readonly day: string } | null {
  if (/\.zip$/i.test(path)) return null;
  for (const format of FORMATS) {
    const day = format.day !== undefined && format.byTradingDay ? dayInName(path, format) : null;
    if (day !== null && isDay(day)) return { exchange: format.exchange ?? 'NSE', day };
  }
  return null;
}

/** A name of a file of a format. */
export const exampleName = ({ files }: FileFormat): string =>
  (files.at(-1) ?? '').replace(DAY, (day) => day.replace(PARTS, (part) => IN_NAMES[part]?.[1] ?? ''));

/**
 * The format that a header belongs to, of several the one that is recognized by most; undefined if it is of none. A
 * title distinguishes files of one header: without it, their name has to.
 */
export function findFormat(
  header: readonly string[],
  fileName: string,
  isTitled = false,
): FileFormat | undefined {
  const inName = fileName.toLowerCase();
  const isMarked = hasMarks(header);
  const fits = (format: FileFormat) =>
    isMarked(format) &&
    (format.wordInName === undefined || inName.includes(format.wordInName)) &&
    (format.title === undefined || isTitled || dayInName(fileName, format) !== null);
  const countSigns = ({ marks, wordInName }: FileFormat) => marks.length + (wordInName === undefined ? 0 : 2);
  return FORMATS.filter(fits).sort((a, b) => countSigns(b) - countSigns(a))[0];
}

/** What has to be in the name of a file of this header, one of them, because the header alone does not tell its format. */
export const wordsInNames = (header: readonly string[]): string[] => [
  ...new Set(FORMATS.filter(hasMarks(header)).flatMap(({ wordInName }) => wordInName ?? [])),
];

/** Whether a header has the columns by which a format is recognized. */
function hasMarks(header: readonly string[]): (format: FileFormat) => boolean {
  const nameOf = findNames(header);
  return ({ marks }) => marks.every((mark) => nameOf(mark) !== undefined);
}
