import { isAscii, isUtf8 } from 'node:buffer';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { listSpellings, REDACTED, secretPattern } from '../core/environment.ts';
import { tooLarge, unreadable } from './diagnostics.ts';

type Body = Dispatcher.ResponseData['body'];
type Headers = Dispatcher.ResponseData['headers'];

/** More than zlib's default of 16 KB, which means fewer chunks for responses of many megabytes. */
const CHUNK = { chunkSize: 256 * 1024 };

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(CHUNK),
  'x-gzip': () => createGunzip(CHUNK),
  deflate: () => createInflate(CHUNK),
  br: () => createBrotliDecompress(CHUNK),
};

/**
 * Collects a body, decompressing it, and stops as soon as it exceeds `cap` bytes: a response that states a greater
 * length is not read, and a gzip bomb ends at the first bytes over the cap.
 *
 * @returns the body, and `bytes`, its length as it was sent.
 * @throws PipelineError `too_large` or `unreadable`; otherwise what the stream threw.
 */
export async function readBody(
  body: Body,
  headers: Headers,
  cap: number,
): Promise<{ readonly body: Buffer; readonly bytes: number }> {
  const encoding = String(headers['content-encoding'] ?? 'identity')
    .trim()
    .toLowerCase();
  const stated = Number(headers['content-length'] ?? 0);
  const decoder = DECODERS[encoding];
  const plain = encoding === 'identity' || encoding === '';
  if (stated > cap || (decoder === undefined && !plain)) {
    // Destroying a body that is not read emits an error, which says nothing new.
    body.on('error', () => undefined).destroy();
    throw stated > cap
      ? tooLarge(`${stated} bytes, at most ${cap} are read (EOD_MAX_RESPONSE_MB)`)
      : unreadable('unknown compression');
  }
  let bytes = 0;
  let size = 0;
  const chunks: Buffer[] = [];
  // If the length is known, into one buffer: a second copy of a large body would take more memory than its rows.
  const buffer = plain && stated > 0 ? Buffer.allocUnsafeSlow(stated) : null;
  async function* count(source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      bytes += chunk.length;
      yield chunk;
    }
  }
  const collect = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) {
      if (size + chunk.length > cap) throw tooLarge(`more than ${cap} bytes (EOD_MAX_RESPONSE_MB)`);
      if (buffer === null) chunks.push(chunk);
      else chunk.copy(buffer, size);
      size += chunk.length;
    }
  };
  if (decoder !== undefined) await pipeline(body, count, decoder(), collect);
  else {
    await collect(body);
    bytes = size;
  }
  return { body: buffer?.subarray(0, size) ?? Buffer.concat(chunks, size), bytes };
}

/**
 * The text of a body, without its byte order mark: UTF-16 if the mark says so, else UTF-8.
 *
 * @throws PipelineError `unreadable` if the bytes are not text, `too_large` if they do not fit into one string.
 */
export function decodeText(body: Buffer): string {
  if (isUtf16(body)) return decodeUtf16(body, body[0] === 0xff ? 'utf-16le' : 'utf-16be');
  if (!isUtf8(body)) throw unreadable('it is not UTF-8');
  const marked = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  try {
    // Nearly every response is plain ASCII, which is decoded several times faster as latin1.
    return isAscii(body) ? body.toString('latin1') : body.toString('utf8', marked ? 3 : 0);
  } catch {
    throw tooLarge(`${body.length} bytes do not fit into one string`);
  }
}

/** True if a byte order mark says UTF-16. */
export function isUtf16(body: Buffer): boolean {
  return (body[0] === 0xff && body[1] === 0xfe) || (body[0] === 0xfe && body[1] === 0xff);
}

function decodeUtf16(body: Buffer, encoding: 'utf-16le' | 'utf-16be'): string {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(body);
  } catch {
    throw unreadable(`it claims to be ${encoding.toUpperCase()} and is not`);
  }
}

/** A shorter access key may be a word that occurs in responses anyway. */
const SHORTEST_KEY = 6;

/**
 * Creates the function that removes the access key from a body, in each of its spellings. A source that echoes the request
 * puts it there, and what is read and kept must not contain it.
 */
export function createBodyRedactor(accessKey: string): (body: Buffer) => Buffer {
  const spellings = accessKey.length < SHORTEST_KEY ? [] : listSpellings(accessKey);
  return (body) => {
    const encoding = isUtf16(body) ? 'utf16le' : 'utf8';
    const isSwapped = body[0] === 0xfe && body[1] === 0xff && body.length % 2 === 0;
    const bytes = isSwapped ? Buffer.from(body).swap16() : body;
    if (!spellings.some((spelling) => bytes.includes(spelling, 0, encoding))) return body;
    // In latin1 each byte is a character, so the rest of the body stays as it is.
    const inLatin1 = (text: string) => Buffer.from(text, encoding).toString('latin1');
    const pattern = new RegExp(secretPattern(accessKey, spellings.map(inLatin1)), 'g');
    const clean = Buffer.from(bytes.toString('latin1').replace(pattern, inLatin1(REDACTED)), 'latin1');
    return isSwapped ? clean.swap16() : clean;
  };
}
