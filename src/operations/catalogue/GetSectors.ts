import { codeList } from './code-list.ts';

export default codeList({
  name: 'GetSectors',
  at: '22:24',
  table: 'sectors',
  listed: 'sectors',
  level: 'sector',
  sample: { IN0101: 'Chemicals', IN0102: 'Construction Materials', IN0103: 'Metals & Mining' },
});
