ALTER TABLE "etl"."windows" ADD COLUMN "response_id" bigint;--> statement-breakpoint
CREATE INDEX "windows_response_idx" ON "etl"."windows" USING btree ("response_id") WHERE "etl"."windows"."response_id" is not null;
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."response_id" IS 'The kept answer a replay reads, in etl.responses.';
