import { defineOperation } from '../declaration/define-operation.ts';
import { text } from '../declaration/fields.ts';
import { defineTable } from '../declaration/table.ts';
import { corporateActionShape } from './tables/corporate-actions.ts';

const table = defineTable({
  name: 'corporate_action_categories',
  comment: 'Raw: kinds of corporate action and their purpose codes.',
  key: ['exchange', 'purpose_code', 'corporate_action_type'],
  fields: [
    text('purposeCode', 'purpose_code', 'Short code of the purpose.', { absent: '' }),
    text('corporateActiontype', 'corporate_action_type', 'Label of the category.', { absent: '' }),
  ],
});

export default defineOperation({
  name: 'GetCorporateActionsCategories',
  title: 'Corporate action categories',
  group: 'corporate actions',
  summary: 'Categories of corporate actions, raw',
  exchanges: ['BSE'],
  request: { dates: 'none', instruments: 'none', dTFormat: false, options: [] },
  shapes: [
    { table, has: [], hasOneOf: ['corporateActiontype', 'purposeCode'], dated: false, fullSet: 'exchange' },
    corporateActionShape,
  ],
  windows: { per: 'once' },
  schedule: { at: '21:57', on: 'sunday', hasLookback: false, order: 2 },
  emptyIsNormal: false,
});
