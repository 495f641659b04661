-- Views and functions for those who query; docs/cookbook.md has examples. This file is applied by
-- `eod migrate` whenever it changes. A view keeps its columns and their order; new ones go to the end. A function that
-- returns a table has no SET, so that the planner puts it in place of its call and conditions reach the indexes.

-- What events change of the previous close of a row of such a trading day. A call of its own, for few rows.
CREATE OR REPLACE FUNCTION etl.previous_close_factor(exchange text, symbol text, series text, day date, previous_close_price numeric)
RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT trim_scale(events.ratio_old[known + 1] * events.ratio_new[passed + 1]
           / (events.ratio_new[known + 1] * events.ratio_old[passed + 1]))
    FROM (
      -- The days of the share's events, and the factors of prices before each and after the last.
      SELECT alias.instrument_id,
             array_agg(factor.valid_to ORDER BY factor.valid_to) AS ex_dates,
             array_agg(factor.ratio_old ORDER BY factor.valid_to) AS ratio_old,
             array_agg(factor.ratio_new ORDER BY factor.valid_to) AS ratio_new
        FROM market.series_aliases alias
       CROSS JOIN LATERAL etl.share_price_factors(alias.exchange, alias.share_id, 'infinity') factor
       WHERE alias.exchange = $1 AND alias.symbol = $2 AND alias.series = $3 AND $4 >= alias.valid_from AND $4 < alias.valid_to
       GROUP BY alias.instrument_id) events
   CROSS JOIN LATERAL (
     -- How many of the passed events the previous close already includes: those that the trading day before had passed. If
     -- that is not stored, or its close is not the previous close of this row, trading days are missing here, and only an
     -- event of this very day is certainly later.
     SELECT passed, coalesce((
              SELECT width_bucket(before.trade_date, events.ex_dates)
                FROM (SELECT line.trade_date, line.close_price
                        FROM market.series_aliases alias
                       CROSS JOIN LATERAL (
                         SELECT price.trade_date, price.close_price FROM market.bhavcopy_cm price
                          WHERE price.exchange = alias.exchange AND price.symbol = alias.symbol AND price.series = alias.series
                            AND price.trade_date >= alias.valid_from AND price.trade_date < least(alias.valid_to, $4)
                          ORDER BY price.trade_date DESC LIMIT 1) line
                       WHERE alias.instrument_id = events.instrument_id
                       -- Of several series of that day, the one that this row continues.
                       ORDER BY line.trade_date DESC, line.close_price = $5 DESC NULLS LAST LIMIT 1) before
               WHERE before.close_price = $5),
            passed - (events.ex_dates[passed] = $4)::int) AS known
       FROM (SELECT width_bucket($4, events.ex_dates) AS passed) on_day) counted
$$;
COMMENT ON FUNCTION etl.previous_close_factor(text, text, text, date, numeric) IS 'What the printed previous close of a trading day is multiplied by for the events since the trading day before.';

-- Few days. With SECURITY DEFINER the planner does not see through it, and may scan prices in parallel.
CREATE OR REPLACE FUNCTION etl.rejected_days(operation text) RETURNS TABLE (exchange text, day date)
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
  SELECT reject.exchange, span.day::date
    FROM etl.rejects reject
   CROSS JOIN generate_series(reject.from_date::timestamp, reject.to_date::timestamp, '1 day') AS span(day)
   WHERE reject.operation = $1 AND NOT reject.is_stray AND reject.resolved_at IS NULL
$$;
COMMENT ON FUNCTION etl.rejected_days(text) IS 'Days of which records of an operation could not be read: they may be of any security.';

