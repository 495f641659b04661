import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Position, positionAt } from '../../../src/core/position.ts';
import { WITHHELD } from '../../../src/state/registers.ts';
import { forAll } from '../../support/for-all.ts';
import {
  type EntryFact,
  type EntryState,
  join,
  joinFolded,
  NO_REGISTERS,
  type Registers,
  registersOf,
  stateOf,
  sum,
} from './coverage-model.ts';

const RUNS = 500;

const positionOf = (at: number): Position => positionAt(new Date(Date.UTC(2025, 7, 29) + at));
const STATES = ['loaded', 'empty', 'not_published', 'failed', 'blocked', 'holiday'] as const;

/** Compared this way first, because `expect` takes longer than all the rest. */
function expectSame(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
}

/** The fact that a number stands for, which fast-check draws and shrinks faster than records. */
function factOf(drawn: number, at: number): EntryFact {
  const suspicious = drawn % 5 === 0;
  return {
    position: positionOf(at),
    state: suspicious ? 'failed' : (STATES[drawn % STATES.length] ?? 'failed'),
    records: (drawn >> 4) % 7,
    diagnostic: drawn % 11 === 0 ? `diagnostic ${drawn}` : null,
    suspicious,
    emptied: (drawn >> 7) % 3 === 0,
    withheld: (drawn >> 9) % 3 === 0,
  };
}
const drawnFact = fc.nat(0xffff);

