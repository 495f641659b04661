import type { DayRange } from '../core/days.ts';
import type { Pair } from '../core/exchanges.ts';
import type { Position } from '../core/position.ts';
import type { Transaction } from '../postgres/transaction.ts';
import type { BegunLoad } from '../state/loads/loads.ts';
import type { ResponseToKeep } from '../state/responses/responses.ts';
import type { FoldSettings, ResponseReading } from './fold/fold.ts';

/** A response as it was received, with what its window requested. */
export interface ResponseOfWindow extends Pair, DayRange {
  readonly windowId: number;
  readonly runId: number;
  /** Where the response stands in the order of responses. */
  readonly position: Position;
  /** Of a file: its position among those that were imported, which may be before theirs. Called with the locks held. */
  readonly positionAmongFiles?: ((tx: Transaction) => Promise<Position>) | undefined;
  /** The time of the call. */
  readonly fetchedAt: Date;
  /** Bytes the response took on the wire. */
  readonly bytes: number;
  /** SHA-256 of the response, its request and the code that reads it; not given if it may not be repeated. */
  readonly digest?: string | undefined;
  /** What to keep for replay; not given if the rows are computed from stored ones. */
  readonly response?: ResponseToKeep | undefined;
}

/** All of one response, ready to be stored. */
export interface WindowLoad extends ResponseOfWindow, ResponseReading, FoldSettings {
  readonly outcome: { readonly state: 'loaded' | 'empty' | 'failed'; readonly error: string | null };
  readonly warnings: readonly string[];
}

/** The load of a response that has begun: its position is final, and the locks of its rows are held. */
export type Load = WindowLoad & BegunLoad;
