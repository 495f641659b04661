import { defineBuiltIn } from '../built-in.ts';
import { numeric, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { rankAmong, tradeDate } from './shared.ts';

const table = defineTable({
  name: 'group_a_top_turnovers',
  comment:
    'The fifteen largest turnovers in group A of BSE on a trading day. Securities have only a short name.',
  key: ['exchange', 'trade_date', 'scrip_name'],
  fields: [
    tradeDate,
    text('ScripName', 'scrip_name', 'Short name of the security, cut to twelve characters.', {
      required: true,
    }),
    rankAmong('rank', ['Date'], 'Rank on its day, 1 first, in the order of the response.'),
    numeric('SharesNo', 'traded_quantity_lakh', 'Traded quantity.', { unit: 'lakhs of shares' }),
    numeric('ValueRsCr', 'turnover_crore', 'Traded value.', { unit: 'crores of rupees' }),
  ],
});

/**
 * Documented: the fields and the unit of the value, which is in its name. Assumed: the unit of the shares, the key (there
 * is no code, and two names may be cut to the same twelve characters), and that `from` and `to` select by `Date`. The
 * page writes the name of the operation in three ways; this is the one of its address.
 */
export default defineBuiltIn({
  name: 'GetTurnoverDetailsOfTop15ScripsofAgroup',
  title: 'Top turnovers of group A',
  group: 'trading',
  summary: 'Fifteen largest turnovers of group A',
  exchanges: ['BSE'],
  request: { dates: 'range', instruments: 'none', dTFormat: true, options: [] },
  shapes: [{ table, has: ['ScripName', 'ValueRsCr'], dated: true, fullSet: 'days' }],
  windows: { per: 'range', days: 30, everyDay: false },
  schedule: { at: '21:41', on: 'daily', hasLookback: true },
  emptyIsNormal: false,
});
