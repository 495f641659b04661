import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { messageOf, PipelineError } from './errors.ts';

export type { Logger } from 'pino';

/** A secret as it is, as it stands in addresses, and as it stands in JSON. */
function spellings(secret: string): string[] {
  const encoded = encodeURIComponent(secret);
  const strict = encoded.replace(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return [secret, encoded, strict, JSON.stringify(secret).slice(1, -1)];
}

/** Replaces every occurrence of the known secrets in a text. */
export function redactor(secrets: readonly (string | undefined)[]): (text: string) => string {
  const known = secrets.filter((secret): secret is string => secret !== undefined && secret.length > 0);
  const forms = [...new Set(known.flatMap(spellings))];
  return (text) => forms.reduce((clean, secret) => clean.replaceAll(secret, '[redacted]'), text);
}

/**
 * The log: JSON lines on stderr, so that stdout stays for results. The finished line is searched
 * for secrets, so that no path through errors or nested objects can carry one out.
 */
export function createLog(
  config: Pick<
    Config,
    'EOD_LOG_LEVEL' | 'EOD_ACCESS_KEY' | 'DATABASE_URL' | 'REDIS_URL' | 'EOD_ALERT_WEBHOOK'
  >,
): Logger {
  const redact = redactor([
    config.EOD_ACCESS_KEY,
    config.EOD_ALERT_WEBHOOK,
    passwordOf(config.DATABASE_URL),
    passwordOf(config.REDIS_URL),
  ]);
  return pino(
    { level: config.EOD_LOG_LEVEL, base: { pid: process.pid }, serializers: { err: describeError } },
    { write: (line: string) => void process.stderr.write(redact(line)) },
  );
}

/**
 * The facts of an error that help, because drivers attach whole connections to theirs. The stack is
 * logged for defects only: a `PipelineError` says by itself what is wrong.
 */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack } = error;
  const facts = ['code', 'kind', 'retryable', 'diagnostic'].flatMap((key) => {
    const value: unknown = Reflect.get(error, key);
    return value === undefined ? [] : [[key, value]];
  });
  const cause = error.cause === undefined ? {} : { cause: messageOf(error.cause) };
  const where = error instanceof PipelineError ? {} : { stack };
  return { type: name, message, ...Object.fromEntries(facts), ...cause, ...where };
}

function passwordOf(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  const { password } = new URL(address);
  return password === '' ? undefined : decodeURIComponent(password);
}
