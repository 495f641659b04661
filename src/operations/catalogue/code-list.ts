import { sentenceCase } from '../../core/wording.ts';
import { defineBuiltIn } from '../built-in.ts';
import { text } from '../fields.ts';
import type { Operation } from '../operation.ts';
import { defineTable } from '../table.ts';

interface CodeList {
  readonly name: string;
  readonly at: string;
  readonly table: string;
  /** What is listed, in the plural, e.g. `sectors`. */
  readonly listed: string;
  /** The name of the level in market.sectoral_classification, e.g. `sector`: of the columns and of one of the list. */
  readonly level: string;
}

/**
 * A level of the exchanges' classification of companies, with the columns that market.sectoral_classification has.
 * Documented: the fields of the sample (none are declared). Assumed: that the response, which takes no filter, lists
 * all.
 */
export function codeList({ name, at, table, listed, level }: CodeList): Operation {
  const one = level.replaceAll('_', ' ');
  return defineBuiltIn({
    name,
    title: sentenceCase(listed),
    group: 'reference',
    summary: `Codes and names of ${listed}`,
    exchanges: ['BSE'],
    request: { dates: 'none', instruments: 'none', dTFormat: false, options: [] },
    shapes: [
      {
        table: defineTable({
          name: table,
          comment: `Codes and names of the ${listed} in the exchanges' classification of companies.`,
          key: ['exchange', `${level}_code`],
          fields: [
            text('Code', `${level}_code`, `Code of the ${one}; extends that of the level above.`, {
              required: true,
            }),
            text('Name', level, `Name of the ${one}.`),
          ],
        }),
        has: ['Code', 'Name'],
        dated: false,
        fullSet: 'exchange',
      },
    ],
    windows: { per: 'once' },
    schedule: { at, on: 'sunday', hasLookback: false },
    emptyIsNormal: false,
  });
}
