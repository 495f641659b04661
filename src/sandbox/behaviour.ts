import type { Casing } from './answer/casing.ts';
import type { Envelope } from './answer/json.ts';
import type { Fault } from './faults.ts';
import type { Dialect } from './http/parameters.ts';

export const CONTENT_TYPES = ['spec', 'text', 'json'] as const;
export const SHAPES = ['sample', 'declared'] as const;

/** How the source answers; every part has a default that is what a live service is likely to do. */
export interface Behaviour {
  readonly casing: Casing;
  /** Set, it applies to every operation; unset, ratios come as a bare object and the rest under `Value`. */
  readonly envelope: Envelope | undefined;
  /** Which of the two shapes of spec 2.5 to 2.7 is answered. */
  readonly shapes: (typeof SHAPES)[number];
  /** Which date parameters are understood. */
  readonly dialect: Dialect;
  /** `spec`: as rule 4.3.8 says. */
  readonly contentType: (typeof CONTENT_TYPES)[number];
  /** A byte order mark before each body. */
  readonly bom: boolean;
  /** Compress when the client accepts it. */
  readonly gzip: boolean;
  readonly delayMs: number;
  /** How many times each distinct request is told to ask again. */
  readonly notReady: number;
  /** Calls answered in a clock hour (IST); 0 for no limit. */
  readonly callsPerHour: number;
  /** Longest range in days: for all operations, or by operation name. */
  readonly maxRangeDays: number | Readonly<Record<string, number>> | undefined;
  readonly historyDays: number | undefined;
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
  disabledOperations: [],
  disabledExchanges: [],
  demoInstruments: undefined,
  keyDiesAfter: undefined,
  faults: [],
  seed: 1,
};
