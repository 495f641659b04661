import { type Check, halfUnit } from './quality-check.ts';

const extendsCode = (code: string, parent: string) =>
  `starts_with(k.${code}, k.${parent}) and k.${code} <> k.${parent}`;

const hierarchy: Check = {
  name: 'classification_hierarchy',
  severity: 'warning',
  operation: 'GetSectoralClassification',
  rule: 'Each classification code extends the one above it: macro-economic sector, sector, industry, basic industry.',
  dated: false,
  sql: `
    select k.exchange, k.allotted_from as date, coalesce(k.symbol, k.isin) || ' ' || k.scrip_code as instrument,
           'each code extends the one before' as expected,
           concat_ws(' > ', k.macro_sector_code, k.sector_code, k.industry_code, k.basic_industry_code) as found
      from market.sectoral_classification k
     where not (${extendsCode('sector_code', 'macro_sector_code')}
            and ${extendsCode('industry_code', 'sector_code')}
            and ${extendsCode('basic_industry_code', 'industry_code')})`,
};

const ISSUED = 'p.total_issued_shares';
const PROMOTER = 'p.total_promoter_holding_shares';
const ENCUMBERED = 'p.encumbered_last_quarter_shares';

const pledgePercentages: Check = {
  name: 'pledge_percentages',
  severity: 'warning',
  operation: 'GetConsolidatedPledge',
  rule: 'Each percentage of the pledge data is what its share counts make, to half a unit of the last digit printed.',
  dated: true,
  sql: `
    select p.exchange, p.trade_date as date, coalesce(nullif(p.scrip_code, 0)::text, p.scrip_id) as instrument, wrong.expected, wrong.found
      from market.consolidated_pledge p
      cross join lateral (
        select string_agg(what || ' ' || round(exact, 4), ', ') as expected,
               string_agg(what || ' ' || stated, ', ') as found
          from (
            select what, stated, part * 100.0 / nullif(whole, 0) as exact
              from (values
                ('promoter holding', p.total_promoter_holding_percent, ${PROMOTER}, ${ISSUED}),
                ('encumbered of promoter shares', p.encumbered_last_quarter_of_promoter_shares_percent, ${ENCUMBERED}, ${PROMOTER}),
                ('encumbered of all shares', p.encumbered_last_quarter_of_total_shares_percent, ${ENCUMBERED}, ${ISSUED}),
                ('pledged in depositories', p.depository_pledged_percent, p.depository_pledged_shares, p.depository_demat_shares)
              ) as v(what, stated, part, whole)) as percentages
         where abs(stated - exact) > ${halfUnit('stated')}) as wrong
     where p.trade_date between $1 and $2 and wrong.found is not null`,
};

const pledgeShares: Check = {
  name: 'pledge_shares',
  severity: 'warning',
  operation: 'GetConsolidatedPledge',
  rule: 'No part of the shares is larger than its whole: promoters and public of those issued, encumbered of promoters, pledged of dematerialised.',
  dated: true,
  sql: `
    select p.exchange, p.trade_date as date, coalesce(nullif(p.scrip_code, 0)::text, p.scrip_id) as instrument,
           'no part above its whole' as expected,
           concat_ws(', ',
             case when ${PROMOTER} + p.total_public_holding > ${ISSUED} then
               format('promoters and public %s of %s issued', ${PROMOTER} + p.total_public_holding, ${ISSUED}) end,
             case when ${ENCUMBERED} > ${PROMOTER} then format('encumbered %s of %s', ${ENCUMBERED}, ${PROMOTER}) end,
             case when p.depository_pledged_shares > p.depository_demat_shares then
               format('pledged %s of %s', p.depository_pledged_shares, p.depository_demat_shares) end) as found
      from market.consolidated_pledge p
     where p.trade_date between $1 and $2
       and (${PROMOTER} + p.total_public_holding > ${ISSUED} or ${ENCUMBERED} > ${PROMOTER}
            or p.depository_pledged_shares > p.depository_demat_shares)`,
};

/** Wide bounds: only impossible values are findings, not unusual ones. */
const ratioBounds: Check = {
  name: 'ratio_bounds',
  severity: 'warning',
  operation: 'GetFinancialRatios',
  rule: 'Ratios are possible: a dividend yield from 0 to 100 %, a price inside its 52-week range, P/E of the sign of EPS and below 100,000, positive face value and market capitalisation.',
  dated: true,
  sql: `
    select r.exchange, r.as_of_date as date,
           concat_ws(' ', r.symbol, r.nature_of_report, r.variant, nullif(r.period, '')) as instrument,
           string_agg(bound, ', ') as expected, string_agg(value, ', ') as found
      from market.financial_ratios r
      cross join lateral (select coalesce(r.current_price, r.eod_close_price) as price) as p
      cross join lateral (values
        (r.dividend_yield between 0 and 100, 'dividend yield from 0 to 100', 'dividend yield ' || r.dividend_yield),
        (r.week52_low_price <= r.week52_high_price, '52-week low up to the high', format('%s to %s', r.week52_low_price, r.week52_high_price)),
        (r.variant = 'quarter' or p.price between r.week52_low_price and r.week52_high_price,
         format('price from %s to %s', r.week52_low_price, r.week52_high_price), 'price ' || p.price),
        (abs(r.pe_ratio) < 100000 and sign(r.pe_ratio) * sign(r.eps) >= 0,
         'P/E of the sign of EPS, below 100000', format('P/E %s with EPS %s', r.pe_ratio, r.eps)),
        (r.face_value > 0, 'face value above 0', 'face value ' || r.face_value),
        (r.market_cap_crore > 0, 'market capitalisation above 0', 'market capitalisation ' || r.market_cap_crore),
        (r.debt >= 0, 'debt not below 0', 'debt ' || r.debt)
      ) as v(holds, bound, value)
     where r.as_of_date between $1 and $2 and not holds
     group by r.exchange, r.as_of_date, r.symbol, r.nature_of_report, r.variant, r.period`,
};

export const companyChecks: readonly Check[] = [hierarchy, pledgePercentages, pledgeShares, ratioBounds];
