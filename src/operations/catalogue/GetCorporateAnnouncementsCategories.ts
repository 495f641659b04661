import { defineBuiltIn } from '../built-in.ts';
import { text } from '../fields.ts';
import { defineTable } from '../table.ts';

const table = defineTable({
  name: 'corporate_announcement_categories',
  comment: 'Descriptors and categories that corporate announcements can have.',
  key: ['exchange', 'descriptor_id', 'category'],
  fields: [
    text('DescriptorId', 'descriptor_id', 'Number of the descriptor, as text; empty when left out.', {
      absent: '',
    }),
    text('Category', 'category', 'Category; empty when left out.', { absent: '' }),
    text('Descriptor', 'descriptor', 'Name of the descriptor.'),
  ],
});

/**
 * Documented: three names of fields, in the prose; no sample is printed, so this one is made from them with values that
 * announcements have. Assumed: the key, and that the response lists all categories.
 */
export default defineBuiltIn({
  name: 'GetCorporateAnnouncementsCategories',
  title: 'Announcement categories',
  group: 'corporate actions',
  summary: 'Categories of corporate announcements',
  exchanges: ['BSE'],
  request: { dates: 'none', instruments: 'none', dTFormat: false, options: [] },
  shapes: [
    {
      table,
      has: [],
      hasOneOf: ['DescriptorId', 'Descriptor', 'Category'],
      dated: false,
      fullSet: 'exchange',
    },
  ],
  windows: { per: 'once' },
  schedule: { at: '22:12', on: 'sunday', hasLookback: false },
  emptyIsNormal: false,
});
