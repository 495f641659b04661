-- What an answer said of its questions and did with rows is kept with it, and whether it is believed.
DROP INDEX "etl"."windows_suspicious_idx";--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "said" text;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "records" integer;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "diagnostic" text;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "questions" jsonb;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "doubted" boolean;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "emptied_days" date[];--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "held_back_days" date[];--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "believed" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "etl"."rejects" ADD COLUMN "stray" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "etl"."windows" ADD COLUMN "unsettled" text;--> statement-breakpoint
CREATE INDEX "windows_unsettled_idx" ON "etl"."windows" USING btree ("operation","exchange","from_date") WHERE "etl"."windows"."unsettled" is not null;--> statement-breakpoint
-- As it was asked until now: an answer that was loaded and had records, or whose days it left empty.
UPDATE "etl"."answers" a SET believed = true
  FROM "etl"."loads" l
 WHERE l.place = a.place AND l.window_id <> 0 AND (l.fetched > 0 OR (
	SELECT bool_and(c.state = 'empty') FROM "etl"."coverage" c
	 WHERE c.operation = l.operation AND c.exchange = l.exchange AND c.day BETWEEN l.from_date AND l.to_date AND c.window_id = l.window_id));--> statement-breakpoint
-- Which of the records of an answer were not asked for was not noted: all that are open of such an answer count.
UPDATE "etl"."rejects" r SET stray = true
  FROM "etl"."windows" w
 WHERE w.id = r.window_id AND r.resolved_at IS NULL AND w.suspicious LIKE '%of a day, quarter or exchange that was not asked for%';--> statement-breakpoint
UPDATE "etl"."windows" w SET unsettled = w.suspicious
 WHERE w.suspicious IS NOT NULL AND w.suspicious NOT LIKE '%of a day, quarter or exchange that was not asked for%'
   AND NOT EXISTS (SELECT FROM "etl"."withdrawals" d WHERE d.window_id = w.id AND d.state <> 'withdrawn');
