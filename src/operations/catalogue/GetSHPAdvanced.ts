import { defineBuiltIn } from '../built-in.ts';
import { text } from '../fields.ts';
import { defineTable } from '../table.ts';
import {
  FACT_KEY,
  factKeyFrom,
  factsOf,
  requested,
  requestedDay,
  requestedSymbol,
} from './catalogue-facts.ts';

/** The breakdown of the published sample; it is in the example of the page, though not in its list. */
const BREAKDOWN = 'SummaryPromoterPublicOthers';

const table = defineTable({
  name: 'shareholding_summaries',
  comment:
    'Shareholding patterns in summary, one row a group or holder of a filing in market.shareholding_items.',
  key: ['exchange', 'symbol', 'filing_date', 'breakdown', ...FACT_KEY],
  fields: [
    requestedSymbol,
    requestedDay,
    requested('type', 'breakdown', 'Breakdown requested, e.g. SummaryAll.', 'text', BREAKDOWN),
    text('Period', 'period', 'Month of the pattern, e.g. February 2025.'),
    text('Entity', 'entity', 'Group or holder; null in the shape that the schema declares.'),
    ...factsOf(factKeyFrom('Entity', 'Label')),
  ],
});

/**
 * Documented: two shapes, the sample with a group, its value and the month, and the schema with generic facts; the table
 * takes both. Assumed: that the value is in percent of all shares, that the breakdown of the sample is the one of the
 * example, and that the day of the filing, as GetShpItems lists it, names the pattern.
 */
export default defineBuiltIn({
  name: 'GetSHPAdvanced',
  title: 'Shareholding summaries',
  group: 'ownership',
  summary: 'Shareholding patterns in summary',
  exchanges: ['BSE'],
  request: {
    dates: 'day',
    instruments: 'one',
    dTFormat: false,
    options: [
      { param: 'period', meaning: 'the month of the pattern, e.g. February 2025', isFilter: false },
      {
        param: 'type',
        meaning: 'the breakdown',
        fallback: BREAKDOWN,
        values: [
          BREAKDOWN,
          ...['SummaryAll', 'SummaryPromoterNationality', 'SummaryFII', 'SummaryDIIWithMF'],
          ...[
            'SummaryDIIWithoutMF',
            'ListPromoter',
            'ListMF',
            'ListMoreThanOnePercent',
            'ListAllShareHolders',
          ],
        ],
        isFilter: false,
      },
    ],
  },
  shapes: [{ table, has: ['Value'], hasOneOf: ['Entity', 'Label'], dated: false, fullSet: 'none' }],
  windows: { per: 'row', of: 'GetShpItems', instrument: 'symbol', params: {}, day: 'filing_date' },
  schedule: { at: '22:48', on: 'daily', hasLookback: false },
  emptyIsNormal: true,
});
