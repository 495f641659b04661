import { codeList } from './code-list.ts';

export default codeList({
  name: 'GetSectors',
  at: '22:24',
  table: 'sectors',
  listed: 'sectors',
  level: 'sector',
});
