import { type Check, isExDate, isT0 } from './quality-check.ts';

/** Price bands of the exchange in percent; new and special lines may have others. */
const BANDS = '2, 5, 10, 20, 40';

/** Bands are rounded to the tick; the coarsest one, in rupees. */
const TICK = '0.05';

/** A hit with its line of the bhav copy. `touched`: the price that reached the band. `before`: null on an ex-date. */
const HITS = `
  select c.exchange, c.trade_date, c.symbol, c.scrip_id || ' ' || c.series || ' ' || c.band as instrument,
         upper(c.band) as band, b.symbol is not null as listed, case when b.symbol is not null and not ${isExDate('b')} then b.previous_close_price end as before,
         case upper(c.band) when 'H' then b.high_price when 'L' then b.low_price end as touched
    from market.circuit_breakers c
    join complete d on d.exchange = c.exchange and d.day = c.trade_date
    left join market.bhavcopy_cm b on b.exchange = c.exchange and b.trade_date = c.trade_date
      and b.trade_date between $1 and $2 and b.symbol = c.symbol
      and (b.series = c.series or (c.series = '' and not ${isT0('b')}))
   where c.trade_date between $1 and $2`;

const direction: Check = {
  name: 'circuit_hit',
  severity: 'warning',
  operation: 'GetCircuitBreakers',
  rule: 'A security at its upper band (H) traded above its previous close that day, one at its lower band (L) below.',
  dated: true,
  sql: `
    select exchange, trade_date as date, instrument,
           case when not listed then 'a line in the bhav copy'
                when band = 'H' then 'a high above ' || before else 'a low below ' || before end as expected,
           case when listed then touched::text else 'none' end as found
      from (${HITS}) as hit
     where not listed or (before > 0 and ((band = 'H' and touched <= before) or (band = 'L' and touched >= before)))`,
};

const size: Check = {
  name: 'circuit_band',
  severity: 'info',
  operation: 'GetCircuitBreakers',
  rule: `The move to a price band is one of the usual bands (${BANDS} %), to the tick.`,
  dated: true,
  sql: `
    select exchange, trade_date as date, instrument, 'a move of ${BANDS} %' as expected,
           round((touched - before) * 100 / before, 2) || '% from ' || before || ' to ' || touched as found
      from (${HITS}) as hit
     where before > 0 and not exists (
       select from unnest(array[${BANDS}]) as width
        where abs(abs(touched - before) - before * width / 100) <= ${TICK})`,
};

export const circuitChecks: readonly Check[] = [direction, size];
