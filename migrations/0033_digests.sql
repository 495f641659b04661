ALTER TABLE "etl"."loads" ADD COLUMN "rows_digest" text;--> statement-breakpoint
ALTER TABLE "etl"."loads" ADD COLUMN "chain_digest" text;