import type { Calendar } from '../calendar/calendar.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import { parseChoice, parseInteger } from '../core/input.ts';
import type { Fault } from './faults.ts';
import { clockFrom, parseFault } from './notations.ts';
import type { DataSet } from './response/dataset.ts';
import { CASINGS } from './response/format.ts';

/** A key to show and to use where any will do. It is no word, so hiding it hides nothing else of a text. */
export const EXAMPLE_KEY = 'demo-key-1234';

/** One flag of `eod sandbox`. The type and the default of the option that it sets come from this. */
interface Flag<Value> {
  /** As on the command line: `--casing <how>`. */
  readonly flag: string;
  readonly description: string;
  readonly fallback: Value;
  /** Reads what was typed. @throws PipelineError `usage` */
  readonly read: (text: string) => Value;
  /** May be given several times; then its value is a list. */
  readonly repeatable?: boolean;
}

const define = <Value>(
  flag: string,
  description: string,
  fallback: Value,
  read: (text: string) => Value,
  others: Pick<Flag<Value>, 'repeatable'> = {},
): Flag<Value> => ({ flag, description, fallback, read, ...others });

const number = <Fallback extends number | undefined>(
  flag: string,
  description: string,
  fallback: Fallback,
  limits: { readonly least?: number; readonly most?: number } = {},
) =>
  define<number | Fallback>(flag, description, fallback, (text) =>
    parseInteger(flag.replace(/ .*/, ''), text, { least: 0, ...limits }),
  );

/** Where the sandbox is served, and what it serves. */
const SETTINGS = {
  port: number('--port <number>', 'port to listen on; 0 chooses a free one', 0, { most: 65_535 }),
  host: define('--host <address>', 'address to listen on', '127.0.0.1', String),
  accessKey: define<string | undefined>(
    '--access-key <key>',
    'accept only this key (default: any key)',
    undefined,
    String,
  ),
  instrumentsPerExchange: number('--instruments <count>', 'instruments per exchange', 500, {
    least: 1,
    most: 20_000,
  }),
  revision: number(
    '--revision <n>',
    'number of corrections to the trade files; each changes a few rows of every day',
    0,
    { most: 1_000 },
  ),
  clock: define<Clock>(
    '--now <time>',
    'start its clock at this time, e.g. 2025-09-05T22:00:00+05:30',
    systemClock,
    clockFrom,
  ),
};

const BEHAVIOUR = {
  casing: define<(typeof CASINGS)[number]>(
    '--casing <how>',
    `case of the keys in JSON: ${CASINGS.join(', ')}`,
    'pascal',
    (text) => parseChoice('--casing', text, CASINGS),
  ),
  delayMs: number('--delay <ms>', 'milliseconds to wait before each response', 0, { most: 3_600_000 }),
  notReady: number(
    '--not-ready <n>',
    'respond to the first n calls of each request that the data is not ready',
    0,
  ),
  callsPerHour: number('--calls-per-hour <n>', 'calls served in a clock hour (IST); 0 for no limit', 0),
  historyDays: number('--history-days <n>', 'how many days of history are served', undefined),
  keyDiesAfter: number('--key-dies-after <n>', 'the key expires after n calls', undefined),
  faults: define<readonly Fault[]>(
    '--fault <rule>',
    "a fault to respond with, e.g. status=503,every=7 or 'diagnostic=Key Expired.,first=1,operation=GetSeriesChange'",
    [],
    (text) => [parseFault(text)],
    { repeatable: true },
  ),
};

type ValuesOf<Flags> = {
  readonly [Name in keyof Flags]: Flags[Name] extends Flag<infer Value> ? Value : never;
};

/** How the source behaves. */
export type Behaviour = ValuesOf<typeof BEHAVIOUR>;

export interface SandboxOptions extends Partial<ValuesOf<typeof SETTINGS>> {
  readonly calendar?: Calendar;
  /** Whether companies split and consolidate their shares; see `Sandbox.splits`. */
  readonly splits?: boolean;
  /** Data sets in place of the simulated ones, by operation. */
  readonly dataSets?: Readonly<Record<string, DataSet>>;
  readonly behaviour?: Partial<Behaviour>;
}

const listFallbacks = <Flags extends Readonly<Record<string, Flag<unknown>>>>(flags: Flags) =>
  Object.fromEntries(
    Object.entries(flags).map(([name, { fallback }]) => [name, fallback]),
  ) as ValuesOf<Flags>;

export const DEFAULT_BEHAVIOUR = listFallbacks(BEHAVIOUR);
export const DEFAULT_SETTINGS = listFallbacks(SETTINGS);

/** What was typed for flags, by their keys as command line libraries have them: `--calls-per-hour` → `callsPerHour`. */
type Typed = Readonly<Record<string, string | readonly string[] | undefined>>;

export const optionName = (flag: string) =>
  flag.replace(/^--| .*$/g, '').replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The values of those options whose flags are given. */
const readValues = (flags: Readonly<Record<string, Flag<unknown>>>, typed: Typed) =>
  Object.fromEntries(
    Object.entries(flags).flatMap(([name, { flag, read, repeatable }]) => {
      const texts = [typed[optionName(flag)] ?? []].flat();
      if (texts[0] === undefined) return [];
      return [[name, repeatable === true ? texts.flatMap(read) : read(texts[0])]];
    }),
  );

/** Every flag of `eod sandbox`, in the order of its help. */
export const sandboxFlags: readonly Omit<Flag<unknown>, 'read'>[] = [
  ...Object.values<Flag<unknown>>(SETTINGS),
  ...Object.values<Flag<unknown>>(BEHAVIOUR),
];

/** Makes options from parsed flags. @throws PipelineError `usage` for an invalid one. */
export const sandboxOptionsFromFlags = (typed: Typed): SandboxOptions => ({
  ...readValues(SETTINGS, typed),
  behaviour: readValues(BEHAVIOUR, typed),
});
