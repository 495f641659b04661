import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileMaker, compileReader } from '../../src/core/compiled-objects.ts';
import { forAll } from '../support/for-all.ts';

const name = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 10 }),
  fc.constantFrom('__proto__', 'constructor', 'a"b', "');alert(1);//", '\u2028', ']', ''),
);

test('an object has its names in order, whatever they are, and its values are read again', () =>
  forAll(
    [fc.uniqueArray(fc.tuple(name, fc.anything()), { selector: ([memberName]) => memberName })],
    (members) => {
      const names = members.map(([memberName]) => memberName);
      const object = compileMaker<unknown>(names)(members.map(([, value]) => value));
      expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
      // Names that are whole numbers come first in any object.
      expect(Object.keys(object)).toEqual(Object.keys(Object.fromEntries(members)));
      for (const [memberName, value] of members)
        expect(Object.getOwnPropertyDescriptor(object, memberName)?.value).toBe(value);
      const values: unknown[] = [];
      compileReader<unknown>(names)(object, values);
      for (const [at, [, value]] of members.entries()) expect(values[at]).toBe(value);
    },
  ));
