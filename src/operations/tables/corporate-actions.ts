import { sha256 } from '../../core/sha256.ts';
import { type Compute, date, datetime, derived, int4, numeric, text } from '../../declaration/fields.ts';
import { defineShape, defineTable } from '../../declaration/table.ts';

/** A longer id would be too long for a key together with its other parts. */
const LONGEST_ID = 120;

/**
 * The source's id of an action. It may be 0 or missing for all of them; then an id is made from what distinguishes
 * actions: purpose, ex-date or else record date, and the moment of the announcement. So the same action gets the same
 * id in every format and whatever else is corrected. If a response lists two actions that are alike in all of this,
 * their serial number and amount are used as well.
 */
const actionId: Compute = (get, read, memory) => {
  const id = String(get('actionId') ?? '').trim();
  // CSV prints integers as 17.0.
  const sentId = /^-?\d+\.0+$/.test(id) ? id.slice(0, id.indexOf('.')) : id;
  if (sentId !== '' && !/^-?0+$/.test(sentId)) return sentId;
  const code = read('scripCode', 'int4');
  const security = read('symbol', 'text') ?? read('scripId', 'text') ?? read('isin', 'text');
  const announced = read('announcementDate', 'datetime');
  const parts = [
    ...(code === null || code === 0 ? [security] : []),
    read('purposeCode', 'text') ?? read('corporateActionType', 'text'),
    read('provXdate', 'date') ?? read('bcRdFrom', 'date'),
    typeof announced === 'string' ? new Date(announced).toISOString().replace('.000Z', 'Z') : null,
  ];
  const base = shortenId(parts.map((part) => part ?? '-').join(' '));
  const detail = [read('referenceSrno', 'numeric') ?? get('referenceSrno'), read('ratioAmount', 'text')].join(
    ' ',
  );
  const action = `${code} ${base}`;
  const exact = `${action} ${detail}`;
  const position = memory.get(exact) ?? (memory.get(action) ?? 0) + 1;
  memory.set(exact, position);
  memory.set(action, Math.max(position, memory.get(action) ?? 0));
  return position === 1 ? base : shortenId(`${base} ${detail}`);
};

const shortenId = (id: string) => (id.length <= LONGEST_ID ? id : sha256(id));

/** When an action was announced, where the source says the time: midnight is how it writes a day as a date-time. */
const announcedAt: Compute = (_get, read) => {
  const at = read('announcementDate', 'datetime');
  return typeof at === 'string' && !at.includes(' 00:00:00') ? at : null;
};

const table = defineTable({
  name: 'corporate_actions',
  comment: 'Raw: corporate actions as the source sends them, one row an action; use market.corporate_events.',
  key: ['exchange', 'scrip_code', 'action_id'],
  fields: [
    int4('scripCode', 'scrip_code', 'Security code of the exchange; 0 when left out.', { absent: 0 }),
    text(
      'actionId',
      'action_id',
      'Identifier of the action; where the source has none or 0, made of purpose, ex-date or record date, and time of announcement.',
      { compute: actionId, absent: '' },
    ),
    text('symbol', 'symbol', 'Ticker symbol.', { orElse: ['scripId'] }),
    text('companyName', 'company_name', 'Name of the company.', { orElse: ['scripName'] }),
    text('industryName', 'industry_name', 'Industry of the company.'),
    text('listedStatus', 'listed_status', 'Listing status.'),
    numeric('scripFaceValue', 'scrip_face_value', 'Face value of the share.', { unit: 'rupees' }),
    text('isin', 'isin', 'International Securities Identification Number.'),
    text('announceType', 'announce_type', 'Kind of announcement.'),
    date('announcementDate', 'announcement_date', 'Day of the announcement.'),
    derived(
      'announced_at',
      'datetime',
      'When it was announced; null where the source sends only the day.',
      announcedAt,
    ),
    date('meetingDate', 'meeting_date', 'Day of the meeting.'),
    text('corporateActionType', 'corporate_action_type', 'Kind of corporate action.'),
    text('purposeCode', 'purpose_code', 'Short code of the purpose.'),
    text('announcementUrl', 'announcement_url', 'Address of the announcement.'),
    text('ratioAmount', 'ratio_amount', 'Ratio or amount, as sent; it may be a code that is not documented.'),
    text('bcRdFlag', 'bc_rd_flag', 'Book closure or record date.'),
    date('bcRdFrom', 'bc_rd_from', 'First day of the book closure, or the record date.'),
    date('bcRdTo', 'bc_rd_to', 'Last day of the book closure.'),
    date('provXdate', 'prov_xdate', 'Provisional ex-date; without one, an action is no event.'),
    date('ndStartDate', 'nd_start_date', 'First day of the no-delivery period.'),
    date('ndEndDate', 'nd_end_date', 'Last day of the no-delivery period.'),
    date('paymentDate', 'payment_date', 'Day of payment.'),
    text('referenceSrno', 'reference_srno', 'Serial number of the reference.'),
    datetime('modifyDate', 'modify_date', 'When the item was last modified.'),
  ],
});

/** Recognized by its security or its days, which categories do not have. */
export const corporateActionShape = defineShape({
  table,
  has: [],
  hasOneOf: [
    ...(['scripCode', 'scripId', 'symbol', 'isin', 'companyName', 'scripName', 'actionId'] as const),
    ...(['announcementDate', 'announceType', 'listedStatus', 'provXdate', 'bcRdFrom'] as const),
  ],
  namedBy: ['scripCode', 'symbol', 'scripId', 'isin'],
  dated: false,
  fullSet: 'none',
});
