import type { Position } from '../../../src/core/position.ts';
import { type CoverageState, WITHHELD } from '../../../src/state/registers.ts';

// A model of the registers of `etl.coverage`: how facts move them, and which state follows from them.

/** What a response, a failed call or a holiday says of an entry. */
export interface EntryState {
  readonly state: CoverageState;
  /** Records of the entry in the response. */
  readonly records: number;
  /** What the source sent instead of data, or why the response is not believed. */
  readonly diagnostic: string | null;
}

/** What is known of one entry from one response, failed call or holiday. */
export interface EntryFact extends EntryState {
  readonly position: Position;
  /**
   * Did it hold records that nobody requested, or fewer than it stated? Then its days are not loaded, whatever was
   * before.
   */
  readonly suspicious: boolean;
  /** Whether it took the last row of the day, as the fold of rows found. */
  readonly emptied: boolean;
  /** Whether it listed too few rows of the day, so that its withdrawal was withheld. */
  readonly withheld: boolean;
}

/** What is known of an entry; all are null where nothing is. */
export interface Registers {
  /** What the newest said. */
  readonly last: (EntryState & { readonly position: Position }) | null;
  /** The newest that had records of it. */
  readonly loaded: { readonly position: Position; readonly records: number } | null;
  /** The newest one that is suspicious, that took the last row of the day, and whose withdrawal was withheld. */
  readonly suspicious: Position | null;
  readonly emptied: Position | null;
  readonly withheld: Position | null;
}

/** Nothing is known. */
export const NO_REGISTERS: Registers = {
  last: null,
  loaded: null,
  suspicious: null,
  emptied: null,
  withheld: null,
};

/** The registers after a single fact. */
export function registersOf({
  position,
  state,
  records,
  diagnostic,
  suspicious,
  emptied,
  withheld,
}: EntryFact): Registers {
  return {
    last: { position, state, records, diagnostic },
    loaded: state === 'loaded' ? { position, records } : null,
    suspicious: suspicious ? position : null,
    emptied: emptied ? position : null,
    withheld: withheld ? position : null,
  };
}

/** The one with the greater position; at equal positions the one that comes in, because it was read again. */
function newer<Register extends { readonly position: Position }>(
  known: Register | null,
  incoming: Register | null,
): Register | null {
  if (known === null || incoming === null) return known ?? incoming;
  return incoming.position >= known.position ? incoming : known;
}

function greater(known: Position | null, incoming: Position | null): Position | null {
  if (known === null || incoming === null) return known ?? incoming;
  return incoming > known ? incoming : known;
}

/** What is known after both, register by register. */
export function join(known: Registers, incoming: Registers): Registers {
  return {
    last: newer(known.last, incoming.last),
    loaded: newer(known.loaded, incoming.loaded),
    suspicious: greater(known.suspicious, incoming.suspicious),
    emptied: greater(known.emptied, incoming.emptied),
    withheld: greater(known.withheld, incoming.withheld),
  };
}

/**
 * The same for a late response, after which the rows of the day were folded: the fold says which responses took the
 * last row of the day and which were withheld, also where that is other than before.
 */
export const joinFolded = (known: Registers, incoming: Registers): Registers => ({
  ...join(known, incoming),
  emptied: incoming.emptied,
  withheld: incoming.withheld,
});

/** The registers that follow from facts, in whatever order they are given. */
export const sum = (facts: readonly EntryFact[]): Registers =>
  facts.map(registersOf).reduce(join, NO_REGISTERS);

/** The state of an entry, its records and its diagnostic; null where nothing is known. */
export function stateOf({ last, loaded, suspicious, emptied, withheld }: Registers): EntryState | null {
  if (last === null) return null;
  // A response that fills one table and takes the last row of another loads the day; one that is suspicious never does.
  const isLoaded =
    loaded !== null &&
    (suspicious === null || loaded.position > suspicious) &&
    (emptied === null || loaded.position >= emptied);
  // It is not known that there is nothing: a day stays a gap until a better response comes or a person decides.
  const isWithheld = withheld === last.position && (last.state === 'empty' || last.state === 'not_published');
  return {
    state: isLoaded ? 'loaded' : isWithheld ? 'failed' : last.state,
    records: isLoaded ? loaded.records : last.records,
    diagnostic: isWithheld ? WITHHELD : last.diagnostic,
  };
}
