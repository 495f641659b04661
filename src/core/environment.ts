import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { usageError } from './errors.ts';

/** What the shell sets. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings whose values never leave the process. */
export const SECRET_SETTINGS = ['EOD_ACCESS_KEY', 'DATABASE_URL', 'REDIS_URL', 'EOD_ALERT_WEBHOOK'] as const;

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

/** A secret as it is, as it is written in addresses and forms, and as it is written in JSON. */
export function spellings(secret: string): string[] {
  const encoded = encodeURIComponent(secret);
  const strict = encoded.replace(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  const inForm = new URLSearchParams([['', secret]]).toString().slice(1);
  const inAddresses = [encoded, strict, encodeURI(secret), inForm];
  const lowerCase = inAddresses.map((form) =>
    form.replace(/%[0-9A-F]{2}/g, (escaped) => escaped.toLowerCase()),
  );
  return [...new Set([secret, ...inAddresses, ...lowerCase, JSON.stringify(secret).slice(1, -1)])];
}

/** Replaces every occurrence of the known secrets in a text. */
export function redactor(secrets: readonly (string | undefined)[]): (text: string) => string {
  const known = secrets.filter((secret): secret is string => secret !== undefined && secret.length > 0);
  const forms = [...new Set(known.flatMap(spellings))];
  return (text) => forms.reduce((clean, secret) => clean.replaceAll(secret, REDACTED), text);
}
