import { CommanderError } from 'commander';
import { DrizzleQueryError } from 'drizzle-orm';
import { readEnvironment, SECRET_SETTINGS } from '../core/config.ts';
import { messageOf, PipelineError } from '../core/errors.ts';
import { redactor } from '../core/log.ts';
import { databaseError } from '../load/database/errors.ts';
import { say } from './output.ts';

/** Exit codes of `eod`: the work is done, some of it failed, the command or a setting is wrong. */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/**
 * Says in one sentence what went wrong, and how the process ends.
 *
 * @returns the exit code.
 */
export function explain(thrown: unknown): number {
  // Drizzle quotes the whole statement; what Postgres said is within.
  const error = thrown instanceof DrizzleQueryError ? databaseError(thrown) : thrown;
  if (error instanceof CommanderError) {
    // Commander has printed its own sentence; help that was asked for is no error.
    return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  }
  const redact = environmentRedactor();
  say(redact(`eod: ${messageOf(error) || String(error)}`));
  if (/^(debug|trace)$/.test(process.env.EOD_LOG_LEVEL ?? '') && error instanceof Error) {
    say(redact(error.stack ?? ''));
  }
  return error instanceof PipelineError && error.kind === 'usage' ? EXIT.usage : EXIT.failed;
}

/** Errors of libraries may quote an address or a key. */
function environmentRedactor(): (text: string) => string {
  try {
    const env = readEnvironment();
    const secrets = SECRET_SETTINGS.map((name) => env[name]);
    const passwords = secrets.map((text) =>
      text !== undefined && URL.canParse(text) ? decodeURIComponent(new URL(text).password) : undefined,
    );
    return redactor([...secrets, ...passwords]);
  } catch {
    // The unreadable .env is the very error that is being explained.
    return (text) => text;
  }
}
