import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { crc32, gunzip } from 'node:zlib';
import { type Entry, fromBufferPromise, getFileNameLowLevel } from 'yauzl';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { escapeName } from '../../core/wording.ts';
import { badFile } from '../diagnostics.ts';

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

const decompress = promisify(gunzip);

const FIRST_BYTES = Buffer.from([0x1f, 0x8b]);

const TOO_LARGE = 'the gzip data unpacks to more than may be read';

/** True if these bytes begin like gzip data. */
export function isGzip(bytes: Buffer): boolean {
  return bytes.subarray(0, FIRST_BYTES.length).equals(FIRST_BYTES);
}

/**
 * Decompresses gzip data. Subtracts what was unpacked from `limit`.
 *
 * @throws PipelineError `unreadable` if the data is broken or cut short, and beyond the limit.
 */
export async function gunzipFile(bytes: Buffer, limit: UnpackLimit): Promise<Buffer> {
  const data = await decompress(bytes, { maxOutputLength: Math.max(1, limit.bytes) }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_BUFFER_TOO_LARGE') takeBytes(limit, Infinity, TOO_LARGE);
      throw badFile(`the gzip data is broken or cut short: ${messageOf(error)}`, { cause: error });
    },
  );
  takeBytes(limit, data.length, TOO_LARGE);
  return data;
}
