import type { Calendar } from '../calendar/calendar.ts';
import type { Clock } from '../core/clock.ts';
import type { Fault } from './faults.ts';
import type { DataSet } from './response/dataset.ts';
import type { Casing } from './response/format.ts';

/** A key to show and to use where any will do. It is no word, so hiding it hides nothing else of a text. */
export const EXAMPLE_KEY = 'demo-key-1234';

/** How the source behaves. */
export interface Behaviour {
  /** Of the keys in JSON. */
  readonly casing: Casing;
  /** How long it waits before each response. */
  readonly delayMs: number;
  /** To how many calls of each request, the first ones, it responds that the data is not ready. */
  readonly notReady: number;
  /** How many calls it serves in a clock hour (IST); 0 for no limit. */
  readonly callsPerHour: number;
  /** How many days of history it serves; undefined for all. */
  readonly historyDays?: number | undefined;
  /** After how many calls the key expires; undefined for never. */
  readonly keyDiesAfter?: number | undefined;
  readonly faults: readonly Fault[];
}

export const DEFAULT_BEHAVIOUR: Behaviour = {
  casing: 'pascal',
  delayMs: 0,
  notReady: 0,
  callsPerHour: 0,
  faults: [],
};

/** Instruments per exchange, where their number is not chosen. */
export const DEFAULT_INSTRUMENTS = 500;

export interface SandboxOptions {
  /** 0, the default, chooses a free one. */
  readonly port?: number;
  readonly host?: string;
  /** Absent: any key is accepted. */
  readonly accessKey?: string | undefined;
  readonly instrumentsPerExchange?: number;
  /** How many corrections of the trade files there were; each changes a few rows of every day. */
  readonly revision?: number;
  readonly clock?: Clock;
  readonly calendar?: Calendar;
  /** Whether companies split and consolidate their shares; see `Sandbox.splits`. */
  readonly splits?: boolean;
  /** Data sets in place of the simulated ones, by operation. */
  readonly dataSets?: Readonly<Record<string, DataSet>>;
  readonly behaviour?: Partial<Behaviour>;
}
