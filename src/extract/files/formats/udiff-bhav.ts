import { UDIFF_COLUMNS } from '../../../operations/tables/udiff.ts';
import { defineFormat } from '../file-format.ts';

export default defineFormat({
  name: 'udiff',
  files: ['BhavCopy_NSE_CM_0_0_0_YYYYMMDD_F_0000.csv', 'BhavCopy_BSE_CM_0_0_0_YYYYMMDD_F_0000.CSV'],
  dataSet: null,
  rank: 3,
  exchange: null,
  marks: ['TradDt', 'TckrSymb'],
  needs: [
    'Sgmt',
    'Src',
    'SctySrs',
    'OpnPric',
    'HghPric',
    'LwPric',
    'ClsPric',
    'LastPric',
    'PrvsClsgPric',
    'TtlTradgVol',
    'TtlTrfVal',
    'TtlNbOfTxsExctd',
  ],
  columns: UDIFF_COLUMNS,
  complete: true,
});
