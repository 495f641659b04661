-- Views and functions for those who query; docs/cookbook.md has examples. This file is applied by
-- `eod migrate` whenever it changes. A view keeps its columns and their order; new ones go to the end. A function that
-- returns a table has no SET, so that the planner puts it in place of its call and conditions reach the indexes.

-- What events change of the previous close of a row of such a trading day. A call of its own, for few rows.
CREATE OR REPLACE FUNCTION etl.previous_close_factor(exchange text, symbol text, series text, day date, previous_close_price numeric)
RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT trim_scale(a.ratio_old[known + 1] * a.ratio_new[passed + 1] / (a.ratio_new[known + 1] * a.ratio_old[passed + 1]))
    FROM (
      -- The days of the share's events, and the factors of prices before each and after the last.
      SELECT s.instrument_id, array_agg(f.valid_to ORDER BY f.valid_to) AS ex_dates, array_agg(f.ratio_old ORDER BY f.valid_to) AS ratio_old,
             array_agg(f.ratio_new ORDER BY f.valid_to) AS ratio_new
        FROM market.series_aliases s CROSS JOIN LATERAL etl.share_price_factors(s.exchange, s.share_id, 'infinity') f
       WHERE s.exchange = $1 AND s.symbol = $2 AND s.series = $3 AND $4 >= s.valid_from AND $4 < s.valid_to
       GROUP BY s.instrument_id) a
   CROSS JOIN LATERAL (
     -- How many of the passed events the previous close already includes: those that the trading day before had passed. If
     -- that is not stored, or its close is not the previous close of this row, trading days are missing here, and only an
     -- event of this very day is certainly later.
     SELECT passed, coalesce((
              SELECT width_bucket(p.trade_date, a.ex_dates)
                FROM (SELECT p.trade_date, p.close_price
                        FROM market.series_aliases s
                       CROSS JOIN LATERAL (
                         SELECT p.trade_date, p.close_price FROM market.bhavcopy_cm p
                          WHERE p.exchange = s.exchange AND p.symbol = s.symbol AND p.series = s.series
                            AND p.trade_date >= s.valid_from AND p.trade_date < least(s.valid_to, $4)
                          ORDER BY p.trade_date DESC LIMIT 1) p
                       WHERE s.instrument_id = a.instrument_id
                       -- Of several series of that day, the one that this row continues.
                       ORDER BY p.trade_date DESC, p.close_price = $5 DESC NULLS LAST LIMIT 1) p
               WHERE p.close_price = $5),
            passed - (a.ex_dates[passed] = $4)::int) AS known
       FROM (SELECT width_bucket($4, a.ex_dates) AS passed) k) n
$$;
COMMENT ON FUNCTION etl.previous_close_factor(text, text, text, date, numeric) IS 'What the printed previous close of a trading day is multiplied by for the events since the trading day before.';

-- Few days. With SECURITY DEFINER the planner does not see through it, and may scan prices in parallel.
CREATE OR REPLACE FUNCTION etl.rejected_days(operation text) RETURNS TABLE (exchange text, day date)
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
  SELECT j.exchange, d.day::date
    FROM etl.rejects j CROSS JOIN generate_series(j.from_date::timestamp, j.to_date::timestamp, '1 day') AS d(day)
   WHERE j.operation = $1 AND NOT j.is_stray AND j.resolved_at IS NULL
$$;
COMMENT ON FUNCTION etl.rejected_days(text) IS 'Days of which records of an operation could not be read: they may be of any security.';

