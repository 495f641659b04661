import { date, datetime, int4, numeric, text } from '../fields.ts';
import type { Shape } from '../operation.ts';
import { defineTable } from '../table.ts';

const table = defineTable({
  name: 'corporate_actions',
  comment: 'Corporate action items: the response shape that the pledge and category operations declare.',
  key: ['exchange', 'scrip_code', 'action_id'],
  fields: [
    int4('scripCode', 'scrip_code', 'Security code of the exchange; 0 when left out.', { absent: 0 }),
    text('actionId', 'action_id', 'Identifier of the action; empty when left out.', { absent: '' }),
    text('symbol', 'symbol', 'Ticker symbol.'),
    text('companyName', 'company_name', 'Name of the company.'),
    text('industryName', 'industry_name', 'Industry of the company.'),
    text('listedStatus', 'listed_status', 'Listing status.'),
    numeric('scripFaceValue', 'scrip_face_value', 'Face value of the share.', { unit: 'rupees' }),
    text('isin', 'isin', 'International Securities Identification Number.'),
    text('announceType', 'announce_type', 'Kind of announcement.'),
    date('announcementDate', 'announcement_date', 'Day of the announcement.'),
    date('meetingDate', 'meeting_date', 'Day of the meeting.'),
    text('corporateActionType', 'corporate_action_type', 'Kind of corporate action.'),
    text('purposeCode', 'purpose_code', 'Short code of the purpose.'),
    text('announcementUrl', 'announcement_url', 'Address of the announcement.'),
    text('ratioAmount', 'ratio_amount', 'Ratio or amount, as sent.'),
    text('bcRdFlag', 'bc_rd_flag', 'Book closure or record date.'),
    date('bcRdFrom', 'bc_rd_from', 'First day of the book closure, or the record date.'),
    date('bcRdTo', 'bc_rd_to', 'Last day of the book closure.'),
    date('provXdate', 'prov_xdate', 'Provisional ex-date.'),
    date('ndStartDate', 'nd_start_date', 'First day of the no-delivery period.'),
    date('ndEndDate', 'nd_end_date', 'Last day of the no-delivery period.'),
    date('paymentDate', 'payment_date', 'Day of payment.'),
    text('referenceSrno', 'reference_srno', 'Serial number of the reference.'),
    datetime('modifyDate', 'modify_date', 'When the item was last modified.'),
  ],
});

/** Recognized by fields that are neither in the sample of the pledge nor of the category operation. */
export const corporateActionShape: Shape = {
  table,
  has: [],
  hasOneOf: ['actionId', 'announcementDate', 'announceType', 'listedStatus'],
  namedBy: ['scripCode', 'symbol'],
  dated: false,
  fullSet: 'none',
};
