-- One name for one thing. No column has another type or place; only consolidated_pledge gets one more.
ALTER TABLE "market"."top_gainers_losers" RENAME COLUMN "percent_change" TO "change_percent";--> statement-breakpoint
ALTER TABLE "market"."top_gainers_losers" RENAME COLUMN "turnover" TO "turnover_lakh";--> statement-breakpoint
ALTER TABLE "market"."total_trade_highlights" RENAME COLUMN "shares_volume" TO "shares_volume_crore";--> statement-breakpoint
ALTER TABLE "market"."total_trade_highlights" RENAME COLUMN "turnover_rs_crore" TO "turnover_crore";--> statement-breakpoint
ALTER TABLE "market"."consolidated_pledge" RENAME COLUMN "total_promoter_holding_per" TO "total_promoter_holding_percent";--> statement-breakpoint
ALTER TABLE "market"."consolidated_pledge" RENAME COLUMN "encumbered_last_quarter_pct_of_promoter_shares" TO "encumbered_last_quarter_of_promoter_shares_percent";--> statement-breakpoint
ALTER TABLE "market"."consolidated_pledge" RENAME COLUMN "encumbered_last_quarter_pct_of_total_shares" TO "encumbered_last_quarter_of_total_shares_percent";--> statement-breakpoint
ALTER TABLE "market"."consolidated_pledge" RENAME COLUMN "depository_pledged_pct" TO "depository_pledged_percent";--> statement-breakpoint
ALTER TABLE "market"."financial_ratios" RENAME COLUMN "market_cap" TO "market_cap_crore";--> statement-breakpoint
ALTER TABLE "market_history"."top_gainers_losers" RENAME COLUMN "percent_change" TO "change_percent";--> statement-breakpoint
ALTER TABLE "market_history"."top_gainers_losers" RENAME COLUMN "turnover" TO "turnover_lakh";--> statement-breakpoint
ALTER TABLE "market_history"."total_trade_highlights" RENAME COLUMN "shares_volume" TO "shares_volume_crore";--> statement-breakpoint
ALTER TABLE "market_history"."total_trade_highlights" RENAME COLUMN "turnover_rs_crore" TO "turnover_crore";--> statement-breakpoint
ALTER TABLE "market_history"."consolidated_pledge" RENAME COLUMN "total_promoter_holding_per" TO "total_promoter_holding_percent";--> statement-breakpoint
ALTER TABLE "market_history"."consolidated_pledge" RENAME COLUMN "encumbered_last_quarter_pct_of_promoter_shares" TO "encumbered_last_quarter_of_promoter_shares_percent";--> statement-breakpoint
ALTER TABLE "market_history"."consolidated_pledge" RENAME COLUMN "encumbered_last_quarter_pct_of_total_shares" TO "encumbered_last_quarter_of_total_shares_percent";--> statement-breakpoint
ALTER TABLE "market_history"."consolidated_pledge" RENAME COLUMN "depository_pledged_pct" TO "depository_pledged_percent";--> statement-breakpoint
ALTER TABLE "market_history"."financial_ratios" RENAME COLUMN "market_cap" TO "market_cap_crore";--> statement-breakpoint
ALTER TABLE "etl"."windows" RENAME COLUMN "filtered" TO "is_filtered";--> statement-breakpoint
ALTER TABLE "etl"."loads" RENAME COLUMN "filtered" TO "is_filtered";--> statement-breakpoint
ALTER TABLE "etl"."loads" RENAME COLUMN "names_changed" TO "has_new_names";--> statement-breakpoint
ALTER TABLE "etl"."answers" RENAME COLUMN "filtered" TO "is_filtered";--> statement-breakpoint
ALTER TABLE "etl"."answers" RENAME COLUMN "doubted" TO "is_doubted";--> statement-breakpoint
ALTER TABLE "etl"."answers" RENAME COLUMN "believed" TO "is_believed";--> statement-breakpoint
ALTER TABLE "etl"."rejected_records" RENAME COLUMN "stray" TO "is_stray";--> statement-breakpoint
ALTER TABLE "etl"."rejected_records" RENAME COLUMN "dated" TO "is_dated";--> statement-breakpoint
ALTER VIEW "etl"."rejects" RENAME COLUMN "stray" TO "is_stray";--> statement-breakpoint
-- By hand: a ticker symbol beside the id as sent, as circuit_breakers has one; rows that are there get what new ones get.
ALTER TABLE "market"."consolidated_pledge" ADD COLUMN "symbol" text;--> statement-breakpoint
ALTER TABLE "market_history"."consolidated_pledge" ADD COLUMN "symbol" text;--> statement-breakpoint
UPDATE "market"."consolidated_pledge" SET "symbol" = coalesce(substring(scrip_id FROM '^(.+)\.[A-Za-z0-9]{1,2}$'), scrip_id) WHERE "scrip_id" <> '';--> statement-breakpoint
UPDATE "market_history"."consolidated_pledge" SET "symbol" = coalesce(substring(scrip_id FROM '^(.+)\.[A-Za-z0-9]{1,2}$'), scrip_id) WHERE "scrip_id" <> '';--> statement-breakpoint
-- The views and functions are written again after the migrations, but cannot give a column another name. Views of users
-- that refer to ours stay as they are. Functions have to go first, and with them what our view says: it has its columns
-- without a row until then.
DO $$
DECLARE one record;
BEGIN
  FOR one IN
    SELECT renamed.* FROM (VALUES
      ('market.prices', 'open', 'open_price'),
      ('market.prices', 'high', 'high_price'),
      ('market.prices', 'low', 'low_price'),
      ('market.prices', 'close', 'close_price'),
      ('market.prices', 'previous_close', 'previous_close_price'),
      ('market.prices', 'adjusted_previous_close', 'adjusted_previous_close_price'),
      ('market.prices', 'quantity', 'traded_quantity'),
      ('market.prices', 'trades', 'trade_count'),
      ('market.prices_adjusted', 'open', 'open_price'),
      ('market.prices_adjusted', 'high', 'high_price'),
      ('market.prices_adjusted', 'low', 'low_price'),
      ('market.prices_adjusted', 'close', 'close_price'),
      ('market.prices_adjusted', 'quantity', 'traded_quantity'),
      ('market.prices_adjusted', 'unadjusted_close', 'unadjusted_close_price'),
      ('market.band_hits', 'close', 'close_price'),
      ('market.band_hits', 'next_close', 'next_close_price'),
      ('market.pledge_changes', 'pledged_shares', 'depository_pledged_shares'),
      ('market.pledge_changes', 'previous_pledged_shares', 'previous_depository_pledged_shares'),
      ('market.pledge_changes', 'pledged_shares_change', 'depository_pledged_shares_change'),
      ('market.pledge_changes', 'pledged_percent', 'depository_pledged_percent'),
      ('market.pledge_changes', 'pledged_percent_change', 'depository_pledged_percent_change'),
      ('market.pledge_changes', 'encumbered_percent', 'encumbered_last_quarter_of_promoter_shares_percent'),
      ('market.pledge_changes', 'encumbered_percent_change', 'encumbered_last_quarter_of_promoter_shares_percent_change'),
      ('market.pledge_changes', 'promoter_holding_percent', 'total_promoter_holding_percent'),
      ('market.financial_ratios_wide', 'latest', 'is_latest'),
      ('market.financial_ratios_wide', 'market_cap', 'market_cap_crore')) AS renamed (view, old, new)
      JOIN pg_attribute a ON a.attrelid = to_regclass(renamed.view) AND a.attname = renamed.old AND NOT a.attisdropped
  LOOP
    EXECUTE format('ALTER VIEW %s RENAME COLUMN %I TO %I', one.view, one.old, one.new);
  END LOOP;
  FOR one IN
    SELECT string_agg(format('NULL::%s AS %I', format_type(atttypid, atttypmod), attname), ', ' ORDER BY attnum) AS columns
      FROM pg_attribute WHERE attrelid = to_regclass('market.prices_adjusted') AND attnum > 0 AND NOT attisdropped
    HAVING count(*) > 0
  LOOP
    EXECUTE 'CREATE OR REPLACE VIEW market.prices_adjusted AS SELECT ' || one.columns || ' WHERE false';
  END LOOP;
  FOR one IN
    SELECT DISTINCT w.ev_class::regclass AS view, p.oid::regproc AS name
      FROM pg_proc p JOIN pg_depend d ON d.refobjid = p.oid AND d.refclassid = 'pg_proc'::regclass AND d.classid = 'pg_rewrite'::regclass
      JOIN pg_rewrite w ON w.oid = d.objid
     WHERE p.pronamespace = 'market'::regnamespace AND p.proname IN ('candles', 'universe_on', 'total_return_prices', 'adjusted_prices')
  LOOP
    RAISE EXCEPTION 'the view % uses the function %, whose columns get other names: drop the view, migrate, and create it again with the names of CHANGELOG.md', one.view, one.name;
  END LOOP;
END $$;
--> statement-breakpoint
DROP FUNCTION IF EXISTS market.candles(text, date, date);--> statement-breakpoint
DROP FUNCTION IF EXISTS market.universe_on(date, text);--> statement-breakpoint
DROP FUNCTION IF EXISTS market.total_return_prices(date);--> statement-breakpoint
DROP FUNCTION IF EXISTS market.adjusted_prices(date);
