import { basename } from 'node:path';
import { fullYear, isDay, MONTHS } from './days.ts';

/** Where a file stands among the files of its trading day, or a list among all lists. */
export interface FileOrder {
  /** Of its format; null for a list. */
  readonly rank: number | null;
  /** The last day in its name; of a list only a single one, because two are a range. Empty if there is none. */
  readonly day: string;
  /** Its name in lower case, without ending and number. */
  readonly name: string;
  /** Which download of that name it is: browsers save the second one as `X (1).csv`. */
  readonly download: number;
}

/**
 * Shows whether a file comes before another one of the same trading day, so that the other one is used where they
 * differ: by the rank, by the day in the name, and of downloads of the same name by their number. Otherwise nothing
 * decides, and the one that is imported later is used.
 */
export function comesBefore(file: FileOrder, other: FileOrder): boolean {
  if (file.rank !== other.rank) return (file.rank ?? 0) < (other.rank ?? 0);
  if (file.day !== other.day) return file.day !== '' && other.day !== '' && file.day < other.day;
  return file.name === other.name && file.download < other.download;
}

/**
 * The order of a file.
 *
 * @param name of the CSV file, which may be in an archive.
 * @param path of the archive or, without one, of the file.
 */
export function fileOrder(rank: number | null, name: string, path: string): FileOrder {
  const parts = partsOfName(name);
  return {
    rank,
    ...parts,
    day: rank === null ? (onlyDayIn(name) ?? '') : parts.day,
    download: parts.download || partsOfName(path).download,
  };
}

/** Sorts paths by the day in their names (those without one come first), then by name and number of the download. */
export function compareNames(a: string, b: string): number {
  const [partsOfA, partsOfB] = [partsOfName(a), partsOfName(b)];
  const compared = (left: string, right: string) => (left < right ? -1 : left > right ? 1 : 0);
  return (
    compared(partsOfA.day, partsOfB.day) ||
    compared(partsOfA.name, partsOfB.name) ||
    partsOfA.download - partsOfB.download ||
    compared(a, b)
  );
}

function partsOfName(path: string): Omit<FileOrder, 'rank'> {
  const whole = basename(path)
    .toLowerCase()
    .replace(/(?:\.(?:csv|dat|zip|gz))+$/, '');
  const [, name = whole, download = '0'] = /^(.*?)\s*\((\d{1,4})\)$/.exec(whole) ?? [];
  return { day: daysIn(name).at(-1) ?? '', name, download: Number(download) };
}

/** `YYYYMMDD`, or `DDMMYYYY`, `DDMMMYYYY` and the same with a year of two digits; each also with separators, the first with a time. */
const DAYS =
  /(?<!\d)(?:((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?:[-_t]?(?:[01]\d|2[0-3])(?:[0-5]\d){2})?|(0[1-9]|[12]\d|3[01])[-_.]?(0[1-9]|1[0-2]|[a-z]{3})[-_.]?((?:19|20)\d\d|\d\d))(?!\d)/g;

/** The day in the name of a file; null if there is none, or several. */
export function onlyDayIn(name: string): string | null {
  const [day = null, ...others] = new Set(daysIn(basename(name).toLowerCase()));
  return others.length === 0 ? day : null;
}

function daysIn(name: string): string[] {
  return [...name.matchAll(DAYS)].flatMap(([, y1, m1, d1, d2, m2, y2]) => {
    const monthNumber = MONTHS.indexOf(m2 ?? '') + 1;
    const month = monthNumber === 0 ? (m1 ?? m2) : String(monthNumber).padStart(2, '0');
    const day = `${fullYear(y1 ?? y2 ?? '')}-${month}-${d1 ?? d2}`;
    return isDay(day) ? [day] : [];
  });
}
