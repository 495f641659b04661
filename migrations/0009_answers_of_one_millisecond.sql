ALTER TABLE "etl"."loads" ADD COLUMN "hash" text DEFAULT '' NOT NULL;--> statement-breakpoint
-- By hand: loads of answers that are kept, and loads of kept answers.
UPDATE "etl"."loads" AS l SET "hash" = r."hash" FROM "etl"."responses" AS r WHERE r."window_id" = l."window_id" AND r."fetched_at" = l."fetched_at";--> statement-breakpoint
UPDATE "etl"."loads" AS l SET "hash" = r."hash" FROM "etl"."windows" AS w, "etl"."responses" AS r WHERE w."id" = l."window_id" AND r."id" = w."response_id" AND r."fetched_at" = l."fetched_at";
