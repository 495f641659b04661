import type { Check } from './quality-check.ts';

/** Wide bounds: only impossible values are findings, not unusual ones. */
export const ratioBounds: Check = {
  name: 'ratio_bounds',
  severity: 'warning',
  operation: 'GetFinancialRatios',
  rule: 'Ratios are possible: a dividend yield from 0 to 100 %, a price inside its 52-week range, P/E of the sign of EPS and below 100,000, positive face value and market capitalisation.',
  dated: true,
  sql: `
    select ratios.exchange, ratios.as_of_date as date,
           concat_ws(' ', ratios.symbol, ratios.nature_of_report, ratios.variant, nullif(ratios.period, '')) as instrument,
           string_agg(bound, ', ') as expected, string_agg(value, ', ') as found
      from market.financial_ratios ratios
      cross join lateral (select coalesce(ratios.current_price, ratios.eod_close_price) as price) as known
      cross join lateral (values
        (ratios.dividend_yield between 0 and 100, 'dividend yield from 0 to 100', 'dividend yield ' || ratios.dividend_yield),
        (ratios.week52_low_price <= ratios.week52_high_price, '52-week low up to the high', format('%s to %s', ratios.week52_low_price, ratios.week52_high_price)),
        (ratios.variant = 'quarter' or known.price between ratios.week52_low_price and ratios.week52_high_price,
         format('price from %s to %s', ratios.week52_low_price, ratios.week52_high_price), 'price ' || known.price),
        (abs(ratios.pe_ratio) < 100000 and sign(ratios.pe_ratio) * sign(ratios.eps) >= 0,
         'P/E of the sign of EPS, below 100000', format('P/E %s with EPS %s', ratios.pe_ratio, ratios.eps)),
        (ratios.face_value > 0, 'face value above 0', 'face value ' || ratios.face_value),
        (ratios.market_cap_crore > 0, 'market capitalisation above 0', 'market capitalisation ' || ratios.market_cap_crore),
        (ratios.debt >= 0, 'debt not below 0', 'debt ' || ratios.debt)
      ) as checked(holds, bound, value)
     where ratios.as_of_date between $1 and $2 and not holds
     group by ratios.exchange, ratios.as_of_date, ratios.symbol, ratios.nature_of_report, ratios.variant, ratios.period`,
};
