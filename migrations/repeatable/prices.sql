-- Adjusted prices; docs/adjusted-prices.md explains them. This file is applied by `eod migrate` whenever it changes.

-- The exact product of numerics; Postgres has none.
CREATE OR REPLACE AGGREGATE etl.product(numeric) (
  SFUNC = pg_catalog.numeric_mul, STYPE = numeric, INITCOND = '1', COMBINEFUNC = pg_catalog.numeric_mul, PARALLEL = SAFE);
COMMENT ON AGGREGATE etl.product(numeric) IS 'The product of all values, exactly.';

-- A share's stretches of days between its events, and what prices of each are to be multiplied by. The last has no end:
-- nothing changes there; a share without events has that one only. These functions have no SET, so that the planner
-- sees through them. Conditions on ratio_new and status_reason are those of the index corporate_events_ratio_idx.
CREATE OR REPLACE FUNCTION etl.share_price_factors(exchange text, share_id text, as_of date)
RETURNS TABLE (valid_from date, valid_to date, ratio_old numeric, ratio_new numeric)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 2 AS $$
  SELECT coalesce(lag(d.ex_date) OVER earlier, '-infinity'::date), d.ex_date,
         etl.product(d.ratio_old) OVER later, etl.product(d.ratio_new) OVER later
    FROM (
      -- The same event under two symbols of the share counts once; what a person has decided comes first.
      SELECT event.ex_date, etl.product(event.ratio_old) AS ratio_old, etl.product(event.ratio_new) AS ratio_new
        FROM (SELECT DISTINCT ON (c.ex_date, c.kind, c.item) c.ex_date, c.status, c.ratio_old, c.ratio_new
                FROM market.corporate_events c
               WHERE c.exchange = $1
                 AND c.instrument_id = $2
                 AND c.ex_date <= $3
                 AND (c.ratio_new IS NOT NULL OR c.status_reason LIKE 'decided by %')
                 AND (c.status = 'applied' OR c.status_reason LIKE 'decided by %')
               ORDER BY c.ex_date, c.kind, c.item, (c.status_reason LIKE 'decided by %') IS TRUE DESC, c.symbol) AS event
       WHERE event.status = 'applied'
       GROUP BY event.ex_date
      UNION ALL SELECT 'infinity', 1, 1) AS d
  WINDOW earlier AS (ORDER BY d.ex_date), later AS (ORDER BY d.ex_date DESC)
$$;
COMMENT ON FUNCTION etl.share_price_factors(text, text, date) IS 'What prices of a share from valid_from to before valid_to are multiplied by, ratio_old ÷ ratio_new, to compare with prices of the given day: the product of its applied events until then.';

-- One share's rows of etl.price_factors.
CREATE OR REPLACE FUNCTION etl.share_kept_factors(exchange text, share_id text)
RETURNS TABLE (known_from date, known_to date, valid_from date, valid_to date, ratio_old numeric, ratio_new numeric)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 2 AS $$
  SELECT d.known_from, d.known_to, p.*
    FROM (SELECT c.ex_date AS known_from, coalesce(lead(c.ex_date) OVER (ORDER BY c.ex_date), 'infinity') AS known_to
            FROM market.corporate_events c
           WHERE c.exchange = $1 AND c.instrument_id = $2 AND c.status = 'applied'
             AND (c.ratio_new IS NOT NULL OR c.status_reason LIKE 'decided by %')
           GROUP BY c.ex_date) AS d
   CROSS JOIN LATERAL etl.share_price_factors($1, $2, d.known_from) AS p
   WHERE p.valid_to < 'infinity'
$$;
COMMENT ON FUNCTION etl.share_kept_factors(text, text) IS 'The factors of a share as of each day: those of etl.share_price_factors as of known_from are the same on every day before known_to.';

-- The trading days whose previous close the events of an exchange may change: those of each ex-date, and the first from it on of
-- each symbol that the share has then. A trading day between the two would be one of the share, which includes the event.
CREATE OR REPLACE FUNCTION etl.sessions_after_events(exchange text) RETURNS TABLE (symbol text, trade_date date)
LANGUAGE sql STABLE AS $$
  SELECT DISTINCT n.symbol, d.day
    FROM (SELECT s.symbol, s.valid_from, f.known_from AS ex_date, array_agg(s.series) AS series
            FROM (SELECT DISTINCT k.share_id, k.known_from FROM etl.price_factors k WHERE k.exchange = $1) f
            JOIN market.series_aliases s ON s.exchange = $1 AND s.share_id = f.share_id
           GROUP BY s.symbol, s.instrument_id, s.valid_from, s.valid_to, f.known_from) AS n
   CROSS JOIN LATERAL (
     SELECT n.ex_date
     UNION ALL
     (SELECT p.trade_date FROM market.bhavcopy_cm p
       WHERE p.exchange = $1 AND p.symbol = n.symbol AND p.series = ANY (n.series) AND p.trade_date >= greatest(n.ex_date, n.valid_from)
       ORDER BY p.trade_date LIMIT 1)) AS d(day)
