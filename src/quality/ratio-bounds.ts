import type { Check } from './quality-check.ts';

/** Wide bounds: only impossible values are findings, not unusual ones. */
export const ratioBounds: Check = {
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
