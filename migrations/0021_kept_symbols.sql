-- The symbols that rows of old BSE files were given are kept with the file, so that it is read in the same way for ever.
-- For files that are there already, they are those under which the codes are stored on that day.
ALTER TABLE "etl"."answers" ADD COLUMN "symbols" jsonb;
--> statement-breakpoint
UPDATE "etl"."answers" a SET "symbols" = coalesce((
	SELECT jsonb_object_agg(code, symbol) FROM (
	  SELECT exchange_instrument_id::text AS code, min(symbol) AS symbol FROM "market"."bhavcopy_cm"
	   WHERE exchange = a.exchange AND trade_date = a.from_date AND exchange_instrument_id IS NOT NULL GROUP BY 1) stored
	 WHERE symbol <> code), '{}')
 WHERE a.params ? 'tickers';
--> statement-breakpoint
ALTER TABLE "etl"."answers" DROP COLUMN "loaded_at";
