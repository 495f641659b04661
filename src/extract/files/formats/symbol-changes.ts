import { defineFormat } from '../../../operations/file-format.ts';

/** NSE's list of changed symbols, which usually has no header. */
export default defineFormat({
  name: 'symbol-changes',
  files: ['symbolchange.csv'],
  dataSet: 'SymbolChanges',
  exchange: 'NSE',
  bySession: false,
  marks: ['SM_KEY_SYMBOL', 'SM_NEW_SYMBOL', 'SM_APPLICABLE_FROM'],
  columns: {
    SM_KEY_SYMBOL: 'oldSymbol',
    SM_NEW_SYMBOL: 'newSymbol',
    SM_APPLICABLE_FROM: 'changedOn',
    // The second name is used in files with a header.
    SM_NAME: 'companyName',
    SYMB_COMPANY_NAME: 'companyName',
  },
});
