import { boolean, date, int4, numeric, text } from '../../declaration/fields.ts';
import { defineFileSet } from '../../declaration/operation.ts';
import { defineTable } from '../../declaration/table.ts';

const table = defineTable({
  name: 'corporate_action_notices',
  comment:
    'Raw: corporate actions as the lists of NSE and BSE print them, one row a line; use market.corporate_events.',
  key: ['exchange', 'symbol', 'ex_date', 'series', 'purpose', 'stated_kind'],
  fields: [
    text(
      'symbol',
      'symbol',
      'Ticker symbol as the list writes it: in lists of NSE that of the day of the list.',
      {
        required: true,
      },
    ),
    date('exDate', 'ex_date', 'First day on which the share trades without the right.', { required: true }),
    text('series', 'series', 'Series; empty in lists that have none.', { absent: '' }),
    text('purpose', 'purpose', 'What the company does, as printed.', { required: true }),
    int4('scripCode', 'scrip_code', 'BSE: scrip code.'),
    text('companyName', 'company_name', 'Name of the company.'),
    numeric('faceValue', 'face_value', 'Face value of the share on the day of the list.', { unit: 'rupees' }),
    date('recordDate', 'record_date', 'Day whose holders have the right.'),
    date('bookClosureFrom', 'book_closure_from', 'First day of the book closure.'),
    date('bookClosureTo', 'book_closure_to', 'Last day of the book closure.'),
    date('paymentDate', 'payment_date', 'BSE: day of payment.'),
    text(
      'kind',
      'stated_kind',
      'Kind of event, where the list states it beside the purpose; empty where it does not.',
      { absent: '' },
    ),
    text('ratio', 'stated_ratio', 'Ratio, where the list states it beside the purpose.'),
    boolean(
      'isDaily',
      'is_daily',
      'True if a daily list of NSE has the line: its symbol is that of the ex-date, and its purpose may be cut.',
    ),
  ],
});

export default defineFileSet({
  name: 'CorporateActionLists',
  title: 'Lists of corporate actions',
  group: 'corporate actions',
  summary: 'Lists of corporate actions of NSE and BSE, raw',
  shapes: [{ table, has: ['symbol', 'exDate', 'purpose'], dated: false, fullSet: 'none' }],
});
