import type { Clock } from '../core/clock.ts';
import { isDay } from '../core/days.ts';
import { usageError } from '../core/errors.ts';
import { EXCHANGE_CODES } from '../core/exchanges.ts';
import { parseChoice, parseInteger } from '../core/input.ts';
import { operationNamed } from '../operations/registry.ts';
import { CASINGS, ENVELOPES } from './answer/format.ts';
import { type Behaviour, CONTENT_TYPES, type SandboxOptions, SHAPES } from './behaviour.ts';
import { FAULT_KINDS, type Fault } from './faults.ts';
import { DIALECTS } from './http/parameters.ts';
import { CONTRARY, OPEN_POINTS, optionName } from './open-points.ts';

/** A flag of `eod sandbox`. */
export interface SandboxFlag {
  /** As on the command line, e.g. `--casing <how>`; `--no-gzip` switches something off. */
  readonly flag: string;
  readonly description: string;
  readonly default?: string;
  /** May be given several times. */
  readonly repeatable?: boolean;
  /** @throws PipelineError `usage` for an invalid value. */
  parse(value: string): Partial<SandboxOptions>;
}

const behave = (behaviour: Partial<Behaviour>): Partial<SandboxOptions> => ({ behaviour });

const names = (value: string) =>
  value
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** `10`, or `GetBhavCopyCM=1,GetSeriesChange=5`. */
function rangeDays(value: string): Behaviour['maxRangeDays'] {
  if (!value.includes('=')) return parseInteger('--max-range-days', value, { least: 1 });
  return Object.fromEntries(
    names(value).map((pair) => {
      const [name = '', days = ''] = pair.split('=');
      return [operationNamed(name).name, parseInteger('--max-range-days', days, { least: 1 })];
    }),
  );
}

/** `2025-02-27`, or `2025-02-27,GetTop5GainersLosers=2025-02-25`; `none` for no trial address. */
function trialDays(value: string): Pick<Behaviour, 'trialDay' | 'trialDays'> {
  if (value === 'none') return { trialDay: undefined, trialDays: {} };
  const [trialDay = '', ...others] = names(value);
  const pairs = others.map((pair) => pair.split('='));
  for (const day of [trialDay, ...pairs.map(([, day = '']) => day)]) {
    if (!isDay(day)) throw usageError(`--trial-day: "${day}" is not a day such as 2025-02-27`);
  }
  return {
    trialDay,
    trialDays: Object.fromEntries(pairs.map(([name = '', day = '']) => [operationNamed(name).name, day])),
  };
}

const COUNT = { least: 1 };

/**
 * The notation of `--fault`, e.g. `status=503,every=7` or
 * `diagnostic=Key Expired.,first=1,operation=GetSeriesChange`.
 *
 * @throws PipelineError `usage`.
 */
export function parseFault(text: string): Fault {
  const [head = '', ...rules] = text.split(',');
  const [name = '', ...values] = head.split('=');
  const kind = parseChoice('--fault', name, FAULT_KINDS, 'kind');
  const value = values.length === 0 ? undefined : values.join('=');
  let fault: Fault = value === undefined ? { kind } : { kind, value };
  for (const rule of rules) {
    const [key = '', setting = ''] = rule.split('=');
    fault = { ...fault, ...parseFaultRule(key, setting) };
  }
  const isNumber = kind === 'status' || kind === 'slow' || kind === 'retry-after';
  if (isNumber && value !== undefined) parseInteger(`--fault: ${kind}`, value, COUNT);
  if (kind === 'diagnostic' && value === undefined) throw usageError('--fault: diagnostic needs a text');
  return fault;
}

const FAULT_RULES = ['every', 'first', 'rate', 'min-days', 'operation'] as const;

function parseFaultRule(key: string, setting: string): Partial<Fault> {
  const number = () => parseInteger(`--fault: ${key}`, setting, COUNT);
  switch (parseChoice('--fault', key, FAULT_RULES, 'rule')) {
    case 'every':
      return { every: number() };
    case 'first':
      return { first: number() };
    case 'min-days':
      return { minDays: number() };
    case 'operation':
      return { operation: operationNamed(setting).name };
    case 'rate': {
      const rate = Number(setting);
      if (rate > 0 && rate <= 1) return { rate };
      throw usageError('--fault: rate must be above 0 and at most 1');
    }
  }
}

/** A clock that starts at `value`. */
function clockFrom(value: string): Clock {
  const start = Date.parse(value);
  if (Number.isNaN(start))
    throw usageError(`--now: "${value}" is not a time such as 2025-09-05T22:00:00+05:30`);
  const offset = start - Date.now();
  return { now: () => Date.now() + offset };
}

/** A flag whose parsed value is the member of `Behaviour` with its name. */
function member(
  flag: string,
  description: string,
  read: (name: string, value: string) => unknown,
  fallback?: string,
): SandboxFlag {
  return {
    flag,
    description,
    ...(fallback === undefined ? {} : { default: fallback }),
    parse: (value) => behave({ [optionName(flag)]: read(flag.replace(/ .*/, ''), value) }),
  };
}

const choice = (flag: string, description: string, known: readonly string[], fallback?: string) =>
  member(flag, description, (name, value) => parseChoice(name, value, known), fallback);

const number = (flag: string, description: string, fallback?: string) =>
  member(flag, description, (name, value) => parseInteger(name, value, { least: 0 }), fallback);

const onOff = (flag: string, description: string) =>
  member(flag, description, (_, value) => value === 'true');

