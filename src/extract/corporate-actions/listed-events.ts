import type { Problem } from '../types.ts';
import {
  applied,
  CALLED_OFF,
  EVENT_KINDS,
  ignored,
  needsReview,
  type Purpose,
  type PurposeEvent,
  readPurpose,
  reduceRatio,
  review,
  type ShareRatio,
  SPECIAL_DIVIDEND,
} from './purpose.ts';

/** Two integers, such as 5:1. */
export const INTEGER_RATIO = /^(\d{1,9}):(\d{1,9})$/;
const AMOUNT = /^\d{1,9}(?:\.\d{1,6})?$/;

/** Kinds that do not change prices. */
const HARMLESS: ReadonlySet<string> = new Set(['interest', 'meeting', 'buyback']);

/**
 * Reads the kind and the ratio of an event as a list states them (the columns `stated_kind` and `stated_ratio`):
 * `bonus` with the new shares for those held (`1:2`), `split` and `consolidation` with shares or face values in either
 * order (`5:1`, `10:2`), `dividend` with rupees per share.
 */
export function readListedEvent(statedKind: string, text: string | null): PurposeEvent {
  const kind = EVENT_KINDS.find((name) => name === statedKind) ?? 'other';
  const ratio = text === null ? null : statedRatio(kind, text);
  const amount = kind === 'dividend' && text !== null && AMOUNT.test(text) ? text : null;
  if (ratio !== null || amount !== null) return applied(kind, { ratio, amount });
  if (HARMLESS.has(kind)) return ignored(kind, 'its list states no amount or ratio');
  const missing = kind === 'dividend' ? 'amount' : 'ratio to adjust prices by';
  return review(kind, `its list states no ${missing}`);
}

/** Why an action of the source service is not applied that states its kind and nothing else that can be read. */
export const NOT_STATED = 'the source states no ratio or amount, or a code whose meaning is not known';

/** A text that states nothing, or no number: the source writes 0 where it has none. */
const NOTHING = /^[0.\s]*$/;

/** Ratios as the published sample has them: eight digits in a row. No amount begins with 0 and has no decimals. */
const CODE = /^(?:0\d+|\d{8,})$/;

/** Kinds of which nothing is known without a ratio or an amount. */
const BY_TERMS: ReadonlySet<string> = new Set(['split', 'consolidation', 'bonus', 'dividend']);

/**
 * Reads an action as the source service states it: its type in words (`Final Dividend`, `Stock Split`), and the amount
 * or ratio (`14`, `10:2`). A code such as `00100001` is not read, because it is not documented what it means.
 */
export function readAnnounced(type: string, detail: string | null): Purpose {
  const read = readPurpose(type);
  const [only, ...more] = read.events;
  const text = (detail ?? '').trim().replace(/^R[SE]\.? ?/i, '');
  if (NOTHING.test(text) || CODE.test(text)) return /\d/.test(type) ? read : withoutTerms(read);
  const event = only === undefined || more.length > 0 ? null : withDetail(only, text);
  if (event === null) return readPurpose(`${type} ${detail}`);
  return { ...read, events: [read.calledOff ? needsReview(event, CALLED_OFF) : event] };
}

/** An event with its amount or ratio; null if it has one, or if that is not what the text states. */
function withDetail(event: PurposeEvent, text: string): PurposeEvent | null {
  const certain = { status: 'applied', reason: null } as const;
  if (event.kind !== 'dividend') {
    const ratio = event.status === 'needs_review' ? statedRatio(event.kind, text) : null;
    return ratio === null ? null : { ...event, ratio, ...certain };
  }
  if (!AMOUNT.test(text) || event.reason === null) return null;
  if (event.status === 'ignored') return { ...event, amount: text };
  if (event.label === 'special') return { ...event, amount: text, reason: SPECIAL_DIVIDEND };
  return { ...event, amount: text, ...certain };
}

function withoutTerms(read: Purpose): Purpose {
  const events = read.events.map((event) =>
    BY_TERMS.has(event.kind) &&
    event.status === 'needs_review' &&
    event.label !== 'special' &&
    !read.calledOff
      ? { ...event, reason: NOT_STATED }
      : event,
  );
  return { ...read, events };
}

/** What is wrong with the kind or the ratio of an event in a user's own list; null if nothing is. */
export function listedEventProblem(kind: string | null, ratio: string | null): Problem | null {
  if (kind === null || !EVENT_KINDS.some((name) => name === kind)) {
    return { path: 'kind', message: `must be one of ${EVENT_KINDS.join(', ')}` };
  }
  if (ratio === null) return null;
  const { ratio: read, amount } = readListedEvent(kind, ratio);
  if (read !== null || amount !== null) return null;
  if (kind === 'dividend') return { path: 'ratio', message: 'must be rupees per share, such as 2.50' };
  return ['bonus', 'split', 'consolidation'].includes(kind)
    ? {
        path: 'ratio',
        message:
          'must be two different whole numbers such as 5:1; for a bonus, the new shares for those held',
      }
    : {
        path: 'ratio',
        message: `must be empty: a ratio of a ${kind} does not say what prices are to be multiplied by`,
      };
}

/** A split has more shares after than before, a consolidation fewer, in whatever order they are stated. */
function statedRatio(kind: string, text: string): ShareRatio | null {
  const match = INTEGER_RATIO.exec(text.replace(/\s/g, ''));
  if (match === null) return null;
  const [a, b] = [Number(match[1]), Number(match[2])];
  if (kind === 'bonus') return a === 0 ? null : reduceRatio(a + b, b);
  if (a === b) return null;
  if (kind === 'split') return reduceRatio(Math.max(a, b), Math.min(a, b));
  return kind === 'consolidation' ? reduceRatio(Math.min(a, b), Math.max(a, b)) : null;
}
