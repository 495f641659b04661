-- What the service and the exchanges state of a trading day, computed from prices for those who have only the bhav copies. The
-- names begin with computed, and no row of the tables beside them comes from here. This file is applied by `eod migrate`
-- whenever it changes, after the views that it uses.

-- Lines of shares; those for same-day settlement repeat the close of another line.
CREATE OR REPLACE FUNCTION etl.is_share_line(isin text, symbol text, series text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT $3 <> 'T0' AND $2 NOT LIKE '%#' AND CASE WHEN $1 IS NULL THEN $3 NOT IN ('GB', 'GS', 'F', 'G', 'E', 'IF') AND $3 !~ '^[NYZ][0-9A-Z]$'
                                            ELSE $1 ~ '^IN[E9].{4}01' END
$$;
COMMENT ON FUNCTION etl.is_share_line(text, text, text) IS 'True of a line of a share, by its ISIN or, where its file has none, its series; lines for same-day settlement are not.';

CREATE OR REPLACE VIEW market.computed_gainers_losers AS
  SELECT mover.exchange, mover.trade_date, mover.is_loser, mover.rank, mover.instrument_id, mover.symbol, mover.series, mover.name,
         mover.close_price, mover.adjusted_previous_close_price, mover.return_percent, mover.traded_quantity, mover.turnover
    FROM (SELECT price.*, price.return_percent < 0 AS is_loser,
                 row_number() OVER (PARTITION BY price.exchange, price.trade_date, price.return_percent < 0
                                    ORDER BY abs(price.return_percent) DESC, price.symbol, price.series) AS rank
            FROM market.prices price
           WHERE price.return_percent <> 0 AND etl.is_share_line(price.isin, price.symbol, price.series)) AS mover
   WHERE mover.rank <= 10;
COMMENT ON VIEW market.computed_gainers_losers IS 'Computed from market.prices: the ten shares of each exchange and trading day that rose most, and the ten that fell most. market.top_gainers_losers has what the source states.';
COMMENT ON COLUMN market.computed_gainers_losers.exchange IS 'Exchange.';
COMMENT ON COLUMN market.computed_gainers_losers.trade_date IS 'Trading day.';
COMMENT ON COLUMN market.computed_gainers_losers.is_loser IS 'True of those that fell.';
COMMENT ON COLUMN market.computed_gainers_losers.rank IS '1 for the largest change of the trading day, among those that rose or among those that fell.';
COMMENT ON COLUMN market.computed_gainers_losers.instrument_id IS 'The instrument: market.instruments.instrument_id.';
COMMENT ON COLUMN market.computed_gainers_losers.symbol IS 'Ticker symbol of that day.';
COMMENT ON COLUMN market.computed_gainers_losers.series IS 'Series (NSE) or group (BSE) of that day.';
COMMENT ON COLUMN market.computed_gainers_losers.name IS 'Name of that day; null where the file of the day has none.';
COMMENT ON COLUMN market.computed_gainers_losers.close_price IS 'Closing price. Unit: rupees.';
COMMENT ON COLUMN market.computed_gainers_losers.adjusted_previous_close_price IS 'Close of the trading day before, as in market.prices. Unit: rupees.';
COMMENT ON COLUMN market.computed_gainers_losers.return_percent IS 'Change against adjusted_previous_close_price. Unit: percent.';
COMMENT ON COLUMN market.computed_gainers_losers.traded_quantity IS 'Total traded quantity. Unit: shares.';
COMMENT ON COLUMN market.computed_gainers_losers.turnover IS 'Total traded value. Unit: rupees.';

CREATE OR REPLACE VIEW market.computed_trade_totals AS
  SELECT line.exchange, line.trade_date, count(*) AS line_count, sum(line.trade_count) AS trade_count,
         sum(line.traded_quantity) AS traded_quantity, sum(line.turnover) AS turnover
    FROM market.bhavcopy_cm line GROUP BY line.exchange, line.trade_date;
COMMENT ON VIEW market.computed_trade_totals IS 'Computed from market.bhavcopy_cm: the sums of all lines of each exchange and trading day. market.total_trade_highlights has what the source states.';
COMMENT ON COLUMN market.computed_trade_totals.exchange IS 'Exchange.';
COMMENT ON COLUMN market.computed_trade_totals.trade_date IS 'Trading day.';
COMMENT ON COLUMN market.computed_trade_totals.line_count IS 'Number of lines, which are a symbol and a series each.';
COMMENT ON COLUMN market.computed_trade_totals.trade_count IS 'Number of trades; null where the files of the day have none.';
COMMENT ON COLUMN market.computed_trade_totals.traded_quantity IS 'Total traded quantity. Unit: shares.';
COMMENT ON COLUMN market.computed_trade_totals.turnover IS 'Total traded value. Unit: rupees.';

-- Limits are rounded to the tick towards the close before. It is coarser for high prices since April 2025, and 0.01 for
-- low ones since June 2024: where a band is as wide as two coarse ticks, only that is compared. Narrower ones have none.
CREATE OR REPLACE VIEW market.computed_band_hits AS
  SELECT price.instrument_id, price.exchange, price.symbol, price.series, price.trade_date, hit.band, hit.band_percent,
         price.close_price, price.adjusted_previous_close_price
    FROM market.prices price
   CROSS JOIN LATERAL (
     SELECT CASE WHEN band.change > 0 THEN 'H' ELSE 'L' END AS band, abs(band.change) AS band_percent
       FROM (VALUES (2), (5), (10), (20), (-2), (-5), (-10), (-20)) AS band(change)
      CROSS JOIN LATERAL (
        SELECT abs(price.adjusted_previous_close_price * band.change / 100.0) AS width,
               sign(band.change) * (price.adjusted_previous_close_price * (1 + band.change / 100.0) - price.close_price) AS short) AS distance
      WHERE price.close_price = CASE WHEN band.change > 0 THEN price.high_price ELSE price.low_price END
        AND distance.width > 0.02 AND distance.short >= 0
        AND CASE WHEN distance.width <= 0.1 THEN distance.short < 0.01
              ELSE distance.short <= CASE WHEN price.close_price > 20000 THEN 5 WHEN price.close_price > 10000 THEN 1
                WHEN price.close_price > 5000 THEN 0.5 WHEN price.close_price > 1000 THEN 0.1 ELSE 0.05 END END
      ORDER BY distance.short LIMIT 1) AS hit
   WHERE price.close_price IN (price.high_price, price.low_price) AND etl.is_share_line(price.isin, price.symbol, price.series);
COMMENT ON VIEW market.computed_band_hits IS 'Computed from market.prices: shares that closed at the limit of a usual price band, the highest or lowest price of the trading day. Which band a share has is not known; market.circuit_breakers has what the source states. Of three trading days in December 2025, NSE lists 165 of 168 hits at 5 to 20 %, 12 of 76 at 2 %; of its 397, 211 did not close there.';
COMMENT ON COLUMN market.computed_band_hits.instrument_id IS 'The instrument: market.instruments.instrument_id.';
COMMENT ON COLUMN market.computed_band_hits.exchange IS 'Exchange.';
COMMENT ON COLUMN market.computed_band_hits.symbol IS 'Ticker symbol of that day.';
COMMENT ON COLUMN market.computed_band_hits.series IS 'Series (NSE) or group (BSE) of that day.';
COMMENT ON COLUMN market.computed_band_hits.trade_date IS 'Trading day.';
COMMENT ON COLUMN market.computed_band_hits.band IS 'Limit at which it closed: H upper, L lower.';
COMMENT ON COLUMN market.computed_band_hits.band_percent IS 'Band of that limit. Unit: percent.';
COMMENT ON COLUMN market.computed_band_hits.close_price IS 'Closing price. Unit: rupees.';
COMMENT ON COLUMN market.computed_band_hits.adjusted_previous_close_price IS 'Close of the trading day before, as in market.prices. Unit: rupees.';