-- Columns that nobody selects cost nothing: the planner leaves their joins out, because each has the key of a table that
-- is not partitioned (Postgres 15 keeps joins with those that are).
CREATE OR REPLACE VIEW market.prices AS
  SELECT line.instrument_id, line.exchange, line.symbol, line.series, line.isin, line.instrument_full_name AS name, line.trade_date,
         line.open_price, line.high_price, line.low_price, line.close_price,
         line.printed_previous AS previous_close_price,
         round(line.printed_previous * line.factor, 4) AS adjusted_previous_close_price,
         round((line.close_price / (line.printed_previous * line.factor) - 1) * 100, 4) AS return_percent,
         line.turnover / nullif(line.traded_quantity, 0) AS vwap,
         line.traded_quantity, line.turnover, line.trade_count,
         delivery.delivered_quantity, delivery.delivered_percent,
         -- The days are found once, not for each row.
         coalesce(hit.bands, CASE WHEN (line.exchange, line.trade_date) IN (
           SELECT covered.exchange, covered.day FROM etl.coverage covered
            WHERE covered.operation = 'GetCircuitBreakers' AND covered.instrument = '' AND covered.state IN ('loaded', 'empty')
              AND (covered.exchange, covered.day) NOT IN (
                SELECT rejected.exchange, rejected.day FROM etl.rejected_days('GetCircuitBreakers') rejected)
         ) THEN 'none' END) AS band_hit
    FROM (
      SELECT line.*, alias.instrument_id, nullif(line.previous_close_price, 0) AS printed_previous,
             CASE WHEN event_day.trade_date IS NOT NULL
               THEN coalesce(etl.previous_close_factor(
                 line.exchange, line.symbol, line.series, line.trade_date, line.previous_close_price), 1)
               ELSE 1 END AS factor
        FROM market.bhavcopy_cm line
        LEFT JOIN etl.later_periods() later
          ON later.exchange = coalesce(line.exchange, '')
         AND later.symbol = coalesce(line.symbol, '')
         AND later.series = coalesce(line.series, '')
        LEFT JOIN market.series_aliases alias
          ON alias.exchange = line.exchange AND alias.symbol = line.symbol AND alias.series = line.series
         AND alias.valid_from = coalesce(later.starts[width_bucket(line.trade_date, later.starts)], '-infinity')
        LEFT JOIN etl.event_sessions event_day
          ON event_day.exchange = line.exchange AND event_day.symbol = line.symbol AND event_day.trade_date = line.trade_date
    ) line
    LEFT JOIN market.deliveries delivery
      ON delivery.exchange = line.exchange AND delivery.symbol = line.symbol AND delivery.trade_date = line.trade_date
     AND delivery.series = line.series
    LEFT JOIN etl.hit_bands hit
      ON hit.exchange = line.exchange AND hit.trade_date = line.trade_date AND hit.symbol = line.symbol AND hit.series = line.series;

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
  SELECT price.instrument_id, price.exchange, instrument.symbol, instrument.series,
         date_trunc(etl.period_unit(period), price.trade_date::timestamp)::date,
         min(price.trade_date), max(price.trade_date), count(*)::integer,
         (array_agg(price.open_price ORDER BY price.trade_date) FILTER (WHERE price.open_price IS NOT NULL))[1],
         max(price.high_price), min(price.low_price),
         (array_agg(price.close_price ORDER BY price.trade_date DESC) FILTER (WHERE price.close_price IS NOT NULL))[1],
         sum(price.traded_quantity)
    FROM market.adjusted_prices(as_of) price
    JOIN market.instruments instrument ON instrument.exchange = price.exchange AND instrument.instrument_id = price.instrument_id
   WHERE price.trade_date >= since
   GROUP BY price.instrument_id, price.exchange, instrument.symbol, instrument.series,
         date_trunc(etl.period_unit(period), price.trade_date::timestamp)::date
$$;
COMMENT ON FUNCTION market.candles(text, date, date) IS 'Candles by week, month, quarter or year of trading days up to the given day (and from another on), adjusted as of it by market.adjusted_prices. One row an instrument and period with a trading day; symbol and series are those it was last seen under, so that its candles go on through renames.';

