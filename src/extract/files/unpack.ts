import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { crc32, gunzip } from 'node:zlib';
import { type Entry, fromBufferPromise, getFileNameLowLevel } from 'yauzl';
import { isPipelineError, messageOf, PipelineError } from '../../core/errors.ts';
import { escapeName, plural } from '../../core/wording.ts';
import { rowsOf } from '../../declaration/rows.ts';
import type { RowOf, Scalar } from '../../declaration/table.ts';
import { bhavcopy } from '../../operations/GetBhavCopyCM.ts';
import { badFile } from '../diagnostics.ts';
import { isNameOfFormat } from './formats.ts';
import { type FilePart, readCsvFile } from './read-file.ts';

/** A file inside an archive. Its name is only ever shown (`escapeName`), never used as a path. */
interface ZipEntry {
  readonly name: string;
  readonly data: Buffer;
}

/** How much may still be read of one file, including what archives inside it unpack to. */
export interface UnpackLimit {
  bytes: number;
  entries: number;
  /** Becomes true when the file turns out to need more bytes. */
  isExceeded?: boolean;
}

/** The most bytes that are read of one file, and of all files that are worked on at once: a year of bhav copies fits. */
export const MOST_BYTES = 512 * 1024 * 1024;

/** The limits of a file: a year of bhav copies fits, a zip bomb does not. */
export function newUnpackLimit(bytes = MOST_BYTES): UnpackLimit {
  return { bytes, entries: 10_000 };
}

/** Takes bytes from a limit. @throws PipelineError `unreadable` if there are not so many, before any of them is read. */
export function takeBytes(limit: UnpackLimit, bytes: number, problem: string): void {
  if (bytes > limit.bytes) {
    limit.isExceeded = true;
    throw badFile(problem);
  }
  limit.bytes -= bytes;
}

const LOCAL_HEADER = Buffer.from('PK\x03\x04');
const END_OF_DIRECTORY = Buffer.from('PK\x05\x06');
const STORED = 0;
const DEFLATED = 8;

/** True if these bytes begin like a zip archive. */
export function isZip(bytes: Buffer): boolean {
  const start = bytes.subarray(0, 4);
  return start.equals(LOCAL_HEADER) || start.equals(END_OF_DIRECTORY);
}

/**
 * Unpacks the entries of a zip archive whose names are `wanted`, one after the other: stored and deflated ones without
 * encryption, also of zip64 archives. Subtracts what was unpacked from `limit`.
 *
 * @throws PipelineError `unreadable` for any other entry, for broken or truncated archives, and beyond the limit.
 */
export async function* unzip(
  bytes: Buffer,
  wanted: (name: string) => boolean,
  limit = newUnpackLimit(),
): AsyncGenerator<ZipEntry> {
  // Names are read as bytes, because yauzl would reject an archive with a name that is not a safe path.
  const options = { lazyEntries: true, decodeStrings: false };
  const archive = await fromBufferPromise(bytes, options).catch((error: unknown) => {
    if (bytes.includes(END_OF_DIRECTORY)) return broken(error);
    throw badFile('the zip archive is cut short: its directory is missing');
  });
  limit.entries -= archive.entryCount;
  if (limit.entries < 0) throw badFile('the zip archive has too many entries');
  const entries = archive.eachEntry();
  for (;;) {
    const { value: entry, done } = await entries.next().catch(broken);
    if (done === true) return;
    const name = escapeName(
      getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, false),
    );
    if (!wanted(name)) continue;
    checkEntry(name, entry, limit);
    const stream = await archive.openReadStreamPromise(entry).catch(broken);
    const data = await collect(stream, entry.uncompressedSize).catch(broken);
    if (crc32(data) !== entry.crc32) throw badFile(`the zip archive is broken: wrong checksum of ${name}`);
    yield { name, data };
  }
}

function checkEntry(name: string, entry: Entry, limit: UnpackLimit): void {
  if (entry.isEncrypted()) throw badFile(`${name} in the zip archive is encrypted`);
  const { compressionMethod: method, uncompressedSize } = entry;
  if (method !== STORED && method !== DEFLATED) {
    throw badFile(`${name} in the zip archive is compressed with an unknown method (${method})`);
  }
  takeBytes(limit, uncompressedSize, `the zip archive unpacks to more than may be read, at ${name}`);
}

