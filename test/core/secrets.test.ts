import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/core/config.ts';
import {
  listSpellings,
  percentEncoded,
  redactor,
  redactValues,
  settingsRedactor,
  shownSecret,
} from '../../src/core/environment.ts';
import { createBodyRedactor } from '../../src/extract/body.ts';
import { forAll } from '../support/for-all.ts';

const KEY = `k&y/2+"é<4>\\5'(0)`;
const json = (text: string) => JSON.stringify(text).slice(1, -1);

describe('a secret is found as it is written', () => {
  test.each([
    ['as it is', KEY],
    ['in an address, as JavaScript writes it', encodeURIComponent(KEY)],
    ['in an address, as a request has it', percentEncoded(KEY)],
    ['in JSON', json(KEY)],
  ])('%s', (_, written) => {
    expect(redactor([KEY])(`a ${written} b`)).toBe('a [redacted] b');
    expect(createBodyRedactor(KEY)(Buffer.from(`a ${written} b`)).toString()).toBe('a [redacted] b');
  });

  test('and is looked for once where all spellings are the same', () => {
    expect(listSpellings('Kiwi0815')).toEqual(['Kiwi0815']);
    expect(listSpellings(KEY)).toHaveLength(4);
  });
});

/** How a secret is written in a text: plain, in an address, and in JSON. */
const WRITTEN: readonly ((secret: string) => string)[] = [
  (secret) => secret,
  encodeURIComponent,
  percentEncoded,
  json,
];

/** What may stand around a value. */
const AROUND = [
  ['=', '&'],
  ['://u:', '@'],
  ['"', '"'],
  [':', ','],
  [' ', ' '],
  ['', ''],
  ['(', ')'],
  ['%3D', '%26'],
  ['\\n', '\\n'],
  ['\\u003c', '\\u003e'],
] as const;

const word = fc.stringMatching(/^[A-Za-z0-9_]{1,24}$/);
const anySecret = fc.oneof(word, fc.string({ minLength: 1, maxLength: 24, unit: 'grapheme' }));
const letters = fc.stringMatching(/^[a-z]{1,6}$/);

test('a secret of any length is replaced where it stands as a value or a whole word', () =>
  forAll(
    [
      anySecret.filter((secret) => /^[^%\\&]*\w[^%\\&]*$/.test(secret)),
      fc.constantFrom(...WRITTEN),
      fc.constantFrom(...AROUND),
    ],
    { numRuns: 500 },
    (secret, write, [before, after]) => {
      const parts = redactor([secret])(`\0${before}${write(secret)}${after}\0`);
      const untouched = redactor([secret])(`\0${before}\0${after}\0`) === `\0${before}\0${after}\0`;
      if (untouched) expect(parts).toBe(`\0${before}[redacted]${after}\0`);
      else expect(parts).toContain('[redacted]');
    },
  ));

test('the access key is replaced in bodies, whatever their encoding, and the rest stays as it is', () =>
  forAll(
    [
      anySecret.filter((key) => key.length >= 6 && /^[^%\\&]*\w[^%\\&]*$/.test(key)),
      fc.constantFrom(...WRITTEN),
      fc.uint8Array({ maxLength: 20 }),
    ],
    (key, write, bytes) => {
      const redact = createBodyRedactor(key);
      const around = Buffer.from(bytes);
      fc.pre(redact(Buffer.concat([Buffer.from('<>'), around])).length === around.length + 2);
      const echo = Buffer.concat([Buffer.from(`<${write(key)}>`), around]);
      expect(redact(echo)).toEqual(Buffer.concat([Buffer.from('<[redacted]>'), around]));
      const wide = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');
      expect(redact(wide(`<${write(key)}>`))).toEqual(wide('<[redacted]>'));
      expect(redact(wide(`<${write(key)}>`).swap16())).toEqual(wide('<[redacted]>').swap16());
    },
  ));

test('a secret is not looked for in another case: Postgres may have the password postgres', () => {
  const redact = settingsRedactor({ DATABASE_URL: 'postgres://eod:postgres@db/eod' });
  expect(redact('Postgres refused the password postgres')).toBe('Postgres refused the password [redacted]');
});

