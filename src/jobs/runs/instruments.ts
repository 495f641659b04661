import type { Pool } from 'pg';
import type { Config } from '../../core/config.ts';

/**
 * Which instruments to ask for where an operation asks one by one and nobody named any: those of
 * EOD_INSTRUMENTS, or else the EOD_INSTRUMENT_LIMIT with the largest turnover in the newest stored
 * bhav copy of the exchange. Empty where no bhav copy is stored.
 */
export async function defaultInstruments(
  pool: Pool,
  config: Pick<Config, 'EOD_INSTRUMENTS' | 'EOD_INSTRUMENT_LIMIT'>,
  exchange: string,
): Promise<string[]> {
  if (config.EOD_INSTRUMENTS !== undefined) return [...config.EOD_INSTRUMENTS];
  const result = await pool.query<{ symbol: string }>(
    `select symbol from market.bhavcopy_cm
      where exchange = $1 and withdrawn_at is null
        and trade_date = (select max(trade_date) from market.bhavcopy_cm where exchange = $1)
      group by symbol order by sum(turnover) desc nulls last, symbol limit $2`,
    [exchange, config.EOD_INSTRUMENT_LIMIT],
  );
  return result.rows.map((row) => row.symbol);
}
