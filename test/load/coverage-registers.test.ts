import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Place, placeAt } from '../../src/core/place.ts';
import { HELD_BACK } from '../../src/load/state/registers.ts';
import { forAll } from '../support/for-all.ts';
import {
  join,
  joinFolded,
  NO_REGISTERS,
  type QuestionFact,
  type Registers,
  registersOf,
  type Said,
  stateOf,
  sum,
} from './coverage-model.ts';

const RUNS = 500;

const placeOf = (at: number): Place => placeAt(new Date(Date.UTC(2025, 7, 29) + at));
const SAID = ['loaded', 'empty', 'not_published', 'failed', 'blocked', 'holiday'] as const;

/** Compared this way first, because `expect` takes longer than all the rest. */
function expectSame(found: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(found, expected)) expect(found).toEqual(expected);
}

/** The fact that a number stands for, which fast-check draws and shrinks faster than records. */
function factOf(drawn: number, at: number): QuestionFact {
  const doubted = drawn % 5 === 0;
  return {
    place: placeOf(at),
    said: doubted ? 'failed' : (SAID[drawn % SAID.length] ?? 'failed'),
    records: (drawn >> 4) % 7,
    diagnostic: drawn % 11 === 0 ? `diagnostic ${drawn}` : null,
    doubted,
    emptied: (drawn >> 7) % 3 === 0,
    heldBack: (drawn >> 9) % 3 === 0,
  };
}
const drawnFact = fc.nat(0xffff);

describe('joining the registers of a question', () => {
  const different = fc
    .tuple(
      fc.tuple(drawnFact, drawnFact, drawnFact, drawnFact),
      fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }),
    )
    .map(([drawn, places]) => drawn.map((one, at) => factOf(one, places[at] ?? 0)));

  test('is associative, commutative and idempotent for facts of different places, and begins with nothing', () => {
    forAll([different], { numRuns: RUNS }, (facts) => {
      const [a, b, c] = [sum(facts.slice(0, 2)), sum(facts.slice(2, 3)), sum(facts.slice(3))] as const;
      expect(join(join(a, b), c)).toEqual(join(a, join(b, c)));
      expect(join(a, b)).toEqual(join(b, a));
      expect(join(a, a)).toEqual(a);
      expect(join(join(a, b), b)).toEqual(join(a, b));
      expect(join(a, NO_REGISTERS)).toEqual(a);
      expect(join(NO_REGISTERS, a)).toEqual(a);
    });
  });

  test('at equal places takes what comes in: an answer that is read again says what it says now', () => {
    forAll([drawnFact, drawnFact, drawnFact], { numRuns: RUNS }, (before, first, again) => {
      const known = sum([factOf(before, 0), factOf(first, 1)]);
      const incoming = registersOf(factOf(again, 1));
      const { last, loaded } = join(known, incoming);
      expect(last).toEqual(incoming.last);
      expect(loaded).toEqual(incoming.loaded ?? known.loaded);
    });
  });
});

const MOST_WITHDRAWN = 3;
const DAYS = [0, 1] as const;

/**
 * An answer of an operation that fills two tables, of which it lists one in full: the symbols of each day there as bits,
 * and how many records it has in the other.
 */
interface Answer {
  readonly place: Place;
  readonly kind: 'full' | 'full' | 'filtered' | 'instrument' | 'call';
  /** First and last day. */
  readonly days: readonly number[];
  readonly symbols: readonly number[];
  readonly others: number;
  readonly rejects: boolean;
  readonly strays: boolean;
  readonly early: boolean;
  /** What a call said that had no answer. */
  readonly said: (typeof SAID)[number];
  /** Has a person accepted what was held back of it? */
  readonly accepted: boolean;
}

