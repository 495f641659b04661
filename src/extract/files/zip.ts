import { crc32, inflateRawSync } from 'node:zlib';
import { badFile } from './trouble.ts';

/** A file inside an archive. Its name is only ever shown, never used as a path. */
export interface ZipEntry {
  readonly name: string;
  readonly data: Buffer;
}

/** Largest unpacked size of all entries together: a year of bhav copies fits, a zip bomb does not. */
const MAX_UNPACKED = 512 * 1024 * 1024;
const MAX_ENTRIES = 10_000;

const END = 0x06054b50;
const END_BYTES = 22;
const CENTRAL = 0x02014b50;
const CENTRAL_BYTES = 46;
const LOCAL = 0x04034b50;
const LOCAL_BYTES = 30;
const ENCRYPTED = 0x1;
const STORED = 0;
const DEFLATED = 8;
/** In place of a 32-bit figure: the real one is in a zip64 field. */
const ZIP64 = 0xffffffff;

/** Do these bytes begin as a zip archive does? */
export function isZip(bytes: Buffer): boolean {
  return bytes.length >= 4 && (bytes.readUInt32LE(0) === LOCAL || bytes.readUInt32LE(0) === END);
}

/**
 * Unpacks the entries of a zip archive that `wanted` names, one after the other. Takes what the
 * exchanges publish: stored and deflated entries, no encryption, no zip64.
 *
 * @throws PipelineError `unreadable` for anything else, for broken or cut archives and for more than
 *   `maxUnpacked` bytes.
 */
export function* unzip(
  bytes: Buffer,
  wanted: (name: string) => boolean,
  maxUnpacked = MAX_UNPACKED,
): Generator<ZipEntry> {
  let left = maxUnpacked;
  for (const entry of readDirectory(bytes)) {
    if (!wanted(entry.name)) continue;
    const data = unpack(bytes, entry, left);
    left -= data.length;
    yield { name: entry.name, data };
  }
}

interface DirectoryEntry {
  readonly name: string;
  readonly flags: number;
  readonly method: number;
  readonly crc: number;
  readonly packed: number;
  readonly unpacked: number;
  readonly offset: number;
}

/** The central directory at the end of the archive is what counts; local headers only lead to the data. */
function readDirectory(bytes: Buffer): DirectoryEntry[] {
  const end = findEnd(bytes);
  const count = bytes.readUInt16LE(end + 10);
  if (count > MAX_ENTRIES) throw badFile(`the zip archive has more than ${MAX_ENTRIES} entries`);
  let at = bytes.readUInt32LE(end + 16);
  if (at === ZIP64) throw badFile('the zip archive is of the zip64 kind, which is not read');
  const entries: DirectoryEntry[] = [];
  for (let n = 0; n < count; n++) {
    if (at + CENTRAL_BYTES > bytes.length || bytes.readUInt32LE(at) !== CENTRAL) throw broken();
    const nameLength = bytes.readUInt16LE(at + 28);
    entries.push({
      flags: bytes.readUInt16LE(at + 8),
      method: bytes.readUInt16LE(at + 10),
      crc: bytes.readUInt32LE(at + 16),
      packed: bytes.readUInt32LE(at + 20),
      unpacked: bytes.readUInt32LE(at + 24),
      offset: bytes.readUInt32LE(at + 42),
      name: bytes.toString('utf8', at + CENTRAL_BYTES, at + CENTRAL_BYTES + nameLength),
    });
    at += CENTRAL_BYTES + nameLength + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
  return entries;
}

/** The end record is last but for a comment of at most 64 KB. */
function findEnd(bytes: Buffer): number {
  const first = Math.max(0, bytes.length - END_BYTES - 0xffff);
  for (let at = bytes.length - END_BYTES; at >= first; at--) {
    if (bytes.readUInt32LE(at) === END) return at;
  }
  throw badFile('the zip archive is cut short: its directory is missing');
}

function unpack(bytes: Buffer, entry: DirectoryEntry, left: number): Buffer {
  const { name, flags, method, packed, unpacked, offset } = entry;
  if ((flags & ENCRYPTED) !== 0) throw badFile(`${name} in the zip archive is encrypted`);
  if (unpacked > left) throw badFile(`the zip archive unpacks to more than may be read, at ${name}`);
  if (offset + LOCAL_BYTES > bytes.length || bytes.readUInt32LE(offset) !== LOCAL) throw broken();
  const start = offset + LOCAL_BYTES + bytes.readUInt16LE(offset + 26) + bytes.readUInt16LE(offset + 28);
  if (start + packed > bytes.length) throw broken();
  const content = bytes.subarray(start, start + packed);
  const data = method === STORED ? content : inflate(content, entry);
  if (data.length !== unpacked || crc32(data) !== entry.crc) throw broken();
  return data;
}

function inflate(content: Buffer, { name, method, unpacked }: DirectoryEntry): Buffer {
  if (method !== DEFLATED)
    throw badFile(`${name} in the zip archive is packed in an unknown way (${method})`);
  try {
    // What unpacks to more than the directory says is broken, or worse: it stops right there.
    return inflateRawSync(content, { maxOutputLength: Math.max(1, unpacked) });
  } catch (error) {
    throw broken(error);
  }
}

function broken(cause?: unknown) {
  return badFile('the zip archive is broken', cause === undefined ? {} : { cause });
}
