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
  SELECT coalesce(lag(day.ex_date) OVER earlier, '-infinity'::date), day.ex_date,
         etl.product(day.ratio_old) OVER later, etl.product(day.ratio_new) OVER later
    FROM (
      -- The same event under two symbols of the share counts once; what a person has decided comes first.
      SELECT event.ex_date, etl.product(event.ratio_old) AS ratio_old, etl.product(event.ratio_new) AS ratio_new
        FROM (SELECT DISTINCT ON (listed.ex_date, listed.kind, listed.item)
                     listed.ex_date, listed.status, listed.ratio_old, listed.ratio_new
                FROM market.corporate_events listed
               WHERE listed.exchange = $1
                 AND listed.instrument_id = $2
                 AND listed.ex_date <= $3
                 AND (listed.ratio_new IS NOT NULL OR listed.status_reason LIKE 'decided by %')
                 AND (listed.status = 'applied' OR listed.status_reason LIKE 'decided by %')
               ORDER BY listed.ex_date, listed.kind, listed.item,
                        (listed.status_reason LIKE 'decided by %') IS TRUE DESC, listed.symbol) AS event
       WHERE event.status = 'applied'
       GROUP BY event.ex_date
      UNION ALL
      SELECT 'infinity', 1, 1) AS day
  WINDOW earlier AS (ORDER BY day.ex_date), later AS (ORDER BY day.ex_date DESC)
$$;
COMMENT ON FUNCTION etl.share_price_factors(text, text, date) IS 'What prices of a share from valid_from to before valid_to are multiplied by, ratio_old ÷ ratio_new, to compare with prices of the given day: the product of its applied events until then.';

-- One share's rows of etl.price_factors.
CREATE OR REPLACE FUNCTION etl.share_kept_factors(exchange text, share_id text)
RETURNS TABLE (known_from date, known_to date, valid_from date, valid_to date, ratio_old numeric, ratio_new numeric)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 2 AS $$
  SELECT day.known_from, day.known_to, factor.*
    FROM (SELECT event.ex_date AS known_from,
                 coalesce(lead(event.ex_date) OVER (ORDER BY event.ex_date), 'infinity') AS known_to
            FROM market.corporate_events event
           WHERE event.exchange = $1 AND event.instrument_id = $2 AND event.status = 'applied'
             AND (event.ratio_new IS NOT NULL OR event.status_reason LIKE 'decided by %')
           GROUP BY event.ex_date) AS day
   CROSS JOIN LATERAL etl.share_price_factors($1, $2, day.known_from) AS factor
   WHERE factor.valid_to < 'infinity'
$$;
COMMENT ON FUNCTION etl.share_kept_factors(text, text) IS 'The factors of a share as of each day: those of etl.share_price_factors as of known_from are the same on every day before known_to.';

