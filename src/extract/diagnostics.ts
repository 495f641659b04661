import { type ErrorFacts, type ErrorKind, PipelineError } from '../core/errors.ts';

interface DiagnosticLine {
  readonly kind: ErrorKind;
  readonly meaning: string;
  /** The line without its small words: one of these is in the text, in this order. */
  readonly phrases: readonly string[];
  /** How many further words the text may hold. A line that ends every run is believed only if it says little else. */
  readonly furtherWords: number;
}

const FURTHER_WORDS = 12;

/**
 * The lines that the source is known to send in place of data. They are recognized in any case and punctuation, in
 * singular and plural, and among some other words, because nobody knows all that it sends.
 */
const LINES: readonly DiagnosticLine[] = [
  {
    kind: 'not_ready',
    meaning: 'the source is not ready yet',
    phrases: ['authentication request received', 'try request data in next moment'],
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
    furtherWords: 0,
  },
  // What is said of the key need not be known: a dead key is never retried.
  {
    kind: 'credential',
    meaning: 'the access key was refused',
    phrases: ['access denied key'],
    furtherWords: FURTHER_WORDS,
  },
  { kind: 'credential', meaning: 'the access key was refused', phrases: ['key expired'], furtherWords: 0 },
  {
    kind: 'operation_blocked',
    meaning: 'the key has no right to this operation',
    phrases: ['function not enabled'],
    furtherWords: 4,
  },
  {
    kind: 'exchange_blocked',
    meaning: 'the key has no right to this exchange',
    phrases: ['data for requested exchange disabled'],
    furtherWords: 4,
  },
  {
    kind: 'instrument_blocked',
    meaning: 'the key has no right to this instrument',
    phrases: ['instrument not allowed for demo key'],
    furtherWords: 4,
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

/** Words that say nothing, or are put otherwise just as well. */
const SMALL_WORDS = new Set(
  ['a', 'an', 'the', 'your', 'is', 'are', 'was', 'were', 'be', 'been', 'has', 'have', 'now', 'please'].map(
    (word) => singular(word),
  ),
);

/** A word that turns round what the ones beside it say. */
const NEGATIONS = ['not', 'no', 'never', 'without', 'until', 'if'];

/** Words that may stand between two of a phrase. */
const LONGEST_GAP = 2;

/** `days` and `day` are one word; so are `was` and `wa`, which does no harm. */
function singular(word: string): string {
  return word.length > 2 ? word.replace(/s$/, '') : word;
}

function wordsOf(text: string): string[] {
  const words = text
    .toLowerCase()
    .replace(/['’]/g, '')
    .match(/[\p{L}\p{N}]+/gu);
  return (words ?? []).map(singular).filter((word) => !SMALL_WORDS.has(word));
}

/** Do the words hold those of the phrase in their order, and little between two of them? */
function holds(words: readonly string[], phrase: readonly string[]): boolean {
  return words.some((_, start) => {
    let at = start;
    return phrase.every((wanted, place) => {
      const longest = place === 0 ? 0 : LONGEST_GAP;
      const found = words.slice(at, at + longest + 1).indexOf(wanted);
      if (found < 0 || words.slice(at, at + found).some((word) => NEGATIONS.includes(word))) return false;
      at += found + 1;
      return true;
    });
  });
}

/** No line comes near this length, so longer texts are not searched. */
const LONGEST_TEXT = 800;
/** Without the white space. */
const LONGEST_LINE = 250;

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
  // Markup, JSON and CSV are no lines.
  if (trimmed.length > LONGEST_LINE || /[<>{}=,;]/.test(trimmed)) return null;
  const words = wordsOf(trimmed);
  const known = LINES.find(({ phrases, furtherWords }) =>
    phrases.some((phrase) => {
      const wanted = phrase.split(' ').map(singular);
      return words.length <= wanted.length + furtherWords && holds(words, wanted);
    }),
  );
  if (known === undefined) return null;
  const length = /\bof (\d{1,5}) (day|year)s?\b/i.exec(trimmed);
  const limitDays = known.kind === 'range_refused' ? daysOf(length?.[1], length?.[2]) : undefined;
  return new PipelineError(`${known.meaning}: ${trimmed}`, {
    kind: known.kind,
    diagnostic: trimmed,
    ...(limitDays === undefined ? {} : { limitDays }),
  });
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
export function badFile(
  problem: string,
  options: Pick<ErrorFacts, 'cause' | 'unknownFormat'> = {},
): PipelineError {
  const printable = problem.replace(UNPRINTABLE, ' ');
  return new PipelineError(printable, { kind: 'unreadable', ...options });
}
