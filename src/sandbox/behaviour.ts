import type { Calendar } from '../calendar/calendar.ts';
import type { Clock } from '../core/clock.ts';
import type { Casing, Envelope } from './answer/format.ts';
import type { Fault } from './faults.ts';
import type { Dialect } from './http/parameters.ts';

export const CONTENT_TYPES = ['spec', 'text', 'json'] as const;
export const SHAPES = ['sample', 'declared'] as const;

/** How the source answers. The default of each setting is what a live service most likely does. */
export interface Behaviour {
  readonly casing: Casing;
  /** Set, it applies to every operation; unset, ratios come as a bare object and the rest under `Value`. */
  readonly envelope: Envelope | undefined;
  /** Which shape is answered by operations whose sample and declared fields differ. */
  readonly shapes: (typeof SHAPES)[number];
  /** Which date parameters are understood. */
  readonly dialect: Dialect;
  /** `spec`: JSON or plain text by operation, as specified. */
  readonly contentType: (typeof CONTENT_TYPES)[number];
  /** A byte order mark before each body. */
  readonly bom: boolean;
  /** Compress when the client accepts it. */
  readonly gzip: boolean;
  readonly delayMs: number;
  /** How many times each distinct request is answered with the line that it is not ready. */
  readonly notReady: number;
  /** Calls answered in a clock hour (IST); 0 for no limit. */
  readonly callsPerHour: number;
  /** Longest range in days: for all operations, or by operation name. */
  readonly maxRangeDays: number | Readonly<Record<string, number>> | undefined;
  readonly historyDays: number | undefined;
  /** The refusal of days further back names that number, as that of a range too long does. */
  readonly namesHistory: boolean;
  readonly disabledOperations: readonly string[];
  readonly disabledExchanges: readonly string[];
  /** A trial key: only these instruments may be asked for by name. */
  readonly demoInstruments: readonly string[] | undefined;
  /** After so many calls the key has expired. */
  readonly keyDiesAfter: number | undefined;
  readonly faults: readonly Fault[];
  /** Seed of the faults' `rate`. */
  readonly seed: number;
}

export const DEFAULT_BEHAVIOUR: Behaviour = {
  casing: 'pascal',
  envelope: undefined,
  shapes: 'sample',
  dialect: 'both',
  contentType: 'spec',
  bom: false,
  gzip: true,
  delayMs: 0,
  notReady: 0,
  callsPerHour: 0,
  maxRangeDays: undefined,
  historyDays: undefined,
  namesHistory: false,
  disabledOperations: [],
  disabledExchanges: [],
  demoInstruments: undefined,
  keyDiesAfter: undefined,
  faults: [],
  seed: 1,
};

export interface SandboxOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number;
  readonly host?: string;
  /** Directory of UDiFF bhav copies: GetBhavCopyCM then answers from them alone. */
  readonly dataDir?: string;
  readonly calendar?: Calendar;
  readonly clock?: Clock;
  /** Set: only this key is accepted. Unset: any key that is not empty. */
  readonly accessKey?: string;
  readonly instrumentsPerExchange?: number;
  /** Corrections applied to the trade files: each revision changes a few rows of every day. */
  readonly revision?: number;
  /** Companies split and consolidate their shares, as `Sandbox.splits` tells. */
  readonly splits?: boolean;
  readonly behaviour?: Partial<Behaviour>;
}
