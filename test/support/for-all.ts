import fc from 'fast-check';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** How many times as many sets as in `npm test` each property gets. */
    sets: number;
  }
}

type Values = [unknown, ...unknown[]];
type Arbitraries<Of extends Values> = { readonly [At in keyof Of]: fc.Arbitrary<Of[At]> };
type Checked<Property, Of extends Values> =
  | [property: Property]
  | [parameters: fc.Parameters<NoInfer<Of>>, property: Property];

/** Of fast-check, where a property names no number. */
const USUAL_RUNS = 100;

/** In the slow layer twenty; `EOD_TEST_SETS` says another number. */
const TIMES = Number(process.env.EOD_TEST_SETS ?? inject('sets') ?? 1);

/** Sets that a property is checked with in this layer, where it is checked with so many in `npm test`. */
export function setsOf(inTest: number): number {
  return Math.ceil(inTest * TIMES);
}

/** Seed of a property's first half of sets, `EOD_TEST_SEED` or its own; that of the other half is the next number. */
export function seedOf(ownSeed = 1): number {
  return Number(process.env.EOD_TEST_SEED ?? ownSeed);
}

/** The parameters of the two halves. A failure prints its seed and path. */
function halves<Of extends Values>({ numRuns = USUAL_RUNS, seed, ...others }: fc.Parameters<Of> = {}) {
  const half = { ...others, numRuns: Math.ceil(setsOf(numRuns) / 2) };
  const first = seedOf(seed);
  const { examples: _, ...second } = half;
  return [
    { ...half, seed: first },
    { ...second, seed: first + 1 },
  ];
}

/**
 * Checks that a property holds whatever the values are: `forAll([fc.nat()], { numRuns: 500 }, (n) => { … })`. In `npm test`
 * half of the sets come from one fixed seed, half from another; `npm run test:all` has twenty times as many.
 */
export function forAll<Of extends Values>(
  arbitraries: Arbitraries<Of>,
  ...checked: Checked<(...values: Of) => unknown, Of>
): void {
  const [property, parameters] = checked.length === 1 ? checked : [checked[1], checked[0]];
  for (const half of halves(parameters)) {
    fc.assert(fc.property(...arbitraries, property as (...values: Of) => boolean), half);
  }
}

/** The same for a property that has to wait. */
export async function forAllAsync<Of extends Values>(
  arbitraries: Arbitraries<Of>,
  ...checked: Checked<(...values: Of) => Promise<unknown>, Of>
): Promise<void> {
  const [property, parameters] = checked.length === 1 ? checked : [checked[1], checked[0]];
  for (const half of halves(parameters)) {
    await fc.assert(fc.asyncProperty(...arbitraries, property as (...values: Of) => Promise<boolean>), half);
  }
}

/** Values to check all at once, as many and from the same seeds as `forAll` would take. */
export function sample<Value>(
  arbitrary: fc.Arbitrary<Value>,
  parameters: { readonly numRuns: number; readonly seed: number },
): Value[] {
  return halves<[Value]>(parameters).flatMap((half) =>
    fc.sample(arbitrary, { numRuns: half.numRuns, seed: half.seed }),
  );
}