$$;
COMMENT ON FUNCTION etl.sessions_after_events(text) IS 'The rows of etl.event_sessions of an exchange.';

-- One share's stretches of days, as above, with what is left of a price after the dividends of later days: (c - d) ÷ c for
-- a dividend of d rupees and a last close c before it. c is in shares of the dividend's day: splits in between, while the
-- share was not traded, change it; those of the same day do not, as the dividend is of the shares before them. The last
-- stretch has no end. By share, because each dividend looks for a close through the indexes of trading days. What a trust
-- distributes is applied by its parts, of several kinds; special dividends count although a person has yet to decide.
CREATE OR REPLACE FUNCTION etl.share_return_factors(exchange text, share_id text, as_of date)
RETURNS TABLE (valid_from date, valid_to date, ratio_old numeric, ratio_new numeric, reinvested numeric)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 10 AS $$
  WITH days AS MATERIALIZED (
    SELECT event.ex_date, etl.product(event.ratio_old) AS ratio_old, etl.product(event.ratio_new) AS ratio_new,
           sum(event.amount) FILTER (WHERE event.ratio_new IS NULL) AS dividend
      FROM (SELECT DISTINCT ON (c.ex_date, c.kind, c.item) c.ex_date, c.status, c.ratio_old, c.ratio_new, c.amount
              FROM market.corporate_events c
             WHERE c.exchange = $1
               AND c.instrument_id = $2
               AND c.ex_date <= $3
               AND (c.status = 'applied' OR c.status_reason LIKE 'decided by %' OR c.is_reinvested)
             ORDER BY c.ex_date, c.kind, c.item, (c.status_reason LIKE 'decided by %') IS TRUE DESC, c.symbol) AS event
     WHERE event.status <> 'ignored' AND (event.ratio_new IS NOT NULL OR event.amount IS NOT NULL)
     GROUP BY event.ex_date
  ), valued AS (
    SELECT day.*, before.close - day.dividend AS rest, before.close
      FROM days day LEFT JOIN LATERAL (
        SELECT last.close_price * etl.product(between_days.ratio_old) / etl.product(between_days.ratio_new) AS close
          FROM (SELECT line.close_price, line.trade_date
                  FROM market.series_aliases alias
                 CROSS JOIN LATERAL (
                   SELECT p.close_price, p.trade_date FROM market.bhavcopy_cm p
                    WHERE p.exchange = alias.exchange AND p.symbol = alias.symbol AND p.series = alias.series AND p.close_price > 0
                      AND p.trade_date < day.ex_date AND p.trade_date >= alias.valid_from AND p.trade_date < alias.valid_to
                    ORDER BY p.trade_date DESC LIMIT 1) AS line
                 WHERE alias.exchange = $1 AND alias.instrument_id = $2
                 ORDER BY line.trade_date DESC, alias.symbol, alias.series LIMIT 1) AS last
          LEFT JOIN days between_days ON between_days.ex_date > last.trade_date AND between_days.ex_date < day.ex_date
         GROUP BY last.close_price) AS before ON day.dividend > 0
  ), stretches AS (
    SELECT ex_date, ratio_old, ratio_new, CASE WHEN rest > 0 THEN rest ELSE 1 END AS rest, CASE WHEN rest > 0 THEN close ELSE 1 END AS close
      FROM valued
    UNION ALL SELECT 'infinity', 1, 1, 1, 1
  )
  SELECT coalesce(lag(ex_date) OVER share, '-infinity'::date), ex_date, etl.product(ratio_old) OVER later, etl.product(ratio_new) OVER later,
         trim_scale(round(etl.product(rest) OVER later / etl.product(close) OVER later, 30))
    FROM stretches
  WINDOW share AS (ORDER BY ex_date), later AS (ORDER BY ex_date DESC)
