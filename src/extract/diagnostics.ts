import { type ErrorKind, PipelineError, RANGE_REFUSED_LINE } from '../core/errors.ts';

interface DiagnosticLine {
  /** Matches the whole line, after trimming, without regard to case, with or without the final dot. */
  readonly line: RegExp;
  readonly kind: ErrorKind;
  readonly meaning: string;
}

const line = (pattern: string, kind: ErrorKind, meaning: string): DiagnosticLine => ({
  line: new RegExp(`^(?:${pattern})\\.?$`, 'i'),
  kind,
  meaning,
});

/** The lines that the source is known to send in place of data. The length of a range is captured. */
const LINES: readonly DiagnosticLine[] = [
  line(
    'Authentication request received\\. Try request data in next moment',
    'not_ready',
    'the source is not ready yet',
  ),
  line('(?:Calls|Bandwidth) per hour (?:are|is) limited', 'hourly_quota', 'the hourly quota is used up'),
  line('(?:Calls|Bandwidth) limitation is reached', 'monthly_quota', 'the monthly quota is used up'),
  // A line about the key that nobody has seen yet must stop the run too: a dead key is never retried.
  line('Access Denied\\. Key .{1,100}|Key Expired', 'credential', 'the access key was refused'),
  line('Function not enabled', 'operation_blocked', 'the key has no right to this operation'),
  line(
    'Data for requested exchange is disabled',
    'exchange_blocked',
    'the key has no right to this exchange',
  ),
  line(
    'Instrument is not allowed for Demo key',
    'instrument_blocked',
    'the key has no right to this instrument',
  ),
  line(
    `${RANGE_REFUSED_LINE}(?: of (?<length>\\d{1,5}) (?<unit>day|year)s?)?`,
    'range_refused',
    'the source refused the range',
  ),
  line("Filters can'?t be empty", 'bad_request', 'the request carried no filter'),
];

/** No known line comes near this length, so longer texts are not searched. */
const LONGEST_TEXT = 800;

/**
 * The error that a diagnostic line stands for, or null when the text is none of them. The source
 * sends such lines as plain text, usually with status 200. `limitDays` is set where a range is named.
 *
 * @param redact takes the access key out, should the source have echoed it.
 */
export function diagnose(text: string, redact = (text: string) => text): PipelineError | null {
  if (text.length > LONGEST_TEXT) return null;
  const trimmed = redact(text)
    .trim()
    .replace(/^"(.*)"$/s, '$1')
    .replace(/\s+/g, ' ')
    .trim();
  for (const known of LINES) {
    const match = known.line.exec(trimmed);
    if (match === null) continue;
    const limitDays = daysOf(match.groups?.length, match.groups?.unit);
    return new PipelineError(`${known.meaning}: ${trimmed}`, {
      kind: known.kind,
      diagnostic: trimmed,
      ...(limitDays === undefined ? {} : { limitDays }),
    });
  }
  return null;
}

function daysOf(length: string | undefined, unit: string | undefined): number | undefined {
  if (length === undefined) return undefined;
  // Leap years are left out, so that a window of that many days is always inside the range.
  return Number(length) * (unit?.toLowerCase() === 'year' ? 365 : 1);
}

/** Characters of an unknown answer that are kept. */
const KEPT = 500;

/**
 * The error for text that is neither data nor a known line. The text is kept.
 *
 * @param redact takes the access key out, should the source have echoed it.
 */
export function unknownDiagnostic(text: string, redact: (text: string) => string): PipelineError {
  const diagnostic = redact(text.slice(0, 128 * KEPT).trim())
    .slice(0, KEPT)
    .replaceAll('\u0000', '\\u0000');
  return new PipelineError(`the source answered with text that is no data: ${diagnostic}`, {
    kind: 'unknown_diagnostic',
    diagnostic,
  });
}

/** The error for an answer that cannot be read as data; the next one to the same request may be whole. */
export function unreadable(problem: string, { cutShort = false } = {}): PipelineError {
  const facts = { kind: 'unreadable', cutShort } as const;
  return new PipelineError(`the answer cannot be read: ${problem}`, facts);
}

/** The error for an answer that says itself that it does not hold all it should; asked for less, it may. */
export function incomplete(problem: string): PipelineError {
  const facts = { kind: 'unreadable', cutShort: true } as const;
  return new PipelineError(`the answer is incomplete: ${problem}`, facts);
}

/** The error for an answer that is larger than this process takes. */
export function tooLarge(problem: string): PipelineError {
  return new PipelineError(`the answer is too large: ${problem}`, { kind: 'too_large' });
}

/** Bytes of a file that is no text at all may be quoted in a problem; Postgres keeps no NUL. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}]+/gu;

/** A file that cannot be read as a whole: nothing of it is stored, and the next file is read. */
export function badFile(problem: string, options: { readonly cause?: unknown } = {}): PipelineError {
  const printable = problem.replace(UNPRINTABLE, ' ');
  return new PipelineError(printable, { kind: 'unreadable', ...options });
}
