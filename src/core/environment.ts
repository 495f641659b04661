import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { usageError } from './errors.ts';

/** What the shell sets. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings whose values never leave the process. */
export const SECRET_SETTINGS = [
  'EOD_ACCESS_KEY',
  'DATABASE_URL',
  'REDIS_URL',
  'EOD_ALERT_WEBHOOK',
  'EOD_ALERT_SECRET',
  'EOD_HEARTBEAT_URL',
  'EOD_WEB_PASSWORD',
] as const;

/**
 * The environment with the file `.env` of a folder beneath it: what the shell says wins. An empty value
 * means unset.
 */
export function readEnvironment(env: Environment, folder: string): Record<string, string> {
  return withoutEmpty({ ...readDotenv(folder), ...env });
}

/** The settings of the file `.env` alone. */
export function readDotenv(folder: string): Record<string, string> {
  try {
    return withoutEmpty(parseEnv(readFileSync(join(folder, '.env'), 'utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw usageError(`.env cannot be read: ${(error as Error).message}`);
  }
}

/** The variables that are set, trimmed. */
export function withoutEmpty(env: Environment): Record<string, string> {
  const set: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && value.trim() !== '') set[name] = value.trim();
  }
  return set;
}

/**
 * Turns `A, B` or `@file` (one name a line, `#` starts a comment) into a list.
 *
 * @param folder where the file is looked for.
 */
export function readList(text: string, folder = '.'): string[] {
  const content = text.startsWith('@')
    ? readFileSync(resolve(folder, text.slice(1)), 'utf8').replace(/^#.*$/gm, '')
    : text;
  const names = content.split(/[,\n]/).map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ''))];
}

/** What stands in place of a secret. */
export const REDACTED = '[redacted]';

/**
 * Finds a secret as it is and as it is written in addresses, in forms, in JSON, in markup and, alone or among other
 * text, in base64. Letters and digits are never written otherwise; any other character is found in each of its
 * spellings.
 *
 * @param encode what a spelling looks like in the text that is searched.
 */
export function secretPattern(secret: string, encode = (spelling: string) => spelling): RegExp {
  const patterns = [secret, ...base64Forms(secret)].map((form) =>
    [...form]
      .map((letter) => {
        const forms = spellingsOf(letter).map((one) => encode(one).replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
        return `(?:${forms.join('|')})`;
      })
      .join(''),
  );
  return new RegExp(patterns.join('|'), 'g');
}

/** What a shorter secret leaves in base64 may be there by chance. */
const SHORTEST_IN_BASE64 = 6;

/**
 * What base64 makes of a text wherever that stands in a longer one (`user:secret`): by its place among three bytes,
 * the letters that depend on nothing else.
 */
export function base64Forms(text: string): string[] {
  const bytes = Buffer.from(text);
  if (bytes.length < SHORTEST_IN_BASE64) return [];
  const forms = [0, 1, 2].map((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    return encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
  const inAddresses = forms.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'));
  return [...new Set([...forms, ...inAddresses])];
}

const inJson = (text: string) => JSON.stringify(text).slice(1, -1);

/** How markup writes characters that mean something in it. */
const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** The spellings of one character, the longer ones before those that they begin with. */
function spellingsOf(letter: string): string[] {
  if (/[A-Za-z0-9]/.test(letter)) return [letter];
  const bytes = [...Buffer.from(letter)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  const twice = bytes.replaceAll('%', '%25');
  const point = letter.codePointAt(0) ?? 0;
  const hex = point.toString(16);
  const entities = [`&#${point};`, `&#x${hex};`, `&#x${hex.toUpperCase()};`, ENTITIES[letter] ?? letter];
  const json = letter.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'));
  const unicode = [json, json.map((unit) => unit.toUpperCase())].map((each) =>
    each.map((unit) => `\\u${unit}`).join(''),
  );
  const others = [inJson(letter), ...(letter === '/' ? ['\\/'] : [])];
  const form = letter === ' ' ? ['+'] : [];
  const escaped = [...unicode, ...others].flatMap((one) => [inJson(one), one]);
  const addresses = [twice, twice.toUpperCase(), bytes, bytes.toUpperCase()];
  return [...new Set([...escaped, ...addresses, ...entities, letter, ...form])];
}

/** Replaces every occurrence of the known secrets in a text. */
export function redactor(secrets: readonly (string | undefined)[]): (text: string) => string {
  const known = secrets.filter((secret): secret is string => secret !== undefined && secret.length > 0);
  const patterns = [...new Set(known)].map((secret) => secretPattern(secret));
  return (text) => patterns.reduce((clean, pattern) => clean.replace(pattern, REDACTED), text);
}

/** Who runs this process, for people; an account without a name, as containers have them, is known by its number. */
export function requesterName(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `${process.getuid?.() ?? 'unknown'}@${hostname()}`;
  }
}
