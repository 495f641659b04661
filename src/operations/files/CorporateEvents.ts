import { boolean, date, int4, int8, numeric, text } from '../../declaration/fields.ts';
import { defineFileSet } from '../../declaration/operation.ts';
import { defineTable } from '../../declaration/table.ts';

export const corporateEvents = defineTable({
  name: 'corporate_events',
  comment:
    'What lists and responses about corporate actions mean for a share: one row an event and exchange with a line of the share (one row an event: market.share_events); computed from market.corporate_action_notices, market.corporate_actions and decisions by hand.',
  key: ['exchange', 'symbol', 'ex_date', 'kind', 'item'],
  fields: [
    text('symbol', 'symbol', 'Ticker symbol as the list writes it.', { required: true }),
    date('exDate', 'ex_date', 'First day on which the share trades without the right.', { required: true }),
    text(
      'kind',
      'kind',
      'split, consolidation, bonus, dividend, rights, demerger, capital_reduction, buyback, interest, meeting or other.',
      { required: true },
    ),
    text('item', 'item', 'Distinguishes events of one kind and day: the amount of a dividend; else empty.', {
      absent: '',
    }),
    text(
      'eventId',
      'event_id',
      'Names the event in commands: exchange:symbol:day:kind, with the item behind it.',
    ),
    text(
      'instrumentId',
      'instrument_id',
      'The share: market.instruments.instrument_id; null where it is not known.',
    ),
    int4('scripCode', 'scrip_code', 'BSE: scrip code.'),
    date('recordDate', 'record_date', 'Day whose holders have the right.'),
    text('purpose', 'purpose', 'What the company does, as printed.'),
    int8('ratioNew', 'ratio_new', 'Shares after the event for ratio_old shares before it.', {
      unit: 'shares',
    }),
    int8('ratioOld', 'ratio_old', 'Shares before the event.', { unit: 'shares' }),
    numeric('amount', 'amount', 'Dividend or interest, or the premium of a rights issue.', {
      unit: 'rupees a share',
    }),
    numeric(
      'priceFactor',
      'price_factor',
      'ratio_old ÷ ratio_new, to 20 decimals: a price before the event times this compares with one after it.',
      { unit: 'quotient' },
    ),
    text(
      'status',
      'status',
      'applied: used in adjusted prices or total returns; needs_review: a person has to decide (total returns reinvest special dividends until then); ignored: leaves prices as they are.',
    ),
    text('statusReason', 'status_reason', 'Why it is not applied, or who decided.'),
    text(
      'listedBy',
      'listed_by',
      'Exchange whose list has the event: the other one, if only that lists it for the share.',
    ),
    boolean('isSpecial', 'is_special', 'True for a special dividend, which is paid once.'),
    boolean('isReinvested', 'is_reinvested', 'True if total returns reinvest its amount.'),
  ],
});

/** The data set that no file fills. */
export const COMPUTED = 'CorporateEvents';

export default defineFileSet({
  name: COMPUTED,
  title: 'Corporate events',
  group: 'corporate actions',
  summary: 'Events computed from the lists of corporate actions',
  shapes: [{ table: corporateEvents, has: ['eventId'], dated: false, fullSet: 'exchange' }],
});