CREATE OR REPLACE FUNCTION market.universe_on(day date, at_exchange text DEFAULT NULL)
RETURNS TABLE (instrument_id text, exchange text, symbol text, series text, isin text, name text, first_session date,
               last_session date, has_traded boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT instrument.instrument_id, instrument.exchange,
         coalesce(traded.symbol, instrument.symbol), coalesce(traded.series, instrument.series),
         coalesce(traded.isin, nullif(instrument.isin, '')), coalesce(traded.name, nullif(instrument.name, '')),
         instrument.first_session, instrument.last_session, traded.symbol IS NOT NULL
    FROM (
      SELECT DISTINCT ON (span.exchange, span.instrument_id) span.*
        FROM (
          SELECT observed.exchange, observed.instrument_id, observed.symbol, observed.series, observed.isin, observed.name,
                 observed.first_seen, observed.last_seen,
                 min(observed.first_seen) OVER (PARTITION BY observed.exchange, observed.instrument_id) AS first_session,
                 max(observed.last_seen) OVER (PARTITION BY observed.exchange, observed.instrument_id) AS last_session,
                 max(observed.last_seen) OVER (PARTITION BY observed.exchange) AS newest_session
            FROM etl.observed_aliases observed
           WHERE observed.source = 'bhavcopy_cm' AND (at_exchange IS NULL OR observed.exchange = at_exchange)
        ) span
       WHERE span.first_seen <= day AND span.last_session >= least(day, span.newest_session)
       ORDER BY span.exchange, span.instrument_id, least(span.last_seen, day) DESC, span.first_seen DESC, span.symbol, span.series
    ) instrument
    LEFT JOIN (
      SELECT alias.instrument_id, line.exchange, line.symbol, line.series, line.isin, line.instrument_full_name AS name
        FROM market.bhavcopy_cm line
        JOIN market.series_aliases alias
          ON alias.exchange = line.exchange AND alias.symbol = line.symbol AND alias.series = line.series
         AND line.trade_date >= alias.valid_from AND line.trade_date < alias.valid_to
       WHERE line.trade_date = day
    ) traded ON traded.exchange = instrument.exchange AND traded.instrument_id = instrument.instrument_id
$$;
COMMENT ON FUNCTION market.universe_on(date, text) IS 'Instruments that were tradable on a day, also if delisted since: the day is not before their first trading day and not after their last so far (after the newest trading day stored: as on that one). With their names of that day, first and last trading day, and whether they traded.';

CREATE OR REPLACE FUNCTION market.classification_on(day date)
RETURNS TABLE (instrument_id text, exchange text, symbol text, isin text, company_name text, macro_sector text, sector text,
               industry text, basic_industry text, macro_sector_code text, sector_code text, industry_code text,
               basic_industry_code text, allotted_from date)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT DISTINCT ON (instrument.exchange, instrument.instrument_id)
         instrument.instrument_id, instrument.exchange,
         classification.symbol, classification.isin, classification.company_name,
         classification.macro_sector, classification.sector, classification.industry, classification.basic_industry,
         classification.macro_sector_code, classification.sector_code, classification.industry_code,
         classification.basic_industry_code, classification.allotted_from
    FROM market.sectoral_classification classification
   CROSS JOIN LATERAL (VALUES
       ('isin ' || nullif(classification.isin, '')),
       (classification.exchange || ' ' || nullif(classification.scrip_code, 0))) AS code (name)
    JOIN (
      SELECT DISTINCT observed.exchange, observed.instrument_id, code.name
        FROM etl.observed_aliases observed
       CROSS JOIN LATERAL (VALUES
           ('isin ' || nullif(observed.isin, '')),
           (CASE observed.exchange WHEN 'BSE' THEN 'BSE ' || nullif(observed.scrip_code, 0) END)) AS code (name)
       WHERE observed.precedence < 2
    ) instrument ON instrument.name = code.name
   WHERE classification.allotted_from <= day
   -- Imported lists have a level or two.
   ORDER BY instrument.exchange, instrument.instrument_id, classification.basic_industry IS NULL, classification.sector IS NULL,
         classification.allotted_from DESC, code.name, classification.exchange
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
      FROM (
        SELECT stated.*, stated.value_number AS number, lower(regexp_replace(stated.fact_key, '[^A-Za-z0-9]', '', 'g')) AS fact
          FROM market.financial_ratio_facts stated
         -- If both shapes have the same data, the other part of the view has the row already.
         WHERE NOT EXISTS (
           SELECT FROM market.financial_ratios ratios
            WHERE ratios.exchange = stated.exchange
              AND ratios.symbol = stated.symbol
              AND ratios.nature_of_report = stated.nature_of_report
              AND ratios.variant = stated.variant
              AND ratios.as_of_date = stated.as_of_date
              AND ratios.period = stated.period)) facts
     GROUP BY exchange, symbol, nature_of_report, variant, as_of_date, period
  )
  SELECT owner.instrument_id, ratios.exchange, ratios.symbol, ratios.nature_of_report, ratios.variant, ratios.as_of_date, ratios.period,
         ratios.is_latest, ratios.year, ratios.last_q, ratios.market_cap_crore, ratios.eod_close_price, ratios.current_price,
         ratios.stock_price, ratios.week52_high_price, ratios.week52_low_price, ratios.eps, ratios.pe_ratio,
         ratios.book_value_per_share, ratios.dividend_yield, ratios.ebit, ratios.interest_coverage_ratio, ratios.face_value,
         ratios.price_sales_ratio, ratios.profit_after_tax, ratios.enterprise_value, ratios.debt
    FROM (
      SELECT responses.*,
             row_number() OVER (
               PARTITION BY exchange, symbol, nature_of_report
               ORDER BY as_of_date DESC, array_position(ARRAY['eod', 'realtime', 'snapshot', 'quarter'], variant), period DESC
             ) = 1 AS is_latest
        FROM responses) ratios
    LEFT JOIN etl.alias_owners owner
      ON owner.exchange = ratios.exchange AND owner.kind = 'symbol' AND owner.symbol = ratios.symbol AND owner.series = ''
     AND (ratios.first_loaded_at AT TIME ZONE 'Asia/Kolkata')::date >= owner.valid_from
     AND (ratios.first_loaded_at AT TIME ZONE 'Asia/Kolkata')::date < owner.valid_to;

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
  SELECT CASE WHEN pledge.exchange = 'BSE' AND pledge.scrip_code > 0 THEN 'BSE:' || pledge.scrip_code END AS instrument_id,
         pledge.exchange, pledge.scrip_code, pledge.symbol, pledge.company_name, pledge.trade_date,
         before.trade_date AS previous_date, pledge.depository_pledged_shares,
         before.depository_pledged_shares AS previous_depository_pledged_shares,
         pledge.depository_pledged_shares - before.depository_pledged_shares AS depository_pledged_shares_change,
         pledge.depository_pledged_percent,
         pledge.depository_pledged_percent - before.depository_pledged_percent AS depository_pledged_percent_change,
         pledge.encumbered_last_quarter_of_promoter_shares_percent,
         pledge.encumbered_last_quarter_of_promoter_shares_percent - before.encumbered_last_quarter_of_promoter_shares_percent
           AS encumbered_last_quarter_of_promoter_shares_percent_change,
         pledge.total_promoter_holding_percent
    FROM market.consolidated_pledge pledge
   CROSS JOIN LATERAL (
     SELECT before.* FROM market.consolidated_pledge before
      WHERE before.exchange = pledge.exchange AND before.scrip_code = pledge.scrip_code AND before.trade_date < pledge.trade_date
        AND (pledge.scrip_code > 0 OR before.scrip_id = pledge.scrip_id)
      ORDER BY before.trade_date DESC LIMIT 1) before
   WHERE (pledge.depository_pledged_shares, pledge.encumbered_last_quarter_of_promoter_shares_percent)
         IS DISTINCT FROM (before.depository_pledged_shares, before.encumbered_last_quarter_of_promoter_shares_percent);

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
  SELECT pledge.exchange, pledge.company_name, pledge.ordinal, pledge.trade_date, known_name.symbol
    FROM (SELECT exchange, company_name, ordinal, trade_date, etl.plain_company_name(company_name) AS name,
                 count(*) OVER (PARTITION BY exchange, trade_date, etl.plain_company_name(company_name)) AS namesakes
            FROM market.company_pledges) pledge
    LEFT JOIN (
      SELECT exchange, name, min(symbol) AS symbol
        FROM (SELECT observed.exchange, etl.plain_company_name(observed.name) AS name, instrument.symbol
                FROM etl.observed_aliases observed JOIN market.instruments instrument USING (exchange, instrument_id)
               WHERE observed.name <> '' AND instrument.symbol IS NOT NULL
              UNION
              SELECT exchange, etl.plain_company_name(company_name), symbol FROM market.sectoral_classification
               WHERE company_name IS NOT NULL AND symbol IS NOT NULL) known
       GROUP BY exchange, name HAVING count(DISTINCT symbol) = 1) known_name
      ON known_name.exchange = pledge.exchange AND known_name.name = pledge.name AND pledge.namesakes = 1;

