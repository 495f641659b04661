import { defineBuiltIn } from '../built-in.ts';
import { defineTable } from '../table.ts';
import {
  FACT_KEY,
  factKeyFrom,
  factsOf,
  requested,
  requestedDay,
  requestedSymbol,
} from './catalogue-facts.ts';

const table = defineTable({
  name: 'shareholding_facts',
  comment: 'Facts of shareholding patterns, one row a fact of a filing in market.shareholding_items.',
  key: ['exchange', 'symbol', 'filing_date', 'period', ...FACT_KEY],
  fields: [
    requestedSymbol,
    requestedDay,
    requested('period', 'period', 'Month requested, e.g. February 2025; empty where the day was.'),
    ...factsOf(factKeyFrom('Label')),
  ],
});

/**
 * Documented: the declared fields; no sample is printed, so this one is made from them. Assumed: that the day of the
 * filing, as GetShpItems lists it, names the pattern, and the key, because facts have none. Company and day are only in
 * the request.
 */
export default defineBuiltIn({
  name: 'GetSHP',
  title: 'Shareholding facts',
  group: 'ownership',
  summary: 'Facts of shareholding patterns',
  exchanges: ['BSE'],
  request: {
    dates: 'day',
    instruments: 'one',
    dTFormat: false,
    options: [{ param: 'period', meaning: 'the month of the pattern, e.g. February 2025', isFilter: false }],
  },
  shapes: [{ table, has: ['Label', 'Value'], dated: false, fullSet: 'none' }],
  windows: { per: 'row', of: 'GetShpItems', instrument: 'symbol', params: {}, day: 'filing_date' },
  schedule: { at: '22:44', on: 'daily', hasLookback: false },
  emptyIsNormal: true,
});
