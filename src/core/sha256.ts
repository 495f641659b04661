import { createHash } from 'node:crypto';

/** SHA-256 of some bytes, or of a text in UTF-8, in hexadecimal digits. */
export const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
