ALTER TABLE "market"."financial_ratios" RENAME COLUMN "week52_high" TO "week52_high_price";--> statement-breakpoint
ALTER TABLE "market"."financial_ratios" RENAME COLUMN "week52_low" TO "week52_low_price";--> statement-breakpoint
ALTER TABLE "market_history"."financial_ratios" RENAME COLUMN "week52_high" TO "week52_high_price";--> statement-breakpoint
ALTER TABLE "market_history"."financial_ratios" RENAME COLUMN "week52_low" TO "week52_low_price";--> statement-breakpoint
-- By hand: the view is written again after the migrations, but that cannot give a column another name.
DO $$
DECLARE one record;
BEGIN
  FOR one IN
    SELECT attname AS old, attname || '_price' AS new FROM pg_attribute
     WHERE attrelid = to_regclass('market.financial_ratios_wide') AND attname IN ('week52_high', 'week52_low') AND NOT attisdropped
  LOOP
    EXECUTE format('ALTER VIEW market.financial_ratios_wide RENAME COLUMN %I TO %I', one.old, one.new);
  END LOOP;
END $$;
