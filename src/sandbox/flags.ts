import {
  type Behaviour,
  type OpenPointName,
  POINTS,
  type Point,
  type SandboxOptions,
  SETTINGS,
} from './behaviour.ts';

/** What was typed for flags, by their names as command line libraries have them: `--calls-per-hour` → `callsPerHour`. */
type Typed = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** The name of a flag among parsed options: `--no-gzip` → `gzip`. */
function optionName(flag: string): string {
  const long = flag.split(' ')[0]?.replace(/^--(no-)?/, '') ?? '';
  return long.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** The values of those points whose flags are given. @throws PipelineError `usage` for an invalid one. */
const valuesOf = (points: Readonly<Record<string, Point<unknown>>>, typed: Typed) =>
  Object.fromEntries(
    Object.entries(points).flatMap(([name, { flag, read, repeatable }]) => {
      const texts = [typed[optionName(flag)] ?? []].flat().map(String);
      if (texts[0] === undefined) return [];
      return [[name, repeatable === true ? texts.flatMap(read) : read(texts[0])]];
    }),
  );

/**
 * Every point that the service's documentation leaves open, with the reading that the sandbox does not take by default
 * and the flag of `eod sandbox` for this reading alone. The table of ARCHITECTURE.md is made from it.
 */
export const OPEN_POINTS = Object.entries<Point<unknown>>(POINTS).flatMap(([name, { flag, open }]) => {
  if (open === undefined) return [];
  const { point, handled, setting, other } = open;
  const typed = other === undefined ? flag : flag.replace(/<.*>/, other);
  const behaviour: Partial<Behaviour> = valuesOf(POINTS, { [optionName(flag)]: other ?? true });
  return [{ name: name as OpenPointName, flag: typed, open: point, handled, setting, behaviour }];
});

/** The other reading of every open point. */
export const CONTRARY: Partial<Behaviour> = OPEN_POINTS.reduce(
  (all, { behaviour }) => Object.assign(all, behaviour),
  {},
);

/** Every flag of `eod sandbox`, in the order of its help. */
export const sandboxFlags: readonly Omit<Point<unknown>, 'read'>[] = [
  {
    flag: '--contrary',
    description:
      'take the other reading of every point that the documentation of the service leaves open; --short-numbers and --spaced-keys show only with --shapes sample besides',
    fallback: false,
  },
  ...Object.values<Point<unknown>>(SETTINGS),
  ...Object.values<Point<unknown>>(POINTS).filter(({ description }) => description !== ''),
];

/** Makes options from parsed flags; each takes a point of `--contrary` back. @throws PipelineError `usage` */
export function sandboxOptionsFromFlags(typed: Typed): SandboxOptions {
  const contrary = typed.contrary === true ? CONTRARY : {};
  return { ...valuesOf(SETTINGS, typed), behaviour: { ...contrary, ...valuesOf(POINTS, typed) } };
}