describe('joining the registers of an entry', () => {
  const different = fc
    .tuple(
      fc.tuple(drawnFact, drawnFact, drawnFact, drawnFact),
      fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }),
    )
    .map(([drawn, positions]) => drawn.map((number, at) => factOf(number, positions[at] ?? 0)));

  test('is associative, commutative and idempotent for facts of different positions, and begins with nothing', () => {
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

  test('at equal positions takes what comes in: a response that is read again says what it says now', () => {
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
 * A response of an operation that fills two tables, of which it lists one in full: the symbols of each day there as
 * bits, and how many records it has in the other.
 */
interface Response {
  readonly position: Position;
  readonly kind: 'full' | 'full' | 'filtered' | 'instrument' | 'call';
  /** First and last day. */
  readonly days: readonly number[];
  readonly symbols: readonly number[];
  readonly others: number;
  readonly rejects: boolean;
  readonly strays: boolean;
  readonly early: boolean;
  /** The state of a call that had no response. */
  readonly state: (typeof STATES)[number];
  /** Has a person accepted what was withheld of it? */
  readonly accepted: boolean;
}

const KINDS = ['full', 'full', 'full', 'full', 'filtered', 'instrument', 'call'] as const;
function responseOf(drawn: number, at: number): Response {
  let left = drawn;
  const take = (values: number) => {
    const value = left % values;
    left = Math.floor(left / values);
    return value;
  };
  const kind = KINDS[take(KINDS.length)] as Response['kind'];
  const from = take(2);
  const days = from === 0 && take(2) === 0 ? [0, 1] : [from];
  const masks = [0, 0, 0xff, 0xfe, 0xf0, 0x7f, 0x03, 0x81];
  const [first = 0, second = 0] = [masks[take(8)], masks[take(8)]];
  const only = kind === 'instrument' ? 1 : 0xff;
  const strays = take(6) === 0 && kind !== 'call';
  const rejects = strays || take(5) === 0;
  return {
    position: positionOf(at),
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
    state: STATES[3 + take(3)] ?? 'failed',
    accepted: take(4) === 0,
  };
}

const bits = (mask: number) => {
  let count = 0;
  for (let rest = mask; rest > 0; rest >>= 1) count += rest & 1;
  return count;
};
const inOrder = (responses: readonly Response[]) =>
  [...responses].sort((a, b) => (a.position < b.position ? -1 : 1));

/** What became of the rows of a day when a response was folded. */
interface Folded {
  readonly emptied: boolean;
  readonly withheld: boolean;
}

/** Folds the rows of a day: what each of the responses did to them, in their order. */
function foldRows(responses: readonly Response[], day: number): Map<Response, Folded> {
  const done = new Map<Response, Folded>();
  let rows = 0;
  for (const response of inOrder(responses)) {
    if (response.kind === 'call' || !response.days.includes(day)) continue;
    const listed = response.symbols[day] ?? 0;
    rows |= listed;
    const gone = response.kind === 'full' && !response.rejects ? rows & ~listed : 0;
    const withheld = bits(gone) > MOST_WITHDRAWN && !response.accepted;
    if (!withheld) rows &= ~gone;
    done.set(response, { emptied: gone !== 0 && !withheld && rows === 0, withheld });
  }
  return done;
}

/** What a response says of a day, or of the first symbol on it. */
function entryStateOf(response: Response, day: number, instrument: boolean): EntryState | null {
  const isAbout = response.days.includes(day) && response.kind !== 'filtered';
  if (!isAbout || (response.kind === 'instrument') !== instrument) return null;
  if (response.kind === 'call')
    return { state: response.state, records: 0, diagnostic: `the ${response.state} call` };
  const records = bits(response.symbols[day] ?? 0) + response.others;
  if (response.strays) return { state: 'failed', records, diagnostic: 'strays' };
  if (records > 0) return { state: 'loaded', records, diagnostic: null };
  if (response.rejects) return { state: 'failed', records, diagnostic: 'rejects' };
  // A person who accepts that there is nothing does not wait for it any more.
  const isEmpty = (response.kind === 'full' && response.accepted) || !response.early;
  return { state: isEmpty ? 'empty' : 'not_published', records, diagnostic: null };
}

/** The state of an entry, reported as it was when each of its responses came, in their order. */
function stateReported(responses: readonly Response[], day: number, instrument: boolean): EntryState | null {
  const rows = foldRows(responses, day);
  let known: EntryState | null = null;
  for (const response of inOrder(responses)) {
    const folded = rows.get(response);
    const ownState = entryStateOf(response, day, instrument);
    if (ownState === null) continue;
    const hasNothing: boolean = ownState.state === 'empty' || ownState.state === 'not_published';
    const diagnostic: string | null =
      hasNothing && folded?.withheld === true ? WITHHELD : ownState.diagnostic;
    const stays: boolean = !response.strays && folded?.emptied !== true;
    if (ownState.state === 'loaded') known = ownState;
    else if (stays && known?.state === 'loaded')
      known = { state: 'loaded', records: known.records, diagnostic };
    else
      known = {
        state: diagnostic === WITHHELD ? 'failed' : ownState.state,
        records: ownState.records,
        diagnostic,
      };
  }
  return known;
}

/** The fact of a response about an entry; null if it is not about it. */
function factAbout(
  response: Response,
  day: number,
  instrument: boolean,
  folded: Folded | undefined,
): EntryFact | null {
  const entryState = entryStateOf(response, day, instrument);
  if (entryState === null) return null;
  const { position, strays } = response;
  return {
    ...entryState,
    position,
    suspicious: strays,
    emptied: folded?.emptied ?? false,
    withheld: folded?.withheld ?? false,
  };
}

describe('the registers of an entry', () => {
  const drawn = fc.array(fc.tuple(fc.nat(0x7fffffff), fc.nat(0xffff)), { minLength: 1, maxLength: 7 });
  const entries = DAYS.flatMap((day) => [false, true].map((instrument) => ({ day, instrument })));

  test('say after each load what the responses loaded so far say in their order, and are the sum of their facts', () => {
    let cases = 0;
    const began = performance.now();
    forAll([drawn], { numRuns: RUNS }, (chosen) => {
      const responses = chosen.map(([bits], at) => ({
        response: responseOf(bits, at),
        order: chosen[at]?.[1] ?? 0,
      }));
      const queue = responses.sort((a, b) => a.order - b.order).map(({ response }) => response);
      const loaded: Response[] = [];
      const registers = entries.map(() => NO_REGISTERS);
      for (const response of queue) {
        const isLate = loaded.some((other) => other.position > response.position);
        loaded.push(response);
        for (const [at, { day, instrument }] of entries.entries()) {
          const rows = foldRows(loaded, day);
          const facts = loaded.flatMap(
            (response) => factAbout(response, day, instrument, rows.get(response)) ?? [],
          );
          registers[at] = load(registers[at] ?? NO_REGISTERS, {
            response,
            facts,
            isFolded: isLate && rows.has(response),
          });
          cases += 1;
          expectSame(stateOf(registers[at] ?? NO_REGISTERS), stateReported(loaded, day, instrument));
          expectSame(registers[at], sum(facts));
        }
      }
    });
    console.log(`${cases} cases, ${Math.round((cases / (performance.now() - began)) * 1000)} a second`);
  });

  /**
   * What a load does: a late response whose day was folded assigns what the fold says, also where it says nothing
   * itself.
   */
  function load(
    known: Registers,
    {
      response,
      facts,
      isFolded,
    }: { readonly response: Response; readonly facts: readonly EntryFact[]; readonly isFolded: boolean },
  ): Registers {
    const entryFact = facts.find(({ position }) => position === response.position);
    const incoming = entryFact === undefined ? NO_REGISTERS : registersOf(entryFact);
    if (!isFolded) return join(known, incoming);
    const { emptied, withheld } = sum(facts);
    return joinFolded(known, { ...incoming, emptied, withheld });
  }
});

describe('the state of an entry', () => {
  const [before, now] = [positionOf(1), positionOf(2)];
  const last = { position: now, state: 'empty', records: 0, diagnostic: null } as const;
  test.each([
    [
      'where a response fills one table and takes the last row of another',
      { loaded: now, emptied: now },
      'loaded',
    ],
    ['where one takes the last row after it was loaded', { loaded: before, emptied: now }, 'empty'],
    ['where one took the last row before it was loaded', { loaded: now, emptied: before }, 'loaded'],
    [
      'where one that had been loaded is suspicious as it is read now',
      { loaded: now, suspicious: now },
      'empty',
    ],
    ['where the loaded one is newer than the suspicious', { loaded: now, suspicious: before }, 'loaded'],
    ['where the newest was withheld', { withheld: now }, 'failed'],
    ['where it was withheld and the rows are loaded', { loaded: before, withheld: now }, 'loaded'],
    ['where an older one was withheld', { withheld: before }, 'empty'],
  ])('%s', (_, { loaded, ...positions }: Partial<Record<keyof Registers, Position>>, state) => {
    const registers = {
      ...NO_REGISTERS,
      last,
      loaded: loaded ? { position: loaded, records: 7 } : null,
      ...positions,
    };
    expect(stateOf(registers as Registers)).toMatchObject({ state, records: state === 'loaded' ? 7 : 0 });
  });

  test('is unknown where nothing is known, and that of the newest where it is no response', () => {
    expect(stateOf(NO_REGISTERS)).toBeNull();
    const withheld = { ...NO_REGISTERS, last: { ...last, state: 'blocked' as const }, withheld: now };
    expect(stateOf(withheld)).toEqual({ state: 'blocked', records: 0, diagnostic: null });
  });
});
