-- The views of instruments over etl.observed_aliases; docs/analysts.md explains them. This file is applied by
-- `eod migrate` whenever it changes. A view keeps its columns and their order; new ones go to the end. A change that
-- CREATE OR REPLACE refuses needs a DROP VIEW before it, which fails where somebody's own view builds on it.

-- For each column the bhav copy is preferred, then the table in which the instrument was seen last; tables without a
-- value are passed over.
CREATE OR REPLACE VIEW market.instruments AS
  SELECT instrument_id, exchange,
         (array_agg(symbol ORDER BY source <> 'bhavcopy_cm', last_seen DESC, first_seen DESC, source, symbol)
            FILTER (WHERE symbol <> ''))[1] AS symbol,
         (array_agg(series ORDER BY source <> 'bhavcopy_cm', last_seen DESC, first_seen DESC, source, series)
            FILTER (WHERE series <> ''))[1] AS series,
         (array_agg(scrip_code ORDER BY source <> 'bhavcopy_cm', last_seen DESC, first_seen DESC, source, scrip_code)
            FILTER (WHERE scrip_code > 0))[1] AS scrip_code,
         (array_agg(isin ORDER BY source <> 'bhavcopy_cm', last_seen DESC, first_seen DESC, source, isin)
            FILTER (WHERE isin <> ''))[1] AS isin,
         (array_agg(name ORDER BY source <> 'bhavcopy_cm', last_seen DESC, first_seen DESC, source, name)
            FILTER (WHERE name <> ''))[1] AS name,
         coalesce(min(first_seen) FILTER (WHERE source = 'bhavcopy_cm'), min(first_seen)) AS first_seen,
         coalesce(max(last_seen) FILTER (WHERE source = 'bhavcopy_cm'), max(last_seen)) AS last_seen
    FROM etl.observed_aliases
   GROUP BY instrument_id, exchange;

COMMENT ON VIEW market.instruments IS 'One row per exchange and instrument, with the names it was last seen with; docs/analysts.md shows how to join every table by instrument_id.';
COMMENT ON COLUMN market.instruments.instrument_id IS 'The one id: BSE:<scrip code>, NSE:<first ISIN>, or the symbol while none is known; not the exchange''s own number, which is bhavcopy_cm.exchange_instrument_id. Renames and new ISINs leave it. It changes if rows of earlier days show an earlier ISIN or scrip code, or if rows show that two ids are one instrument, or one is two.';
COMMENT ON COLUMN market.instruments.exchange IS 'Exchange.';
COMMENT ON COLUMN market.instruments.symbol IS 'Ticker symbol it was last seen under.';
COMMENT ON COLUMN market.instruments.series IS 'Series (NSE) or group (BSE) it was last seen in.';
COMMENT ON COLUMN market.instruments.scrip_code IS 'BSE: the scrip code; NSE: the number of its last line.';
COMMENT ON COLUMN market.instruments.isin IS 'ISIN it was last seen with; joins an instrument of one exchange to the other.';
COMMENT ON COLUMN market.instruments.name IS 'Name it was last seen with.';
COMMENT ON COLUMN market.instruments.first_seen IS 'First trading day with prices; for an instrument that never had any, the first day on which another table names it.';
COMMENT ON COLUMN market.instruments.last_seen IS 'Last trading day with prices; for an instrument that never had any, the last day on which another table names it.';

