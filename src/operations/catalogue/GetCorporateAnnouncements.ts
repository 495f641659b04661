import { defineBuiltIn } from '../built-in.ts';
import { boolean, date, int4, text } from '../fields.ts';
import { defineTable } from '../table.ts';
import { filter, rankAmong } from './shared.ts';

const table = defineTable({
  name: 'corporate_announcements',
  comment: 'Disclosures that companies filed with the exchange, with their text and a link to the document.',
  key: ['exchange', 'trade_date', 'scrip_code', 'attachment_name', 'ordinal'],
  fields: [
    date('TradeDate', 'trade_date', 'Trading day of the filing.', {
      required: true,
      orElse: ['FillingDate'],
    }),
    int4('ScripCode', 'scrip_code', 'Security code of the exchange; 0 when left out.', { absent: 0 }),
    text('AttachmentName', 'attachment_name', 'File name of the document; empty where there is none.', {
      absent: '',
    }),
    rankAmong(
      'ordinal',
      ['TradeDate', 'FillingDate', 'ScripCode', 'AttachmentName'],
      'Shows filings of a company and day without documents apart: 1 for the first in the response.',
    ),
    text('ScripId', 'symbol', 'Ticker symbol.', { orElse: ['Symbol'] }),
    text('ScripName', 'company_name', 'Name of the company.', { orElse: ['CompanyName'] }),
    date('FillingDate', 'filing_date', 'Day of the filing.'),
    date('MeetingDate', 'meeting_date', 'Day of the meeting, if there is one.'),
    text('MeetingType', 'meeting_type', 'Kind of meeting, e.g. AGM.'),
    text('HeadLine', 'headline', 'Headline.'),
    text('NewsSubject', 'news_subject', 'Subject.'),
    text('NewsBody', 'news_body', 'Text.'),
    text('Descriptor', 'descriptor', 'What it is about; see corporate_announcement_categories.'),
    text('DescriptorId', 'descriptor_id', 'Number of the descriptor, as text.'),
    text('Category', 'category', 'Category; responses to requests have none so far.'),
    text('AnnounceType', 'announce_type', 'Kind of announcement.'),
    text('FileStatus', 'file_status', 'Status of the filing, one letter.'),
    boolean('CriticalNews', 'is_critical', 'True if the exchange marked it as critical.'),
    text('AttachmentUrl', 'attachment_url', 'Link to the document.'),
  ],
});

/**
 * Documented: the fields and the filters. Assumed: the key, because announcements have no number and may have no
 * document (then the order of the response distinguishes them), and `Category`, which only the pushed ones have. Which
 * day `from` and `to` select by is not stated (of filing, of trading or of receipt), so no day is taken to be listed in
 * full.
 */
export default defineBuiltIn({
  name: 'GetCorporateAnnouncements',
  title: 'Announcements',
  group: 'corporate actions',
  summary: 'Disclosures that companies filed with the exchange',
  exchanges: ['BSE'],
  request: {
    dates: 'range',
    instruments: 'one',
    dTFormat: true,
    options: [
      filter('descriptor', 'only this descriptor, by name'),
      filter('descriptorId', 'only this descriptor, by number'),
      filter('category', 'only this category'),
      filter('hasMeeting', 'only announcements with a meeting'),
    ],
  },
  shapes: [
    {
      table,
      has: ['HeadLine'],
      hasOneOf: ['TradeDate', 'FillingDate'],
      namedBy: ['ScripCode', 'ScripId', 'Symbol'],
      symbolColumn: 'symbol',
      dated: false,
      fullSet: 'none',
    },
  ],
  windows: { per: 'range', days: 5, everyDay: true },
  schedule: { at: '22:06', on: 'daily', hasLookback: true },
  emptyIsNormal: true,
});
