import { codeList } from './code-list.ts';

export default codeList({
  name: 'GetMei',
  at: '22:22',
  table: 'macro_sectors',
  listed: 'macro-economic sectors',
  level: 'macro_sector',
});