const KINDS = ['full', 'full', 'full', 'full', 'filtered', 'instrument', 'call'] as const;
function answerOf(drawn: number, at: number): Answer {
  let left = drawn;
  const take = (values: number) => {
    const value = left % values;
    left = Math.floor(left / values);
    return value;
  };
  const kind = KINDS[take(KINDS.length)] as Answer['kind'];
  const from = take(2);
  const days = from === 0 && take(2) === 0 ? [0, 1] : [from];
  const masks = [0, 0, 0xff, 0xfe, 0xf0, 0x7f, 0x03, 0x81];
  const [first = 0, second = 0] = [masks[take(8)], masks[take(8)]];
  const only = kind === 'instrument' ? 1 : 0xff;
  const strays = take(6) === 0 && kind !== 'call';
  const rejects = strays || take(5) === 0;
  return {
    place: placeOf(at),
    kind,
    days,
    symbols:
      kind === 'call'
        ? [0, 0]
        : DAYS.map((day) => (days.includes(day) ? [first, second][day] : 0)).map(
            (mask) => (mask ?? 0) & only,
          ),
    others: kind === 'full' && take(4) === 0 ? 2 : 0,
    rejects,
    strays,
    early: take(2) === 0,
    said: SAID[3 + take(3)] ?? 'failed',
    accepted: take(4) === 0,
  };
}

const bits = (mask: number) => {
  let count = 0;
  for (let rest = mask; rest > 0; rest >>= 1) count += rest & 1;
  return count;
};
const inOrder = (answers: readonly Answer[]) => [...answers].sort((a, b) => (a.place < b.place ? -1 : 1));

/** What became of the rows of a day when an answer was folded. */
interface Folded {
  readonly emptied: boolean;
  readonly heldBack: boolean;
}

/** Folds the rows of a day: what each of the answers did to them, in their order. */
function foldRows(answers: readonly Answer[], day: number): Map<Answer, Folded> {
  const done = new Map<Answer, Folded>();
  let rows = 0;
  for (const answer of inOrder(answers)) {
    if (answer.kind === 'call' || !answer.days.includes(day)) continue;
    const listed = answer.symbols[day] ?? 0;
    rows |= listed;
    const gone = answer.kind === 'full' && !answer.rejects ? rows & ~listed : 0;
    const heldBack = bits(gone) > MOST_WITHDRAWN && !answer.accepted;
    if (!heldBack) rows &= ~gone;
    done.set(answer, { emptied: gone !== 0 && !heldBack && rows === 0, heldBack });
  }
  return done;
}

/** What an answer says of a day, or of the first symbol on it. */
function saidOf(answer: Answer, day: number, instrument: boolean): Said | null {
  const isAbout = answer.days.includes(day) && answer.kind !== 'filtered';
  if (!isAbout || (answer.kind === 'instrument') !== instrument) return null;
  if (answer.kind === 'call') return { said: answer.said, records: 0, diagnostic: `the ${answer.said} call` };
  const records = bits(answer.symbols[day] ?? 0) + answer.others;
  if (answer.strays) return { said: 'failed', records, diagnostic: 'strays' };
  if (records > 0) return { said: 'loaded', records, diagnostic: null };
  if (answer.rejects) return { said: 'failed', records, diagnostic: 'rejects' };
  // A person who accepts that there is nothing does not wait for it any more.
  const isEmpty = (answer.kind === 'full' && answer.accepted) || !answer.early;
  return { said: isEmpty ? 'empty' : 'not_published', records, diagnostic: null };
}

/** The state of a question, told as it was when each of its answers came, in their order. */
function told(answers: readonly Answer[], day: number, instrument: boolean): Said | null {
  const rows = foldRows(answers, day);
  let known: Said | null = null;
  for (const answer of inOrder(answers)) {
    const folded = rows.get(answer);
    const own = saidOf(answer, day, instrument);
    if (own === null) continue;
    const hasNothing: boolean = own.said === 'empty' || own.said === 'not_published';
    const diagnostic: string | null = hasNothing && folded?.heldBack === true ? HELD_BACK : own.diagnostic;
    const stays: boolean = !answer.strays && folded?.emptied !== true;
    if (own.said === 'loaded') known = own;
    else if (stays && known?.said === 'loaded')
      known = { said: 'loaded', records: known.records, diagnostic };
    else known = { said: diagnostic === HELD_BACK ? 'failed' : own.said, records: own.records, diagnostic };
  }
  return known;
}

/** The fact of an answer about a question; null if it is not about it. */
function factAbout(
  answer: Answer,
  day: number,
  instrument: boolean,
  folded: Folded | undefined,
): QuestionFact | null {
  const said = saidOf(answer, day, instrument);
  if (said === null) return null;
  const { place, strays } = answer;
  return {
    ...said,
    place,
    doubted: strays,
    emptied: folded?.emptied ?? false,
    heldBack: folded?.heldBack ?? false,
  };
}

