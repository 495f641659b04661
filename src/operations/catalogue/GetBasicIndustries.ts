import { codeList } from './code-list.ts';

export default codeList({
  name: 'GetBasicIndustries',
  at: '22:28',
  table: 'basic_industries',
  listed: 'basic industries',
  level: 'basic_industry',
});
