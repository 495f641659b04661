import { defineFormat } from '../../../operations/file-format.ts';

/** NSE's delivery positions, with the columns of `readDeliveryPositions`: their own header lacks one. */
export default defineFormat({
  name: 'nse-deliveries',
  files: ['MTO_DDMMYYYY.DAT'],
  dataSet: 'Deliveries',
  // The full bhav copy has its deliveries from them.
  rank: 1,
  exchange: 'NSE',
  marks: ['TRADE_DATE', 'DELIVERABLE_QUANTITY', 'PERCENT_DELIVERABLE'],
  needs: ['SYMBOL', 'SERIES', 'QUANTITY_TRADED'],
  columns: {
    SYMBOL: 'symbol',
    SERIES: 'series',
    TRADE_DATE: 'tradDt',
    QUANTITY_TRADED: 'tradedQuantity',
    DELIVERABLE_QUANTITY: 'deliveredQuantity',
    PERCENT_DELIVERABLE: 'deliveredPercent',
  },
});
