DROP INDEX "etl"."windows_open_idx";--> statement-breakpoint
CREATE INDEX "windows_open_idx" ON "etl"."windows" USING btree ("run_id","id") WHERE "etl"."windows"."state" in ('pending', 'running');