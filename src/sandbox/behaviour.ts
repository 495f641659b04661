import type { Calendar } from '../calendar/calendar.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import type { Day } from '../core/days.ts';
import { EXCHANGE_CODES } from '../core/exchanges.ts';
import { parseChoice, parseInteger } from '../core/input.ts';
import { FAULT_KINDS, type Fault } from './faults.ts';
import { clockFrom, names, parseFault, rangeDays, requestName, trialDay, trialDays } from './notations.ts';
import { CASINGS, ENVELOPES } from './response/format.ts';

/** One point in which sources may differ. Type, default, flag and, if it is open, its line in ARCHITECTURE.md come from this. */
export interface Point<Value> {
  /** As on the command line, e.g. `--casing <how>`; `--no-gzip` switches something off. */
  readonly flag: string;
  /** What the sandbox does with it; empty if another point has the same flag. */
  readonly description: string;
  /** What a live service most likely does. */
  readonly fallback: Value;
  /** Reads what was typed. @throws PipelineError `usage` */
  readonly read: (text: string) => Value;
  /** The known words, where there are such. */
  readonly words?: readonly string[];
  /** May be given several times; then its value is a list. */
  readonly repeatable?: boolean;
  readonly open?: Open;
}

/** What the documentation of the service leaves open; in Markdown. */
interface Open {
  readonly point: string;
  /** What the pipeline does about it, whichever it is, … */
  readonly handled: string;
  /** … and the setting that changes that. */
  readonly setting?: string;
  /** The other reading, as typed; of a point that is on or off the one that is not the default. */
  readonly other?: string;
}

function point<Value>(
  flag: string,
  description: string,
  fallback: Value,
  read: (text: string) => Value,
): Point<Value> {
  return { flag, description, fallback, read };
}

/** A point that the documentation leaves open. */
const leftOpen = <P extends Point<unknown>>(known: P, open: Open): P & { readonly open: Open } => ({
  ...known,
  open,
});

const nameOf = (flag: string) => flag.replace(/ .*/, '');

function choice<const Word extends string, Fallback extends Word | undefined>(
  flag: string,
  description: string,
  words: readonly Word[],
  fallback: Fallback,
): Point<Word | Fallback> {
  const read = (text: string) => parseChoice(nameOf(flag), text, words);
  return { ...point<Word | Fallback>(flag, description, fallback, read), words };
}

const number = <Fallback extends number | undefined>(
  flag: string,
  description: string,
  fallback: Fallback,
  most?: number,
) =>
  point<number | Fallback>(flag, description, fallback, (text) =>
    parseInteger(nameOf(flag), text, { least: 0, ...(most === undefined ? {} : { most }) }),
  );

/** A text that there is only if it is given. */
const given = (flag: string, description: string) =>
  point<string | undefined>(flag, description, undefined, String);

const onOff = (flag: string, description: string) =>
  point(flag, description, flag.startsWith('--no-'), (text) => text === 'true');

const reading = (flag: string, description: string, open: Open) => leftOpen(onOff(flag, description), open);