-- The trading days whose previous close the events of an exchange may change: those of each ex-date, and the first from it on of
-- each symbol that the share has then. A trading day between the two would be one of the share, which includes the event.
CREATE OR REPLACE FUNCTION etl.sessions_after_events(exchange text) RETURNS TABLE (symbol text, trade_date date)
LANGUAGE sql STABLE AS $$
  SELECT DISTINCT event.symbol, session.day
    FROM (SELECT alias.symbol, alias.valid_from, change.known_from AS ex_date, array_agg(alias.series) AS series
            FROM (SELECT DISTINCT factor.share_id, factor.known_from FROM etl.price_factors factor WHERE factor.exchange = $1) change
            JOIN market.series_aliases alias ON alias.exchange = $1 AND alias.share_id = change.share_id
           GROUP BY alias.symbol, alias.instrument_id, alias.valid_from, alias.valid_to, change.known_from) AS event
   CROSS JOIN LATERAL (
     SELECT event.ex_date
     UNION ALL
     (SELECT line.trade_date FROM market.bhavcopy_cm line
       WHERE line.exchange = $1
         AND line.symbol = event.symbol
         AND line.series = ANY (event.series)
         AND line.trade_date >= greatest(event.ex_date, event.valid_from)
       ORDER BY line.trade_date LIMIT 1)) AS session(day)
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
      FROM (SELECT DISTINCT ON (listed.ex_date, listed.kind, listed.item)
                   listed.ex_date, listed.status, listed.ratio_old, listed.ratio_new, listed.amount
              FROM market.corporate_events listed
             WHERE listed.exchange = $1
               AND listed.instrument_id = $2
               AND listed.ex_date <= $3
               AND (listed.status = 'applied' OR listed.status_reason LIKE 'decided by %' OR listed.is_reinvested)
             ORDER BY listed.ex_date, listed.kind, listed.item,
                      (listed.status_reason LIKE 'decided by %') IS TRUE DESC, listed.symbol) AS event
     WHERE event.status <> 'ignored' AND (event.ratio_new IS NOT NULL OR event.amount IS NOT NULL)
     GROUP BY event.ex_date
  ), valued AS (
    SELECT day.*, before.close - day.dividend AS rest, before.close
      FROM days day LEFT JOIN LATERAL (
        SELECT last.close_price * etl.product(between_days.ratio_old) / etl.product(between_days.ratio_new) AS close
          FROM (SELECT line.close_price, line.trade_date
                  FROM market.series_aliases alias
                 CROSS JOIN LATERAL (
                   SELECT price.close_price, price.trade_date FROM market.bhavcopy_cm price
                    WHERE price.exchange = alias.exchange AND price.symbol = alias.symbol AND price.series = alias.series
                      AND price.close_price > 0
                      AND price.trade_date < day.ex_date
                      AND price.trade_date >= alias.valid_from AND price.trade_date < alias.valid_to
                    ORDER BY price.trade_date DESC LIMIT 1) AS line
                 WHERE alias.exchange = $1 AND alias.instrument_id = $2
                 ORDER BY line.trade_date DESC, alias.symbol, alias.series LIMIT 1) AS last
          LEFT JOIN days between_days ON between_days.ex_date > last.trade_date AND between_days.ex_date < day.ex_date
         GROUP BY last.close_price) AS before ON day.dividend > 0
  ), stretches AS (
    SELECT ex_date, ratio_old, ratio_new,
           CASE WHEN rest > 0 THEN rest ELSE 1 END AS rest,
           CASE WHEN rest > 0 THEN close ELSE 1 END AS close
      FROM valued
    UNION ALL SELECT 'infinity', 1, 1, 1, 1
  )
  SELECT coalesce(lag(ex_date) OVER share, '-infinity'::date), ex_date,
         etl.product(ratio_old) OVER later, etl.product(ratio_new) OVER later,
         trim_scale(round(etl.product(rest) OVER later / etl.product(close) OVER later, 30))
    FROM stretches
  WINDOW share AS (ORDER BY ex_date), later AS (ORDER BY ex_date DESC)
$$;
COMMENT ON FUNCTION etl.share_return_factors(text, text, date) IS 'What prices of a share from valid_from to before valid_to are multiplied by to compare with prices of the given day, dividends reinvested: ratio_old ÷ ratio_new for its splits, consolidations and bonuses, and reinvested, to 30 decimals, for its dividends.';

-- Of the two ways to compute them, the planner drops the one that is not requested.
CREATE OR REPLACE FUNCTION etl.share_factors(exchange text, share_id text, as_of date, is_total_return boolean)
RETURNS TABLE (valid_from date, valid_to date, ratio_old numeric, ratio_new numeric, reinvested numeric)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 2 AS $$
  SELECT price.valid_from, price.valid_to, price.ratio_old, price.ratio_new, 1::numeric
    FROM etl.share_price_factors($1, $2, $3) AS price WHERE NOT $4
  UNION ALL
  SELECT total.valid_from, total.valid_to, total.ratio_old, total.ratio_new, total.reinvested
    FROM etl.share_return_factors($1, $2, $3) AS total WHERE $4
$$;
COMMENT ON FUNCTION etl.share_factors(text, text, date, boolean) IS 'The factors of market.price_factors of one share, with the stretch behind its last event.';

CREATE OR REPLACE FUNCTION market.price_factors(as_of date DEFAULT current_date, total_return boolean DEFAULT false)
RETURNS TABLE (exchange text, instrument_id text, valid_from date, valid_to date, ratio_old numeric, ratio_new numeric, reinvested numeric)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000 AS $$
  SELECT share.exchange, share.instrument_id, factor.*
    FROM (SELECT DISTINCT event.exchange, event.instrument_id FROM market.corporate_events event
           WHERE (event.ratio_new IS NOT NULL
                  OR event.status_reason LIKE 'decided by %'
                  OR (total_return AND event.amount IS NOT NULL))
             AND event.instrument_id IS NOT NULL) AS share
   CROSS JOIN LATERAL etl.share_factors(share.exchange, share.instrument_id, as_of, total_return) AS factor
   WHERE factor.valid_to < 'infinity'