-- A name belongs to the first instrument seen with it from the beginning of time, and to each later one from the day
-- that one is first seen with it. Where an instrument had the name for some days only while another had it before and
-- after (usually a misprint), the other gets it back.
CREATE OR REPLACE VIEW market.instrument_aliases AS
  WITH ranked AS (
    SELECT s.*, rank() OVER (PARTITION BY exchange, symbol
                             ORDER BY precedence, CASE WHEN precedence = 0 THEN '' ELSE series END) AS position
      FROM etl.observed_aliases s
  ), owned AS (
    -- Grouped in each branch, because only there the planner has statistics about the number of names.
    SELECT exchange, 'series' AS kind, symbol AS alias, series, instrument_id,
           min(first_seen) AS first_seen, max(last_seen) AS last_seen,
           -- A record of NSE without ISIN was assigned by its symbol alone, so it is no evidence for the symbol.
           max(last_seen) FILTER (WHERE isin <> '' OR exchange = 'BSE') AS proven
      FROM etl.observed_aliases WHERE symbol <> '' AND series <> ''
     GROUP BY exchange, symbol, series, instrument_id
    UNION ALL
    SELECT exchange, 'symbol', symbol, '', instrument_id, min(first_seen), max(last_seen),
           max(last_seen) FILTER (WHERE isin <> '' OR exchange = 'BSE')
      FROM ranked WHERE symbol <> '' AND position = 1 GROUP BY exchange, symbol, instrument_id
    UNION ALL
    SELECT exchange, 'isin', isin, '', instrument_id, min(first_seen), max(last_seen), max(last_seen)
      FROM etl.observed_aliases WHERE isin <> '' AND precedence < 2 GROUP BY exchange, isin, instrument_id
    UNION ALL
    SELECT exchange, 'scrip_code', scrip_code::text, '', instrument_id, min(first_seen), max(last_seen), max(last_seen)
      FROM etl.observed_aliases WHERE scrip_code > 0 GROUP BY exchange, scrip_code, instrument_id
  ), used AS (
    SELECT owned.*, max(CASE WHEN proven IS NULL THEN NULL ELSE ARRAY[to_char(proven, 'YYYY-MM-DD'), instrument_id,
             to_char(first_seen, 'YYYY-MM-DD'), to_char(last_seen, 'YYYY-MM-DD')] END) OVER (
             PARTITION BY exchange, kind, alias, series ORDER BY first_seen, last_seen DESC, instrument_id
             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS longest
      FROM owned
  ), begun AS (
    SELECT exchange, kind, alias, series, spell.instrument_id, spell.first_seen, spell.last_seen, spell.since, spell.again
      FROM used CROSS JOIN LATERAL (
        SELECT instrument_id, first_seen, last_seen, first_seen AS since, false AS again
        UNION ALL
        SELECT longest[2], longest[3]::date, longest[4]::date, last_seen + 1, true WHERE longest[1]::date > last_seen
      ) AS spell
  )
  SELECT exchange, kind, alias, series, instrument_id, first_seen, last_seen,
         CASE WHEN row_number() OVER spells = 1 THEN '-infinity'::date ELSE since END AS valid_from,
         coalesce(lead(since) OVER spells, 'infinity'::date) AS valid_to
    FROM begun
  WINDOW spells AS (PARTITION BY exchange, kind, alias, series ORDER BY since, again DESC, instrument_id);

COMMENT ON VIEW market.instrument_aliases IS 'Every name of every instrument, and on which days a name means it: each name of a kind belongs to exactly one instrument on any day (valid_from <= day < valid_to).';
COMMENT ON COLUMN market.instrument_aliases.exchange IS 'Exchange.';
COMMENT ON COLUMN market.instrument_aliases.kind IS 'series (alias is the symbol, with its series), symbol (alone), isin or scrip_code.';
COMMENT ON COLUMN market.instrument_aliases.alias IS 'The name, as text.';
COMMENT ON COLUMN market.instrument_aliases.series IS 'Series or group, where the kind is series; else empty.';
COMMENT ON COLUMN market.instrument_aliases.instrument_id IS 'The instrument: market.instruments.instrument_id.';
COMMENT ON COLUMN market.instrument_aliases.first_seen IS 'First day the instrument was seen under this name.';
COMMENT ON COLUMN market.instrument_aliases.last_seen IS 'Last day the instrument was seen under this name.';
COMMENT ON COLUMN market.instrument_aliases.valid_from IS 'From this day on the name means this instrument; -infinity where no other used it before.';
COMMENT ON COLUMN market.instrument_aliases.valid_to IS 'Up to this day, excluded; infinity where no other instrument took the name over. A name that an instrument gets back has a second row.';

CREATE OR REPLACE VIEW market.series_aliases AS
  SELECT exchange, symbol, series, valid_from, valid_to, instrument_id, share_id FROM etl.alias_owners WHERE kind = 'series';

COMMENT ON VIEW market.series_aliases IS 'Which instrument a symbol and series mean on which days: the rows of the kind series of market.instrument_aliases, kept as a table, so that prices of whole markets join them quickly.';
COMMENT ON COLUMN market.series_aliases.exchange IS 'Exchange.';
COMMENT ON COLUMN market.series_aliases.symbol IS 'Ticker symbol.';
COMMENT ON COLUMN market.series_aliases.series IS 'Series (NSE) or group (BSE).';
COMMENT ON COLUMN market.series_aliases.valid_from IS 'From this day on; -infinity where no other instrument used them before.';
COMMENT ON COLUMN market.series_aliases.valid_to IS 'Up to this day, excluded; infinity where no other took them over.';
COMMENT ON COLUMN market.series_aliases.instrument_id IS 'The instrument: market.instruments.instrument_id.';
COMMENT ON COLUMN market.series_aliases.share_id IS 'The share whose events change the price of the line: the instrument itself, or of a second line (T0, BL) the instrument it is a line of.';

-- Few names mean another instrument later. A row of a name's day joins its period in two steps, so that the planner sees
-- that there is one at most and leaves both out where nobody selects the instrument, also where a condition is on the
-- exchange, symbol or series: it would replace the equation of that column, if that were of the column itself.
--   LEFT JOIN etl.later_periods() l ON l.exchange = coalesce(…, '') AND l.symbol = coalesce(…, '') AND l.series = coalesce(…, '')
--   LEFT JOIN market.series_aliases a ON a.exchange = … AND a.symbol = … AND a.series = …
--     AND a.valid_from = coalesce(l.starts[width_bucket(day, l.starts)], '-infinity')
CREATE OR REPLACE FUNCTION etl.later_periods() RETURNS TABLE (exchange text, symbol text, series text, starts date[])
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100 AS $$
  SELECT s.exchange, s.symbol, s.series, array_agg(s.valid_from ORDER BY s.valid_from) FROM market.series_aliases s
   WHERE s.valid_from > '-infinity' GROUP BY 1, 2, 3
$$;
COMMENT ON FUNCTION etl.later_periods() IS 'Of each symbol and series that means more than one instrument, the days from which it means another one.';

-- One instrument's rows of the view above. The view computes every name of every instrument before a condition on
-- instrument_id can choose among them; this looks only at the names that the instrument has had. OFFSET 0 keeps each
-- look apart, so that the name goes into the view as a condition. SET and ROWS keep the planner from guessing by the
-- whole view how many names there are: a few, so that a join goes through the indexes of what it joins.
CREATE OR REPLACE FUNCTION market.aliases_of(instrument_id text) RETURNS SETOF market.instrument_aliases
LANGUAGE sql STABLE ROWS 20 SET search_path = pg_catalog AS $$
  SELECT a.*
    FROM (SELECT DISTINCT o.exchange, n.kind, n.alias, n.series
            FROM etl.observed_aliases o
           CROSS JOIN LATERAL (VALUES ('series', o.symbol, o.series), ('symbol', o.symbol, ''), ('isin', o.isin, ''),
                                      ('scrip_code', o.scrip_code::text, '')) AS n (kind, alias, series)
           WHERE o.instrument_id = $1) AS had
   CROSS JOIN LATERAL (
     SELECT * FROM market.instrument_aliases v
      WHERE v.exchange = had.exchange AND v.kind = had.kind AND v.alias = had.alias AND v.series = had.series
        AND v.instrument_id = $1
     OFFSET 0) AS a
$$;
COMMENT ON FUNCTION market.aliases_of(text) IS 'The rows of market.instrument_aliases of one instrument, found through indexes: joined to a table by exchange, name and day it gives all days of a company, through renames, without reading the rest.';
