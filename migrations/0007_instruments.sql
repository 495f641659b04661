CREATE TABLE "etl"."instrument_sightings" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"exchange" text NOT NULL,
	"source" text NOT NULL,
	"symbol" text NOT NULL,
	"series" text NOT NULL,
	"isin" text NOT NULL,
	"scrip_code" bigint NOT NULL,
	"name" text NOT NULL,
	"link" text NOT NULL,
	"first_seen" date NOT NULL,
	"last_seen" date NOT NULL,
	"instrument_id" text,
	"standing" smallint DEFAULT 0 NOT NULL,
	CONSTRAINT "instrument_sightings_key" UNIQUE("exchange","symbol","series","isin","scrip_code","name","link","source")
);
--> statement-breakpoint
CREATE INDEX "instrument_sightings_isin_idx" ON "etl"."instrument_sightings" USING btree ("exchange","isin") WHERE "etl"."instrument_sightings"."isin" <> '';--> statement-breakpoint
CREATE INDEX "instrument_sightings_scrip_code_idx" ON "etl"."instrument_sightings" USING btree ("exchange","scrip_code") WHERE "etl"."instrument_sightings"."scrip_code" > 0;--> statement-breakpoint
CREATE INDEX "instrument_sightings_instrument_idx" ON "etl"."instrument_sightings" USING btree ("instrument_id");
--> statement-breakpoint
-- Every night moves last_seen of every line, all in one transaction: leave room for that beside each row.
ALTER TABLE "etl"."instrument_sightings" SET (fillfactor = 45);
--> statement-breakpoint
COMMENT ON TABLE "etl"."instrument_sightings" IS 'What instruments were called, by which table, from when to when: what market.instruments and market.instrument_aliases are made of.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."id" IS 'Number of the sighting.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."exchange" IS 'Exchange.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."source" IS 'Table of the schema market whose rows say so.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."symbol" IS 'Ticker symbol; empty where the table has none.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."series" IS 'Series or group; empty where the table has none.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."isin" IS 'ISIN; empty where the table has none.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."scrip_code" IS 'Number on the exchange (BSE: the scrip code); 0 where the table has none.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."name" IS 'Name, its first 200 characters; empty where the table has none.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."link" IS 'Sightings of one link are of one instrument (two sides of a series change); else empty.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."first_seen" IS 'First day with such a row.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."last_seen" IS 'Last day with such a row.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."instrument_id" IS 'Whom it is of: market.instruments.instrument_id.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."instrument_sightings"."standing" IS '0: the share or fund a bare symbol means; 1: another security of that symbol, e.g. a bond; 2: a second line of a share (T0, BL).';
--> statement-breakpoint
-- The bhav copy speaks first, then whoever saw it last; what one table does not say, another may.
CREATE VIEW market.instruments AS
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
    FROM etl.instrument_sightings
   GROUP BY instrument_id, exchange;
