import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { errorCode, messageOf, usageError } from './errors.ts';

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings whose values are never logged, stored or shown. */
export const SECRET_SETTINGS = [
  'EOD_ACCESS_KEY',
  'DATABASE_URL',
  'REDIS_URL',
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'EOD_ALERT_WEBHOOK',
  'EOD_ALERT_SECRET',
  'EOD_HEARTBEAT_URL',
  'EOD_WEB_PASSWORD',
] as const;

/** Each secret setting, and the variable that names a file which holds its value: EOD_ACCESS_KEY_FILE. */
export const fileSettings: Readonly<Record<string, string>> = Object.fromEntries(
  SECRET_SETTINGS.map((name) => [name, `${name}_FILE`]),
);

/** The secret settings that are given as files. */
interface SecretFiles {
  readonly values: Readonly<Record<string, string>>;
  /** A sentence about each that cannot be used. */
  readonly problems: readonly string[];
}

/**
 * Reads the secret settings that are given as files, without the white space around them.
 *
 * @param env an environment from `readEnvironment`.
 * @param folder the paths are relative to it.
 */
export function readSecretFiles(env: Readonly<Record<string, string>>, folder: string): SecretFiles {
  const values: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, fileSetting] of Object.entries(fileSettings)) {
    const path = env[fileSetting];
    if (path === undefined) continue;
    if (env[name] !== undefined) {
      problems.push(`${name} and ${fileSetting} are both set: remove one of them`);
      continue;
    }
    try {
      const value = readFileSync(resolve(folder, path), 'utf8').trim();
      if (value === '') problems.push(`${fileSetting} names a file that is empty (${path})`);
      else if (/[\r\n]/.test(value)) problems.push(`${fileSetting} names a file of several lines (${path})`);
      else values[name] = value;
    } catch (error) {
      problems.push(`${fileSetting} names a file that cannot be read: ${messageOf(error)} (${path})`);
    }
  }
  return { values, problems };
}

/**
 * The environment merged with the file `.env` of a folder: the environment wins. An empty value means unset.
 *
 * @throws PipelineError `usage` when the file cannot be read.
 */
export function readEnvironment(env: Environment, folder: string): Record<string, string> {
  return withoutEmpty({ ...readDotenv(folder), ...withProxies(env) });
}

/**
 * Replaces a file of settings, which may hold a key, by renaming a new one, so that no process reads half a file. If that
 * fails, it is as before.
 *
 * @param mode its rights afterwards, whatever the umask is.
 */
export function replaceSettingsFile(file: string, text: string, mode: number): void {
  const draft = `${file}.new`;
  try {
    writeFileSync(draft, text, { mode });
    chmodSync(draft, mode);
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/**
 * Where settings come from.
 *
 * @returns a function from the name of a setting to `environment`, `.env`, `default`, or the variable that names the file
 *   which holds its value.
 * @throws PipelineError `usage` when the file `.env` cannot be read.
 */
export function settingOrigins(env: Environment, folder: string): (name: string) => string {
  const shell = withoutEmpty(withProxies(env));
  const file = readDotenv(folder);
  return (name) => {
    if (name in shell) return 'environment';
    if (name in file) return '.env';
    const fileSetting = fileSettings[name];
    return fileSetting !== undefined && (fileSetting in shell || fileSetting in file)
      ? fileSetting
      : 'default';
  };
}

/** The variables in the file `.env` of a folder; none where there is no such file. */
function readDotenv(folder: string): Record<string, string> {
  try {
    return withoutEmpty(withProxies(parseEnv(readFileSync(join(folder, '.env'), 'utf8'))));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return {};
    throw usageError(`.env cannot be read: ${messageOf(error)}`);
  }
}

/** The variables that many programs know, most of them in small letters too. */
const PROXIES = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'] as const;

/** An environment in which the names of proxies are in capitals; names in small letters come first. */
function withProxies(env: Environment): Environment {
  const proxies = PROXIES.flatMap((name) => {
    const value = env[name.toLowerCase()] || env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...env, ...Object.fromEntries(proxies) };
}

/** The variables that are set, trimmed. */
function withoutEmpty(env: Environment): Record<string, string> {
  const set: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && value.trim() !== '') set[name] = value.trim();
  }
  return set;
}

/**
 * Turns `A, B` or `@file` (one name a line, `#` starts a comment) into a list without duplicates.
 *
 * @param folder the file's path is relative to it.
 * @throws Error when the file cannot be read.
 */
export function readList(text: string, folder = '.'): string[] {
  const content = text.startsWith('@')
    ? readFileSync(resolve(folder, text.slice(1)), 'utf8').replace(/^#.*$/gm, '')
    : text;
  const names = content.split(/[,\n]/).map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ''))];
}

/** Replaces a secret. */
export const REDACTED = '[redacted]';

/** Letters, digits and _. Of the letters that are not ASCII, the blocks without punctuation: all Unicode is slow. */
const WORD = '[\\w\\u00c0-\\u1fff\\u2c00-\\u2dff\\u3040-\\ud7ff\\uf900-\\ufdff]';

/** Where a word may begin: also after the escapes of addresses and JSON, which end in a letter or a digit. */
const WORD_BEGINS = `(?:(?<!${WORD})|(?<=%[0-9A-Fa-f]{2})|(?<=\\\\(?:[bfnrt]|u[0-9A-Fa-f]{4})))`;
const WORD_ENDS = `(?!${WORD})`;

