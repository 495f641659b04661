DROP INDEX "etl"."answers_marked_idx";--> statement-breakpoint
DROP INDEX "etl"."rejects_stray_idx";