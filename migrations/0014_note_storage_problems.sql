ALTER TABLE "etl"."workers" ADD COLUMN "cannot_store" text;--> statement-breakpoint
ALTER TABLE "etl"."workers" ADD COLUMN "cannot_store_since" timestamp with time zone;