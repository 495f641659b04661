-- Adjusted prices; docs/adjusted-prices.md explains them. This file is applied by `eod migrate` whenever it changes.

-- The exact product of numerics; Postgres has none.
CREATE OR REPLACE AGGREGATE market.product(numeric) (
  SFUNC = pg_catalog.numeric_mul, STYPE = numeric, INITCOND = '1', COMBINEFUNC = pg_catalog.numeric_mul, PARALLEL = SAFE);
COMMENT ON AGGREGATE market.product(numeric) IS 'The product of all values, exactly.';

-- For each share with events, the stretches of days between them, and what prices of each are to be multiplied by. Days
-- after the last event have no stretch: nothing changes there.
CREATE OR REPLACE FUNCTION market.price_factors(through date DEFAULT current_date)
RETURNS TABLE (exchange text, instrument_id text, valid_from date, valid_to date, ratio_old numeric, ratio_new numeric)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000 SET search_path = pg_catalog AS $$
  WITH days AS (
    -- The same event under two symbols of one share counts once; what a person has decided comes first.
    SELECT e.exchange, e.instrument_id, e.ex_date, market.product(e.ratio_old) AS ratio_old, market.product(e.ratio_new) AS ratio_new
      FROM (SELECT DISTINCT ON (c.exchange, c.instrument_id, c.ex_date, c.kind, c.item)
                   c.exchange, c.instrument_id, c.ex_date, c.status, c.ratio_old, c.ratio_new
              FROM market.corporate_events c
             WHERE (c.status = 'applied' AND c.ratio_new IS NOT NULL OR c.status_reason LIKE 'decided by %')
               AND c.instrument_id IS NOT NULL AND c.ex_date <= through
             ORDER BY c.exchange, c.instrument_id, c.ex_date, c.kind, c.item, (c.status_reason LIKE 'decided by %') IS TRUE DESC,
                      c.load_id DESC, c.symbol) AS e
     WHERE e.status = 'applied'
     GROUP BY e.exchange, e.instrument_id, e.ex_date
  )
  SELECT d.exchange, d.instrument_id,
         coalesce(lag(d.ex_date) OVER share, '-infinity'::date), d.ex_date,
         market.product(d.ratio_old) OVER later, market.product(d.ratio_new) OVER later
    FROM days d
  WINDOW share AS (PARTITION BY d.exchange, d.instrument_id ORDER BY d.ex_date),
         later AS (PARTITION BY d.exchange, d.instrument_id ORDER BY d.ex_date DESC)
$$;
COMMENT ON FUNCTION market.price_factors(date) IS 'What prices of a share from valid_from to before valid_to are multiplied by, ratio_old ÷ ratio_new, to compare with prices of the given day: the product of its applied events until then.';

CREATE OR REPLACE FUNCTION market.adjusted_prices(through date DEFAULT current_date)
RETURNS TABLE (instrument_id text, exchange text, symbol text, series text, isin text, trade_date date, open numeric,
               high numeric, low numeric, close numeric, quantity numeric, price_factor numeric, unadjusted_close numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT a.instrument_id, b.exchange, b.symbol, b.series, b.isin, b.trade_date,
         CASE WHEN f.ratio_new IS NULL THEN b.open_price ELSE b.open_price * f.ratio_old / f.ratio_new END,
         CASE WHEN f.ratio_new IS NULL THEN b.high_price ELSE b.high_price * f.ratio_old / f.ratio_new END,
         CASE WHEN f.ratio_new IS NULL THEN b.low_price ELSE b.low_price * f.ratio_old / f.ratio_new END,
         CASE WHEN f.ratio_new IS NULL THEN b.close_price ELSE b.close_price * f.ratio_old / f.ratio_new END,
         CASE WHEN f.ratio_new IS NULL THEN b.traded_quantity ELSE b.traded_quantity * f.ratio_new / f.ratio_old END,
         CASE WHEN f.ratio_new IS NULL THEN 1 ELSE f.ratio_old / f.ratio_new END,
         b.close_price
    FROM market.bhavcopy_cm b
    LEFT JOIN market.instrument_aliases a
      ON a.exchange = b.exchange AND a.kind = 'series' AND a.alias = b.symbol AND a.series = b.series
     AND b.trade_date >= a.valid_from AND b.trade_date < a.valid_to
    LEFT JOIN market.price_factors(through) f
      ON f.exchange = b.exchange AND f.instrument_id = a.instrument_id
     AND b.trade_date >= f.valid_from AND b.trade_date < f.valid_to
$$;
COMMENT ON FUNCTION market.adjusted_prices(date) IS 'All sessions, with prices and quantities adjusted for the applied splits, consolidations and bonuses whose ex-date is after the session and not after the given day: what was known on that day.';

CREATE OR REPLACE VIEW market.prices_adjusted AS SELECT * FROM market.adjusted_prices();
COMMENT ON VIEW market.prices_adjusted IS 'market.adjusted_prices through today.';
COMMENT ON COLUMN market.prices_adjusted.instrument_id IS 'The share: market.instruments.instrument_id, the same through renames.';
COMMENT ON COLUMN market.prices_adjusted.exchange IS 'Exchange.';
COMMENT ON COLUMN market.prices_adjusted.symbol IS 'Ticker symbol of that day.';
COMMENT ON COLUMN market.prices_adjusted.series IS 'Series (NSE) or group (BSE) of that day.';
COMMENT ON COLUMN market.prices_adjusted.isin IS 'ISIN of that day.';
COMMENT ON COLUMN market.prices_adjusted.trade_date IS 'Session.';
COMMENT ON COLUMN market.prices_adjusted.open IS 'Opening price, adjusted. Unit: rupees.';
COMMENT ON COLUMN market.prices_adjusted.high IS 'Highest price, adjusted. Unit: rupees.';
COMMENT ON COLUMN market.prices_adjusted.low IS 'Lowest price, adjusted. Unit: rupees.';
COMMENT ON COLUMN market.prices_adjusted.close IS 'Closing price, adjusted. Unit: rupees.';
COMMENT ON COLUMN market.prices_adjusted.quantity IS 'Shares traded, adjusted: in shares of today. Unit: shares.';
COMMENT ON COLUMN market.prices_adjusted.price_factor IS 'What prices of the day were multiplied by.';
COMMENT ON COLUMN market.prices_adjusted.unadjusted_close IS 'Closing price as printed. Unit: rupees.';
