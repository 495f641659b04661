import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ColumnTexts, NULL } from '../../src/export/column-texts.ts';
import { parquetColumn } from '../../src/export/parquet.ts';

test('a decimal keeps every digit', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 38 }),
      fc
        .integer({ min: 1, max: 38 })
        .chain((digits) =>
          fc.tuple(
            fc.constant(digits),
            fc.bigInt({ min: -(10n ** BigInt(digits)) + 1n, max: 10n ** BigInt(digits) - 1n }),
          ),
        ),
      fc.integer({ min: 0, max: 3 }),
      (wanted, [precision, unscaled], zeros) => {
        const scale = Math.min(wanted, precision);
        const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
        const cut = digits.length - scale;
        const decimals = digits.slice(cut) + '0'.repeat(zeros);
        const text = `${unscaled < 0n ? '-' : ''}${digits.slice(0, cut)}${decimals === '' ? '' : `.${decimals}`}`;
        const column = { name: 'price', type: 'numeric' };
        const read = parquetColumn(column, { scale, integers: precision - scale }, false).read(text);
        expect(BigInt(read as number)).toBe(unscaled);
      },
    ),
    { numRuns: 2_000 },
  );
});

/** A text as COPY writes it. */
const copied = (text: string | null) =>
  text === null
    ? '\\N'
    : text.replace(
        /[\\\b\f\n\r\t\v]/g,
        (character) =>
          `\\${{ '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v' }[character] ?? character}`,
      );

test('each row has its text, whatever texts came before, and each distinct text is there once', () => {
  const text = fc.oneof(
    fc.constantFrom(null, '', '\\N', 'N', '\\', 'a\tb', 'a\nb', 'é𝄞', '1.5', '1.50'),
    fc.string({ unit: 'binary' }),
    fc.integer({ min: 0, max: 2_000 }).map(String),
  );
  const group = fc.array(fc.tuple(text, text), { maxLength: 500 });
  fc.assert(
    fc.property(fc.array(group, { minLength: 1, maxLength: 3 }), (groups) => {
      const columns = [new ColumnTexts(500), new ColumnTexts(500)] as const;
      for (const rows of groups) {
        const lines = Buffer.from(rows.map((row) => `${row.map(copied).join('\t')}\n`).join(''));
        let at = 0;
        for (let row = 0; row < rows.length; row += 1)
          for (const column of columns) at = column.add(row, lines, at) + 1;
        expect(at).toBe(lines.length);
        for (const [which, column] of columns.entries()) {
          const wanted = rows.map((row) => row[which] ?? null);
          const distinct = column.values((value) => Buffer.from(value, 'latin1').toString());
          const values = [...column.rows.subarray(0, rows.length)].map((index) =>
            index === NULL ? null : distinct[index],
          );
          const bytes = (value: string | null) => (value === null ? null : Buffer.from(value).toString());
          expect(values).toEqual(wanted.map(bytes));
          expect(new Set(distinct).size).toBe(distinct.length);
          expect(column.nulls).toBe(wanted.filter((value) => value === null).length);
          column.clear();
        }
      }
    }),
  );
});
