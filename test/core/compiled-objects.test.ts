import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileMaker, compileReader } from '../../src/core/compiled-objects.ts';
import { forAll } from '../support/for-all.ts';

const name = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 10 }),
  fc.constantFrom('__proto__', 'constructor', 'a"b', "');alert(1);//", '\u2028', ']', ''),
);

test('an object has its names in order, whatever they are, and its values are read again', () =>
  forAll([fc.uniqueArray(fc.tuple(name, fc.anything()), { selector: ([one]) => one })], (members) => {
    const names = members.map(([one]) => one);
    const made = compileMaker<unknown>(names)(members.map(([, value]) => value));
    expect(Object.getPrototypeOf(made)).toBe(Object.prototype);
    // Names that are whole numbers come first in any object.
    expect(Object.keys(made)).toEqual(Object.keys(Object.fromEntries(members)));
    for (const [one, value] of members) expect(Object.getOwnPropertyDescriptor(made, one)?.value).toBe(value);
    const values: unknown[] = [];
    compileReader<unknown>(names)(made, values);
    for (const [at, [, value]] of members.entries()) expect(values[at]).toBe(value);
  }));
