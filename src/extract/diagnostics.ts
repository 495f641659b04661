import { type DiagnosedKind, PipelineError } from '../core/errors.ts';

interface DiagnosticLine {
  readonly kind: DiagnosedKind;
  readonly meaning: string;
  /** The line without its small words: the text has to contain the words of one of these, in this order. */
  readonly phrases: readonly string[];
  /** How many further words the text may have; few or, by default, none for a line that ends every run. */
  readonly furtherWords?: number;
}

const FURTHER_WORDS = 12;

/**
 * The lines that the source is known to send instead of data. They are recognized in any case and punctuation, in
 * singular and plural, and among some other words, because the exact lines are not documented.
 */
const LINES: readonly DiagnosticLine[] = [
  {
    kind: 'not_ready',
    meaning: 'the source is not ready yet',
    phrases: ['authentication request received', 'try request data in next moment'],
    furtherWords: FURTHER_WORDS,
  },
  { kind: 'not_ready', meaning: 'the source is not ready yet', phrases: ['welcome'] },
  {
    kind: 'not_ready',
    meaning: 'the source is still responding to the same request',
    phrases: ['duplicated request not allowed', 'duplicate request not allowed'],
  },
  // Before the lines that refuse the key: it is good, and free again when that session ends.
  {
    kind: 'not_ready',
    meaning: 'another session is using the access key',
    phrases: ['key already in use by other session', 'key already in use by another session'],
    furtherWords: 4,
  },
  {
    kind: 'no_data',
    meaning: 'the source has no data',
    phrases: ['data unavailable'],
  },
  {
    kind: 'no_data',
    meaning: 'the source has no data yet',
    phrases: ['data unavailable send request after market close'],
    furtherWords: FURTHER_WORDS,
  },
  {
    kind: 'hourly_quota',
    meaning: 'the hourly quota is used up',
    phrases: ['call per hour limited', 'bandwidth per hour limited'],
    furtherWords: FURTHER_WORDS,
  },
  {
    kind: 'monthly_quota',
    meaning: 'the monthly quota is used up',
    phrases: ['call limitation reached', 'bandwidth limitation reached'],
  },
  // Whatever follows: a refused key is never retried.
  {
    kind: 'credential',
    meaning: 'the access key was refused',
    phrases: ['access denied key'],
    furtherWords: FURTHER_WORDS,
  },
  { kind: 'credential', meaning: 'the access key was refused', phrases: ['key expired'] },
  {
    kind: 'credential',
    meaning: 'the access key may not be used from this address',
    phrases: ['ip address not allowed'],
  },
  {
    kind: 'operation_blocked',
    meaning: 'the key may not use this operation',
    phrases: ['function not enabled'],
    furtherWords: 4,
  },
  {
    kind: 'exchange_blocked',
    meaning: 'the key may not use this exchange',
    phrases: ['data for requested exchange disabled'],
    furtherWords: 4,
  },
  {
    kind: 'instrument_blocked',
    meaning: 'the key may not use this instrument',
    phrases: ['instrument not allowed for demo key'],
    furtherWords: 4,
  },
  {
    kind: 'instrument_blocked',
    meaning: 'the key may not request more instruments',
    phrases: ['reached instrument limitation'],
  },
  {
    kind: 'instrument_blocked',
    meaning: 'the key may not use this period',
    phrases: ['selected periodicity or period disabled'],
  },
  {
    kind: 'instrument_blocked',
    meaning: 'the key may not use real-time data',
    phrases: ['realtimesubscription disabled for delayed data'],
  },
  {
    kind: 'bad_request',
    meaning: 'several instruments have this name',
    phrases: ['more than 1 match found'],
    furtherWords: FURTHER_WORDS,
  },
  {
    kind: 'range_refused',
    meaning: 'the source refused the range',
    phrases: ['date out of allowed range', 'from to out of allowed range'],
    furtherWords: FURTHER_WORDS,
  },
  {
    kind: 'bad_request',
    meaning: 'the request carried no filter',
    phrases: ['filter cant empty', 'filter cannot empty'],
    furtherWords: 4,
  },
];

/** Words that do not matter, or vary. */
const SMALL_WORDS = new Set(
  ['a', 'an', 'the', 'your', 'is', 'are', 'was', 'were', 'be', 'been', 'has', 'have', 'now', 'please'].map(
    (word) => singular(word),
  ),
);

/** Words that negate the words next to them. */
const NEGATIONS = ['not', 'no', 'never', 'without', 'until', 'if'];

/** How many words may be between two words of a phrase. */
const LONGEST_GAP = 2;

/** Treats `days` and `day` as the same word; `was` becomes `wa`, which does no harm. */
function singular(word: string): string {
  return word.length > 2 ? word.replace(/s$/, '') : word;
}

