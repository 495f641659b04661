import { date, derived, int8, numeric, text } from '../../declaration/fields.ts';
import { defineFileSet } from '../../declaration/operation.ts';
import { defineTable } from '../../declaration/table.ts';

const SHARES = { unit: 'shares' } as const;
const PERCENT = { unit: 'percent' } as const;
const CRORES = { unit: 'crores of rupees' } as const;

const ENCUMBERED = 'Promoter shares encumbered at the end of the last quarter';

const table = defineTable({
  name: 'company_pledges',
  comment: "Promoter holdings and pledged shares by name of company, from NSE's list; names are not unique.",
  key: ['exchange', 'company_name', 'ordinal', 'trade_date'],
  fields: [
    text('comName', 'company_name', 'Name of the company.', { required: true }),
    derived(
      'ordinal',
      'int4',
      'Position among companies of the same name and day: 1 for the one with most shares.',
      (_get, read, memory) => {
        const name = JSON.stringify([read('comName', 'text'), read('broadcastDt', 'date')]);
        const position = (memory.get(name) ?? 0) + 1;
        memory.set(name, position);
        return position;
      },
    ),
    date('broadcastDt', 'trade_date', 'Day on which the exchange published it.', { required: true }),
    derived('broadcast_at', 'datetime', 'When the exchange published it.', (_get, read) =>
      read('broadcastDt', 'datetime'),
    ),
    date('shp', 'shareholding_date', 'Day of the shareholding pattern that the holdings are from.'),
    int8('totIssuedShares', 'total_issued_shares', 'Shares issued.', SHARES),
    int8('totPromoterHolding', 'total_promoter_holding_shares', 'Shares held by the promoters.', SHARES),
    numeric(
      'percPromoterHolding',
      'total_promoter_holding_percent',
      'The same as a share of those issued.',
      PERCENT,
    ),
    int8('totPublicHolding', 'total_public_holding', 'Shares held by the public.', SHARES),
    int8('totPromoterShares', 'encumbered_last_quarter_shares', `${ENCUMBERED}.`, SHARES),
    numeric(
      'percPromoterShares',
      'encumbered_last_quarter_of_promoter_shares_percent',
      `${ENCUMBERED}, as a share of promoter shares.`,
      PERCENT,
    ),
    numeric(
      'percTotShares',
      'encumbered_last_quarter_of_total_shares_percent',
      `${ENCUMBERED}, as a share of all shares.`,
      PERCENT,
    ),
    numeric('noOfPledgeShare', 'encumbered_last_quarter_value_crore', `${ENCUMBERED}: their value.`, CRORES),
    int8('numSharesPledged', 'depository_pledged_shares', 'Shares pledged in the depository system.', SHARES),
    int8('totDematShares', 'depository_demat_shares', 'All dematerialised shares.', SHARES),
    numeric(
      'percSharesPledged',
      'depository_pledged_percent',
      'Pledged as a share of dematerialised shares.',
      PERCENT,
    ),
    numeric(
      'noOfSecPledgeShare',
      'depository_pledged_value_crore',
      'Value of the shares pledged there.',
      CRORES,
    ),
    int8('sharesCollateral', 'collateral_shares', 'Shares that are collateral.', SHARES),
    int8(
      'nbfcPromoShare',
      'nbfc_collateral_promoter_shares',
      'Promoter shares held by NBFCs as collateral.',
      SHARES,
    ),
    int8(
      'nbfcNonPromoShare',
      'nbfc_collateral_non_promoter_shares',
      'Other shares held by NBFCs as collateral.',
      SHARES,
    ),
    date('compBroadcastDate', 'disclosed_on', 'Day of the last disclosure by the promoters.'),
    date('disclosureFromDate', 'disclosure_from', 'First day of that disclosure.'),
    date('disclosureToDate', 'disclosure_to', 'Last day of that disclosure.'),
  ],
});

export default defineFileSet({
  name: 'CompanyPledges',
  title: 'Pledges by name of company',
  group: 'ownership',
  summary: "NSE's list of pledged shares",
  shapes: [{ table, has: ['comName'], dated: true, fullSet: 'days' }],
});
