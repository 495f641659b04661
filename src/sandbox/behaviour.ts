import type { Calendar } from '../calendar/calendar.ts';
import type { Clock } from '../core/clock.ts';
import type { Day } from '../core/days.ts';
import type { Casing, Envelope } from './answer/format.ts';
import type { Fault } from './faults.ts';
import type { Dialect } from './http/parameters.ts';

export const CONTENT_TYPES = ['spec', 'text', 'json'] as const;
export const SHAPES = ['sample', 'declared'] as const;

/** Points that the documentation of the service leaves open; `open-points.ts` describes what each means if it is set. */
const READINGS = [
  'classificationByChange',
  'withdrawnRatios',
  'actionsByAnnouncement',
  'codedRatios',
  'actionIdZero',
  'oldSeriesSuffix',
  'srcCodes',
  'filledBlanks',
  'missingKeys',
  'spacedKeys',
  'epochMilliseconds',
  'shortNumbers',
  'csvUnquoted',
  'xmlAttributes',
  'anyCase',
  'exactTimes',
] as const;
export type Readings = Readonly<Record<(typeof READINGS)[number], boolean>>;

/** How the source behaves. The defaults are what a live service most likely does. */
export interface Behaviour extends Readings {
  readonly casing: Casing;
  /** If set, it applies to every operation; if not, ratios are a bare object and the rest is under `Value`. */
  readonly envelope: Envelope | undefined;
  /** Which form operations answer with whose documented sample differs from their declared fields. */
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
  /** Whether the refusal of older days names `historyDays`, as the refusal of a long range names its limit. */
  readonly namesHistory: boolean;
  readonly disabledOperations: readonly string[];
  readonly disabledExchanges: readonly string[];
  /** For a trial key: only these instruments may be asked for by name. */
  readonly demoInstruments: readonly string[] | undefined;
  /** The number of calls after which the key has expired. */
  readonly keyDiesAfter: number | undefined;
  /** For a trial address: it answers every request that has days as if it asked for this day. */
  readonly trialDay: Day | undefined;
  /** The same for single operations, by name, where it is another day. */
  readonly trialDays: Readonly<Record<string, Day>>;
  readonly faults: readonly Fault[];
  /** Seed for the `rate` of faults. */
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
  trialDay: undefined,
  trialDays: {},
  ...(Object.fromEntries(READINGS.map((reading) => [reading, false])) as Readings),
  faults: [],
  seed: 1,
};

export interface SandboxOptions {
  /** Folder with operations of the user, which are answered as well; see EOD_OPERATIONS_DIR. */
  readonly operationsDir?: string | undefined;
  /** 0, the default, takes any free port. */
  readonly port?: number;
  readonly host?: string;
  /** Folder of UDiFF bhav copies, from which GetBhavCopyCM is then answered exclusively. */
  readonly dataDir?: string;
  readonly calendar?: Calendar;
  readonly clock?: Clock;
  /** If set, only this key is accepted; if not, any key that is not empty. */
  readonly accessKey?: string;
  readonly instrumentsPerExchange?: number;
  /** Corrections applied to the trade files: each revision changes a few rows of every day. */
  readonly revision?: number;
  /** Whether companies split and consolidate their shares; see `Sandbox.splits`. */
  readonly splits?: boolean;
  readonly behaviour?: Partial<Behaviour>;
}