$$;
COMMENT ON FUNCTION etl.share_return_factors(text, text, date) IS 'What prices of a share from valid_from to before valid_to are multiplied by to compare with prices of the given day, dividends reinvested: ratio_old ÷ ratio_new for its splits, consolidations and bonuses, and reinvested, to 30 decimals, for its dividends.';

-- Of the two ways to compute them, the planner drops the one that is not requested.
CREATE OR REPLACE FUNCTION etl.share_factors(exchange text, share_id text, as_of date, is_total_return boolean)
RETURNS TABLE (valid_from date, valid_to date, ratio_old numeric, ratio_new numeric, reinvested numeric)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 2 AS $$
  SELECT p.valid_from, p.valid_to, p.ratio_old, p.ratio_new, 1::numeric FROM etl.share_price_factors($1, $2, $3) AS p WHERE NOT $4
  UNION ALL
  SELECT t.valid_from, t.valid_to, t.ratio_old, t.ratio_new, t.reinvested FROM etl.share_return_factors($1, $2, $3) AS t WHERE $4
$$;
COMMENT ON FUNCTION etl.share_factors(text, text, date, boolean) IS 'The factors of market.price_factors of one share, with the stretch behind its last event.';

CREATE OR REPLACE FUNCTION market.price_factors(as_of date DEFAULT current_date, total_return boolean DEFAULT false)
RETURNS TABLE (exchange text, instrument_id text, valid_from date, valid_to date, ratio_old numeric, ratio_new numeric, reinvested numeric)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000 AS $$
  SELECT s.exchange, s.instrument_id, p.*
    FROM (SELECT DISTINCT c.exchange, c.instrument_id FROM market.corporate_events c
           WHERE (c.ratio_new IS NOT NULL OR c.status_reason LIKE 'decided by %' OR total_return AND c.amount IS NOT NULL)
             AND c.instrument_id IS NOT NULL) AS s
   CROSS JOIN LATERAL etl.share_factors(s.exchange, s.instrument_id, as_of, total_return) AS p
   WHERE p.valid_to < 'infinity'
$$;
COMMENT ON FUNCTION market.price_factors(date, boolean) IS 'What prices of each share with events, from valid_from to before valid_to, are multiplied by to compare with prices of the given day: ratio_old ÷ ratio_new for its splits, consolidations and bonuses until then, and, with total_return, reinvested, to 30 decimals, for its dividends.';

-- Grouped, so that the planner knows that a share has one row.
CREATE OR REPLACE FUNCTION etl.unreviewed_until(as_of date) RETURNS TABLE (exchange text, instrument_id text, reviewed_from date)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT e.exchange, e.instrument_id, max(e.ex_date) FROM market.corporate_events e
   WHERE e.status = 'needs_review' AND e.ex_date <= $1 GROUP BY 1, 2
$$;
COMMENT ON FUNCTION etl.unreviewed_until(date) IS 'The last ex-date, not after the given day, of the events of each share that need review: its earlier prices may have to be adjusted.';

