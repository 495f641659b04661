import { date, text } from '../../declaration/fields.ts';
import { defineFileSet } from '../../declaration/operation.ts';
import { defineTable } from '../../declaration/table.ts';

const table = defineTable({
  name: 'symbol_changes',
  comment: "Changes of ticker symbols, from NSE's list.",
  key: ['exchange', 'changed_on', 'old_symbol', 'new_symbol'],
  names: [
    { symbol: 'old_symbol', day: ['changed_on'], dayBefore: true },
    { symbol: 'new_symbol', day: ['changed_on'] },
  ],
  fields: [
    date('changedOn', 'changed_on', 'First day of the new symbol.', { required: true }),
    text('oldSymbol', 'old_symbol', 'Symbol before.', { required: true }),
    text('newSymbol', 'new_symbol', 'Symbol after.', { required: true }),
    text('companyName', 'company_name', 'Name of the company or fund.'),
  ],
});

export default defineFileSet({
  name: 'SymbolChanges',
  title: 'Symbol changes',
  group: 'reference',
  summary: "NSE's list of changed symbols",
  shapes: [{ table, has: ['oldSymbol', 'newSymbol'], dated: false, fullSet: 'none' }],
});