/**
 * The name of this program is a common password of a local Postgres. Before the name of a command it is not replaced:
 * it does not show there that it is a password, and the reader needs it.
 */
const PROGRAM = 'eod';
const NO_COMMAND = `(?:(?<=[=:]${PROGRAM})|(?! [a-z]))`;

/** No word contains a secret of so many characters that are not all letters. */
const UNMISTAKABLE_LENGTH = 12;

/**
 * Percent-encodes a value so that nothing in it reads as syntax: `M&M` → `M%26M`, `NIFTY 50` → `NIFTY%2050`, and also the
 * `!'()*` that encodeURIComponent leaves (RFC 3986).
 */
export const percentEncoded = (value: string): string =>
  encodeURIComponent(value).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/**
 * How a secret is written: as it is, in an address, and in JSON. All are the same for a secret of letters and digits. The
 * longest comes first, because it may begin with another one.
 */
export const listSpellings = (secret: string): readonly string[] =>
  [
    ...new Set([
      secret,
      encodeURIComponent(secret),
      percentEncoded(secret),
      JSON.stringify(secret).slice(1, -1),
    ]),
  ].sort((some, others) => others.length - some.length);

/**
 * The pattern of a secret in all of its spellings. A secret that may be a part of a word matches only as a whole word: with
 * the password `a`, texts stay readable.
 *
 * @param spellings from `listSpellings`, converted to the form that they have in the searched text.
 */
export function secretPattern(secret: string, spellings = listSpellings(secret)): string {
  const isUnmistakable = secret.length >= UNMISTAKABLE_LENGTH && /\P{L}/u.test(secret);
  const begins = !isUnmistakable && new RegExp(`^${WORD}`).test(secret) ? WORD_BEGINS : '';
  const ends = !isUnmistakable && new RegExp(`${WORD}$`).test(secret) ? WORD_ENDS : '';
  const isNoCommand = secret === PROGRAM ? NO_COMMAND : '';
  const escaped = spellings.map((spelling) => spelling.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  return `${begins}(?:${escaped.join('|')})${ends}${isNoCommand}`;
}

/**
 * @returns a function that replaces these secrets in a text with REDACTED, wherever they stand as values or whole words.
 */
export function redactor(secrets: readonly (string | undefined)[]): (text: string) => string {
  const known = [...new Set(secrets)].flatMap((secret) => secret || []);
  if (known.length === 0) return (text) => text;
  // The longest first, because it may begin with another one. In one pass, because REDACTED is a word too.
  const patterns = known
    .sort((some, others) => others.length - some.length)
    .map((secret) => secretPattern(secret));
  const pattern = new RegExp(patterns.join('|'), 'g');
  return (text) => text.replace(pattern, REDACTED);
}

/** A redactor of the secret settings, and of what is secret in those that are addresses. */
export function settingsRedactor(settings: Readonly<Record<string, unknown>>): (text: string) => string {
  return redactor(
    SECRET_SETTINGS.flatMap((name) => {
      const value = settings[name];
      return typeof value === 'string' ? [value, ...secretsOfAddress(name, value)] : [];
    }),
  );
}

/** The address in a setting, which for a proxy is often written without `http://`; null if it is none. */
function parseAddress(name: string, value: string): URL | null {
  const text = name.endsWith('_PROXY') && !value.includes('://') ? `http://${value}` : value;
  return text.includes('://') && URL.canParse(text) ? new URL(text) : null;
}

/** Postgres knows its users by other means than passwords too; for any other server, a user without one is a token. */
const isToken = (name: string, { username, password }: URL) =>
  username !== '' && password === '' && name !== 'DATABASE_URL';

/** Parameters of an address that are secret. */
const SECRET_PARAMETER = /pass|secret|key|token/i;

/** What is secret in the address of a setting, as it is written and decoded. */
function secretsOfAddress(name: string, value: string): string[] {
  const address = parseAddress(name, value);
  if (address === null) return [];
  const written = [address.password, isToken(name, address) ? address.username : ''];
  const parameters = [...address.searchParams].filter(([key]) => SECRET_PARAMETER.test(key));
  return [
    ...written,
    ...written.map((part) => decoded(part) ?? ''),
    ...parameters.map(([, secret]) => secret),
  ];
}

/** A text without its percent-encoding; null if that is broken. */
export function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** A secret setting as it may be shown: of an address all but what is secret in it, of any other secret nothing. */
export function shownSecret(name: string, value: unknown): string {
  const address = typeof value === 'string' ? parseAddress(name, value) : null;
  if (address === null) return 'set (redacted)';
  // The addresses of chat services and monitors have their secret in the path.
  if (name === 'EOD_ALERT_WEBHOOK' || name === 'EOD_HEARTBEAT_URL') return `${address.origin}/… (redacted)`;
  if (isToken(name, address)) address.username = 'redacted';
  if (address.password !== '') address.password = 'redacted';
  for (const key of address.searchParams.keys()) {
    if (SECRET_PARAMETER.test(key)) address.searchParams.set(key, 'redacted');
  }
  return address.href;
}

/** The same for a document of JSON: its texts, and numbers, which become a text if they are a secret. */
export function redactValues(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'number') return redact(String(value)) === String(value) ? value : REDACTED;
  if (Array.isArray(value)) return value.map((item) => redactValues(item, redact));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, redactValues(member, redact)]),
  );
}

/** `user@host` of this process; `uid@host` where the account has no name, as in some containers. */
export function requesterName(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `${process.getuid?.() ?? 'unknown'}@${hostname()}`;
  }
}
