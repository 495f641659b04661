import { type LogFn, type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { writeOutControls } from './controls.ts';
import { redactor, type SECRET_SETTINGS } from './environment.ts';
import { messageOf, PipelineError } from './errors.ts';

export type { Logger } from 'pino';

/**
 * The log: JSON lines on stderr, so that stdout stays for results. The finished line is searched
 * for secrets, so that no path through errors or nested objects can carry one out.
 */
export function createLog(
  config: Pick<Config, 'EOD_LOG_LEVEL' | (typeof SECRET_SETTINGS)[number]>,
  stderr: { write(text: string): unknown } = process.stderr,
): Logger {
  const redact = redactor([
    config.EOD_ACCESS_KEY,
    config.EOD_ALERT_WEBHOOK,
    config.EOD_ALERT_SECRET,
    config.EOD_HEARTBEAT_URL,
    config.EOD_WEB_PASSWORD,
    passwordOf(config.DATABASE_URL),
    passwordOf(config.REDIS_URL),
  ]);
  return pino(
    {
      level: config.EOD_LOG_LEVEL,
      base: { pid: process.pid },
      serializers: { err: describeError },
      hooks: { logMethod: onceForAnOutage() },
    },
    { write: (line: string) => void stderr.write(writeOutControls(redact(line))) },
  );
}

/** What the log says of a window, so that an operator finds all lines about an operation, an exchange or a day. */
export function windowFacts(window: {
  readonly id: number;
  readonly runId: number;
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
}) {
  const { id: windowId, runId, operation, exchange, from, to } = window;
  return { runId, windowId, operation, exchange, from, to };
}

/** Lines about a server that is away are one event for so long. */
const OUTAGE_MS = 60_000;

/**
 * While a server is away every connection, window and timer meets the same error. The first of them is logged,
 * and one a minute after that.
 */
function onceForAnOutage(): (this: Logger, args: Parameters<LogFn>, method: LogFn) => void {
  const loggedAt = new Map<string, number>();
  return function log(args, method) {
    const { err } = Object(args[0]) as { readonly err?: unknown };
    const server = serverAway(err);
    if (server !== null) {
      const now = Date.now();
      if (now - (loggedAt.get(server) ?? Number.NEGATIVE_INFINITY) < OUTAGE_MS) return;
      loggedAt.set(server, now);
    }
    method.apply(this, args);
  };
}

/** Codes of a broken connection: those of sockets, and of Postgres as it shuts down, starts or has no room. */
const AWAY_CODES = /^(E[A-Z_]+|08\w{3}|53\w{3}|57P0\d)$/;

/** What node-postgres says of a broken connection, for which it has no code. */
const AWAY_MESSAGES = /^(Connection terminated|timeout exceeded when trying to connect)/;

/** Which server an error shows to be away; null for any other error. */
function serverAway(error: unknown): string | null {
  const cause = withoutStatement(error);
  if (cause instanceof PipelineError) return cause.kind === 'database_away' ? 'Postgres' : null;
  if (!(cause instanceof Error)) return null;
  if (AWAY_MESSAGES.test(cause.message)) return 'Postgres';
  const { code, severity } = cause as { readonly code?: unknown; readonly severity?: unknown };
  if (typeof code !== 'string' || !AWAY_CODES.test(code)) return null;
  return severity === undefined ? 'connection' : 'Postgres';
}

/** Drizzle quotes the whole statement with its values; what the driver threw is within. */
function withoutStatement(error: unknown): unknown {
  return error instanceof Error && 'query' in error && error.cause !== undefined ? error.cause : error;
}

/**
 * The facts of an error that help, because drivers attach whole connections to theirs. The stack is
 * logged for defects only: a `PipelineError` and an error with a code say by themselves what is wrong.
 */
function describeError(thrown: unknown): object {
  const error = withoutStatement(thrown);
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack } = error;
  const facts = ['code', 'kind', 'status', 'diagnostic'].flatMap((key) => {
    const value: unknown = Reflect.get(error, key);
    return value === undefined ? [] : [[key, value]];
  });
  const cause = error.cause === undefined ? {} : { cause: messageOf(error.cause) };
  const isDefect = !(error instanceof PipelineError) && !('code' in error) && serverAway(error) === null;
  const where = isDefect ? { stack } : {};
  return { type: name, message, ...Object.fromEntries(facts), ...cause, ...where };
}

function passwordOf(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  const { password } = new URL(address);
  return password === '' ? undefined : decodeURIComponent(password);
}
