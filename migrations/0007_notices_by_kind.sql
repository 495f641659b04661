-- By hand: rows of lists that do not tell the kind.
UPDATE "market"."corporate_action_notices" SET "told_kind" = '' WHERE "told_kind" IS NULL;--> statement-breakpoint
UPDATE "market_history"."corporate_action_notices" SET "told_kind" = '' WHERE "told_kind" IS NULL;--> statement-breakpoint
ALTER TABLE "market"."corporate_action_notices" ALTER COLUMN "told_kind" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "market_history"."corporate_action_notices" ALTER COLUMN "told_kind" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "market"."corporate_action_notices" DROP CONSTRAINT "corporate_action_notices_pkey";--> statement-breakpoint
ALTER TABLE "market"."corporate_action_notices" ADD CONSTRAINT "corporate_action_notices_pkey" PRIMARY KEY("exchange","symbol","ex_date","series","purpose","told_kind");--> statement-breakpoint
ALTER TABLE "market_history"."corporate_action_notices" DROP CONSTRAINT "corporate_action_notices_history_pkey";--> statement-breakpoint
ALTER TABLE "market_history"."corporate_action_notices" ADD CONSTRAINT "corporate_action_notices_history_pkey" PRIMARY KEY("exchange","symbol","ex_date","series","purpose","told_kind","revision");