/** Other readings of single points, each of which is off by default. */
const READINGS = {
  classificationByChange: reading(
    '--classification-by-change',
    'a range of days selects only companies whose classification has changed on them',
    {
      point: 'What `from` and `to` select of the classification.',
      handled: 'Every sector is requested without dates, besides the range of days.',
    },
  ),
  withdrawnRatios: reading(
    '--withdrawn-ratios',
    'GetFinRatioEOD and GetFinRatioSnapshot are no longer offered',
    {
      point: 'Whether GetFinRatioEOD and GetFinRatioSnapshot are still there.',
      handled: 'If they are refused, GetFinancialRatios is requested instead, for the same rows.',
    },
  ),
  actionsByAnnouncement: reading(
    '--actions-by-announcement',
    'a range of days selects corporate actions announced on them, not those with these ex-dates',
    {
      point: 'What `from` and `to` select of corporate actions.',
      handled: 'A night requests the lookback and 30 days ahead; records of any day are stored.',
    },
  ),
  codedRatios: reading(
    '--coded-ratios',
    'ratios of corporate actions as in the published sample: 00050001 for 5:1',
    {
      point: 'What the code in `RatioAmount` means.',
      handled: 'A code is not read: its event is `needs_review`, unless a list has the ratio.',
    },
  ),
  actionIdZero: reading(
    '--action-id-zero',
    'corporate actions in the other form: the id 0, ScripId, ScripName and times of the published sample, or as declared',
    {
      point: 'Whether `ActionId` distinguishes corporate actions, and what their fields are called.',
      handled:
        'Both spellings are read. Actions without an id are distinguished by purpose, dates and announcement.',
    },
  ),
  oldSeriesSuffix: reading(
    '--old-series-suffix',
    'series changes name a security with the suffix of its old series',
    {
      point: 'Whether the id in a series change has a suffix.',
      handled: '`symbol` is the id without the suffix; `scrip_id` is kept as sent.',
    },
  ),
  srcCodes: reading('--src-codes', 'bhav copies spell src as XBSE or bse', {
    point: 'How `src` is spelled.',
    handled: 'Only the other exchange, in any spelling, is another exchange. The column keeps the spelling.',
  }),
  filledBlanks: reading(
    '--filled-blanks',
    'bhav copies hold "-", "XX", 0 and 0.5 where the cash market has no value',
    {
      point: 'What fields hold that mean nothing for the cash market.',
      handled: 'What cannot be read in such a field is null, with one warning a window.',
    },
  ),
  missingKeys: reading('--missing-keys', 'leave out the keys of blank values', {
    point: 'Whether a field without a value has its key.',
    handled: 'A missing key is a blank value.',
  }),
  spacedKeys: reading('--spaced-keys', 'spell it Stock Price', {
    point: 'How the stock price of a ratio is spelled.',
    handled: 'Both are read.',
  }),
  epochMilliseconds: reading(
    '--epoch-milliseconds',
    'in responses with dTFormat=Epoch, times in milliseconds, days in seconds, and 0 for none',
    {
      point: 'Whether Epoch means seconds or milliseconds, and what it has for no date.',
      handled: 'Seconds and milliseconds are distinguished by their size, value by value; 0 is no date.',
      setting: '`EOD_DATE_FORMAT` (`String` leaves nothing open)',
    },
  ),
  shortNumbers: reading('--short-numbers', 'round numbers in JSON to 15 digits', {
    point: 'How many digits a number has in which format.',
    handled:
      'Numbers are stored and compared as they are printed: another format makes a revision of rows whose digits differ.',
    setting: '`EOD_FORMAT`',
  }),
  csvUnquoted: reading(
    '--csv-unquoted',
    'CSV with its columns in another order, quotes around dates only, and 10.0 for 10',
    {
      point: 'The order of CSV columns, and what is quoted.',
      handled:
        'Columns are found by their names. A text that was cut at its commas is put together where a space follows them, else its row is a reject.',
      setting: '`EOD_FORMAT` (`Json` leaves nothing open)',
    },
  ),
  xmlAttributes: reading('--xml-attributes', 'XML with values in attributes and dates as in JSON', {
    point: 'Whether XML has values in elements or attributes, and how it writes dates.',
    handled: 'Both are read.',
    setting: '`EOD_FORMAT`',
  }),
  anyCase: reading('--any-case', 'match names and values of parameters in any case', {
    point: 'Whether the case of parameters matters.',
    handled: 'Names and values are sent as documented.',
  }),
  exactTimes: reading('--exact-times', 'serve a day only if from and to include all of it', {
    point: 'Whether the hours of `from` and `to` count, as a release note says.',
    handled: 'A day is always requested from 00:00:00 to 23:59:59.',
  }),
};

const DIALECTS = ['epoch', 'iso-date', 'both'] as const;

