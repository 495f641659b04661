import { redactor } from '../core/log.ts';
import { encode } from './request.ts';

/** Takes the access key out of a text: as it is, and as it stands in an address. */
export function keyRedactor(accessKey: string): (text: string) => string {
  return redactor([accessKey, encode(accessKey)]);
}
