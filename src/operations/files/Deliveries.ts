import { defineFileSet } from '../operation.ts';
import { deliveries } from '../tables/deliveries.ts';

export default defineFileSet({
  name: 'Deliveries',
  summary: "NSE's delivery positions",
  shapes: [{ table: deliveries, has: ['deliveredQuantity'], dated: true, fullSet: 'days' }],
});
