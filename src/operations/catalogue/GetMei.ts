import { codeList } from './code-list.ts';

export default codeList({
  name: 'GetMei',
  at: '22:22',
  table: 'macro_sectors',
  listed: 'macro-economic sectors',
  level: 'macro_sector',
  sample: { IN01: 'Commodities', IN02: 'Consumer Discretionary', IN03: 'Energy' },
});