COMMENT ON VIEW market.company_pledge_symbols IS 'The ticker symbol of each row of market.company_pledges, by the name of its company.';
COMMENT ON COLUMN market.company_pledge_symbols.exchange IS 'Exchange.';
COMMENT ON COLUMN market.company_pledge_symbols.company_name IS 'Name of the company.';
COMMENT ON COLUMN market.company_pledge_symbols.ordinal IS 'Position among companies of the same name and day.';
COMMENT ON COLUMN market.company_pledge_symbols.trade_date IS 'Day on which the exchange published it.';
COMMENT ON COLUMN market.company_pledge_symbols.symbol IS 'Ticker symbol it was last seen under; null where no stored name is the same, several securities have it, or several companies of the list.';

CREATE OR REPLACE VIEW market.band_hits AS
  SELECT price.instrument_id, hit.exchange, hit.symbol, hit.series, hit.trade_date, hit.band, price.close_price, price.return_percent,
         next_price.trade_date AS next_session, next_price.close_price AS next_close_price,
         next_price.return_percent AS next_return_percent
    FROM market.circuit_breakers hit
    LEFT JOIN market.prices price
      ON price.exchange = hit.exchange AND price.symbol = hit.symbol AND price.series = hit.series AND price.trade_date = hit.trade_date
    LEFT JOIN LATERAL (
      -- A share that hits a band is often moved to another series.
      SELECT next_line.exchange, next_line.symbol, next_line.series, next_line.trade_date
        FROM market.series_aliases alias
       CROSS JOIN LATERAL (
         SELECT next_line.exchange, next_line.symbol, next_line.series, next_line.trade_date FROM market.bhavcopy_cm next_line
          WHERE next_line.exchange = alias.exchange AND next_line.symbol = alias.symbol AND next_line.series = alias.series
            AND next_line.trade_date > greatest(hit.trade_date, alias.valid_from - 1) AND next_line.trade_date < alias.valid_to
          ORDER BY next_line.trade_date LIMIT 1) next_line
       WHERE alias.instrument_id = price.instrument_id
       ORDER BY next_line.trade_date LIMIT 1) next_line ON true
    LEFT JOIN market.prices next_price
      ON next_price.exchange = next_line.exchange
     AND next_price.symbol = next_line.symbol
     AND next_price.series = next_line.series
     AND next_price.trade_date = next_line.trade_date;

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
    SELECT other.instrument_id, min(nse.instrument_id) AS share_id
      FROM market.instrument_aliases other
      JOIN market.instrument_aliases nse ON nse.kind = 'isin' AND nse.alias = other.alias AND nse.exchange = 'NSE'
     WHERE other.kind = 'isin' AND other.exchange <> 'NSE'
     GROUP BY other.instrument_id
  ), events AS (
    SELECT event.*, coalesce(elsewhere.share_id, event.instrument_id, event.exchange || ' ' || event.symbol) AS share
      FROM market.corporate_events event LEFT JOIN elsewhere USING (instrument_id)
     WHERE with_status IS NULL OR event.status = with_status
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
  SELECT events.share, events.kind, events.item, grouped.chain, grouped.nth, grouped.exchanges,
         events.event_id, events.exchange, events.symbol, events.ex_date, events.instrument_id, events.record_date, events.purpose,
         events.ratio_new, events.ratio_old, events.price_factor, events.amount, events.status, events.status_reason,
         events.listed_by, events.is_special, events.is_reinvested, events.first_loaded_at
    FROM events JOIN grouped USING (share, kind, item, ex_date)
$$;
COMMENT ON FUNCTION etl.events_of_shares(text) IS 'market.corporate_events, all or those with one status, with what the rows of one event of a share have in common: share, kind, item, chain and nth.';

-- What a person has decided comes first, then an exchange's own list, then NSE.
CREATE OR REPLACE VIEW market.share_events AS
  SELECT DISTINCT ON (event.share, event.kind, event.item, event.chain, event.nth)
         event.instrument_id, event.exchange, event.symbol, event.ex_date, event.kind, event.item, event.event_id, event.exchanges,
         event.record_date, event.purpose, event.ratio_new, event.ratio_old, event.price_factor, event.amount, event.status,
         event.status_reason, event.is_special, event.is_reinvested
    FROM etl.events_of_shares(NULL) event
   ORDER BY event.share, event.kind, event.item, event.chain, event.nth, (event.status_reason LIKE 'decided by %') IS TRUE DESC,
         (event.listed_by = event.exchange) IS TRUE DESC, event.exchange DESC, event.symbol;
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
