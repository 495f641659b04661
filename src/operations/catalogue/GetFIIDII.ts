import { defineBuiltIn } from '../built-in.ts';
import { type Field, int8, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { filter, publishedAt, tradeDate } from './shared.ts';

const CONTRACTS = { unit: 'contracts' } as const;
const SIGNAL = 'Bullish, Bearish or Neutral, as the source judges the position.';

const ofFutures = (what: 'Index' | 'Stock', column: string): Field[] => [
  int8(`Future${what}Long`, `${column}_long`, 'Contracts held long.', CONTRACTS),
  int8(`Future${what}Short`, `${column}_short`, 'Contracts held short.', CONTRACTS),
  int8(`Future${what}NetPosition`, `${column}_net_position`, 'Long less short.', CONTRACTS),
  text(`Future${what}Signal`, `${column}_signal`, SIGNAL),
];

const ofOptions = (what: 'Index' | 'Stock', column: string): Field[] => {
  const source = `Option${what}`;
  const interest = (of: string, name: string, meaning: string) =>
    int8(`${source}${of}OI`, `${column}_${name}open_interest`, meaning, CONTRACTS);
  return [
    int8(`${source}CallLong`, `${column}_call_long`, 'Calls held long.', CONTRACTS),
    int8(`${source}PutLong`, `${column}_put_long`, 'Puts held long.', CONTRACTS),
    int8(`${source}CallShort`, `${column}_call_short`, 'Calls held short.', CONTRACTS),
    int8(`${source}PutShort`, `${column}_put_short`, 'Puts held short.', CONTRACTS),
    interest('Put', 'put_', 'Puts less calls held long.'),
    interest('Call', 'call_', 'Puts less calls held short.'),
    interest('NetCall', 'net_call_', 'Calls held long less calls held short.'),
    interest('NetPut', 'net_put_', 'Puts held long less puts held short.'),
    interest('Net', 'net_', 'Net calls less net puts.'),
    text(`${source}Signal`, `${column}_signal`, SIGNAL),
  ];
};

const table = defineTable({
  name: 'participant_positions',
  comment:
    'Open derivative positions of NSE by class of participant on each trading day, with a row for the total.',
  key: ['exchange', 'trade_date', 'client_type'],
  fields: [
    tradeDate,
    text('ClientType', 'client_type', 'Class of participant: Client, DII, FII, Pro, or TOTAL.', {
      required: true,
    }),
    publishedAt,
    ...ofFutures('Index', 'future_index'),
    ...ofFutures('Stock', 'future_stock'),
    ...ofOptions('Index', 'option_index'),
    ...ofOptions('Stock', 'option_stock'),
    int8('TotalLongContracts', 'total_long', 'All contracts held long.', CONTRACTS),
    int8('TotalShortContracts', 'total_short', 'All contracts held short.', CONTRACTS),
  ],
});

/**
 * Documented: the fields of the sample (none are declared), the classes and that days may be sent in either form.
 * Assumed: that `from` and `to` select by the moment in `Date` (about 20:12), and what the computed fields are: that
 * holds in each row of the sample, though sums are off by one in some rows.
 */
export default defineBuiltIn({
  name: 'GetFIIDII',
  title: 'Positions of participants',
  group: 'trading',
  summary: 'Derivative positions by class of participant',
  exchanges: ['NSE'],
  request: {
    dates: 'range',
    instruments: 'none',
    dTFormat: true,
    options: [filter('clientType', 'only this class of participant', ['FII', 'DII', 'Pro', 'Client'])],
  },
  shapes: [{ table, has: ['Date', 'ClientType'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: false },
  publishedAt: '20:30',
  schedule: { at: '21:52', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
