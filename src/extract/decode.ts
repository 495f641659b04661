import { isAscii, isUtf8 } from 'node:buffer';
import { tooLarge, unreadable } from './diagnostics.ts';

/**
 * The text of a body: UTF-8, or UTF-16 where a byte order mark says so; the mark is taken off.
 *
 * @throws PipelineError `unreadable` when the bytes are no text, `too_large` beyond what one string holds.
 */
export function decodeText(body: Buffer): string {
  if (isUtf16(body)) return decodeUtf16(body, body[0] === 0xff ? 'utf-16le' : 'utf-16be');
  if (!isUtf8(body)) throw unreadable('it is not UTF-8');
  const marked = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  try {
    // Plain ASCII, as nearly every answer is, is read several times as fast when we say so.
    return isAscii(body) ? body.toString('latin1') : body.toString('utf8', marked ? 3 : 0);
  } catch {
    throw tooLarge(`${body.length} bytes do not fit one text`);
  }
}

/** Does a byte order mark say UTF-16? */
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
