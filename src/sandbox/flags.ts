import {
  type Behaviour,
  type OpenPointName,
  POINTS,
  type Point,
  type SandboxOptions,
  SETTINGS,
} from './behaviour.ts';

/** A flag of `eod sandbox`. */
export interface SandboxFlag {
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

/**
 * Every point that the service's documentation leaves open, with the reading that the sandbox does not take by default
 * and the flag of `eod sandbox` for this reading alone. The table of ARCHITECTURE.md is made from it.
 */
export const OPEN_POINTS = points.flatMap(([name, { flag, open }]) => {
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

function flagOf(
  { flag, description, fallback, words, repeatable = false }: Point<unknown>,
  parse: SandboxFlag['parse'],
): SandboxFlag {
  const isShown = typeof fallback === 'string' || typeof fallback === 'number';
  return { flag, description, words, repeatable, parse, ...(isShown ? { default: `${fallback}` } : {}) };
}

/** Every flag of `eod sandbox`, in the order of its help. */
export const sandboxFlags: readonly SandboxFlag[] = [
  // Before all others, so that each of them can take a point back.
  {
    flag: '--contrary',
    description:
      'take the other reading of every point that the documentation of the service leaves open; --short-numbers and --spaced-keys show only with --shapes sample besides',
    parse: (value) => ({ behaviour: value === 'true' ? CONTRARY : {} }),
  },
  ...Object.entries<Point<unknown>>(SETTINGS).map(([name, setting]) =>
    flagOf(setting, (value) => ({ [name]: setting.read(value) })),
  ),
  ...points.flatMap(([, point]) =>
    point.description === '' ? [] : [flagOf(point, (value) => ({ behaviour: readFlag(point.flag, value) }))],
  ),
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
