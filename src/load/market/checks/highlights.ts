import { type Check, halfUnit } from './quality-check.ts';

const CRORE = 10_000_000;

interface Sum {
  readonly name: string;
  readonly what: string;
  readonly stated: string;
  /** Over the lines of the bhav copy, in the unit of the highlights. */
  readonly exact: string;
}

const SUMS: readonly Sum[] = [
  { name: 'scrips', what: 'number of securities', stated: 'scrip_count', exact: 'count(*)' },
  { name: 'trades', what: 'number of trades', stated: 'trade_count', exact: 'sum(b.trade_count)' },
  {
    name: 'volume',
    what: 'traded quantity (crores of shares)',
    stated: 'shares_volume_crore',
    exact: `sum(b.traded_quantity)::numeric / ${CRORE}`,
  },
  {
    name: 'turnover',
    what: 'traded value (crores of rupees)',
    stated: 'turnover_crore',
    exact: `sum(b.turnover) / ${CRORE}`,
  },
];

/** `Total` is the sum of the whole bhav copy, `Group A` that of its lines of group A; other labels are not compared. */
function sumCheck({ name, what, stated, exact }: Sum): Check {
  return {
    name: `highlights_${name}`,
    severity: 'warning',
    operation: 'GetTotalTradeHighlights',
    rule: `The ${what} in the highlights is the sum over the bhav copy, to half a unit of the last digit printed.`,
    dated: true,
    sql: `
      select h.exchange, h.trade_date as date, h.trade_highlight as instrument,
             trim_scale(round(s.exact, scale(h.stated) + 2))::text as expected, h.stated::text as found
        from (select *, ${stated}::numeric as stated from market.total_trade_highlights) h
        join complete c on c.exchange = h.exchange and c.day = h.trade_date
        join (
          select b.exchange, b.trade_date, b.series, grouping(b.series) = 1 as is_total, (${exact})::numeric as exact
            from market.bhavcopy_cm b
           where b.trade_date between $1 and $2
           group by grouping sets ((b.exchange, b.trade_date), (b.exchange, b.trade_date, b.series))
        ) as s on s.exchange = h.exchange and s.trade_date = h.trade_date
          and upper(h.trade_highlight) = case when s.is_total then 'TOTAL' else 'GROUP ' || upper(s.series) end
       where h.trade_date between $1 and $2
         and abs(h.stated - s.exact) > ${halfUnit('h.stated')}`,
  };
}

export const highlightChecks: readonly Check[] = SUMS.map(sumCheck);