/** Collects an entry. yauzl fails if its size is not the one in the archive's directory. */
async function collect(stream: Readable, size: number): Promise<Buffer> {
  // Into one buffer: chunks that are joined in the end would take the memory twice.
  const data = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for await (const chunk of stream) at += (chunk as Buffer).copy(data, at);
  return data;
}

function broken(error: unknown): never {
  if (error instanceof PipelineError) throw error;
  throw badFile(`the zip archive is broken: ${messageOf(error)}`, { cause: error });
}

/** What users have beside .csv, .dat and .zip, by its first bytes, or those from an offset on. */
const OTHER_CONTAINERS: readonly { at?: number; magic: Buffer; form: string; remedy: string }[] = [
  {
    magic: Buffer.from('\xfd7zXZ\0', 'latin1'),
    form: 'compressed with xz',
    remedy: 'unpack it: a .tar.xz with tar -xJf, an .xz with unxz',
  },
  {
    magic: Buffer.from('BZh'),
    form: 'compressed with bzip2',
    remedy: 'unpack it: a .tar.bz2 with tar -xjf, a .bz2 with bunzip2',
  },
  {
    magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]),
    form: 'compressed with zstd',
    remedy: 'unpack it with unzstd',
  },
  { magic: Buffer.from("7z\xbc\xaf'\x1c", 'latin1'), form: 'a 7z archive', remedy: 'unpack it' },
  { magic: Buffer.from('Rar!'), form: 'a rar archive', remedy: 'unpack it' },
  {
    at: 257,
    magic: Buffer.from('ustar'),
    form: 'a tar archive',
    remedy: 'unpack it with tar -xf, and import the folder',
  },
  { magic: Buffer.from('%PDF'), form: 'a PDF', remedy: 'import the CSV of the same data' },
  {
    magic: Buffer.from([0xd0, 0xcf, 0x11, 0xe0]),
    form: 'an Excel workbook (.xls)',
    remedy: 'save it as CSV',
  },
];

/** Documents that are zip archives themselves, by a file in them. */
const DOCUMENTS: readonly (readonly [entry: string, form: string])[] = [
  ['xl/workbook.xml', 'an Excel workbook (.xlsx)'],
  ['xl/workbook.bin', 'an Excel workbook (.xlsb)'],
  ['content.xml', 'an OpenDocument file (.ods)'],
  ['word/document.xml', 'a Word document (.docx)'],
];

/** Refuses an archive of which no file can be read. @throws PipelineError `unreadable` that says what it is instead. */
function refuseArchive(names: readonly string[]): never {
  const document = DOCUMENTS.find(([entry]) => names.includes(entry));
  if (document !== undefined) throw badFile(`is ${document[1]}, which is not read; save it as CSV`);
  const [first] = names;
  const others =
    first === undefined
      ? 'it is empty'
      : `it has ${first.slice(0, 80)}${names.length > 1 ? ' and others' : ''}`;
  throw badFile(`the zip archive contains no .csv or .dat file: ${others}`);
}

/** @throws PipelineError `unreadable` that names what the bytes are, if they are of a kind that is not read. */
function refuseOtherContainers(bytes: Buffer): void {
  const other = OTHER_CONTAINERS.find(({ at = 0, magic }) =>
    bytes.subarray(at, at + magic.length).equals(magic),
  );
  if (other !== undefined) throw badFile(`is ${other.form}, which is not read; ${other.remedy}`);
}

const decompress = promisify(gunzip);

const FIRST_BYTES = Buffer.from([0x1f, 0x8b]);

const TOO_LARGE = 'the gzip data unpacks to more than may be read';

/** True if these bytes begin like gzip data. */
function isGzip(bytes: Buffer): boolean {
  return bytes.subarray(0, FIRST_BYTES.length).equals(FIRST_BYTES);
}

/**
 * Decompresses gzip data. Subtracts what was unpacked from `limit`.
 *
 * @throws PipelineError `unreadable` if the data is broken or cut short, and beyond the limit.
 */
async function gunzipFile(bytes: Buffer, limit: UnpackLimit): Promise<Buffer> {
  const data = await decompress(bytes, { maxOutputLength: Math.max(1, limit.bytes) }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_BUFFER_TOO_LARGE') takeBytes(limit, Infinity, TOO_LARGE);
      throw badFile(`the gzip data is broken or cut short: ${messageOf(error)}`, { cause: error });
    },
  );
  takeBytes(limit, data.length, TOO_LARGE);
  return data;
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
    refuseOtherContainers(data);
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