--> statement-breakpoint
COMMENT ON VIEW market.instruments IS 'One row per exchange and instrument, with what it was last called; docs/instruments.md tells how to join every table by instrument_id.';
--> statement-breakpoint
COMMENT ON COLUMN market.instruments.instrument_id IS 'The one id: BSE:<scrip code>, NSE:<first ISIN>; not the number the bhav copy calls instrument_id.';
--> statement-breakpoint
COMMENT ON COLUMN market.instruments.exchange IS 'Exchange.';
--> statement-breakpoint
COMMENT ON COLUMN market.instruments.symbol IS 'Ticker symbol it was last seen under.';
--> statement-breakpoint
COMMENT ON COLUMN market.instruments.series IS 'Series (NSE) or group (BSE) it was last seen in.';
--> statement-breakpoint
COMMENT ON COLUMN market.instruments.scrip_code IS 'BSE: the scrip code; NSE: the number of its last line.';
--> statement-breakpoint
COMMENT ON COLUMN market.instruments.isin IS 'ISIN it was last seen with; joins an instrument of one exchange to the other.';
--> statement-breakpoint
COMMENT ON COLUMN market.instruments.name IS 'Name it was last seen with.';
--> statement-breakpoint
COMMENT ON COLUMN market.instruments.first_seen IS 'First session in the bhav copy; where it never was in one, the first day another table names it.';
--> statement-breakpoint
COMMENT ON COLUMN market.instruments.last_seen IS 'Last session in the bhav copy; where it never was in one, the last day another table names it.';
--> statement-breakpoint
-- A name is its first user's from ever, each later user's from the day that one is first seen with it. Where
-- somebody used it for some days only while another did before and after (a misprint, as a rule), the other
-- has it again.
CREATE VIEW market.instrument_aliases AS
  WITH ranked AS (
    SELECT s.*, rank() OVER (PARTITION BY exchange, symbol
                             ORDER BY standing, CASE WHEN standing = 0 THEN '' ELSE series END) AS place
      FROM etl.instrument_sightings s
  ), owned AS (
    -- Grouped branch by branch: there the planner knows how many names to expect.
    SELECT exchange, 'series' AS kind, symbol AS alias, series, instrument_id,
           min(first_seen) AS first_seen, max(last_seen) AS last_seen,
           -- Without ISIN a record of NSE is given to whom the symbol belonged when such were first seen: no proof.
           max(last_seen) FILTER (WHERE isin <> '' OR exchange = 'BSE') AS proven
      FROM etl.instrument_sightings WHERE symbol <> '' AND series <> ''
     GROUP BY exchange, symbol, series, instrument_id
    UNION ALL
    SELECT exchange, 'symbol', symbol, '', instrument_id, min(first_seen), max(last_seen),
           max(last_seen) FILTER (WHERE isin <> '' OR exchange = 'BSE')
      FROM ranked WHERE symbol <> '' AND place = 1 GROUP BY exchange, symbol, instrument_id
    UNION ALL
    SELECT exchange, 'isin', isin, '', instrument_id, min(first_seen), max(last_seen), max(last_seen)
      FROM etl.instrument_sightings WHERE isin <> '' AND standing < 2 GROUP BY exchange, isin, instrument_id
    UNION ALL
    SELECT exchange, 'scrip_code', scrip_code::text, '', instrument_id, min(first_seen), max(last_seen), max(last_seen)
      FROM etl.instrument_sightings WHERE scrip_code > 0 GROUP BY exchange, scrip_code, instrument_id
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
--> statement-breakpoint
COMMENT ON VIEW market.instrument_aliases IS 'Every name an instrument went by, and whose a name is on a day: each name of a kind belongs to exactly one instrument on any day (valid_from <= day < valid_to).';
--> statement-breakpoint
COMMENT ON COLUMN market.instrument_aliases.exchange IS 'Exchange.';
--> statement-breakpoint
COMMENT ON COLUMN market.instrument_aliases.kind IS 'series (alias is the symbol, with its series), symbol (alone), isin or scrip_code.';
--> statement-breakpoint
COMMENT ON COLUMN market.instrument_aliases.alias IS 'The name, as text.';
--> statement-breakpoint
COMMENT ON COLUMN market.instrument_aliases.series IS 'Series or group, where the kind is series; else empty.';
--> statement-breakpoint
COMMENT ON COLUMN market.instrument_aliases.instrument_id IS 'Whose name it is: market.instruments.instrument_id.';
--> statement-breakpoint
COMMENT ON COLUMN market.instrument_aliases.first_seen IS 'First day the instrument was seen under this name.';
--> statement-breakpoint
COMMENT ON COLUMN market.instrument_aliases.last_seen IS 'Last day the instrument was seen under this name.';
--> statement-breakpoint
COMMENT ON COLUMN market.instrument_aliases.valid_from IS 'From this day on the name means this instrument; -infinity where nobody used it before.';
--> statement-breakpoint
COMMENT ON COLUMN market.instrument_aliases.valid_to IS 'Until before this day; infinity where nobody took it over. A name taken back has a second line.';
