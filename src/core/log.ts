import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { redactor } from './environment.ts';
import { messageOf, PipelineError } from './errors.ts';

export type { Logger } from 'pino';

/**
 * The log: JSON lines on stderr, so that stdout stays for results. The finished line is searched
 * for secrets, so that no path through errors or nested objects can carry one out.
 */
export function createLog(
  config: Pick<
    Config,
    'EOD_LOG_LEVEL' | 'EOD_ACCESS_KEY' | 'DATABASE_URL' | 'REDIS_URL' | 'EOD_ALERT_WEBHOOK'
  >,
  stderr: { write(text: string): unknown } = process.stderr,
): Logger {
  const redact = redactor([
    config.EOD_ACCESS_KEY,
    config.EOD_ALERT_WEBHOOK,
    passwordOf(config.DATABASE_URL),
    passwordOf(config.REDIS_URL),
  ]);
  return pino(
    { level: config.EOD_LOG_LEVEL, base: { pid: process.pid }, serializers: { err: describeError } },
    { write: (line: string) => void stderr.write(redact(line)) },
  );
}

/**
 * The facts of an error that help, because drivers attach whole connections to theirs. The stack is
 * logged for defects only: a `PipelineError` says by itself what is wrong.
 */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack } = error;
  const facts = ['code', 'kind', 'status', 'diagnostic'].flatMap((key) => {
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