/** So many rows with a trade are looked at first: nearly always they show that all is well. */
const FIRST_ROWS = 100;

/** From so many rows on it is certain that a file is wrong; of fewer, each may be an error of its own. */
const FEWEST_ROWS = 3;

/** The share of rows that have to agree: some securities are quoted in percent of a face value. */
const NEARLY_ALL = 0.9;

/** An average price is far outside of lowest and highest price if it differs from them by this factor. */
const FAR = 10;

/** Turnovers in larger units have two decimals. */
const ROUNDED_BY = 0.005;

/** What the turnover seems to be in, by the power of ten by which it is too small. */
const UNITS: Readonly<Record<number, string>> = {
  3: 'thousands of rupees',
  5: 'lakhs of rupees',
  6: 'millions of rupees',
  7: 'crores of rupees',
  [-2]: 'paise',
};

/** The rows of a part of a bhav copy of shares. */
type Prices = readonly RowOf<typeof bhavcopy>[];

/**
 * Makes sure that the turnover of bhav copies of shares is in rupees. Unlike that of derivatives it is quantity times
 * price: turnover divided by quantity is the average price, and lies between the lowest and the highest. Some programs
 * save files of NSE with a turnover in lakhs under the name of the column in rupees.
 *
 * @param parts the rows of each part of a file.
 * @throws PipelineError `unreadable` with the factor, if nearly all rows with a trade, of a trading day or of the whole
 *   file, are far from that; in a file of fewer than three such rows, if one proves it: in that unit, and in no other,
 *   its average price lies between the lowest and the highest.
 */
function checkTurnover(parts: readonly Prices[]): void {
  if (parts.length > 1) for (const rows of parts) checkRows([rows], false);
  // A history of few securities has few rows of each trading day.
  checkRows(parts, true);
}

function checkRows(parts: readonly Prices[], isFile: boolean): void {
  if (findFactor(parts, FIRST_ROWS, isFile) === null) return;
  const factors = findFactor(parts, Number.POSITIVE_INFINITY, isFile);
  if (factors === null) return;
  const { power, wrong, traded } = factors;
  const factor = `${power > 0 ? '1/' : ''}${new Intl.NumberFormat('en').format(10 ** Math.abs(power))}`;
  const unit = UNITS[power];
  throw badFile(
    `has a turnover that is not in rupees: divided by the quantity it is ${factor} of the prices in ${wrong} of ${plural(traded, 'row')} with a trade${unit === undefined ? '' : `, so it seems to be in ${unit}`}`,
  );
}

/** The power of ten by which the turnover of nearly all rows is too small; null if it is not. */
function findFactor(
  parts: readonly Prices[],
  most: number,
  isFile: boolean,
): { readonly power: number; readonly wrong: number; readonly traded: number } | null {
  let traded = 0;
  const proved = new Set<number>();
  const wrong = new Map<number, number>();
  for (const { traded_quantity, turnover, low_price, high_price } of eachRow(parts)) {
    const [quantity, value, low, high] = [traded_quantity, turnover, low_price, high_price].map(positive);
    // A turnover of zero is one that was rounded.
    if (!quantity || !value || !low || !high) continue;
    traded += 1;
    const average = value / quantity;
    if (average * FAR < low || average > high * FAR) {
      const power = Math.round(Math.log10(Math.sqrt(low * high) / average));
      wrong.set(power, (wrong.get(power) ?? 0) + 1);
      const scalePrice = (rupees: number) => (rupees * 10 ** power) / quantity;
      const isProof = scalePrice(value - ROUNDED_BY) <= high && scalePrice(value + ROUNDED_BY) >= low;
      if (isProof && power > 0 && power in UNITS) proved.add(power);
    }
    if (traded === most) break;
  }
  const [[power, times] = [0, 0]] = [...wrong].sort(([, a], [, b]) => b - a);
  if (times < NEARLY_ALL * traded || (times < FEWEST_ROWS && !(isFile && proved.has(power)))) return null;
  return { power, wrong: times, traded };
}

function* eachRow(parts: readonly Prices[]): Generator<Prices[number]> {
  for (const rows of parts) yield* rows;
}

const positive = (value: Scalar) => {
  const number = Number(value ?? 0);
  return number > 0 ? number : null;
};
