import { type LogFn, type Logger, pino, stdTimeFunctions } from 'pino';
import type { Config } from './config.ts';
import { type DayRange, timeAt } from './days.ts';
import { redactValues, type SECRET_SETTINGS, settingsRedactor } from './environment.ts';
import {
  type ErrorKind,
  errorCode,
  isLostConnection,
  messageOf,
  PipelineError,
  readMember,
} from './errors.ts';
import type { Pair } from './exchanges.ts';
import { escapeControls } from './wording.ts';

export type { Logger } from 'pino';

/** Settings of the log, and the secrets that must not appear in it. */
type LogSettings = Pick<
  Config,
  'EOD_LOG_LEVEL' | 'EOD_LOG_FORMAT' | 'EOD_TIMEZONE' | (typeof SECRET_SETTINGS)[number]
>;

/**
 * Creates the log. It writes to stderr, because only results go to stdout: text on a terminal, otherwise JSON lines
 * (EOD_LOG_FORMAT). Secrets are removed from the finished line, so that no error or nested object can reveal one.
 *
 * @param isForPerson whether a person waits for the command: its lines are sentences, whether on a terminal or not.
 */
export function createLog(
  config: LogSettings,
  stderr: { write(text: string): unknown; readonly isTTY?: boolean } = process.stderr,
  isForPerson = false,
): Logger {
  const { EOD_LOG_FORMAT: set, EOD_TIMEZONE: zone } = config;
  const isText = set === 'text' || (set === 'auto' && stderr.isTTY === true);
  const isSentence = set === 'auto' && isForPerson;
  const format = (line: string) => (isSentence ? sentence(line) : isText ? textLine(line, zone) : line);
  const redact = settingsRedactor(config);
  return pino(
    {
      level: config.EOD_LOG_LEVEL,
      base: { pid: process.pid },
      // The notation of most collectors of logs, instead of a number and milliseconds.
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      serializers: { err: describeError },
      hooks: { logMethod: limitOutageLines() },
    },
    { write: (line: string) => void stderr.write(escapeControls(format(redactLine(line, redact)))) },
  );
}

/** A log line without secrets, which is still JSON: a secret may be the name of a member, or a number. */
function redactLine(line: string, redact: (text: string) => string): string {
  return redact(line) === line ? line : `${JSON.stringify(redactValues(JSON.parse(line), redact))}\n`;
}

/** Members of a log line that its text form does not show as `name=value`. */
const NOT_AS_FACTS = ['level', 'time', 'pid', 'msg', 'err', 'operation', 'exchange', 'from', 'to'];

/** A log line as text: time, level, message, the data it is about, the error, and the other members. */
function textLine(json: string, zone: string): string {
  const line = parsed(json);
  if (line === null) return json;
  const level = String(line.level).toUpperCase().padEnd(5);
  const time = timeAt(Math.floor(Date.parse(String(line.time)) / 1_000), zone);
  return `${[time, level, messageOfLine(line), ...namedFacts(line)].join(' ')}\n`;
}

/** A log line as a sentence: `eod: warning: this operation is left out: GetVoting (problem=…)`. */
function sentence(json: string): string {
  const line = parsed(json);
  if (line === null) return json;
  const level = line.level === 'warn' ? 'warning' : String(line.level);
  const facts = namedFacts(line);
  return `eod: ${level}: ${messageOfLine(line)}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}\n`;
}

type LogLine = Readonly<Record<string, unknown>>;

function parsed(json: string): LogLine | null {
  try {
    return JSON.parse(json) as LogLine;
  } catch {
    return null;
  }
}

function messageOfLine({ msg, operation, exchange, from, to, err }: LogLine): string {
  const days = from === to ? [from] : [from, to === undefined ? undefined : `to ${to}`];
  const subject = [operation, exchange, ...days].filter((part) => part !== undefined).join(' ');
  return [msg, subject, errorText(err)].filter((part) => (part ?? '') !== '').join(': ');
}

