import fc from 'fast-check';

type Values = [unknown, ...unknown[]];
type Arbitraries<Of extends Values> = { readonly [At in keyof Of]: fc.Arbitrary<Of[At]> };
type Checked<Property, Of extends Values> =
  | [property: Property]
  | [parameters: fc.Parameters<NoInfer<Of>>, property: Property];

/** Checks that a property holds whatever the values are: `forAll([fc.nat()], { numRuns: 500 }, (n) => { … })`. */
export function forAll<Of extends Values>(
  arbitraries: Arbitraries<Of>,
  ...checked: Checked<(...values: Of) => unknown, Of>
): void {
  const [property, parameters] = checked.length === 1 ? checked : [checked[1], checked[0]];
  fc.assert(fc.property(...arbitraries, property as (...values: Of) => boolean), parameters);
}

/** The same for a property that has to wait. */
export function forAllAsync<Of extends Values>(
  arbitraries: Arbitraries<Of>,
  ...checked: Checked<(...values: Of) => Promise<unknown>, Of>
): Promise<void> {
  const [property, parameters] = checked.length === 1 ? checked : [checked[1], checked[0]];
  return fc.assert(
    fc.asyncProperty(...arbitraries, property as (...values: Of) => Promise<boolean>),
    parameters,
  );
}
