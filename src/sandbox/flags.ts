import type { Clock } from '../core/clock.ts';
import { usageError } from '../core/errors.ts';
import { parseInteger } from '../core/input.ts';
import { type Behaviour, type OpenPointName, POINTS, type Point, type SandboxOptions } from './behaviour.ts';

/** A flag of `eod sandbox`. */
interface SandboxFlag {
  /** As on the command line, e.g. `--casing <how>`; `--no-gzip` switches something off. */
  readonly flag: string;
  readonly description: string;
  readonly default?: string;
  /** The known words, where there are such. */
  readonly words?: readonly string[] | undefined;
  /** May be given several times. */
  readonly repeatable?: boolean;
  /** @throws PipelineError `usage` for an invalid value. */
  parse(value: string): Partial<SandboxOptions>;
}

const points: readonly (readonly [string, Point<unknown>])[] = Object.entries(POINTS);

/** What a flag says of all points that have it. */
function readFlag(flag: string, value: string): Partial<Behaviour> {
  return Object.fromEntries(
    points.flatMap(([name, point]) => (point.flag === flag ? [[name, point.read(value)]] : [])),
  );
}

/** A point that the service's documentation leaves open, with the reading that the sandbox does not take by default. */
interface OpenPoint {
  readonly name: OpenPointName;
  /** The flag of `eod sandbox` for this reading alone. */
  readonly flag: string;
  /** What is open, what the pipeline does about it whichever it is, and the setting that changes that; in Markdown. */
  readonly open: string;
  readonly handled: string;
  readonly setting?: string | undefined;
  readonly behaviour: Partial<Behaviour>;
}

/** Every open point: the table of ARCHITECTURE.md is made from it. */
export const OPEN_POINTS: readonly OpenPoint[] = points.flatMap(([name, { flag, open }]) => {
  if (open === undefined) return [];
  const { point, handled, setting, other } = open;
  const typed = other === undefined ? flag : flag.replace(/<.*>/, other);
  const behaviour = readFlag(flag, other ?? 'true');
  return [{ name: name as OpenPointName, flag: typed, open: point, handled, setting, behaviour }];
});

/** The other reading of every open point. */
export const CONTRARY: Partial<Behaviour> = OPEN_POINTS.reduce(
  (all, { behaviour }) => Object.assign(all, behaviour),
  {},
);

/** Every flag of `eod sandbox`, in the order of its help. */
export const sandboxFlags: readonly SandboxFlag[] = [
  // Before all others, so that each of them can take a point back.
  {
    flag: '--contrary',
    description: 'take the other reading of every point that the documentation of the service leaves open',
    parse: (value) => ({ behaviour: value === 'true' ? CONTRARY : {} }),
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
    description: 'serve GetBhavCopyCM only from the UDiFF bhav copies (csv) in this folder',
    parse: (dataDir) => ({ dataDir }),
  },
  {
    flag: '--responses <dir>',
    description: 'serve only the responses that were saved in this folder, each to the same request',
    parse: (responsesDir) => ({ responsesDir }),
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
  ...points.flatMap(([, { flag, description, fallback, words, repeatable = false }]) => {
    if (description === '') return [];
    const isShown = typeof fallback === 'string' || typeof fallback === 'number';
    const parse = (value: string) => ({ behaviour: readFlag(flag, value) });
    return [{ flag, description, words, repeatable, parse, ...(isShown ? { default: `${fallback}` } : {}) }];
  }),
];

/** The name of a flag among parsed options: `--no-gzip` → `gzip`. */
function optionName(flag: string): string {
  const long = flag.split(' ')[0]?.replace(/^--(no-)?/, '') ?? '';
  return long.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

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

/** A clock that starts at `value`. */
function clockFrom(value: string): Clock {
  const start = Date.parse(value);
  if (Number.isNaN(start))
    throw usageError(`--now: "${value}" is not a time such as 2025-09-05T22:00:00+05:30`);
  const offset = start - Date.now();
  return { now: () => Date.now() + offset };
}
