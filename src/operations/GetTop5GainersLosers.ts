import { defineOperation } from '../declaration/define-operation.ts';
import { boolean, date, derived, int4, int8, numeric, text } from '../declaration/fields.ts';
import { defineTable } from '../declaration/table.ts';

const table = defineTable({
  name: 'top_gainers_losers',
  comment: 'Top gainers and losers of a trading day, five of each as a rule.',
  key: ['exchange', 'trade_date', 'scrip_code', 'is_loser'],
  fields: [
    date('date', 'trade_date', 'Trading day.', { required: true }),
    int4('scripCode', 'scrip_code', 'Security code of the exchange.', { required: true }),
    boolean('isLoser', 'is_loser', 'True for a loser, false for a gainer.', { required: true }),
    // Rejected records are counted too, so that the ranks of the others stay right.
    derived(
      'rank',
      'int2',
      'Rank within its side, 1 first, in the order of the response.',
      (get, read, memory) => {
        // As they are stored, because a response may write the same day in several ways.
        const side = `${read('date', 'date') ?? get('date')}|${read('isLoser', 'boolean') ?? get('isLoser')}`;
        const position = (memory.get(side) ?? 0) + 1;
        memory.set(side, position);
        return position;
      },
    ),
    text('scripName', 'scrip_name', 'Short name of the security.'),
    text('scripGroup', 'scrip_group', 'Group of the security on the exchange.'),
    numeric('currentClosing', 'close_price', 'Closing price of the day.', { unit: 'rupees' }),
    numeric('previousClosing', 'previous_close_price', 'Closing price of the trading day before.', {
      unit: 'rupees',
    }),
    numeric('percentageFluctation', 'change_percent', 'Change of the closing price; negative for losers.', {
      unit: 'percent',
    }),
    int8('quantity', 'quantity', 'Traded quantity.', { unit: 'shares' }),
    numeric('turnover', 'turnover_lakh', 'Traded value; BSE states lakhs.', { unit: 'lakhs of rupees' }),
  ],
});

export default defineOperation({
  name: 'GetTop5GainersLosers',
  title: 'Top gainers and losers',
  group: 'trading',
  summary: 'Top gainers and losers of each trading day',
  exchanges: ['BSE'],
  request: {
    dates: 'range',
    instruments: 'none',
    dTFormat: true,
    options: [
      {
        param: 'type',
        meaning: 'which sides to request',
        fallback: 'GainersLosers',
        values: ['GainersLosers', 'Gainers', 'Losers'],
        isFilter: true,
      },
    ],
  },
  shapes: [{ table, has: ['scripCode'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 5, everyDay: false },
  schedule: { at: '21:24', on: 'daily', hasLookback: true, order: 2 },
  emptyIsNormal: false,
});
