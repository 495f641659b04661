import { codeList } from './code-list.ts';

export default codeList({
  name: 'GetIndustries',
  at: '22:26',
  table: 'industries',
  listed: 'industries',
  level: 'industry',
  sample: { IN010101: 'Chemicals & Petrochemicals', IN010102: 'Fertilizers & Agrochemicals' },
});