describe('addresses of servers', () => {
  const name = fc.constantFrom('DATABASE_URL', 'REDIS_URL');
  const scheme = { DATABASE_URL: 'postgres', REDIS_URL: 'redis' };
  const encode = (text: string) => encodeURIComponent(text).replaceAll("'", '%27');

  test('a password that is not percent-encoded is read, or named with its setting and not shown', () => {
    const special = fc.string({ unit: fc.constantFrom(...'%@:/?#kK1 fz'), minLength: 1, maxLength: 9 });
    const examples: ['DATABASE_URL', string][] = [['DATABASE_URL', '@K#?%']];
    forAll([name, special], { examples }, (setting, middle) => {
      const password = `kiwi${middle}4711`;
      const address = (text: string) => `${scheme[setting]}://eod:${text}@127.0.0.1:1/eod`;
      expect(loadConfig({ [setting]: address(encode(password)) })).toMatchObject({
        [setting]: address(encode(password)),
      });
      let message = '';
      try {
        const read = new URL(loadConfig({ [setting]: address(password) })[setting] ?? '');
        expect(read.host).toBe('127.0.0.1:1');
        expect(read.username).toBe('eod');
      } catch (error) {
        message = String(error);
        expect(message).toMatch(new RegExp(`${setting} (has|cannot be read)[^]*% has to be written as %25`));
      }
      expect(message).not.toMatch(/kiwi|4711/);
      // An error is explained by the same settings, before or after they are found wrong.
      const redact = settingsRedactor({ [setting]: address(password) });
      expect(redact(`at ${address(password)}`)).not.toMatch(/kiwi/);
    });
  });

  test.each([
    'postgres:///eod?host=/tmp&user=me@corp',
    'postgres://%2Fvar%2Frun/eod',
    'postgres://me@db/eod',
    'postgres://a%40b:p%25@db:5432/e%40d?sslmode=require',
  ])('%s is taken as it is', (DATABASE_URL) => {
    expect(loadConfig({ DATABASE_URL })).toMatchObject({ DATABASE_URL });
  });

  test.each([
    ['HTTPS_PROXY', 'http://kiwi-4711@proxy:3128', 'http://redacted@proxy:3128/'],
    ['HTTP_PROXY', 'kiwi-4711@proxy:3128', 'http://redacted@proxy:3128/'],
    ['HTTPS_PROXY', 'http://user:kiwi-4711@proxy:3128', 'http://user:redacted@proxy:3128/'],
    ['REDIS_URL', 'redis://kiwi-4711@redis', 'redis://redacted@redis'],
    ['DATABASE_URL', 'postgres://user@db/eod', 'postgres://user@db/eod'],
    [
      'DATABASE_URL',
      'postgres:///eod?user=user&password=kiwi-4711',
      'postgres:///eod?user=user&password=redacted',
    ],
  ] as const)('%s=%s is shown as %s, and its secret nowhere', (setting, address, shown) => {
    expect(shownSecret(setting, address)).toBe(shown);
    const redact = settingsRedactor({ [setting]: address });
    expect(redact('the proxy of user said kiwi-4711')).toBe(
      address.includes('kiwi') ? 'the proxy of user said [redacted]' : 'the proxy of user said kiwi-4711',
    );
  });
});

test('a text that contains a secret only inside its words stays as it is', () => {
  forAll([word, letters, letters], { numRuns: 500 }, (secret, before, after) => {
    fc.pre(secret.length < 12 || /^[a-z]+$/i.test(secret));
    for (const text of [`${before}${secret}${after}`, `${before}${secret}`, `${secret}${after}`]) {
      fc.pre(text !== secret);
      expect(redactor([secret])(`the ${'\0'}${text} is read`)).toContain(`\0${text} `);
    }
  });
  expect(redactor(['x', 'eod'])('a proxy of the eod_queue: eodx')).toBe('a proxy of the eod_queue: eodx');
  expect(redactor(['eod'])('run "eod migrate": postgres://eod:eod@db/eod, password=eod user=e')).toBe(
    'run "eod migrate": postgres://[redacted]:[redacted]@db/[redacted], password=[redacted] user=e',
  );
  // Nobody writes such a word.
  expect(redactor(['k3yOfTwelve12'])('tokenk3yOfTwelve12x')).toBe('token[redacted]x');
});

test('JSON stays JSON, whatever the secret is', () =>
  forAll([fc.oneof(word, fc.constantFrom('1', '25', 'level', 'n', 'null')), fc.json()], (secret, text) => {
    const value: unknown = JSON.parse(text);
    const clean = redactValues({ value, [secret]: secret, level: 1 }, redactor([secret]));
    expect(Object.values(JSON.parse(JSON.stringify(clean)) as object)).not.toContain(secret);
  }));

test.each([
  'http://kiwi:4711@data.example.com',
  'https://kiwi@data.example.com/path',
  'https://data.example.com/?accesskey=kiwi4711',
  'https://data.example.com/#kiwi4711',
])('the address of the source is shown everywhere, so that %s is refused, without being shown', (address) => {
  const load = () => loadConfig({ EOD_BASE_URL: address });
  expect(load).toThrow(
    /EOD_BASE_URL must be an address without user, password, query \(\?\) and fragment \(#\)/,
  );
  expect(load).not.toThrow(/kiwi|4711/);
});

test('an address of the source that is none is not shown either, if it may contain a secret', () => {
  expect(() => loadConfig({ EOD_BASE_URL: 'kiwi:4711@data' })).toThrow(
    /EOD_BASE_URL must be an address that starts with http:\/\/ or https:\/\/$/,
  );
});