$$;
COMMENT ON FUNCTION market.price_factors(date, boolean) IS 'What prices of each share with events, from valid_from to before valid_to, are multiplied by to compare with prices of the given day: ratio_old ÷ ratio_new for its splits, consolidations and bonuses until then, and, with total_return, reinvested, to 30 decimals, for its dividends.';

-- Grouped, so that the planner knows that a share has one row.
CREATE OR REPLACE FUNCTION etl.unreviewed_until(as_of date) RETURNS TABLE (exchange text, instrument_id text, reviewed_from date)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT event.exchange, event.instrument_id, max(event.ex_date) FROM market.corporate_events event
   WHERE event.status = 'needs_review' AND event.ex_date <= $1 GROUP BY 1, 2
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
  SELECT alias.instrument_id, line.exchange, line.symbol, line.series, line.isin, line.trade_date,
         CASE WHEN factor.ratio_new IS NOT NULL THEN line.open_price * factor.ratio_old / factor.ratio_new ELSE line.open_price END,
         CASE WHEN factor.ratio_new IS NOT NULL THEN line.high_price * factor.ratio_old / factor.ratio_new ELSE line.high_price END,
         CASE WHEN factor.ratio_new IS NOT NULL THEN line.low_price * factor.ratio_old / factor.ratio_new ELSE line.low_price END,
         CASE WHEN factor.ratio_new IS NOT NULL THEN line.close_price * factor.ratio_old / factor.ratio_new ELSE line.close_price END,
         CASE WHEN factor.ratio_new IS NOT NULL THEN line.traded_quantity * factor.ratio_new / factor.ratio_old ELSE line.traded_quantity END,
         CASE WHEN factor.ratio_new IS NOT NULL THEN factor.ratio_old / factor.ratio_new ELSE 1 END,
         line.close_price, coalesce(line.trade_date < unreviewed.reviewed_from, false)
    FROM market.bhavcopy_cm line
    LEFT JOIN etl.later_periods() later
      ON later.exchange = coalesce(line.exchange, '')
     AND later.symbol = coalesce(line.symbol, '')
     AND later.series = coalesce(line.series, '')
    LEFT JOIN market.series_aliases alias
      ON alias.exchange = line.exchange AND alias.symbol = line.symbol AND alias.series = line.series
     AND alias.valid_from = coalesce(later.starts[width_bucket(line.trade_date, later.starts)], '-infinity')
    LEFT JOIN etl.unreviewed_until(as_of) unreviewed
      ON unreviewed.exchange = alias.exchange AND unreviewed.instrument_id = alias.share_id
    LEFT JOIN (
      SELECT name.exchange, name.symbol, name.series, name.valid_from AS named_from, name.valid_to AS named_to,
             kept.valid_from, kept.valid_to, kept.ratio_old, kept.ratio_new
        FROM etl.price_factors kept
        JOIN market.series_aliases name ON name.exchange = kept.exchange AND name.share_id = kept.share_id
       WHERE kept.known_from <= as_of AND kept.known_to > as_of) AS factor
      ON factor.symbol = line.symbol AND factor.series = line.series
     AND line.trade_date < factor.valid_to AND line.trade_date >= factor.valid_from
     AND line.trade_date >= factor.named_from AND line.trade_date < factor.named_to
     AND factor.exchange = ANY (ARRAY[line.exchange])
   WHERE line.trade_date <= as_of
$$;
COMMENT ON FUNCTION market.adjusted_prices(date) IS 'All trading days until the given day, with prices and quantities adjusted for the applied splits, consolidations and bonuses whose ex-date is after the trading day and not after that day: what was known on that day.';

