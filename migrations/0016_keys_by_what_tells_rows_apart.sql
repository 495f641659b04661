-- By hand: key columns cannot be null.
UPDATE "market"."consolidated_pledge" SET "scrip_id" = '' WHERE "scrip_id" IS NULL;--> statement-breakpoint
UPDATE "market_history"."consolidated_pledge" SET "scrip_id" = '' WHERE "scrip_id" IS NULL;--> statement-breakpoint
UPDATE "market"."corporate_action_categories" SET "corporate_action_type" = '' WHERE "corporate_action_type" IS NULL;--> statement-breakpoint
UPDATE "market_history"."corporate_action_categories" SET "corporate_action_type" = '' WHERE "corporate_action_type" IS NULL;--> statement-breakpoint
UPDATE "market"."financial_ratio_facts" SET "unit_id" = '' WHERE "unit_id" IS NULL;--> statement-breakpoint
UPDATE "market_history"."financial_ratio_facts" SET "unit_id" = '' WHERE "unit_id" IS NULL;--> statement-breakpoint
ALTER TABLE "market"."consolidated_pledge" ALTER COLUMN "scrip_id" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "market_history"."consolidated_pledge" ALTER COLUMN "scrip_id" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "market"."corporate_action_categories" ALTER COLUMN "corporate_action_type" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "market_history"."corporate_action_categories" ALTER COLUMN "corporate_action_type" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "market"."financial_ratio_facts" ALTER COLUMN "unit_id" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "market_history"."financial_ratio_facts" ALTER COLUMN "unit_id" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "market"."corporate_actions" ADD COLUMN "announced_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "market_history"."corporate_actions" ADD COLUMN "announced_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "market"."series_changes" ADD COLUMN "symbol" text;--> statement-breakpoint
ALTER TABLE "market_history"."series_changes" ADD COLUMN "symbol" text;--> statement-breakpoint
ALTER TABLE "market"."consolidated_pledge" DROP CONSTRAINT "consolidated_pledge_pkey";
--> statement-breakpoint
ALTER TABLE "market"."consolidated_pledge" ADD CONSTRAINT "consolidated_pledge_pkey" PRIMARY KEY("exchange","scrip_code","scrip_id","trade_date");--> statement-breakpoint
ALTER TABLE "market_history"."consolidated_pledge" DROP CONSTRAINT "consolidated_pledge_history_pkey";
--> statement-breakpoint
ALTER TABLE "market_history"."consolidated_pledge" ADD CONSTRAINT "consolidated_pledge_history_pkey" PRIMARY KEY("exchange","scrip_code","scrip_id","trade_date","revision");--> statement-breakpoint
ALTER TABLE "market"."corporate_action_categories" DROP CONSTRAINT "corporate_action_categories_pkey";
--> statement-breakpoint
ALTER TABLE "market"."corporate_action_categories" ADD CONSTRAINT "corporate_action_categories_pkey" PRIMARY KEY("exchange","purpose_code","corporate_action_type");--> statement-breakpoint
ALTER TABLE "market_history"."corporate_action_categories" DROP CONSTRAINT "corporate_action_categories_history_pkey";
--> statement-breakpoint
ALTER TABLE "market_history"."corporate_action_categories" ADD CONSTRAINT "corporate_action_categories_history_pkey" PRIMARY KEY("exchange","purpose_code","corporate_action_type","revision");--> statement-breakpoint
ALTER TABLE "market"."financial_ratio_facts" DROP CONSTRAINT "financial_ratio_facts_pkey";
--> statement-breakpoint
ALTER TABLE "market"."financial_ratio_facts" ADD CONSTRAINT "financial_ratio_facts_pkey" PRIMARY KEY("exchange","symbol","nature_of_report","variant","as_of_date","period","fact_key","unit_id");--> statement-breakpoint
ALTER TABLE "market_history"."financial_ratio_facts" DROP CONSTRAINT "financial_ratio_facts_history_pkey";
--> statement-breakpoint
ALTER TABLE "market_history"."financial_ratio_facts" ADD CONSTRAINT "financial_ratio_facts_history_pkey" PRIMARY KEY("exchange","symbol","nature_of_report","variant","as_of_date","period","fact_key","unit_id","revision");--> statement-breakpoint
-- By hand: the symbol of rows that are there already, as new rows get it.
UPDATE "market"."series_changes" SET "symbol" = CASE
  WHEN scrip_id ~ '^.+\.[^.]*$' AND (upper(substring(scrip_id FROM '[^.]*$')) = upper(prev_series) OR scrip_id ~* '\.[A-Z0-9]{1,2}$')
  THEN substring(scrip_id FROM '^(.+)\.[^.]*$') ELSE scrip_id END;--> statement-breakpoint
UPDATE "market_history"."series_changes" SET "symbol" = CASE
  WHEN scrip_id ~ '^.+\.[^.]*$' AND (upper(substring(scrip_id FROM '[^.]*$')) = upper(prev_series) OR scrip_id ~* '\.[A-Z0-9]{1,2}$')
  THEN substring(scrip_id FROM '^(.+)\.[^.]*$') ELSE scrip_id END;--> statement-breakpoint
-- By hand: a revision has left the table if the next one has another key now.
UPDATE "market_history"."consolidated_pledge" h SET "withdrawn" = true
  FROM (SELECT exchange, scrip_code, trade_date, scrip_id, revision FROM "market"."consolidated_pledge"
        UNION ALL SELECT exchange, scrip_code, trade_date, scrip_id, revision FROM "market_history"."consolidated_pledge") n
 WHERE NOT h.withdrawn AND n.exchange = h.exchange AND n.scrip_code = h.scrip_code AND n.trade_date = h.trade_date
   AND n.revision = h.revision + 1 AND n.scrip_id <> h.scrip_id;--> statement-breakpoint
UPDATE "market_history"."corporate_action_categories" h SET "withdrawn" = true
  FROM (SELECT exchange, purpose_code, corporate_action_type, revision FROM "market"."corporate_action_categories"
        UNION ALL SELECT exchange, purpose_code, corporate_action_type, revision FROM "market_history"."corporate_action_categories") n
 WHERE NOT h.withdrawn AND n.exchange = h.exchange AND n.purpose_code = h.purpose_code
   AND n.revision = h.revision + 1 AND n.corporate_action_type <> h.corporate_action_type;--> statement-breakpoint
UPDATE "market_history"."financial_ratio_facts" h SET "withdrawn" = true
  FROM (SELECT exchange, symbol, nature_of_report, variant, as_of_date, period, fact_key, unit_id, revision FROM "market"."financial_ratio_facts"
        UNION ALL SELECT exchange, symbol, nature_of_report, variant, as_of_date, period, fact_key, unit_id, revision FROM "market_history"."financial_ratio_facts") n
 WHERE NOT h.withdrawn AND n.exchange = h.exchange AND n.symbol = h.symbol AND n.nature_of_report = h.nature_of_report AND n.variant = h.variant AND n.as_of_date = h.as_of_date AND n.period = h.period AND n.fact_key = h.fact_key
   AND n.revision = h.revision + 1 AND n.unit_id <> h.unit_id;