-- Columns that nobody selects cost nothing: the planner leaves their joins out, because each has the key of a table that
-- is not partitioned (Postgres 15 keeps joins with those that are).
CREATE OR REPLACE VIEW market.prices AS
  SELECT r.instrument_id, r.exchange, r.symbol, r.series, r.isin, r.instrument_full_name AS name, r.trade_date,
         r.open_price, r.high_price, r.low_price, r.close_price,
         r.printed_previous AS previous_close_price,
         round(r.printed_previous * r.factor, 4) AS adjusted_previous_close_price,
         round((r.close_price / (r.printed_previous * r.factor) - 1) * 100, 4) AS return_percent,
         r.turnover / nullif(r.traded_quantity, 0) AS vwap,
         r.traded_quantity, r.turnover, r.trade_count,
         d.delivered_quantity, d.delivered_percent,
         -- The days are found once, not for each row.
         coalesce(h.bands, CASE WHEN (r.exchange, r.trade_date) IN (
           SELECT k.exchange, k.day FROM etl.coverage k
            WHERE k.operation = 'GetCircuitBreakers' AND k.instrument = '' AND k.state IN ('loaded', 'empty')
              AND (k.exchange, k.day) NOT IN (SELECT j.exchange, j.day FROM etl.rejected_days('GetCircuitBreakers') j)) THEN 'none' END) AS band_hit
    FROM (
      SELECT b.*, a.instrument_id, nullif(b.previous_close_price, 0) AS printed_previous,
             CASE WHEN e.trade_date IS NOT NULL
               THEN coalesce(etl.previous_close_factor(b.exchange, b.symbol, b.series, b.trade_date, b.previous_close_price), 1)
               ELSE 1 END AS factor
        FROM market.bhavcopy_cm b
        LEFT JOIN etl.later_periods() l ON l.exchange = coalesce(b.exchange, '') AND l.symbol = coalesce(b.symbol, '') AND l.series = coalesce(b.series, '')
        LEFT JOIN market.series_aliases a ON a.exchange = b.exchange AND a.symbol = b.symbol AND a.series = b.series
         AND a.valid_from = coalesce(l.starts[width_bucket(b.trade_date, l.starts)], '-infinity')
        LEFT JOIN etl.event_sessions e ON e.exchange = b.exchange AND e.symbol = b.symbol AND e.trade_date = b.trade_date
    ) r
    LEFT JOIN market.deliveries d
      ON d.exchange = r.exchange AND d.symbol = r.symbol AND d.trade_date = r.trade_date
     AND d.series = r.series
    LEFT JOIN etl.hit_bands h
      ON h.exchange = r.exchange AND h.trade_date = r.trade_date AND h.symbol = r.symbol AND h.series = r.series;

COMMENT ON VIEW market.prices IS 'Trading days of all instruments as they were printed, with the return against the adjusted previous close, deliveries and price bands: one row an instrument and trading day. market.prices_adjusted has prices that compare over years.';
COMMENT ON COLUMN market.prices.instrument_id IS 'The instrument: market.instruments.instrument_id, the same through renames.';
COMMENT ON COLUMN market.prices.exchange IS 'Exchange.';
COMMENT ON COLUMN market.prices.symbol IS 'Ticker symbol of that day.';
COMMENT ON COLUMN market.prices.series IS 'Series (NSE) or group (BSE) of that day.';
COMMENT ON COLUMN market.prices.isin IS 'ISIN of that day.';
COMMENT ON COLUMN market.prices.name IS 'Name of that day; null where the file of the day has none.';
COMMENT ON COLUMN market.prices.trade_date IS 'Trading day.';
COMMENT ON COLUMN market.prices.open_price IS 'Opening price. Unit: rupees.';
COMMENT ON COLUMN market.prices.high_price IS 'Highest price. Unit: rupees.';
COMMENT ON COLUMN market.prices.low_price IS 'Lowest price. Unit: rupees.';
COMMENT ON COLUMN market.prices.close_price IS 'Closing price. Unit: rupees.';
COMMENT ON COLUMN market.prices.previous_close_price IS 'Closing price of the trading day before, as printed; null on the day of listing. Unit: rupees.';
COMMENT ON COLUMN market.prices.adjusted_previous_close_price IS 'previous_close_price times the factors of the applied events since that trading day: splits, consolidations and bonuses with this ex-date. Unit: rupees.';
COMMENT ON COLUMN market.prices.return_percent IS 'Change of close_price against adjusted_previous_close_price; dividends are not in it. Unit: percent.';
COMMENT ON COLUMN market.prices.vwap IS 'turnover ÷ traded_quantity, the average price of what was traded. Unit: rupees.';
COMMENT ON COLUMN market.prices.traded_quantity IS 'Total traded quantity. Unit: shares.';
COMMENT ON COLUMN market.prices.turnover IS 'Total traded value. Unit: rupees.';
COMMENT ON COLUMN market.prices.trade_count IS 'Number of trades.';
COMMENT ON COLUMN market.prices.delivered_quantity IS 'Quantity that was delivered; null where no file or response with it was loaded, or the exchange publishes none. Unit: shares.';
COMMENT ON COLUMN market.prices.delivered_percent IS 'delivered_quantity in percent of traded_quantity, as printed. Unit: percent.';
COMMENT ON COLUMN market.prices.band_hit IS 'Price bands it hit that day: H, L, HL for both, or none; null where the price bands of the day are not loaded, or records of them were rejected.';