describe('the registers of a question', () => {
  const drawn = fc.array(fc.tuple(fc.nat(0x7fffffff), fc.nat(0xffff)), { minLength: 1, maxLength: 7 });
  const questions = DAYS.flatMap((day) => [false, true].map((instrument) => ({ day, instrument })));

  test('say after each load what the answers loaded so far say in their order, and are the sum of their facts', () => {
    let cases = 0;
    const began = performance.now();
    forAll([drawn], { numRuns: RUNS }, (chosen) => {
      const answers = chosen.map(([bits], at) => ({
        answer: answerOf(bits, at),
        order: chosen[at]?.[1] ?? 0,
      }));
      const queue = answers.sort((a, b) => a.order - b.order).map(({ answer }) => answer);
      const loaded: Answer[] = [];
      const registers = questions.map(() => NO_REGISTERS);
      for (const answer of queue) {
        const isLate = loaded.some((other) => other.place > answer.place);
        loaded.push(answer);
        for (const [at, { day, instrument }] of questions.entries()) {
          const rows = foldRows(loaded, day);
          const facts = loaded.flatMap((one) => factAbout(one, day, instrument, rows.get(one)) ?? []);
          registers[at] = load(registers[at] ?? NO_REGISTERS, {
            answer,
            facts,
            isFolded: isLate && rows.has(answer),
          });
          cases += 1;
          expectSame(stateOf(registers[at] ?? NO_REGISTERS), told(loaded, day, instrument));
          expectSame(registers[at], sum(facts));
        }
      }
    });
    console.log(`${cases} cases, ${Math.round((cases / (performance.now() - began)) * 1000)} a second`);
  });

  /** What a load does: a late answer whose day was folded assigns what the fold says, also where it says nothing itself. */
  function load(
    known: Registers,
    {
      answer,
      facts,
      isFolded,
    }: { readonly answer: Answer; readonly facts: readonly QuestionFact[]; readonly isFolded: boolean },
  ): Registers {
    const own = facts.find(({ place }) => place === answer.place);
    const incoming = own === undefined ? NO_REGISTERS : registersOf(own);
    if (!isFolded) return join(known, incoming);
    const { emptied, heldBack } = sum(facts);
    return joinFolded(known, { ...incoming, emptied, heldBack });
  }
});

describe('the state of a question', () => {
  const [before, now] = [placeOf(1), placeOf(2)];
  const last = { place: now, said: 'empty', records: 0, diagnostic: null } as const;
  test.each([
    [
      'where an answer fills one table and takes the last row of another',
      { loaded: now, emptied: now },
      'loaded',
    ],
    ['where one takes the last row after it was loaded', { loaded: before, emptied: now }, 'empty'],
    ['where one took the last row before it was loaded', { loaded: now, emptied: before }, 'loaded'],
    ['where one that had been loaded is doubted as it is read now', { loaded: now, doubted: now }, 'empty'],
    ['where the loaded one is newer than the doubted', { loaded: now, doubted: before }, 'loaded'],
    ['where the newest was held back', { heldBack: now }, 'failed'],
    ['where it was held back and the rows are loaded', { loaded: before, heldBack: now }, 'loaded'],
    ['where an older one was held back', { heldBack: before }, 'empty'],
  ])('%s', (_, { loaded, ...places }: Partial<Record<keyof Registers, Place>>, said) => {
    const registers = {
      ...NO_REGISTERS,
      last,
      loaded: loaded ? { place: loaded, records: 7 } : null,
      ...places,
    };
    expect(stateOf(registers as Registers)).toMatchObject({ said, records: said === 'loaded' ? 7 : 0 });
  });

  test('is unknown where nothing is known, and that of the newest where it is no answer', () => {
    expect(stateOf(NO_REGISTERS)).toBeNull();
    const heldBack = { ...NO_REGISTERS, last: { ...last, said: 'blocked' as const }, heldBack: now };
    expect(stateOf(heldBack)).toEqual({ said: 'blocked', records: 0, diagnostic: null });
  });
});
