ALTER TABLE "market"."corporate_events" ADD COLUMN "listed_by" text;--> statement-breakpoint
ALTER TABLE "market"."corporate_events" ADD COLUMN "is_special" boolean;--> statement-breakpoint
ALTER TABLE "market"."corporate_events" ADD COLUMN "is_reinvested" boolean;--> statement-breakpoint
ALTER TABLE "market_history"."corporate_events" ADD COLUMN "listed_by" text;--> statement-breakpoint
ALTER TABLE "market_history"."corporate_events" ADD COLUMN "is_special" boolean;--> statement-breakpoint
ALTER TABLE "market_history"."corporate_events" ADD COLUMN "is_reinvested" boolean;--> statement-breakpoint
-- By hand: until events are worked out again, which the next run does. So far special dividends were known by their reason.
UPDATE "market"."corporate_events" SET "is_reinvested" = "ratio_new" IS NULL AND "amount" IS NOT NULL
  AND ("status" = 'applied' OR "status_reason" LIKE '%; total returns reinvest it');
