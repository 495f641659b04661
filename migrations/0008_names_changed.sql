ALTER TABLE "etl"."loads" ADD COLUMN "names_changed" boolean DEFAULT true NOT NULL;--> statement-breakpoint
-- By hand: bodies are compressed already, so that Postgres tries in vain to compress them again.
ALTER TABLE "etl"."response_bodies" ALTER COLUMN "body" SET STORAGE EXTERNAL;
