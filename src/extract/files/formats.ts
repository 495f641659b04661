import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fullYear, MONTHS } from '../../core/days.ts';
import { CODE } from '../../core/package-folders.ts';
import type { FileFormat } from '../../operations/file-format.ts';
import { ownFormats } from '../../operations/registry.ts';

/** Those of the catalogue are beside its operations, which a database need not have enabled. */
const FOLDERS = [join(CODE, 'extract', 'files', 'formats'), join(CODE, 'operations', 'catalogue', 'files')];

/** The formats that a module declares, one or several. */
async function declaredIn(path: string): Promise<readonly FileFormat[]> {
  const module = (await import(pathToFileURL(path).href)) as {
    default: FileFormat | readonly FileFormat[];
  };
  return [module.default].flat();
}

/** The formats that come with eod. */
export const FORMATS: readonly FileFormat[] = (
  await Promise.all(
    FOLDERS.flatMap((folder) =>
      readdirSync(folder)
        .filter((file) => /^[\w-]+\.(ts|js)$/.test(file))
        .sort()
        .map((file) => declaredIn(join(folder, file))),
    ),
  )
).flat();

/** Also those of the user's folder, which come first. */
export const allFormats = (): readonly FileFormat[] => [...ownFormats, ...FORMATS];

/** A name of which only letters and digits count. */
const bare = (name: string) => name.toLowerCase().replace(/[^a-z0-9]+/g, '');

/**
 * Finds the names of a header as they are spelled there: in any case, and if no name is so, with other spaces and marks.
 */
export function namesOf(header: readonly string[]): (column: string) => string | undefined {
  const spelled = (name: string) => name.trim().replace(/\s+/g, ' ').toUpperCase();
  // Of a repeated name, the first column is read.
  const byName = new Map(header.map((name) => [spelled(name), name] as const).reverse());
  const byBareName = new Map(header.map((name) => [bare(name), name] as const).reverse());
  return (column) => byName.get(spelled(column)) ?? byBareName.get(bare(column));
}

/** How the names of files write a day. */
const DAY_PARTS = /DD|MMM|MM|YYYY|YY/g;

const EXAMPLE_DAY: Readonly<Record<string, string>> = {
  DD: '07',
  MM: '04',
  MMM: 'APR',
  YY: '21',
  YYYY: '2021',
};

const PATTERNS: Readonly<Record<string, string>> = {
  DD: '(?<day>\\d{2})',
  MM: '(?<month>\\d{2})',
  MMM: '(?<month>[A-Z]{3})',
  YY: '(?<year>\\d{2})',
  YYYY: '(?<year>\\d{4})',
};

/**
 * The day in the name of a file, whatever browsers and people make of it, such as `EQDDMMYY (1).CSV` and `Copy of
 * EQDDMMYY.CSV`. Null if there is none, or several.
 */
export function dayInName(name: string, { files }: Pick<FileFormat, 'files'>): string | null {
  const inName = name.split(/[\\/]/).at(-1) ?? '';
  const days = files.flatMap((file) => {
    const pattern = file.replace(/\.\w+$/, '').replace(DAY_PARTS, (part) => PATTERNS[part] ?? '');
    const matches = inName.matchAll(new RegExp(`(?<![A-Z0-9])${pattern}(?![A-Z0-9])`, 'gi'));
    return [...matches].flatMap(({ groups = {} }) => {
      const { day, month = '', year = '' } = groups;
      if (day === undefined) return [];
      const named = MONTHS.indexOf(month.toLowerCase()) + 1;
      return `${fullYear(year)}-${named === 0 ? month : String(named).padStart(2, '0')}-${day}`;
    });
  });
  return new Set(days).size === 1 ? (days[0] ?? null) : null;
}

/** A name of a file of a format. */
export const exampleName = ({ files }: FileFormat): string =>
  (files.at(-1) ?? '').replace(DAY_PARTS, (part) => EXAMPLE_DAY[part] ?? '');

/**
 * The format that a header belongs to, of several the one that is recognized by most; undefined if it is of none. A
 * title distinguishes files of one header: without it, their name has to.
 */
export function formatOf(
  header: readonly string[],
  fileName: string,
  isTitled = false,
): FileFormat | undefined {
  const own = namesOf(header);
  const inName = fileName.toLowerCase();
  const isOf = (format: FileFormat) =>
    format.marks.every((mark) => own(mark) !== undefined) &&
    (format.named === undefined || inName.includes(format.named)) &&
    (format.title === undefined || isTitled || dayInName(fileName, format) !== null);
  const telling = ({ marks, named }: FileFormat) => marks.length + (named === undefined ? 0 : 2);
  return allFormats()
    .filter(isOf)
    .sort((a, b) => telling(b) - telling(a))[0];
}
