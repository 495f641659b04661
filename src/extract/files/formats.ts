import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CODE } from '../../core/package-folders.ts';
import type { FileFormat } from '../../operations/file-format.ts';

const FOLDER = join(CODE, 'extract', 'files', 'formats');

/** The formats that come with eod: those that the files of a folder declare, one or several each. */
export const FORMATS: readonly FileFormat[] = (
  await Promise.all(
    readdirSync(FOLDER)
      .filter((file) => /^[\w-]+\.(ts|js)$/.test(file))
      .sort()
      .map(async (file) => {
        const { default: declared } = (await import(pathToFileURL(join(FOLDER, file)).href)) as {
          default: FileFormat | readonly FileFormat[];
        };
        return declared;
      }),
  )
).flat();

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

/** The format that a header belongs to, of several the one that is recognized by most; undefined if it is of none. */
export function formatOf(header: readonly string[], fileName: string): FileFormat | undefined {
  const own = namesOf(header);
  const inName = fileName.toLowerCase();
  const isOf = ({ marks, named }: FileFormat) =>
    marks.every((mark) => own(mark) !== undefined) && (named === undefined || inName.includes(named));
  const telling = ({ marks, named }: FileFormat) => marks.length + (named === undefined ? 0 : 1);
  return FORMATS.filter(isOf).sort((a, b) => telling(b) - telling(a))[0];
}
