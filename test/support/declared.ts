import { date, fromRequest, int4, int8, numeric, occurrence, text } from '../../src/operations/fields.ts';
import { defineOperation, type Operation } from '../../src/operations/operation.ts';
import { defineTable } from '../../src/operations/table.ts';

// Operations that no file declares: each needs something of the declaration that none of ours does.

const DEAL_FIELDS = ['dealDate', 'scripCode', 'scripId', 'clientName', 'qty', 'price'] as const;

const dealTable = defineTable({
  name: 'test_deals',
  comment: 'Deals of a day, of which two may be equal.',
  key: ['exchange', 'deal_date', 'scrip_code', 'symbol', 'client_name', 'quantity', 'deal_price', 'ordinal'],
  fields: [
    date('dealDate', 'deal_date', 'Day of the deal.', { required: true }),
    int4('scripCode', 'scrip_code', 'Code.', { required: true }),
    text('scripId', 'symbol', 'Symbol.', { required: true }),
    text('clientName', 'client_name', 'Client.', { absent: '' }),
    int8('qty', 'quantity', 'Shares.', { required: true }),
    numeric('price', 'deal_price', 'Price.', { required: true }),
    occurrence('ordinal', DEAL_FIELDS),
  ],
});

const COMMON = {
  publishedAt: '20:00',
  schedule: { at: '21:30', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
} as const;

/** Days by the name of a span, with equal records. */
export const deals: Operation = defineOperation({
  ...COMMON,
  name: 'GetTestDeals',
  summary: 'Deals.',
  shapes: [
    {
      table: dealTable,
      has: ['dealDate', 'scripCode', 'clientName'],
      symbolColumn: 'symbol',
      dated: true,
      fullSet: 'days',
    },
  ],
  exchanges: ['BSE'],
  request: {
    dates: 'spans',
    spans: [
      { value: 'yesterday', from: -1, to: -1 },
      { value: 'Previous7days', from: -7, to: 0 },
      { value: 'Previous30days', from: -30, to: 0 },
      { value: 'Next7days', from: 0, to: 7 },
    ],
    instruments: 'one',
    dTFormat: true,
    options: [],
  },
  windows: { per: 'range', days: 30, everyDay: false },
  sample: {
    requested: { exchange: 'BSE', from: '2025-02-27', to: '2025-02-27', instruments: [], params: {} },
    response: { Value: [] },
  },
});

/** Statements that a company has, 25 companies a call, by the years; each row is a request of `details`. */
export const items: Operation = defineOperation({
  ...COMMON,
  name: 'GetTestItems',
  summary: 'Statements.',
  shapes: [
    {
      table: defineTable({
        name: 'test_items',
        comment: 'Statements.',
        key: ['exchange', 'symbol', 'year', 'nature'],
        fields: [
          text('Instrument', 'symbol', 'Symbol.', { required: true }),
          int4('Year', 'year', 'Year.', { required: true }),
          text('Nature', 'nature', 'Standalone or Consolidated.', { required: true }),
        ],
      }),
      has: ['Instrument', 'Year', 'Nature'],
      symbolColumn: 'symbol',
      dated: false,
      fullSet: 'none',
    },
  ],
  exchanges: ['BSE'],
  request: {
    dates: 'years',
    instruments: 'many',
    dTFormat: 'dTformat',
    fixed: { onlyActive: 'true' },
    options: [],
  },
  schedule: { at: '21:30', on: 'daily', hasLookback: false, spread: 'week' },
  windows: {
    per: 'instrument',
    days: 'none',
    requests: ({ to }) => [{ from: `${to.slice(0, 4)}-01-01`, to, variant: '', params: {} }],
  },
  sample: {
    requested: { exchange: 'BSE', from: '2025-01-01', to: '2025-02-27', instruments: ['TCS'], params: {} },
    response: { Value: [{ Instrument: 'TCS', Year: 2024, Nature: 'Standalone' }] },
  },
});

/** The facts of a statement. */
export const details: Operation = defineOperation({
  ...COMMON,
  name: 'GetTestDetails',
  summary: 'Facts of statements.',
  shapes: [
    {
      table: defineTable({
        name: 'test_details',
        comment: 'Facts.',
        key: ['exchange', 'symbol', 'year', 'label'],
        fields: [
          fromRequest('symbol', 'text', 'Symbol.', ({ instruments }) => instruments[0] ?? ''),
          fromRequest('year', 'int4', 'Year.', ({ params }) => params.year ?? ''),
          text('Label', 'label', 'What it is.', { required: true }),
          numeric('Value', 'value', 'How much.'),
        ],
      }),
      has: ['Label', 'Value'],
      dated: false,
      fullSet: 'none',
    },
  ],
  exchanges: ['BSE'],
  request: { dates: 'none', instruments: 'one', dTFormat: false, options: [] },
  windows: {
    per: 'row',
    of: 'GetTestItems',
    instrument: 'symbol',
    params: { year: 'year', natureOfReport: 'nature' },
  },
  sample: {
    requested: {
      exchange: 'BSE',
      from: '2025-02-27',
      to: '2025-02-27',
      instruments: ['TCS'],
      params: { year: '2024', natureOfReport: 'Standalone' },
    },
    response: { Value: [{ Label: 'Revenue', Value: 1.5 }] },
  },
});

/** A list under another name, of a segment. */
export const contracts: Operation = defineOperation({
  ...COMMON,
  name: 'GetTestContracts',
  summary: 'Contracts.',
  shapes: [
    {
      table: defineTable({
        name: 'test_contracts',
        comment: 'Contracts.',
        key: ['exchange', 'symbol'],
        fields: [
          text('TRADESYMBOL', 'symbol', 'Symbol.', { required: true }),
          text('EXCHANGE', 'source_exchange', 'Exchange.'),
          numeric('VALUE', 'contract_value', 'Value.'),
        ],
      }),
      has: ['TRADESYMBOL', 'EXCHANGE'],
      exchangeColumn: 'source_exchange',
      dated: false,
      fullSet: 'exchange',
    },
  ],
  exchanges: ['BFO', 'BSE'],
  request: { dates: 'none', instruments: 'none', dTFormat: false, options: [] },
  windows: { per: 'once' },
  envelope: 'INSTRUMENTS',
  sample: {
    requested: { exchange: 'BFO', from: '2025-02-27', to: '2025-02-27', instruments: [], params: {} },
    response: { INSTRUMENTS: [{ TRADESYMBOL: 'SENSEX25FEB', EXCHANGE: 'BFO', VALUE: 1 }] },
  },
});

export const declared: readonly Operation[] = [deals, items, details, contracts];