const namedFacts = (line: LogLine): string[] =>
  Object.entries(line)
    .filter(([name]) => !NOT_AS_FACTS.includes(name))
    .flatMap(([name, value]) => formatFacts(name, value));

function errorText(error: unknown): string {
  const [message, code, stack] = ['message', 'code', 'stack'].map((name) => readMember(error, name));
  const sentence = code === undefined ? (message ?? '') : `${message} (${code})`;
  return [sentence, ...(stack === undefined ? [] : [stack])].join('\n');
}

/** `name=value`; for an object, one for each member. */
function formatFacts(name: string, value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [`${name}=${value}`];
  if (Array.isArray(value)) return [`${name}=${JSON.stringify(value)}`];
  return Object.entries(value).flatMap(([member, nested]) => formatFacts(`${name}.${member}`, nested));
}

/** The members that identify a window in the log, so that lines can be searched by operation, exchange or day. */
export function windowFacts(window: Pair & DayRange & { readonly id: number; readonly runId: number }) {
  const { id: windowId, runId, operation, exchange, from, to } = window;
  return { runId, windowId, operation, exchange, from, to };
}

/** While a server cannot be reached or cannot store, one line in this time says so. */
const OUTAGE_LINE_MS = 60_000;

/**
 * While a server cannot be reached or cannot store, every connection, window and timer logs the same error. Of these
 * lines the first is written, and then one a minute.
 */
function limitOutageLines(): (this: Logger, args: Parameters<LogFn>, method: LogFn) => void {
  const loggedAt = new Map<string, number>();
  return function log(args, method) {
    const server = unreachableServer(readMember(args[0], 'err'));
    if (server !== null) {
      const now = Date.now();
      if (now - (loggedAt.get(server) ?? Number.NEGATIVE_INFINITY) < OUTAGE_LINE_MS) return;
      loggedAt.set(server, now);
    }
    method.apply(this, args);
  };
}

/** Error codes of a broken connection: those of sockets, and of Postgres when it stops, starts or is full. */
const UNREACHABLE_CODES = /^(E[A-Z_]+|08\w{3}|53300|57P0\d)$/;

/** Those of a Postgres that cannot store. */
const CANNOT_STORE_CODES = /^(53\w{3}|58\w{3}|25006)$/;

/** The server that cannot be reached or cannot store, according to an error; null for any other error. */
function unreachableServer(error: unknown): string | null {
  const cause = withoutStatement(error);
  if (cause instanceof PipelineError) return OUTAGES[cause.kind] ?? null;
  if (!(cause instanceof Error)) return null;
  if (isLostConnection(cause)) return 'Postgres';
  const code = errorCode(cause);
  if (code === undefined) return null;
  if (!UNREACHABLE_CODES.test(code)) return CANNOT_STORE_CODES.test(code) ? STORAGE : null;
  return readMember(cause, 'severity') === undefined ? 'connection' : 'Postgres';
}

const STORAGE = 'storage of Postgres';

const OUTAGES: Readonly<Partial<Record<ErrorKind, string>>> = {
  database_unreachable: 'Postgres',
  database_cannot_store: STORAGE,
};

/** The driver's error: drizzle wraps it in one that quotes the whole statement with its values. */
function withoutStatement(error: unknown): unknown {
  return error instanceof Error && 'query' in error && error.cause !== undefined ? error.cause : error;
}

/**
 * The useful members of an error; drivers attach whole connections to theirs. The stack is logged for defects only:
 * a `PipelineError`, or an error with a code, explains itself.
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
  const isOwn = error instanceof PipelineError;
  const defect = isOwn && error.kind === 'defect' && error.cause instanceof Error ? error.cause : null;
  const isDefect = !isOwn && !('code' in error) && unreachableServer(error) === null;
  const where = defect !== null ? { stack: defect.stack } : isDefect ? { stack } : {};
  return { type: name, message, ...Object.fromEntries(facts), ...cause, ...where };
}
