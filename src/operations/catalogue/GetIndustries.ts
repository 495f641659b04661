import { codeList } from './code-list.ts';

export default codeList({
  name: 'GetIndustries',
  at: '22:26',
  table: 'industries',
  listed: 'industries',
  level: 'industry',
});
