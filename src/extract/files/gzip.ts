import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { messageOf } from '../../core/errors.ts';
import { badFile } from '../diagnostics.ts';
import { takeBytes, type UnpackLimit } from './zip.ts';

const decompress = promisify(gunzip);

const FIRST_BYTES = Buffer.from([0x1f, 0x8b]);

const TOO_LARGE = 'the gzip data unpacks to more than may be read';

/** Do these bytes begin like gzip data? */
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