-- Immutable, so that a wrong period is an error before anything is read.
CREATE OR REPLACE FUNCTION etl.period_unit(period text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF lower(period) NOT IN ('week', 'weekly', 'month', 'monthly', 'quarter', 'quarterly', 'year', 'yearly') OR period IS NULL THEN
    RAISE EXCEPTION 'there are no candles by %', coalesce(quote_literal(period), 'null')
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Periods are week, month, quarter and year.';
  END IF;
  RETURN regexp_replace(lower(period), 'ly$', '');
END
$$;
COMMENT ON FUNCTION etl.period_unit(text) IS 'week, month, quarter or year, also of weekly, monthly, quarterly and yearly; an error for anything else.';

-- Symbol and series are those of the instrument, not of the day, so that conditions on them apply before prices are read.
CREATE OR REPLACE FUNCTION market.candles(period text, as_of date DEFAULT current_date, since date DEFAULT '-infinity')
RETURNS TABLE (instrument_id text, exchange text, symbol text, series text, period_start date, first_session date, last_session date,
               sessions integer, open_price numeric, high_price numeric, low_price numeric, close_price numeric,
               traded_quantity numeric)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT p.instrument_id, p.exchange, i.symbol, i.series, date_trunc(etl.period_unit(period), p.trade_date::timestamp)::date,
         min(p.trade_date), max(p.trade_date), count(*)::integer,
         (array_agg(p.open_price ORDER BY p.trade_date) FILTER (WHERE p.open_price IS NOT NULL))[1], max(p.high_price), min(p.low_price),
         (array_agg(p.close_price ORDER BY p.trade_date DESC) FILTER (WHERE p.close_price IS NOT NULL))[1], sum(p.traded_quantity)
    FROM market.adjusted_prices(as_of) p
    JOIN market.instruments i ON i.exchange = p.exchange AND i.instrument_id = p.instrument_id
   WHERE p.trade_date >= since
   GROUP BY p.instrument_id, p.exchange, i.symbol, i.series, date_trunc(etl.period_unit(period), p.trade_date::timestamp)::date
$$;
COMMENT ON FUNCTION market.candles(text, date, date) IS 'Candles by week, month, quarter or year of trading days up to the given day (and from another on), adjusted as of it by market.adjusted_prices. One row an instrument and period with a trading day; symbol and series are those it was last seen under, so that its candles go on through renames.';

CREATE OR REPLACE FUNCTION market.universe_on(day date, at_exchange text DEFAULT NULL)
RETURNS TABLE (instrument_id text, exchange text, symbol text, series text, isin text, name text, first_session date,
               last_session date, has_traded boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT n.instrument_id, n.exchange, coalesce(t.symbol, n.symbol), coalesce(t.series, n.series), coalesce(t.isin, nullif(n.isin, '')),
         coalesce(t.name, nullif(n.name, '')), n.first_session, n.last_session, t.symbol IS NOT NULL
    FROM (
      SELECT DISTINCT ON (s.exchange, s.instrument_id) s.*
        FROM (
          SELECT o.exchange, o.instrument_id, o.symbol, o.series, o.isin, o.name, o.first_seen, o.last_seen,
                 min(o.first_seen) OVER (PARTITION BY o.exchange, o.instrument_id) AS first_session,
                 max(o.last_seen) OVER (PARTITION BY o.exchange, o.instrument_id) AS last_session,
                 max(o.last_seen) OVER (PARTITION BY o.exchange) AS newest_session
            FROM etl.observed_aliases o
           WHERE o.source = 'bhavcopy_cm' AND (at_exchange IS NULL OR o.exchange = at_exchange)
        ) s
       WHERE s.first_seen <= day AND s.last_session >= least(day, s.newest_session)
       ORDER BY s.exchange, s.instrument_id, least(s.last_seen, day) DESC, s.first_seen DESC, s.symbol, s.series
    ) n
    LEFT JOIN (
      SELECT a.instrument_id, b.exchange, b.symbol, b.series, b.isin, b.instrument_full_name AS name
        FROM market.bhavcopy_cm b
        JOIN market.series_aliases a ON a.exchange = b.exchange AND a.symbol = b.symbol AND a.series = b.series
         AND b.trade_date >= a.valid_from AND b.trade_date < a.valid_to
       WHERE b.trade_date = day
    ) t ON t.exchange = n.exchange AND t.instrument_id = n.instrument_id
$$;
COMMENT ON FUNCTION market.universe_on(date, text) IS 'Instruments that were tradable on a day, also if delisted since: the day is not before their first trading day and not after their last so far (after the newest trading day stored: as on that one). With their names of that day, first and last trading day, and whether they traded.';

CREATE OR REPLACE FUNCTION market.classification_on(day date)
RETURNS TABLE (instrument_id text, exchange text, symbol text, isin text, company_name text, macro_sector text, sector text,
               industry text, basic_industry text, macro_sector_code text, sector_code text, industry_code text,
               basic_industry_code text, allotted_from date)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT DISTINCT ON (n.exchange, n.instrument_id) n.instrument_id, n.exchange, c.symbol, c.isin, c.company_name, c.macro_sector,
         c.sector, c.industry, c.basic_industry, c.macro_sector_code, c.sector_code, c.industry_code, c.basic_industry_code,
         c.allotted_from
    FROM market.sectoral_classification c
   CROSS JOIN LATERAL (VALUES ('isin ' || nullif(c.isin, '')), (c.exchange || ' ' || nullif(c.scrip_code, 0))) AS k (name)
    JOIN (
      SELECT DISTINCT o.exchange, o.instrument_id, k.name
        FROM etl.observed_aliases o
       CROSS JOIN LATERAL (VALUES ('isin ' || nullif(o.isin, '')),
                                  (CASE o.exchange WHEN 'BSE' THEN 'BSE ' || nullif(o.scrip_code, 0) END)) AS k (name)
       WHERE o.precedence < 2
    ) n ON n.name = k.name
   WHERE c.allotted_from <= day
   -- Imported lists have a level or two.
   ORDER BY n.exchange, n.instrument_id, c.basic_industry IS NULL, c.sector IS NULL, c.allotted_from DESC, k.name, c.exchange
$$;
COMMENT ON FUNCTION market.classification_on(date) IS 'Macro-economic sector, sector, industry and basic industry of each instrument on a day, of both exchanges: the last classification that was allotted by then. One row an instrument; symbol, isin and company_name are those of the classification.';

CREATE OR REPLACE VIEW market.financial_ratios_wide AS
  WITH responses AS (
    SELECT exchange, symbol, nature_of_report, variant, as_of_date, period, year, last_q, market_cap_crore, eod_close_price, current_price,
           stock_price, week52_high_price, week52_low_price, eps, pe_ratio, book_value_per_share, dividend_yield, ebit,
           interest_coverage_ratio, face_value, price_sales_ratio, profit_after_tax, enterprise_value, debt, first_loaded_at
      FROM market.financial_ratios
    UNION ALL
    SELECT exchange, symbol, nature_of_report, variant, as_of_date, period,
           max(number) FILTER (WHERE fact = 'year')::integer, max(value) FILTER (WHERE fact = 'lastq'),
           max(number) FILTER (WHERE fact = 'marketcap'), max(number) FILTER (WHERE fact = 'eodcloseprice'),
           max(number) FILTER (WHERE fact = 'currentprice'), max(number) FILTER (WHERE fact = 'stockprice'),
           max(number) FILTER (WHERE fact = 'week52high'), max(number) FILTER (WHERE fact = 'week52low'),
           max(number) FILTER (WHERE fact = 'eps'), max(number) FILTER (WHERE fact = 'peratio'),
           max(number) FILTER (WHERE fact = 'bookvaluepershare'), max(number) FILTER (WHERE fact = 'dividendyield'),
           max(number) FILTER (WHERE fact = 'ebit'), max(number) FILTER (WHERE fact = 'interestcoverageratio'),
           max(number) FILTER (WHERE fact = 'facevalue'), max(number) FILTER (WHERE fact = 'pricesalesratio'),
           max(number) FILTER (WHERE fact = 'profitaftertax'), max(number) FILTER (WHERE fact = 'enterprisevalue'),
           max(number) FILTER (WHERE fact = 'debt'), min(first_loaded_at)
      FROM (SELECT f.*, f.value_number AS number, lower(regexp_replace(f.fact_key, '[^A-Za-z0-9]', '', 'g')) AS fact
              FROM market.financial_ratio_facts f
             -- If both shapes have the same data, the other part of the view has the row already.
             WHERE NOT EXISTS (SELECT FROM market.financial_ratios r
                                WHERE (r.exchange, r.symbol, r.nature_of_report, r.variant, r.as_of_date, r.period)
                                    = (f.exchange, f.symbol, f.nature_of_report, f.variant, f.as_of_date, f.period))) f
     GROUP BY exchange, symbol, nature_of_report, variant, as_of_date, period
  )
  SELECT o.instrument_id, r.exchange, r.symbol, r.nature_of_report, r.variant, r.as_of_date, r.period, r.is_latest, r.year, r.last_q,
         r.market_cap_crore, r.eod_close_price, r.current_price, r.stock_price, r.week52_high_price, r.week52_low_price, r.eps, r.pe_ratio,
         r.book_value_per_share, r.dividend_yield, r.ebit, r.interest_coverage_ratio, r.face_value, r.price_sales_ratio,
         r.profit_after_tax, r.enterprise_value, r.debt
    FROM (SELECT a.*, row_number() OVER (PARTITION BY exchange, symbol, nature_of_report ORDER BY as_of_date DESC,
                   array_position(ARRAY['eod', 'realtime', 'snapshot', 'quarter'], variant), period DESC) = 1 AS is_latest
            FROM responses a) r
    LEFT JOIN etl.alias_owners o
      ON o.exchange = r.exchange AND o.kind = 'symbol' AND o.symbol = r.symbol AND o.series = ''
     AND (r.first_loaded_at AT TIME ZONE 'Asia/Kolkata')::date >= o.valid_from
     AND (r.first_loaded_at AT TIME ZONE 'Asia/Kolkata')::date < o.valid_to;

COMMENT ON VIEW market.financial_ratios_wide IS 'Financial ratios with a column each: market.financial_ratios and market.financial_ratio_facts together, because the service responds in either shape. is_latest marks the newest of a company and nature of report.';
COMMENT ON COLUMN market.financial_ratios_wide.instrument_id IS 'The instrument: market.instruments.instrument_id; null where no prices have named the symbol.';
COMMENT ON COLUMN market.financial_ratios_wide.exchange IS 'Exchange that was requested.';
COMMENT ON COLUMN market.financial_ratios_wide.symbol IS 'Symbol that was requested.';
COMMENT ON COLUMN market.financial_ratios_wide.nature_of_report IS 'Standalone or Consolidated figures.';
COMMENT ON COLUMN market.financial_ratios_wide.variant IS 'eod, realtime, quarter or snapshot.';
COMMENT ON COLUMN market.financial_ratios_wide.as_of_date IS 'Day requested; the day of the call for realtime and snapshot; the last day of the quarter.';
COMMENT ON COLUMN market.financial_ratios_wide.period IS 'Financial year (by its first calendar year) and quarter code, e.g. 2024QM; empty where none applies.';
COMMENT ON COLUMN market.financial_ratios_wide.is_latest IS 'True for the newest row of this symbol and nature of report. Of one day eod comes first, then realtime, snapshot and quarter.';
COMMENT ON COLUMN market.financial_ratios_wide.year IS 'Financial year of the latest figures.';
COMMENT ON COLUMN market.financial_ratios_wide.last_q IS 'Code of the latest quarter, e.g. QM (to March).';
COMMENT ON COLUMN market.financial_ratios_wide.market_cap_crore IS 'Market capitalisation. Unit: crores of rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.eod_close_price IS 'Closing price of the day. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.current_price IS 'Current market price. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.stock_price IS 'Stock price, where the response names one. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.week52_high_price IS 'Highest price of 52 weeks. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.week52_low_price IS 'Lowest price of 52 weeks. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.eps IS 'Earnings per share. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.pe_ratio IS 'Price to earnings. Unit: ratio.';
COMMENT ON COLUMN market.financial_ratios_wide.book_value_per_share IS 'Book value per share. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.dividend_yield IS 'Dividend yield, as sent.';
COMMENT ON COLUMN market.financial_ratios_wide.ebit IS 'Earnings before interest and tax. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.interest_coverage_ratio IS 'EBIT to interest. Unit: ratio.';
COMMENT ON COLUMN market.financial_ratios_wide.face_value IS 'Face value of the share. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.price_sales_ratio IS 'Price to sales. Unit: ratio.';
COMMENT ON COLUMN market.financial_ratios_wide.profit_after_tax IS 'Profit after tax. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.enterprise_value IS 'Enterprise value. Unit: rupees.';
COMMENT ON COLUMN market.financial_ratios_wide.debt IS 'Debt. Unit: rupees.';

-- The previous figures are found with an index.
CREATE OR REPLACE VIEW market.pledge_changes AS
  SELECT CASE WHEN p.exchange = 'BSE' AND p.scrip_code > 0 THEN 'BSE:' || p.scrip_code END AS instrument_id, p.exchange, p.scrip_code, p.symbol,
         p.company_name, p.trade_date, b.trade_date AS previous_date, p.depository_pledged_shares,
         b.depository_pledged_shares AS previous_depository_pledged_shares,
         p.depository_pledged_shares - b.depository_pledged_shares AS depository_pledged_shares_change,
         p.depository_pledged_percent, p.depository_pledged_percent - b.depository_pledged_percent AS depository_pledged_percent_change,
         p.encumbered_last_quarter_of_promoter_shares_percent,
         p.encumbered_last_quarter_of_promoter_shares_percent - b.encumbered_last_quarter_of_promoter_shares_percent
           AS encumbered_last_quarter_of_promoter_shares_percent_change,
         p.total_promoter_holding_percent
    FROM market.consolidated_pledge p
   CROSS JOIN LATERAL (
     SELECT b.* FROM market.consolidated_pledge b
      WHERE b.exchange = p.exchange AND b.scrip_code = p.scrip_code AND b.trade_date < p.trade_date
        AND (p.scrip_code > 0 OR b.scrip_id = p.scrip_id)
      ORDER BY b.trade_date DESC LIMIT 1) b
   WHERE (p.depository_pledged_shares, p.encumbered_last_quarter_of_promoter_shares_percent)
         IS DISTINCT FROM (b.depository_pledged_shares, b.encumbered_last_quarter_of_promoter_shares_percent);

COMMENT ON VIEW market.pledge_changes IS 'Days on which what promoters have pledged differs from the last figures of the company before.';
COMMENT ON COLUMN market.pledge_changes.instrument_id IS 'The instrument: market.instruments.instrument_id.';
COMMENT ON COLUMN market.pledge_changes.exchange IS 'Exchange.';
COMMENT ON COLUMN market.pledge_changes.scrip_code IS 'Security code of the exchange.';
COMMENT ON COLUMN market.pledge_changes.symbol IS 'Ticker symbol.';
COMMENT ON COLUMN market.pledge_changes.company_name IS 'Name of the company.';
COMMENT ON COLUMN market.pledge_changes.trade_date IS 'Day of the figures.';
COMMENT ON COLUMN market.pledge_changes.previous_date IS 'Day of the figures before, which they are compared with.';
COMMENT ON COLUMN market.pledge_changes.depository_pledged_shares IS 'Shares pledged in the depository system. Unit: shares.';
COMMENT ON COLUMN market.pledge_changes.previous_depository_pledged_shares IS 'The same, before. Unit: shares.';
COMMENT ON COLUMN market.pledge_changes.depository_pledged_shares_change IS 'How many more; negative where pledges were released. Unit: shares.';
COMMENT ON COLUMN market.pledge_changes.depository_pledged_percent IS 'depository_pledged_shares as a share of all dematerialised shares. Unit: percent.';
COMMENT ON COLUMN market.pledge_changes.depository_pledged_percent_change IS 'How much more. Unit: percentage points.';
COMMENT ON COLUMN market.pledge_changes.encumbered_last_quarter_of_promoter_shares_percent IS 'Promoter shares encumbered at the end of the last quarter, as a share of promoter shares. Unit: percent.';
COMMENT ON COLUMN market.pledge_changes.encumbered_last_quarter_of_promoter_shares_percent_change IS 'How much more. Unit: percentage points.';
COMMENT ON COLUMN market.pledge_changes.total_promoter_holding_percent IS 'Promoter holding as a share of those issued. Unit: percent.';

CREATE OR REPLACE FUNCTION etl.plain_company_name(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT regexp_replace(replace(regexp_replace(upper(name), '\mLIMITED\M', 'LTD', 'g'), '&', 'AND'), '[^A-Z0-9]+', '', 'g')
$$;
COMMENT ON FUNCTION etl.plain_company_name(text) IS 'A name of a company as it is compared: in capitals, with LTD for LIMITED, without spaces and marks.';

CREATE OR REPLACE VIEW market.company_pledge_symbols AS
  SELECT p.exchange, p.company_name, p.ordinal, p.trade_date, n.symbol
    FROM (SELECT exchange, company_name, ordinal, trade_date, etl.plain_company_name(company_name) AS name,
                 count(*) OVER (PARTITION BY exchange, trade_date, etl.plain_company_name(company_name)) AS namesakes
            FROM market.company_pledges) p
    LEFT JOIN (
      SELECT exchange, name, min(symbol) AS symbol
        FROM (SELECT o.exchange, etl.plain_company_name(o.name) AS name, i.symbol
                FROM etl.observed_aliases o JOIN market.instruments i USING (exchange, instrument_id)
               WHERE o.name <> '' AND i.symbol IS NOT NULL
              UNION
              SELECT exchange, etl.plain_company_name(company_name), symbol FROM market.sectoral_classification
               WHERE company_name IS NOT NULL AND symbol IS NOT NULL) known
       GROUP BY exchange, name HAVING count(DISTINCT symbol) = 1) n
      ON n.exchange = p.exchange AND n.name = p.name AND p.namesakes = 1;

COMMENT ON VIEW market.company_pledge_symbols IS 'The ticker symbol of each row of market.company_pledges, by the name of its company.';
COMMENT ON COLUMN market.company_pledge_symbols.exchange IS 'Exchange.';
COMMENT ON COLUMN market.company_pledge_symbols.company_name IS 'Name of the company.';
COMMENT ON COLUMN market.company_pledge_symbols.ordinal IS 'Position among companies of the same name and day.';
COMMENT ON COLUMN market.company_pledge_symbols.trade_date IS 'Day on which the exchange published it.';
COMMENT ON COLUMN market.company_pledge_symbols.symbol IS 'Ticker symbol it was last seen under; null where no stored name is the same, several securities have it, or several companies of the list.';

CREATE OR REPLACE VIEW market.band_hits AS
  SELECT p.instrument_id, c.exchange, c.symbol, c.series, c.trade_date, c.band, p.close_price, p.return_percent,
         n.trade_date AS next_session, n.close_price AS next_close_price, n.return_percent AS next_return_percent
    FROM market.circuit_breakers c
    LEFT JOIN market.prices p
      ON p.exchange = c.exchange AND p.symbol = c.symbol AND p.series = c.series AND p.trade_date = c.trade_date
    LEFT JOIN LATERAL (
      -- A share that hits a band is often moved to another series.
      SELECT b.exchange, b.symbol, b.series, b.trade_date
        FROM market.series_aliases s
       CROSS JOIN LATERAL (
         SELECT b.exchange, b.symbol, b.series, b.trade_date FROM market.bhavcopy_cm b
          WHERE b.exchange = s.exchange AND b.symbol = s.symbol AND b.series = s.series
            AND b.trade_date > greatest(c.trade_date, s.valid_from - 1) AND b.trade_date < s.valid_to
          ORDER BY b.trade_date LIMIT 1) b
       WHERE s.instrument_id = p.instrument_id
       ORDER BY b.trade_date LIMIT 1) b ON true
    LEFT JOIN market.prices n
      ON n.exchange = b.exchange AND n.symbol = b.symbol AND n.series = b.series AND n.trade_date = b.trade_date;

COMMENT ON VIEW market.band_hits IS 'Securities that hit a price band, with the returns of that day and of the next trading day; one that hit both bands has two rows.';
COMMENT ON COLUMN market.band_hits.instrument_id IS 'The instrument: market.instruments.instrument_id; null where no prices of the day are stored.';
COMMENT ON COLUMN market.band_hits.exchange IS 'Exchange.';
COMMENT ON COLUMN market.band_hits.symbol IS 'Ticker symbol of that day.';
COMMENT ON COLUMN market.band_hits.series IS 'Series of that day.';
COMMENT ON COLUMN market.band_hits.trade_date IS 'Trading day.';
COMMENT ON COLUMN market.band_hits.band IS 'Band that was hit: H upper, L lower.';
COMMENT ON COLUMN market.band_hits.close_price IS 'Closing price. Unit: rupees.';
COMMENT ON COLUMN market.band_hits.return_percent IS 'Change against the adjusted previous close, as in market.prices. Unit: percent.';
COMMENT ON COLUMN market.band_hits.next_session IS 'The next trading day of the instrument, in whatever series; null where there is none yet.';
COMMENT ON COLUMN market.band_hits.next_close_price IS 'Closing price of that trading day. Unit: rupees.';
COMMENT ON COLUMN market.band_hits.next_return_percent IS 'Change of that trading day against its adjusted previous close. Unit: percent.';

-- An event of a share has a row for each of its lines in market.corporate_events, because prices are adjusted by line. A
-- share is known on both exchanges by its ISINs; of several lines on NSE the first stands for it. Where each exchange has
-- the event on a day of its own, at most a week apart, it is one event too, as for who copies events to the other exchange
-- (SAME_EVENT_DAYS). Rows with the same share, kind, item, chain and nth are of one event.
CREATE OR REPLACE FUNCTION etl.events_of_shares(with_status text)
RETURNS TABLE (share text, kind text, item text, chain bigint, nth bigint, exchanges text[], event_id text, exchange text, symbol text,
               ex_date date, instrument_id text, record_date date, purpose text, ratio_new bigint, ratio_old bigint, price_factor numeric,
               amount numeric, status text, status_reason text, listed_by text, is_special boolean, is_reinvested boolean,
               first_loaded_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH elsewhere AS MATERIALIZED (
    SELECT b.instrument_id, min(n.instrument_id) AS share_id
      FROM market.instrument_aliases b
      JOIN market.instrument_aliases n ON n.kind = 'isin' AND n.alias = b.alias AND n.exchange = 'NSE'
     WHERE b.kind = 'isin' AND b.exchange <> 'NSE'
     GROUP BY b.instrument_id
  ), events AS (
    SELECT e.*, coalesce(s.share_id, e.instrument_id, e.exchange || ' ' || e.symbol) AS share
      FROM market.corporate_events e LEFT JOIN elsewhere s USING (instrument_id)
     WHERE with_status IS NULL OR e.status = with_status
  ), days AS (
    SELECT share, kind, item, ex_date, array_agg(DISTINCT exchange) AS lines, array_agg(DISTINCT coalesce(listed_by, exchange)) AS listed
      FROM events GROUP BY share, kind, item, ex_date
  ), linked AS (
    SELECT share, kind, item, ex_date, listed,
           ex_date - lag(ex_date) OVER earlier <= 7 AND cardinality(lines) = 1 AND cardinality(lag(lines) OVER earlier) = 1
             AND lines <> lag(lines) OVER earlier AS follows
      FROM days WINDOW earlier AS (PARTITION BY share, kind, item ORDER BY ex_date)
  ), chained AS (
    SELECT share, kind, item, ex_date, listed,
           count(*) FILTER (WHERE follows IS NOT TRUE) OVER (PARTITION BY share, kind, item ORDER BY ex_date) AS chain
      FROM linked
  ), numbered AS (
    -- Two days of a chain are one event: the days of the exchanges alternate in it.
    SELECT share, kind, item, ex_date, listed, chain,
           (row_number() OVER (PARTITION BY share, kind, item, chain ORDER BY ex_date) - 1) / 2 AS nth
      FROM chained
  ), grouped AS (
    SELECT share, kind, item, ex_date, chain, nth,
           array_remove(ARRAY[CASE WHEN bool_or('BSE' = ANY (listed)) OVER event THEN 'BSE' END,
                              CASE WHEN bool_or('NSE' = ANY (listed)) OVER event THEN 'NSE' END], NULL) AS exchanges
      FROM numbered WINDOW event AS (PARTITION BY share, kind, item, chain, nth)
  )
  -- One join: of a second one the planner would expect a single row, and compare all with all.
  SELECT e.share, e.kind, e.item, g.chain, g.nth, g.exchanges, e.event_id, e.exchange, e.symbol, e.ex_date, e.instrument_id, e.record_date,
         e.purpose, e.ratio_new, e.ratio_old, e.price_factor, e.amount, e.status, e.status_reason, e.listed_by, e.is_special,
         e.is_reinvested, e.first_loaded_at
    FROM events e JOIN grouped g USING (share, kind, item, ex_date)
$$;
COMMENT ON FUNCTION etl.events_of_shares(text) IS 'market.corporate_events, all or those with one status, with what the rows of one event of a share have in common: share, kind, item, chain and nth.';

-- What a person has decided comes first, then an exchange's own list, then NSE.
CREATE OR REPLACE VIEW market.share_events AS
  SELECT DISTINCT ON (e.share, e.kind, e.item, e.chain, e.nth)
         e.instrument_id, e.exchange, e.symbol, e.ex_date, e.kind, e.item, e.event_id, e.exchanges, e.record_date, e.purpose,
         e.ratio_new, e.ratio_old, e.price_factor, e.amount, e.status, e.status_reason, e.is_special, e.is_reinvested
    FROM etl.events_of_shares(NULL) e
   ORDER BY e.share, e.kind, e.item, e.chain, e.nth, (e.status_reason LIKE 'decided by %') IS TRUE DESC,
         (e.listed_by = e.exchange) IS TRUE DESC, e.exchange DESC, e.symbol;
COMMENT ON VIEW market.share_events IS 'market.corporate_events with one row an event of a share, whichever exchanges list it: so amounts can be added up. Where the exchanges have different ex-dates, at most a week apart, it is one event, with the date of the exchange that is shown.';
COMMENT ON COLUMN market.share_events.instrument_id IS 'The share on the exchange of the row: market.instruments.instrument_id; null where it is not known.';
COMMENT ON COLUMN market.share_events.exchange IS 'Exchange whose row is shown: the one with a decision by hand, else one that lists it, NSE before BSE.';
COMMENT ON COLUMN market.share_events.symbol IS 'Ticker symbol there.';
COMMENT ON COLUMN market.share_events.ex_date IS 'First day on which the share trades without the right.';
COMMENT ON COLUMN market.share_events.kind IS 'Kind of event, as in market.corporate_events.';
COMMENT ON COLUMN market.share_events.item IS 'Distinguishes events of one kind and day: the amount of a dividend; else empty.';
COMMENT ON COLUMN market.share_events.event_id IS 'Names the event in commands.';
COMMENT ON COLUMN market.share_events.exchanges IS 'Exchanges that list it.';
COMMENT ON COLUMN market.share_events.record_date IS 'Day whose holders have the right.';
COMMENT ON COLUMN market.share_events.purpose IS 'What the company does, as printed.';
COMMENT ON COLUMN market.share_events.ratio_new IS 'Shares after the event for ratio_old shares before it. Unit: shares.';
COMMENT ON COLUMN market.share_events.ratio_old IS 'Shares before the event. Unit: shares.';
COMMENT ON COLUMN market.share_events.price_factor IS 'ratio_old ÷ ratio_new. Unit: quotient.';
COMMENT ON COLUMN market.share_events.amount IS 'Dividend or interest, or the premium of a rights issue. Unit: rupees a share.';
COMMENT ON COLUMN market.share_events.status IS 'applied, needs_review or ignored, as in market.corporate_events.';
COMMENT ON COLUMN market.share_events.status_reason IS 'Why it is not applied, or who decided.';
COMMENT ON COLUMN market.share_events.is_special IS 'True for a special dividend, which is paid once.';
COMMENT ON COLUMN market.share_events.is_reinvested IS 'True if total returns reinvest its amount.';