/** Every flag of `eod sandbox`, in the order of its help. */
export const sandboxFlags: readonly SandboxFlag[] = [
  // Before all others, so that each of them can take a point back.
  {
    flag: '--contrary',
    description: 'take the other reading of every point that the documentation of the service leaves open',
    parse: (value) => behave(value === 'true' ? CONTRARY : {}),
  },
  {
    flag: '--port <number>',
    description: 'port to listen on; 0 chooses a free one',
    default: '0',
    parse: (value) => ({ port: parseInteger('--port', value, { least: 0, most: 65_535 }) }),
  },
  {
    flag: '--host <address>',
    description: 'address to listen on',
    default: '127.0.0.1',
    parse: (host) => ({ host }),
  },
  {
    flag: '--data <dir>',
    description: 'answer GetBhavCopyCM only from the UDiFF bhav copies (csv) in this folder',
    parse: (dataDir) => ({ dataDir }),
  },
  {
    flag: '--access-key <key>',
    description: 'accept only this key (default: any key)',
    parse: (accessKey) => ({ accessKey }),
  },
  {
    flag: '--instruments <count>',
    description: 'instruments per exchange',
    default: '500',
    parse: (value) => ({
      instrumentsPerExchange: parseInteger('--instruments', value, { least: 1, most: 20_000 }),
    }),
  },
  {
    flag: '--revision <n>',
    description: 'number of corrections to the trade files; each changes a few rows of every day',
    default: '0',
    parse: (value) => ({ revision: parseInteger('--revision', value, { least: 0, most: 1_000 }) }),
  },
  {
    flag: '--now <time>',
    description: 'start its clock at this time, e.g. 2025-09-05T22:00:00+05:30',
    parse: (value) => ({ clock: clockFrom(value) }),
  },
  choice('--casing <how>', `case of the keys: ${CASINGS.join(', ')}`, CASINGS, 'pascal'),
  choice(
    '--envelope <kind>',
    `what the list is wrapped in: ${ENVELOPES.join(', ')} (default: value, for ratios bare-object)`,
    ENVELOPES,
  ),
  choice(
    '--shapes <which>',
    `record form of operations that have two: ${SHAPES.join(', ')}`,
    SHAPES,
    'sample',
  ),
  choice(
    '--dialect <which>',
    `which date parameters are understood: ${DIALECTS.join(', ')}`,
    DIALECTS,
    'both',
  ),
  choice(
    '--content-type <which>',
    `content type of answers without errors: ${CONTENT_TYPES.join(', ')}`,
    CONTENT_TYPES,
    'spec',
  ),
  onOff('--bom', 'begin each body with a byte order mark'),
  onOff('--no-gzip', 'never compress'),
  {
    flag: '--delay <ms>',
    description: 'milliseconds to wait before each answer',
    default: '0',
    parse: (value) => behave({ delayMs: parseInteger('--delay', value, { least: 0, most: 3_600_000 }) }),
  },
  number('--not-ready <n>', 'answer the first n calls of each request that the data is not ready', '0'),
  number('--calls-per-hour <n>', 'calls answered in a clock hour (IST); 0 for no limit', '0'),
  {
    flag: '--max-range-days <n>',
    description:
      'longest range that is answered, for all operations or by operation: GetBhavCopyCM=1,GetSeriesChange=5',
    parse: (value) => behave({ maxRangeDays: rangeDays(value) }),
  },
  number('--history-days <n>', 'how many days of history are answered'),
  onOff('--names-history', 'name the number of --history-days when older days are refused'),
  {
    flag: '--disable-operations <list>',
    description: 'operations the key has no right to',
    parse: (value) => behave({ disabledOperations: names(value).map((name) => operationNamed(name).name) }),
  },
  {
    flag: '--disable-exchanges <list>',
    description: 'exchanges the key has no right to',
    parse: (value) =>
      behave({
        disabledExchanges: names(value).map((name) =>
          parseChoice('--disable-exchanges', name, EXCHANGE_CODES),
        ),
      }),
  },
  {
    flag: '--demo-instruments <list>',
    description: 'for a trial key: only these instruments may be asked for by name',
    parse: (value) => behave({ demoInstruments: names(value) }),
  },
  number('--key-dies-after <n>', 'the key expires after n calls'),
  ...OPEN_POINTS.filter(({ flag }) => !flag.includes(' ')).map(({ flag, description }) =>
    onOff(flag, description),
  ),
  {
    flag: '--trial-day <days>',
    description:
      'a trial address, which answers for this day whatever is asked: 2025-02-27, or with other days of some operations 2025-02-27,GetTop5GainersLosers=2025-02-25; none: not a trial address',
    parse: (value) => behave(trialDays(value)),
  },
  {
    flag: '--fault <rule>',
    description:
      "a fault to answer with, e.g. status=503,every=7 or 'diagnostic=Key Expired.,first=1,operation=GetSeriesChange'",
    repeatable: true,
    parse: (value) => behave({ faults: [parseFault(value)] }),
  },
  number('--seed <n>', 'seed of faults with a rate', '1'),
];

function merge(options: SandboxOptions, more: Partial<SandboxOptions>): SandboxOptions {
  const faults = [...(options.behaviour?.faults ?? []), ...(more.behaviour?.faults ?? [])];
  const behaviour = { ...options.behaviour, ...more.behaviour, ...(faults.length > 0 ? { faults } : {}) };
  return { ...options, ...more, behaviour };
}

/**
 * Makes options from parsed flags, which are named as by command line libraries (`--calls-per-hour` → `callsPerHour`).
 *
 * @throws PipelineError `usage` for an invalid value.
 */
export function sandboxOptionsFromFlags(
  values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>,
): SandboxOptions {
  let options: SandboxOptions = {};
  for (const flag of sandboxFlags) {
    const value = values[optionName(flag.flag)];
    if (value === undefined) continue;
    const given = typeof value === 'object' ? value : [String(value)];
    for (const one of given) options = merge(options, flag.parse(one));
  }
  return options;
}
