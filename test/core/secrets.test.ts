import { describe, expect, test } from 'vitest';
import { base64Forms, redactor } from '../../src/core/environment.ts';
import { redactBody } from '../../src/extract/body.ts';

const KEY = 'k&y/2+"é<4>\\5';
const json = (text: string) => JSON.stringify(text).slice(1, -1);
const base64 = (text: string) => Buffer.from(text).toString('base64');
const entities = (write: (point: number) => string) =>
  [...KEY].map((letter) => (/\w/.test(letter) ? letter : write(letter.codePointAt(0) ?? 0))).join('');

describe('a secret is found as it is written', () => {
  test.each([
    ['in an address', encodeURIComponent(KEY)],
    ['in an address within an address', encodeURIComponent(encodeURIComponent(KEY))],
    ['in JSON', json(KEY)],
    ['in JSON within JSON', json(json(KEY))],
    ['in markup', KEY.replace('&', '&amp;').replace('"', '&quot;').replace('<', '&lt;').replace('>', '&gt;')],
    ['in decimal entities', entities((point) => `&#${point};`)],
    ['in hexadecimal entities', entities((point) => `&#x${point.toString(16)};`)],
  ])('%s', (_, written) => {
    expect(redactor([KEY])(`a ${written} b`)).toBe('a [redacted] b');
    expect(redactBody(Buffer.from(`a ${written} b`), KEY).toString()).toBe('a [redacted] b');
  });

  test.each(['', 'u', 'us', 'user:', 'a:b:'])('in base64, after "%s"', (before) => {
    for (const after of ['', '!', ':more']) {
      for (const written of [
        base64(before + KEY + after),
        Buffer.from(before + KEY + after).toString('base64url'),
      ]) {
        // At most the letters that it shares with its neighbours are left.
        for (const clean of [redactor([KEY])(written), redactBody(Buffer.from(written), KEY).toString()]) {
          expect(clean).toContain('[redacted]');
          expect(Buffer.from(clean.replace('[redacted]', ''), 'base64').toString()).not.toContain(
            KEY.slice(1, -1),
          );
        }
      }
    }
  });
});

test('a short secret is not looked for in base64, where its letters may be there by chance', () => {
  expect(base64Forms('abcde')).toEqual([]);
  expect(redactor(['abcde'])(base64('abcde'))).toBe(base64('abcde'));
});
