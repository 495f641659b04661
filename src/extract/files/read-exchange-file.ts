import { isPipelineError, messageOf, type PipelineError } from '../../core/errors.ts';
import { rowsOf } from '../../declaration/rows.ts';
import { bhavcopy } from '../../operations/GetBhavCopyCM.ts';
import { badFile } from '../diagnostics.ts';
import { checkTurnover } from './check-turnover.ts';
import { isNameOfFormat } from './formats.ts';
import { type FilePart, readCsvFile } from './read-file.ts';
import { gunzipFile, isGzip, isZip, newUnpackLimit, type UnpackLimit, unzip } from './unpack.ts';

/** What is not read, by its first bytes or, of a tar archive, by those from an offset on. */
const OTHER_KINDS: readonly (readonly [kind: string, magic: string, at?: number])[] = [
  ['compressed with xz', '\xfd7zXZ'],
  ['compressed with bzip2', 'BZh'],
  ['compressed with zstd', '\x28\xb5\x2f\xfd'],
  ['a 7z archive', '7z\xbc\xaf'],
  ['a rar archive', 'Rar!'],
  ['a tar archive', 'ustar', 257],
  ['a PDF', '%PDF'],
  ['an Excel workbook (.xls)', '\xd0\xcf\x11\xe0'],
];

/** @throws PipelineError `unreadable` that names what the bytes are, if they are of a kind that is not read. */
function refuseOtherKinds(bytes: Buffer): void {
  for (const [kind, magic, at = 0] of OTHER_KINDS) {
    if (bytes.toString('latin1', at, at + magic.length) === magic)
      throw badFile(`is ${kind}, which is not read; unpack it, or save it as CSV`);
  }
}

/** Documents of office programs are zip archives that have such a file. */
const OF_DOCUMENTS = /^(?:xl|word)\/|^content\.xml$/;

/** Refuses an archive of which no file can be read. @throws PipelineError `unreadable` that says what it is instead. */
function refuseArchive(names: readonly string[]): never {
  if (names.some((name) => OF_DOCUMENTS.test(name)))
    throw badFile('is an Excel, Word or OpenDocument file, which is not read; save it as CSV');
  const [first] = names;
  const others =
    first === undefined
      ? 'it is empty'
      : `it has ${first.slice(0, 80)}${names.length > 1 ? ' and others' : ''}`;
  throw badFile(`the zip archive contains no .csv or .dat file: ${others}`);
}

/** A file of unknown form in an archive that has others. */
export interface UnknownFile {
  /** Its path in the archive. */
  readonly file: string;
  /** How its header begins, or its segment. */
  readonly form: string;
}

/**
 * Reads a file of an exchange, which gzip may have compressed, or a zip archive of such files. Its parts follow
 * from the rows, or from its name if the format has no date. A broken file is not read in part.
 *
 * @param leaveOut called for each file of unknown form in an archive that has others.
 * @throws PipelineError `unreadable` that says what is wrong with the file.
 */
export async function readExchangeFile(
  name: string,
  bytes: Buffer,
  timeZone: string,
  limit = newUnpackLimit(),
  leaveOut: ReadOptions['leaveOut'] = () => undefined,
): Promise<FilePart[]> {
  return readContent(name, bytes, { timeZone, limit, leaveOut, archives: 0 });
}

interface ReadOptions {
  readonly timeZone: string;
  readonly limit: UnpackLimit;
  readonly leaveOut: (unknown: UnknownFile) => void;
  /** How many archives are around it. */
  readonly archives: number;
}

/** NSE's downloads of several reports are archives that contain archives. */
const MAX_ARCHIVES = 2;

/** Reads a file, or what an archive or gzip data contains. A file with the name of a known format has to be of one. */
async function readContent(name: string, bytes: Buffer, options: ReadOptions): Promise<FilePart[]> {
  try {
    return await readUnnamed(name, bytes, options);
  } catch (error) {
    if (!isPipelineError(error, 'unreadable') || error.unknownForm === undefined || !isNameOfFormat(name))
      throw error;
    throw badFile(`${error.message}, though its name is that of a file that is read`, { cause: error });
  }
}

async function readUnnamed(name: string, bytes: Buffer, options: ReadOptions): Promise<FilePart[]> {
  const isCompressed = isGzip(bytes);
  const data = isCompressed ? await gunzipFile(bytes, options.limit) : bytes;
  if (!isZip(data)) {
    if (isGzip(data)) throw badFile('is compressed with gzip more than once; unpack it');
    refuseOtherKinds(data);
    const parts = readCsvFile(isCompressed ? name.replace(/\.gz$/i, '') : name, data, options.timeZone);
    checkTurnover(parts.map((part) => rowsOf(part, bhavcopy) ?? []));
    return parts;
  }
  if (options.archives === MAX_ARCHIVES)
    throw badFile('is an archive within two others; unpack the outer ones');
  return readArchive(data, { ...options, archives: options.archives + 1 });
}

async function readArchive(bytes: Buffer, options: ReadOptions): Promise<FilePart[]> {
  const parts: FilePart[] = [];
  const names: string[] = [];
  const isWanted = (name: string) => {
    names.push(name);
    return isImportName(name);
  };
  const unknown: UnknownFile[] = [];
  let firstUnknown: PipelineError | undefined;
  for await (const { name, data } of unzip(bytes, isWanted, options.limit)) {
    const leaveOut = ({ file, form }: UnknownFile) => unknown.push({ file: `${name}/${file}`, form });
    try {
      for (const part of await readContent(name, data, { ...options, leaveOut })) parts.push(part);
    } catch (error) {
      const { unknownForm } = isPipelineError(error, 'unreadable') ? error : {};
      const bad = badFile(`${name} in it: ${messageOf(error)}`, { cause: error, unknownForm });
      // NSE's daily archive has many reports; unknown ones must not prevent the others from being read.
      if (unknownForm === undefined) throw bad;
      firstUnknown ??= bad;
      unknown.push({ file: name, form: unknownForm });
    }
  }
  if (!names.some(isImportName)) refuseArchive(names);
  if (parts.length === 0 && firstUnknown !== undefined) throw firstUnknown;
  unknown.forEach(options.leaveOut);
  return parts;
}

/**
 * True if a file of this name can be imported. Hidden files cannot, nor the files that macOS adds to archives
 * (`._x.csv`, `__MACOSX/…`).
 */
export function isImportName(path: string): boolean {
  return (
    /(?:^|[\\/])[^.\\/][^\\/]*\.(?:csv|dat|json|zip)(?:\.gz)?$/i.test(path) &&
    !/(?:^|[\\/])__MACOSX[\\/]/.test(path)
  );
}
