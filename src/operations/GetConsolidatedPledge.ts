import { defineOperation } from '../declaration/define-operation.ts';
import { date, int4, int8, numeric, symbolOf, text } from '../declaration/fields.ts';
import { defineTable } from '../declaration/table.ts';
import { corporateActionShape } from './tables/corporate-actions.ts';

const LAST_QUARTER = 'Promoter shares encumbered at the end of the last quarter';

const table = defineTable({
  name: 'consolidated_pledge',
  comment: 'Promoter holdings and what of them is pledged, per company and day.',
  key: ['exchange', 'scrip_code', 'scrip_id', 'trade_date'],
  fields: [
    int4('ScripCode', 'scrip_code', 'Security code of the exchange; 0 where the source has none.', {
      absent: 0,
    }),
    text('ScripId', 'scrip_id', 'Security id as sent; distinguishes companies without a code.', {
      absent: '',
    }),
    date('TradeDate', 'trade_date', 'Day the figures belong to.', { required: true }),
    symbolOf('ScripId'),
    text('CompanyName', 'company_name', 'Name of the company.'),
    int8('TotalIssuedShares', 'total_issued_shares', 'Shares issued.', { unit: 'shares' }),
    int8('TotalPromoterHoldingShares', 'total_promoter_holding_shares', 'Shares held by the promoters.', {
      unit: 'shares',
    }),
    numeric(
      'TotalPromoterHoldingPer',
      'total_promoter_holding_percent',
      'Promoter holding as a share of those issued.',
      { unit: 'percent' },
    ),
    int8('TotalPublicHolding', 'total_public_holding', 'Shares held by the public.', { unit: 'shares' }),
    int8(
      'PromoterSharesEncumberedasoflastquarter_NoofShares',
      'encumbered_last_quarter_shares',
      `${LAST_QUARTER}.`,
      { unit: 'shares' },
    ),
    numeric(
      'PromoterSharesEncumberedasoflastquarter_Perofpromotershares',
      'encumbered_last_quarter_of_promoter_shares_percent',
      `${LAST_QUARTER}, as a share of promoter shares.`,
      { unit: 'percent' },
    ),
    numeric(
      'PromoterSharesEncumberedasoflastquarter_Peroftotalshares',
      'encumbered_last_quarter_of_total_shares_percent',
      `${LAST_QUARTER}, as a share of all shares.`,
      { unit: 'percent' },
    ),
    numeric(
      'PromoterSharesEncumberedasoflastquarter_Values',
      'encumbered_last_quarter_value',
      `${LAST_QUARTER}: their value.`,
      { unit: 'as sent' },
    ),
    text(
      'DisclosuresmadebypromotersontheirencumberedsharesunderRegulation31ofSASTsincethelastquarter',
      'sast_reg31_disclosures',
      'Disclosures under regulation 31 of SAST since the last quarter; may be empty.',
    ),
    int8(
      'Noofsharespledgedinthedepositorysystem_DNoofsharespledged',
      'depository_pledged_shares',
      'Shares pledged in the depository system (D).',
      { unit: 'shares' },
    ),
    int8(
      'Noofsharespledgedinthedepositorysystem_ETotalnoofdematshares',
      'depository_demat_shares',
      'All dematerialised shares (E).',
      { unit: 'shares' },
    ),
    numeric(
      'Noofsharespledgedinthedepositorysystem_FPerDE',
      'depository_pledged_percent',
      'D as a share of E (F).',
      { unit: 'percent' },
    ),
    numeric(
      'Noofsharespledgedinthedepositorysystem_ValuesPromoter',
      'depository_pledged_promoter_value',
      'Value of promoter shares pledged in the depository system.',
      { unit: 'as sent' },
    ),
    int8(
      'NoofsharesheldwithNBFCascollateralagainstlending_Promotershares',
      'nbfc_collateral_promoter_shares',
      'Promoter shares held by NBFCs as collateral against lending.',
      { unit: 'shares' },
    ),
    int8(
      'NoofsharesheldwithNBFCascollateralagainstlending_NonPromotershares',
      'nbfc_collateral_non_promoter_shares',
      'Other shares held by NBFCs as collateral against lending.',
      { unit: 'shares' },
    ),
  ],
});

export default defineOperation({
  name: 'GetConsolidatedPledge',
  title: 'Promoter pledges',
  group: 'ownership',
  summary: 'Consolidated promoter pledge data',
  exchanges: ['BSE'],
  request: { dates: 'range', instruments: 'one', dTFormat: true, options: [] },
  shapes: [
    {
      table,
      has: [],
      hasOneOf: ['ScripCode', 'ScripId', 'TradeDate'],
      namedBy: ['ScripCode', 'ScripId'],
      symbolColumn: 'scrip_id',
      dated: true,
      fullSet: 'days',
    },
    corporateActionShape,
  ],
  windows: { per: 'range', days: 30, everyDay: true },
  schedule: { at: '21:51', on: 'saturday', hasLookback: false, order: 2 },
  emptyIsNormal: true,
});
