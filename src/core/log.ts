import { type LogFn, type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { writeOutControls } from './controls.ts';
import { timeAt } from './days.ts';
import { redactor, type SECRET_SETTINGS } from './environment.ts';
import { messageOf, PipelineError } from './errors.ts';

export type { Logger } from 'pino';

/** Settings of the log, and what must not be in it. */
type LogSettings = Pick<
  Config,
  'EOD_LOG_LEVEL' | 'EOD_LOG_FORMAT' | 'EOD_TIMEZONE' | (typeof SECRET_SETTINGS)[number]
>;

/**
 * The log, on stderr, so that stdout stays for results: lines for people on a terminal, and else lines of JSON
 * (EOD_LOG_FORMAT). The finished line is searched for secrets, so that no path through errors or nested objects can
 * carry one out.
 */
export function createLog(
  config: LogSettings,
  stderr: { write(text: string): unknown; readonly isTTY?: boolean } = process.stderr,
): Logger {
  const isText =
    config.EOD_LOG_FORMAT === 'text' || (config.EOD_LOG_FORMAT === 'auto' && stderr.isTTY === true);
  const shown = isText ? (line: string) => textLine(line, config.EOD_TIMEZONE) : (line: string) => line;
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
    { write: (line: string) => void stderr.write(writeOutControls(shown(redact(line)))) },
  );
}

/** Members of a line that are shown in other ways than as `name=value`. */
const SHOWN_APART = ['level', 'time', 'pid', 'msg', 'err', 'operation', 'exchange', 'from', 'to'];

/** A line of the log for people: time, level, message, which data it is about, what went wrong, and the other facts. */
function textLine(json: string, zone: string): string {
  let line: Record<string, unknown>;
  try {
    line = JSON.parse(json) as Record<string, unknown>;
  } catch {
    return json;
  }
  const { operation, exchange, from, to } = line;
  const days = from === to ? [from] : [from, to === undefined ? undefined : `to ${to}`];
  const subject = [operation, exchange, ...days].filter((part) => part !== undefined).join(' ');
  const error = errorText(line.err);
  const facts = Object.entries(line)
    .filter(([name]) => !SHOWN_APART.includes(name))
    .flatMap(([name, value]) => factsOf(name, value));
  const level = (pino.levels.labels[Number(line.level)] ?? '').toUpperCase().padEnd(5);
  const message = [line.msg, subject, error].filter((part) => (part ?? '') !== '').join(': ');
  return `${[timeAt(Math.floor(Number(line.time) / 1_000), zone), level, message, ...facts].join(' ')}\n`;
}

function errorText(error: unknown): string {
  const { message, code, stack } = Object(error) as Record<string, string | undefined>;
  const sentence = code === undefined ? message : `${message} (${code})`;
  return [sentence ?? '', ...(stack === undefined ? [] : [stack])].join('\n');
}

/** `name=value`; of an object each member. */
function factsOf(name: string, value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [`${name}=${value}`];
  if (Array.isArray(value)) return [`${name}=${JSON.stringify(value)}`];
  return Object.entries(value).flatMap(([member, one]) => factsOf(`${name}.${member}`, one));
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
