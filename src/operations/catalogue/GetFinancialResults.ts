import { defineBuiltIn } from '../built-in.ts';
import { defineTable } from '../table.ts';
import { FACT_KEY, factKey, factsOf, requested, requestedSymbol } from './catalogue-facts.ts';
import { STATEMENTS, YEAR } from './shared.ts';

const STATEMENT = ['exchange', 'symbol', 'year', 'nature_of_report', 'result_type', 'result_period'];

const table = defineTable({
  name: 'financial_results',
  comment: 'Facts of financial statements, one row a fact of a statement in market.financial_result_items.',
  key: [...STATEMENT, ...FACT_KEY],
  fields: [
    requestedSymbol,
    requested('year', 'year', 'Financial year requested, by its first calendar year.', 'int4', '0'),
    requested('natureOfReport', 'nature_of_report', 'Standalone or Consolidated, as requested.'),
    requested('type', 'result_type', 'Kind of statement requested, e.g. ProfitLoss.'),
    requested('period', 'result_period', 'Code of the quarter or period requested, e.g. QD, M9.'),
    ...factsOf(factKey('Key')),
  ],
});

/** A parameter that a window has from its row: the statement is named by them, so none of them narrows it. */
const named = (param: string, meaning: string, values: readonly string[]) =>
  ({ param, meaning, values, isFilter: false }) as const;

/**
 * Documented: the declared fields and the required parameters; no sample is printed, so this one is made from them.
 * Assumed: that facts of one statement may share a key (related parties), so the order in the response is part of ours.
 * Which statement a fact belongs to, only the request says.
 */
export default defineBuiltIn({
  name: 'GetFinancialResults',
  title: 'Financial results',
  group: 'fundamentals',
  summary: 'Facts of financial statements',
  exchanges: ['BSE'],
  request: {
    dates: 'none',
    instruments: 'one',
    dTFormat: false,
    options: [
      {
        param: 'year',
        meaning: 'the financial year, by its first calendar year',
        form: YEAR,
        isFilter: false,
      },
      named('natureOfReport', 'the kind of report', STATEMENTS.natures),
      named('type', 'the kind of statement', STATEMENTS.types),
      named('period', 'the quarter or period', STATEMENTS.periods),
    ],
  },
  shapes: [{ table, has: ['Value'], hasOneOf: ['Key', 'Label'], dated: false, fullSet: 'none' }],
  windows: {
    per: 'row',
    of: 'GetFinancialResultsItems',
    instrument: 'symbol',
    params: {
      year: 'year',
      natureOfReport: 'nature_of_report',
      type: 'result_type',
      period: 'result_period',
    },
  },
  schedule: { at: '22:40', on: 'daily', hasLookback: false },
  emptyIsNormal: true,
});