-- Without dividends, for whole markets: the kept factors of few names are joined, instead of computed. A column that
-- nobody selects costs nothing, as its join is left out. The exchange is no equality, because then the planner would hash
-- the trading days instead of the names; in this form it still reaches the indexes of names.
CREATE OR REPLACE FUNCTION market.adjusted_prices(as_of date DEFAULT current_date)
RETURNS TABLE (instrument_id text, exchange text, symbol text, series text, isin text, trade_date date, open_price numeric,
               high_price numeric, low_price numeric, close_price numeric, traded_quantity numeric, price_factor numeric,
               unadjusted_close_price numeric, has_unreviewed_event boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT a.instrument_id, b.exchange, b.symbol, b.series, b.isin, b.trade_date,
         CASE WHEN f.ratio_new IS NOT NULL THEN b.open_price * f.ratio_old / f.ratio_new ELSE b.open_price END,
         CASE WHEN f.ratio_new IS NOT NULL THEN b.high_price * f.ratio_old / f.ratio_new ELSE b.high_price END,
         CASE WHEN f.ratio_new IS NOT NULL THEN b.low_price * f.ratio_old / f.ratio_new ELSE b.low_price END,
         CASE WHEN f.ratio_new IS NOT NULL THEN b.close_price * f.ratio_old / f.ratio_new ELSE b.close_price END,
         CASE WHEN f.ratio_new IS NOT NULL THEN b.traded_quantity * f.ratio_new / f.ratio_old ELSE b.traded_quantity END,
         CASE WHEN f.ratio_new IS NOT NULL THEN f.ratio_old / f.ratio_new ELSE 1 END,
         b.close_price, coalesce(b.trade_date < r.reviewed_from, false)
    FROM market.bhavcopy_cm b
    LEFT JOIN etl.later_periods() l ON l.exchange = coalesce(b.exchange, '') AND l.symbol = coalesce(b.symbol, '') AND l.series = coalesce(b.series, '')
    LEFT JOIN market.series_aliases a ON a.exchange = b.exchange AND a.symbol = b.symbol AND a.series = b.series
     AND a.valid_from = coalesce(l.starts[width_bucket(b.trade_date, l.starts)], '-infinity')
    LEFT JOIN etl.unreviewed_until(as_of) r ON r.exchange = a.exchange AND r.instrument_id = a.share_id
    LEFT JOIN (
      SELECT n.exchange, n.symbol, n.series, n.valid_from AS named_from, n.valid_to AS named_to, k.valid_from, k.valid_to, k.ratio_old, k.ratio_new
        FROM etl.price_factors k JOIN market.series_aliases n ON n.exchange = k.exchange AND n.share_id = k.share_id
       WHERE k.known_from <= as_of AND k.known_to > as_of) AS f
      ON f.symbol = b.symbol AND f.series = b.series AND b.trade_date < f.valid_to AND b.trade_date >= f.valid_from
     AND b.trade_date >= f.named_from AND b.trade_date < f.named_to AND f.exchange = ANY (ARRAY[b.exchange])
   WHERE b.trade_date <= as_of
$$;
COMMENT ON FUNCTION market.adjusted_prices(date) IS 'All trading days until the given day, with prices and quantities adjusted for the applied splits, consolidations and bonuses whose ex-date is after the trading day and not after that day: what was known on that day.';

-- The names and their factors, a few thousand rows, are joined first, so that trading days are joined with one hash join, or
-- through their indexes if a symbol or an instrument is given.
CREATE OR REPLACE FUNCTION market.adjusted_prices(as_of date, total_return boolean)
RETURNS TABLE (instrument_id text, exchange text, symbol text, series text, isin text, trade_date date, open_price numeric,
               high_price numeric, low_price numeric, close_price numeric, traded_quantity numeric, price_factor numeric,
               unadjusted_close_price numeric, has_unreviewed_event boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT f.instrument_id, b.exchange, b.symbol, b.series, b.isin, b.trade_date,
         CASE WHEN f.is_adjusted THEN b.open_price * f.numerator / f.ratio_new ELSE b.open_price END,
         CASE WHEN f.is_adjusted THEN b.high_price * f.numerator / f.ratio_new ELSE b.high_price END,
         CASE WHEN f.is_adjusted THEN b.low_price * f.numerator / f.ratio_new ELSE b.low_price END,
         CASE WHEN f.is_adjusted THEN b.close_price * f.numerator / f.ratio_new ELSE b.close_price END,
         CASE WHEN f.is_adjusted THEN b.traded_quantity * f.ratio_new / f.ratio_old ELSE b.traded_quantity END,
         CASE WHEN f.is_adjusted THEN f.numerator / f.ratio_new ELSE 1 END,
         b.close_price, coalesce(b.trade_date < f.reviewed_from, false)
    FROM market.bhavcopy_cm b
    LEFT JOIN (
      SELECT a.exchange, a.symbol, a.series, a.instrument_id, a.valid_from AS named_from, a.valid_to AS named_to,
             p.valid_from, p.valid_to, p.ratio_old, p.ratio_new, p.ratio_old * p.reinvested AS numerator,
             p.valid_to < 'infinity' AS is_adjusted, r.reviewed_from
        FROM market.series_aliases a
       CROSS JOIN LATERAL etl.share_factors(a.exchange, a.share_id, as_of, total_return) p
        -- Left out where nobody selects the column.
        LEFT JOIN etl.unreviewed_until(as_of) r ON r.exchange = a.exchange AND r.instrument_id = a.share_id) AS f
      ON f.exchange = b.exchange AND f.symbol = b.symbol AND f.series = b.series
     AND b.trade_date >= f.valid_from AND b.trade_date < f.valid_to
     AND b.trade_date >= f.named_from AND b.trade_date < f.named_to
   WHERE b.trade_date <= as_of
$$;
COMMENT ON FUNCTION market.adjusted_prices(date, boolean) IS 'The same. With total_return, dividends and distributions of trusts are reinvested as well, each at the last close before its ex-date.';

-- A list of a user's own may have single events of any time.
CREATE OR REPLACE VIEW etl.event_lists AS
  SELECT l.exchange, min(l.ex_date) AS known_from
    FROM (SELECT n.exchange, n.ex_date FROM market.corporate_action_notices n WHERE n.stated_kind = ''
          UNION ALL SELECT a.exchange, a.prov_xdate FROM market.corporate_actions a) AS l
   GROUP BY l.exchange;
COMMENT ON VIEW etl.event_lists IS 'From which ex-date on the lists of corporate actions of each exchange are loaded.';
COMMENT ON COLUMN etl.event_lists.exchange IS 'Exchange.';
COMMENT ON COLUMN etl.event_lists.known_from IS 'The first ex-date of its lists.';

-- An exchange has ex-dates in each month, so that lists which have none of a month lack them.
CREATE OR REPLACE VIEW etl.unlisted_days AS
  SELECT d.exchange, d.ex_date AS listed_to, coalesce(d.next, 'infinity') AS listed_from
    FROM (SELECT l.exchange, l.ex_date, lead(l.ex_date) OVER (PARTITION BY l.exchange ORDER BY l.ex_date) AS next
            FROM (SELECT n.exchange, n.ex_date FROM market.corporate_action_notices n WHERE n.stated_kind = ''
                  UNION SELECT a.exchange, a.prov_xdate FROM market.corporate_actions a WHERE a.prov_xdate IS NOT NULL) AS l) AS d
   CROSS JOIN LATERAL (SELECT min(b.trade_date) AS first, max(b.trade_date) AS last FROM market.bhavcopy_cm b WHERE b.exchange = d.exchange) AS p
   -- The first condition, which the second includes, leaves few rows to look for trading days of.
   WHERE coalesce(d.next, 'infinity') > d.ex_date + 30
     AND least(coalesce(d.next, 'infinity'), p.last) > greatest(d.ex_date, p.first) + 30;
COMMENT ON VIEW etl.unlisted_days IS 'More than 30 days in a row, between the first and the last trading day of an exchange, of which its lists of corporate actions have no ex-date: earlier adjusted prices lack their splits and bonuses.';
COMMENT ON COLUMN etl.unlisted_days.exchange IS 'Exchange.';
COMMENT ON COLUMN etl.unlisted_days.listed_to IS 'The last listed ex-date before them.';
COMMENT ON COLUMN etl.unlisted_days.listed_from IS 'The first one after them; infinity if there is none.';

CREATE OR REPLACE VIEW market.prices_adjusted AS
  SELECT p.instrument_id, p.exchange, p.symbol, p.series, p.isin, p.trade_date, round(p.open_price, 4) AS open_price, round(p.high_price, 4) AS high_price,
         round(p.low_price, 4) AS low_price, round(p.close_price, 4) AS close_price, p.traded_quantity, p.price_factor, p.unadjusted_close_price,
         p.has_unreviewed_event, coalesce(p.trade_date < l.known_from, true) AS is_before_event_lists
    FROM market.adjusted_prices() p
    -- Left out where nobody selects the column.
    LEFT JOIN etl.event_lists l ON l.exchange = p.exchange;
COMMENT ON VIEW market.prices_adjusted IS 'market.adjusted_prices as of today, its prices rounded to 4 decimals.';
COMMENT ON COLUMN market.prices_adjusted.instrument_id IS 'The share: market.instruments.instrument_id, the same through renames.';
COMMENT ON COLUMN market.prices_adjusted.exchange IS 'Exchange.';
COMMENT ON COLUMN market.prices_adjusted.symbol IS 'Ticker symbol of that day.';
COMMENT ON COLUMN market.prices_adjusted.series IS 'Series (NSE) or group (BSE) of that day.';
COMMENT ON COLUMN market.prices_adjusted.isin IS 'ISIN of that day.';
COMMENT ON COLUMN market.prices_adjusted.trade_date IS 'Trading day.';
COMMENT ON COLUMN market.prices_adjusted.open_price IS 'Opening price, adjusted. Unit: rupees.';
COMMENT ON COLUMN market.prices_adjusted.high_price IS 'Highest price, adjusted. Unit: rupees.';
COMMENT ON COLUMN market.prices_adjusted.low_price IS 'Lowest price, adjusted. Unit: rupees.';
COMMENT ON COLUMN market.prices_adjusted.close_price IS 'Closing price, adjusted. Unit: rupees.';
COMMENT ON COLUMN market.prices_adjusted.traded_quantity IS 'Shares traded, adjusted: in shares of today. Unit: shares.';
COMMENT ON COLUMN market.prices_adjusted.price_factor IS 'What prices of the day were multiplied by.';
COMMENT ON COLUMN market.prices_adjusted.unadjusted_close_price IS 'Closing price as printed. Unit: rupees.';
COMMENT ON COLUMN market.prices_adjusted.has_unreviewed_event IS 'True before the ex-date of an event of the share that needs review: it may have to be adjusted by it, e.g. by a demerger.';
COMMENT ON COLUMN market.prices_adjusted.is_before_event_lists IS 'True before the first ex-date of the loaded lists of corporate actions of the exchange, also if none is loaded: the price is adjusted only for splits and bonuses of that time that another exchange or a list of your own has.';

CREATE OR REPLACE FUNCTION etl.changes_shares(kind text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT $1 IN ('split', 'consolidation', 'bonus', 'demerger', 'capital_reduction') $$;
COMMENT ON FUNCTION etl.changes_shares(text) IS 'True of the kinds of events by which prices have to be adjusted, however little the price moved on the ex-date.';

-- The last close before a day, and how far the price moved from it to the open or to the close of the first trading day from
-- then on. Trading days are compared only if the second states the close of the first: otherwise some are missing in between.
CREATE OR REPLACE FUNCTION etl.price_move(exchange text, share_id text, ex_date date, OUT close_before numeric, OUT moved numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT before.close_price,
         greatest(abs(nullif(first.open_price, 0) / before.close_price - 1), abs(nullif(first.close_price, 0) / before.close_price - 1))
    FROM (SELECT s.* FROM market.series_aliases a
           CROSS JOIN LATERAL (
             SELECT p.trade_date, p.close_price FROM market.bhavcopy_cm p
              WHERE p.exchange = a.exchange AND p.symbol = a.symbol AND p.series = a.series AND p.close_price > 0
                AND p.trade_date < $3 AND p.trade_date >= a.valid_from AND p.trade_date < a.valid_to
              ORDER BY p.trade_date DESC LIMIT 1) s
           WHERE a.exchange = $1 AND a.instrument_id = $2
           ORDER BY s.trade_date DESC, a.symbol, a.series LIMIT 1) before
   CROSS JOIN (SELECT s.* FROM market.series_aliases a
           CROSS JOIN LATERAL (
             SELECT p.trade_date, p.open_price, p.close_price, p.previous_close_price FROM market.bhavcopy_cm p
              WHERE p.exchange = a.exchange AND p.symbol = a.symbol AND p.series = a.series
                AND p.trade_date >= greatest($3, a.valid_from) AND p.trade_date < a.valid_to
              ORDER BY p.trade_date LIMIT 1) s
           WHERE a.exchange = $1 AND a.instrument_id = $2
           ORDER BY s.trade_date, a.symbol, a.series LIMIT 1) first
   WHERE first.previous_close_price = before.close_price
$$;
COMMENT ON FUNCTION etl.price_move(text, text, date) IS 'The last close of a share before a day, and as a part of it how far the price moved; null where a trading day in between is missing.';

-- The market may move the price back on the ex-date, so its move alone is no bound of what has terms: of a split, a bonus or
-- a consolidation its ratio (shares before ÷ after), of a dividend its amount, of rights both, whose amount is the premium:
-- at a higher price, which includes the face value, they are worth less.
CREATE OR REPLACE FUNCTION etl.price_effect(exchange text, share_id text, ex_date date, kind text, ratio numeric, amount numeric) RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT round(100 * CASE WHEN t.effect IS NOT NULL OR NOT (etl.changes_shares($4) OR $4 IN ('dividend', 'interest', 'rights'))
                       THEN greatest(t.effect, m.moved) END, 2)
    FROM etl.price_move($1, $2, $3) m
   CROSS JOIN LATERAL (
     SELECT CASE WHEN etl.changes_shares($4) THEN abs($5 - 1)
              WHEN $4 = 'rights' THEN (1 - $5) * CASE WHEN $6 >= m.close_before THEN 0 ELSE 1 - $6 / m.close_before END
              WHEN $4 IN ('dividend', 'interest') THEN $6 / m.close_before END AS effect) t
$$;
COMMENT ON FUNCTION etl.price_effect(text, text, date, text, numeric, numeric) IS 'By how many percent an event of a share moves its price: the greater of what follows from its terms and of how far the price moved. Null where it has no terms that tell, or a price is missing; of kinds without terms how far the price moved.';
