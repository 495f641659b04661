import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parquetColumn } from '../../src/load/export/parquet.ts';

test('a decimal that is read as a number keeps every digit when the writer multiplies it by its scale', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 15 }),
      fc.bigInt({ min: -(10n ** 15n) + 1n, max: 10n ** 15n - 1n }),
      (scale, unscaled) => {
        const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
        const [integers, decimals] = [
          digits.slice(0, digits.length - scale),
          digits.slice(digits.length - scale),
        ];
        const text = `${unscaled < 0n ? '-' : ''}${integers}${scale === 0 ? '' : `.${decimals}`}`;
        const column = { name: 'price', type: 'numeric' };
        const read = parquetColumn(column, { scale, integers: 15 - scale }, false).read(text);
        expect(typeof read).toBe('number');
        expect(BigInt(Math.round((read as number) * 10 ** scale))).toBe(unscaled);
      },
    ),
    { numRuns: 2_000 },
  );
});