function splitWords(text: string): string[] {
  const words = text
    .toLowerCase()
    .replace(/['’]/g, '')
    .matchAll(/[\p{L}\p{N}]+/gu);
  return Array.from(words, ([word]) => singular(word)).filter((word) => !SMALL_WORDS.has(word));
}

/** True if the words contain those of the phrase in their order, with few others and no negation in between. */
function contains(words: readonly string[], phrase: readonly string[]): boolean {
  return words.some((_, start) => {
    let at = start;
    return phrase.every((wanted) => {
      const gap = words.slice(at, at + LONGEST_GAP + 1).indexOf(wanted);
      if (gap < 0 || words.slice(at, at + gap).some((word) => NEGATIONS.includes(word))) return false;
      at += gap + 1;
      return true;
    });
  });
}

/** Every line is much shorter, so longer texts are not searched. */
const LONGEST_TEXT = 800;
/** The same without white space around and between words. */
const LONGEST_LINE = 250;

/**
 * The error of a diagnostic line; null if the text is none. The source sends such lines as plain text, usually with
 * status 200. `limitDays` is set if the line states a range.
 *
 * @param redact removes the access key, in case the source echoed it.
 */
export function diagnose(text: string, redact = (text: string) => text): PipelineError | null {
  if (text.length > LONGEST_TEXT) return null;
  const trimmed = redact(text)
    .trim()
    .replace(/^"(.*)"$/s, '$1')
    .replace(/\s+/g, ' ')
    .trim();
  // Markup, JSON and CSV are not diagnostic lines.
  if (trimmed.length > LONGEST_LINE || /[<>{}=,;]/.test(trimmed)) return null;
  const words = splitWords(trimmed);
  const known = LINES.find(({ phrases, furtherWords = 0 }) =>
    phrases.some((phrase) => {
      const wanted = phrase.split(' ').map(singular);
      return words.length <= wanted.length + furtherWords && contains(words, wanted);
    }),
  );
  if (known === undefined) return null;
  const { kind } = known;
  const message = `${known.meaning}: ${trimmed}`;
  if (kind !== 'range_refused') return new PipelineError(message, { kind, diagnostic: trimmed });
  return new PipelineError(message, { kind, diagnostic: trimmed, limitDays: statedDays(trimmed) });
}

/** Units in which a line may state the longest range, and their days. */
const RANGES = [
  { stated: /\bof (\d{1,5}) days?\b/i, days: 1 },
  // Without leap years, so that a window of that many days is always within the range.
  { stated: /\bof (\d{1,5}) years?\b/i, days: 365 },
];

function statedDays(text: string): number | undefined {
  for (const { stated, days } of RANGES) {
    const length = stated.exec(text)?.[1];
    if (length !== undefined) return Number(length) * days;
  }
  return undefined;
}

/** How many characters of an unknown response are kept. */
const KEPT = 500;

/** The most lines of an unknown response that are looked at. */
const LINES_LOOKED_AT = 20;

/**
 * True if a text looks like rows of CSV. Without a header row its columns are unknown; the documentation
 * shows one operation that responds so where `CsvContent` is requested.
 */
function looksLikeRows(text: string): boolean {
  const lines = text.trim().split(/\r?\n/, LINES_LOOKED_AT + 1);
  // The last one may be cut.
  if (lines.length > 1) lines.pop();
  const hasDate = /"\d\d-\d\d-\d{4}[ "]/.test(lines[0] ?? '');
  return (lines.length > 1 || hasDate) && lines.every((line) => line.split(',', 5).length === 5);
}

/**
 * The error for text that is neither data nor a known line. Its beginning is kept.
 *
 * @param redact removes the access key, in case the source echoed it.
 */
export function unknownDiagnostic(text: string, redact: (text: string) => string): PipelineError {
  const diagnostic = redact(text.slice(0, 128 * KEPT).trim())
    .slice(0, KEPT)
    .replaceAll('\u0000', '\\u0000');
  const description = looksLikeRows(text.slice(0, 128 * KEPT))
    ? 'CSV without a header row, so its columns are unknown; request another format, such as EOD_FORMAT=Csv'
    : 'text that is not data';
  return new PipelineError(`the source responded with ${description}: ${diagnostic}`, {
    kind: 'unknown_diagnostic',
    diagnostic,
  });
}

/** The error for a response that cannot be read as data; the next response to the same request may be readable. */
export function unreadable(problem: string, { cutShort = false } = {}): PipelineError {
  const facts = { kind: 'unreadable', cutShort } as const;
  return new PipelineError(`the response cannot be read: ${problem}`, facts);
}

/** The error for a response that says that records are missing; a response to a smaller request may have them all. */
export function incomplete(problem: string): PipelineError {
  return new PipelineError(`the response is incomplete: ${problem}`, {
    kind: 'unreadable',
    cutShort: true,
  });
}

/** The error for a response that is larger than this process reads. */
export function tooLarge(problem: string): PipelineError {
  return new PipelineError(`the response is too large: ${problem}`, { kind: 'too_large' });
}

/** A message may quote bytes of a file that is not text; Postgres cannot store NUL. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}]+/gu;

/** The error for a file that cannot be read: nothing of it is stored, and the import goes on with the next file. */
export function badFile(
  problem: string,
  options: { readonly cause?: unknown; readonly unknownForm?: string | undefined } = {},
): PipelineError {
  const printable = problem.replace(UNPRINTABLE, ' ');
  return new PipelineError(printable, { kind: 'unreadable', ...options });
}