/** Every point in which sources may differ, in the order of the help of `eod sandbox`. */
export const POINTS = {
  casing: leftOpen(choice('--casing <how>', `case of the keys: ${CASINGS.join(', ')}`, CASINGS, 'pascal'), {
    point: 'How keys are cased.',
    handled: 'Keys match in any case, also with spaces, `_` and `-` in them.',
    other: 'camel',
  }),
  /** If set, it applies to every operation; if not, ratios are a bare object and the rest is under `Value`. */
  envelope: leftOpen(
    choice<(typeof ENVELOPES)[number], undefined>(
      '--envelope <kind>',
      `what the list is wrapped in: ${ENVELOPES.join(', ')} (default: value, for ratios bare-object)`,
      ENVELOPES,
      undefined,
    ),
    {
      point: 'What `count` counts; whether ratios come in a list.',
      handled:
        'A list with fewer records than its count is requested again; if the same comes again, it is loaded and its days stay incomplete. One with more is loaded, with a warning.',
      setting: '`EOD_COUNT`',
      other: 'wrong-count',
    },
  ),
  /** The form in which operations respond whose documented sample differs from their declared fields. */
  shapes: leftOpen(
    choice(
      '--shapes <which>',
      'record form of operations that have two: sample, declared',
      ['sample', 'declared'],
      'sample',
    ),
    {
      point: 'Whether records have the form of the sample or the declared one.',
      handled: 'The fields of a record decide which table it belongs to.',
      other: 'declared',
    },
  ),
  dialect: choice(
    '--dialect <which>',
    `which date parameters are understood: ${DIALECTS.join(', ')}`,
    DIALECTS,
    'both',
  ),
  /** `spec`: JSON or plain text by operation, as specified. */
  contentType: leftOpen(
    choice(
      '--content-type <which>',
      'content type of responses without errors: spec, text, json',
      ['spec', 'text', 'json'],
      'spec',
    ),
    {
      point: 'Which content type JSON has.',
      handled: 'A response is read by what it is, not by its content type.',
      other: 'json',
    },
  ),
  bom: onOff('--bom', 'begin each body with a byte order mark'),
  /** Compress when the client accepts it. */
  gzip: onOff('--no-gzip', 'never compress'),
  delayMs: number('--delay <ms>', 'milliseconds to wait before each response', 0, 3_600_000),
  notReady: number(
    '--not-ready <n>',
    'respond to the first n calls of each request that the data is not ready',
    0,
  ),
  callsPerHour: number('--calls-per-hour <n>', 'calls served in a clock hour (IST); 0 for no limit', 0),
  maxRangeDays: point<number | Readonly<Record<string, number>> | undefined>(
    '--max-range-days <n>',
    'longest range that is served, for all operations or by operation: GetBhavCopyCM=1,GetSeriesChange=5',
    undefined,
    rangeDays,
  ),
  historyDays: number('--history-days <n>', 'how many days of history are served', undefined),
  namesHistory: onOff('--names-history', 'name the number of --history-days when older days are refused'),
  disabledOperations: point<readonly string[]>(
    '--disable-operations <list>',
    'operations the key has no right to',
    [],
    (text) => names(text).map(requestName),
  ),
  disabledExchanges: {
    ...point<readonly string[]>(
      '--disable-exchanges <list>',
      'exchanges the key has no right to',
      [],
      (text) => names(text).map((name) => parseChoice('--disable-exchanges', name, EXCHANGE_CODES)),
    ),
    words: EXCHANGE_CODES,
  },
  demoInstruments: point<readonly string[] | undefined>(
    '--demo-instruments <list>',
    'for a trial key: only these instruments may be requested by name',
    undefined,
    names,
  ),
  keyDiesAfter: number('--key-dies-after <n>', 'the key expires after n calls', undefined),
  ...READINGS,
  trialDay: leftOpen(
    point<Day | undefined>(
      '--trial-day <days>',
      'a trial address, which serves this day whatever is requested: 2025-02-27, or with other days of some operations 2025-02-27,GetTop5GainersLosers=2025-02-25; none: not a trial address',
      undefined,
      trialDay,
    ),
    {
      point: 'Whether the address serves the days that are requested.',
      handled:
        'A response whose records are all of one other day is refused, with a hint. With the setting, that day is "today", and the day of a record counts.',
      setting: '`EOD_TRIAL_DAY`',
      other: '2025-02-27',
    },
  ),
  /** The days of single operations at a trial address, by name, where it is another day. */
  trialDays: point<Readonly<Record<string, Day>>>('--trial-day <days>', '', {}, trialDays),
  faults: {
    ...point<readonly Fault[]>(
      '--fault <rule>',
      "a fault to respond with, e.g. status=503,every=7 or 'diagnostic=Key Expired.,first=1,operation=GetSeriesChange'",
      [],
      (text) => [parseFault(text)],
    ),
    words: FAULT_KINDS,
    repeatable: true,
  },
  seed: number('--seed <n>', 'seed of faults with a rate', 1),
};

/** Where the sandbox is served, and what it serves. */
export const SETTINGS = {
  port: number('--port <number>', 'port to listen on; 0 chooses a free one', 0, 65_535),
  host: point('--host <address>', 'address to listen on', '127.0.0.1', String),
  dataDir: given('--data <dir>', 'serve GetBhavCopyCM only from the UDiFF bhav copies (csv) in this folder'),
  accessKey: given('--access-key <key>', 'accept only this key (default: any key)'),
  instrumentsPerExchange: point('--instruments <count>', 'instruments per exchange', 500, (text) =>
    parseInteger('--instruments', text, { least: 1, most: 20_000 }),
  ),
  revision: number(
    '--revision <n>',
    'number of corrections to the trade files; each changes a few rows of every day',
    0,
    1_000,
  ),
  clock: point<Clock>(
    '--now <time>',
    'start its clock at this time, e.g. 2025-09-05T22:00:00+05:30',
    systemClock,
    clockFrom,
  ),
};

type ValuesOf<Points> = {
  readonly [Name in keyof Points]: Points[Name] extends Point<infer Value> ? Value : never;
};

type Points = typeof POINTS;

/** How the source behaves. */
export type Behaviour = ValuesOf<Points>;

export type Reading = keyof typeof READINGS;

/** The name of a point that the documentation of the service leaves open. */
export type OpenPointName = {
  [Name in keyof Points]: Points[Name] extends { readonly open: Open } ? Name : never;
}[keyof Points];

const fallbacksOf = <Points extends Readonly<Record<string, Point<unknown>>>>(points: Points) =>
  Object.fromEntries(
    Object.entries(points).map(([name, { fallback }]) => [name, fallback]),
  ) as ValuesOf<Points>;

export const DEFAULT_BEHAVIOUR = fallbacksOf(POINTS);
export const DEFAULT_SETTINGS = fallbacksOf(SETTINGS);

export interface SandboxOptions extends Partial<ValuesOf<typeof SETTINGS>> {
  readonly calendar?: Calendar;
  /** Whether companies split and consolidate their shares; see `Sandbox.splits`. */
  readonly splits?: boolean;
  readonly behaviour?: Partial<Behaviour>;
}