-- The names and their factors, a few thousand rows, are joined first, so that trading days are joined with one hash join, or
-- through their indexes if a symbol or an instrument is given.
CREATE OR REPLACE FUNCTION market.adjusted_prices(as_of date, total_return boolean)
RETURNS TABLE (instrument_id text, exchange text, symbol text, series text, isin text, trade_date date, open_price numeric,
               high_price numeric, low_price numeric, close_price numeric, traded_quantity numeric, price_factor numeric,
               unadjusted_close_price numeric, has_unreviewed_event boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT factor.instrument_id, line.exchange, line.symbol, line.series, line.isin, line.trade_date,
         CASE WHEN factor.is_adjusted THEN line.open_price * factor.numerator / factor.ratio_new ELSE line.open_price END,
         CASE WHEN factor.is_adjusted THEN line.high_price * factor.numerator / factor.ratio_new ELSE line.high_price END,
         CASE WHEN factor.is_adjusted THEN line.low_price * factor.numerator / factor.ratio_new ELSE line.low_price END,
         CASE WHEN factor.is_adjusted THEN line.close_price * factor.numerator / factor.ratio_new ELSE line.close_price END,
         CASE WHEN factor.is_adjusted THEN line.traded_quantity * factor.ratio_new / factor.ratio_old ELSE line.traded_quantity END,
         CASE WHEN factor.is_adjusted THEN factor.numerator / factor.ratio_new ELSE 1 END,
         line.close_price, coalesce(line.trade_date < factor.reviewed_from, false)
    FROM market.bhavcopy_cm line
    LEFT JOIN (
      SELECT alias.exchange, alias.symbol, alias.series, alias.instrument_id, alias.valid_from AS named_from, alias.valid_to AS named_to,
             share_factor.valid_from, share_factor.valid_to, share_factor.ratio_old, share_factor.ratio_new,
             share_factor.ratio_old * share_factor.reinvested AS numerator,
             share_factor.valid_to < 'infinity' AS is_adjusted, unreviewed.reviewed_from
        FROM market.series_aliases alias
       CROSS JOIN LATERAL etl.share_factors(alias.exchange, alias.share_id, as_of, total_return) share_factor
        -- Left out where nobody selects the column.
        LEFT JOIN etl.unreviewed_until(as_of) unreviewed
          ON unreviewed.exchange = alias.exchange AND unreviewed.instrument_id = alias.share_id) AS factor
      ON factor.exchange = line.exchange AND factor.symbol = line.symbol AND factor.series = line.series
     AND line.trade_date >= factor.valid_from AND line.trade_date < factor.valid_to
     AND line.trade_date >= factor.named_from AND line.trade_date < factor.named_to
   WHERE line.trade_date <= as_of
$$;
COMMENT ON FUNCTION market.adjusted_prices(date, boolean) IS 'The same. With total_return, dividends and distributions of trusts are reinvested as well, each at the last close before its ex-date.';

-- A list of a user's own may have single events of any time.
CREATE OR REPLACE VIEW etl.event_lists AS
  SELECT listed.exchange, min(listed.ex_date) AS known_from
    FROM (SELECT notice.exchange, notice.ex_date FROM market.corporate_action_notices notice WHERE notice.stated_kind = ''
          UNION ALL
          SELECT action.exchange, action.prov_xdate FROM market.corporate_actions action) AS listed
   GROUP BY listed.exchange;
COMMENT ON VIEW etl.event_lists IS 'From which ex-date on the lists of corporate actions of each exchange are loaded.';
COMMENT ON COLUMN etl.event_lists.exchange IS 'Exchange.';
COMMENT ON COLUMN etl.event_lists.known_from IS 'The first ex-date of its lists.';

-- An exchange has ex-dates in each month, so that lists which have none of a month lack them.
CREATE OR REPLACE VIEW etl.unlisted_days AS
  SELECT listed.exchange, listed.ex_date AS listed_to, coalesce(listed.next, 'infinity') AS listed_from
    FROM (SELECT stated.exchange, stated.ex_date, lead(stated.ex_date) OVER (PARTITION BY stated.exchange ORDER BY stated.ex_date) AS next
            FROM (SELECT notice.exchange, notice.ex_date FROM market.corporate_action_notices notice WHERE notice.stated_kind = ''
                  UNION
                  SELECT action.exchange, action.prov_xdate FROM market.corporate_actions action
                   WHERE action.prov_xdate IS NOT NULL) AS stated) AS listed
   CROSS JOIN LATERAL (
     SELECT min(line.trade_date) AS first, max(line.trade_date) AS last
       FROM market.bhavcopy_cm line WHERE line.exchange = listed.exchange) AS priced
   -- The first condition, which the second includes, leaves few rows to look for trading days of.
   WHERE coalesce(listed.next, 'infinity') > listed.ex_date + 30
     AND least(coalesce(listed.next, 'infinity'), priced.last) > greatest(listed.ex_date, priced.first) + 30;
COMMENT ON VIEW etl.unlisted_days IS 'More than 30 days in a row, between the first and the last trading day of an exchange, of which its lists of corporate actions have no ex-date: earlier adjusted prices lack their splits and bonuses.';
COMMENT ON COLUMN etl.unlisted_days.exchange IS 'Exchange.';
COMMENT ON COLUMN etl.unlisted_days.listed_to IS 'The last listed ex-date before them.';
COMMENT ON COLUMN etl.unlisted_days.listed_from IS 'The first one after them; infinity if there is none.';

CREATE OR REPLACE VIEW market.prices_adjusted AS
  SELECT price.instrument_id, price.exchange, price.symbol, price.series, price.isin, price.trade_date,
         round(price.open_price, 4) AS open_price, round(price.high_price, 4) AS high_price,
         round(price.low_price, 4) AS low_price, round(price.close_price, 4) AS close_price,
         price.traded_quantity, price.price_factor, price.unadjusted_close_price, price.has_unreviewed_event,
         coalesce(price.trade_date < lists.known_from, true) AS is_before_event_lists
    FROM market.adjusted_prices() price
    -- Left out where nobody selects the column.
    LEFT JOIN etl.event_lists lists ON lists.exchange = price.exchange;
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
         greatest(
           abs(nullif(first.open_price, 0) / before.close_price - 1),
           abs(nullif(first.close_price, 0) / before.close_price - 1))
    FROM (
      SELECT line.*
        FROM market.series_aliases alias
       CROSS JOIN LATERAL (
         SELECT price.trade_date, price.close_price FROM market.bhavcopy_cm price
          WHERE price.exchange = alias.exchange AND price.symbol = alias.symbol AND price.series = alias.series
            AND price.close_price > 0
            AND price.trade_date < $3
            AND price.trade_date >= alias.valid_from AND price.trade_date < alias.valid_to
          ORDER BY price.trade_date DESC LIMIT 1) line
       WHERE alias.exchange = $1 AND alias.instrument_id = $2
       ORDER BY line.trade_date DESC, alias.symbol, alias.series LIMIT 1) before
   CROSS JOIN (
      SELECT line.*
        FROM market.series_aliases alias
       CROSS JOIN LATERAL (
         SELECT price.trade_date, price.open_price, price.close_price, price.previous_close_price FROM market.bhavcopy_cm price
          WHERE price.exchange = alias.exchange AND price.symbol = alias.symbol AND price.series = alias.series
            AND price.trade_date >= greatest($3, alias.valid_from) AND price.trade_date < alias.valid_to
          ORDER BY price.trade_date LIMIT 1) line
       WHERE alias.exchange = $1 AND alias.instrument_id = $2
       ORDER BY line.trade_date, alias.symbol, alias.series LIMIT 1) first
   WHERE first.previous_close_price = before.close_price
$$;
COMMENT ON FUNCTION etl.price_move(text, text, date) IS 'The last close of a share before a day, and as a part of it how far the price moved; null where a trading day in between is missing.';

-- The market may move the price back on the ex-date, so its move alone is no bound of what has terms: of a split, a bonus or
-- a consolidation its ratio (shares before ÷ after), of a dividend its amount, of rights both, whose amount is the premium:
-- at a higher price, which includes the face value, they are worth less.
CREATE OR REPLACE FUNCTION etl.price_effect(exchange text, share_id text, ex_date date, kind text, ratio numeric, amount numeric) RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT round(100 * CASE
           WHEN terms.effect IS NOT NULL OR NOT (etl.changes_shares($4) OR $4 IN ('dividend', 'interest', 'rights'))
             THEN greatest(terms.effect, move.moved) END, 2)
    FROM etl.price_move($1, $2, $3) move
   CROSS JOIN LATERAL (
     SELECT CASE WHEN etl.changes_shares($4) THEN abs($5 - 1)
              WHEN $4 = 'rights' THEN (1 - $5) * CASE WHEN $6 >= move.close_before THEN 0 ELSE 1 - $6 / move.close_before END
              WHEN $4 IN ('dividend', 'interest') THEN $6 / move.close_before END AS effect) terms
$$;
COMMENT ON FUNCTION etl.price_effect(text, text, date, text, numeric, numeric) IS 'By how many percent an event of a share moves its price: the greater of what follows from its terms and of how far the price moved. Null where it has no terms that tell, or a price is missing; of kinds without terms how far the price moved.';
