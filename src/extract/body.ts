import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { tooLarge, unreadable } from './diagnostics.ts';

export type Body = Dispatcher.ResponseData['body'];
export type Headers = Dispatcher.ResponseData['headers'];

/** A larger step than zlib's 16 KB default: fewer trips for answers of many megabytes. */
const CHUNK = { chunkSize: 256 * 1024 };

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(CHUNK),
  'x-gzip': () => createGunzip(CHUNK),
  deflate: () => createInflate(CHUNK),
  br: () => createBrotliDecompress(CHUNK),
};

/**
 * Collects a body, decompressing on the way, and gives up as soon as it exceeds `cap` bytes: a
 * stated length is refused unread, a gzip bomb after the first bytes over the cap.
 *
 * @throws PipelineError `too_large` or `unreadable`; else what the stream threw.
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
    // Destroying a body that nobody reads raises an error event; it is ours, and already told.
    body.on('error', () => undefined).destroy();
    throw stated > cap
      ? tooLarge(`${stated} bytes, at most ${cap} are taken`)
      : unreadable('unknown compression');
  }
  let bytes = 0;
  const chunks: Buffer[] = [];
  let size = 0;
  async function* count(source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      bytes += chunk.length;
      yield chunk;
    }
  }
  const collect = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) {
      size += chunk.length;
      if (size > cap) throw tooLarge(`more than ${cap} bytes`);
      chunks.push(chunk);
    }
  };
  if (decoder === undefined) await pipeline(body, count, collect);
  else await pipeline(body, count, decoder(), collect);
  return { body: Buffer.concat(chunks, size), bytes };
}
