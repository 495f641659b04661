-- The most rows that a day ever had are kept by the place of the answer since which they count. Of older answers they are
-- worked out from what was withdrawn; '-infinity' stands for a place that is not known.
ALTER TABLE "etl"."day_rows" ADD COLUMN "place" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "etl"."day_rows" DROP CONSTRAINT "day_rows_pkey";--> statement-breakpoint
CREATE TEMP TABLE "taken" AS
	SELECT w.table_name, w.exchange, coalesce(w.day, '0001-01-01') AS day, w.place, w.state = 'accepted' AS accepted,
	       CASE w.state WHEN 'accepted' THEN w.rows_left ELSE w.most END AS most
	  FROM "etl"."withdrawals" w
	 WHERE w.state IN ('withdrawn', 'accepted') AND EXISTS (SELECT FROM "etl"."loads" l WHERE l.place = w.place);--> statement-breakpoint
UPDATE "etl"."day_rows" d SET place = coalesce(
	(SELECT max(t.place) FROM "taken" t WHERE t.table_name = d.table_name AND t.exchange = d.exchange AND t.day = d.day),
	'-infinity');--> statement-breakpoint
INSERT INTO "etl"."day_rows" (table_name, exchange, day, place, most)
	SELECT t.table_name, t.exchange, t.day, t.place, max(e.most)
	  FROM (SELECT DISTINCT table_name, exchange, day, place FROM "taken") t
	  JOIN "etl"."day_rows" d ON d.table_name = t.table_name AND d.exchange = t.exchange AND d.day = t.day AND t.place < d.place
	  JOIN "taken" e ON e.table_name = t.table_name AND e.exchange = t.exchange AND e.day = t.day AND e.place <= t.place
	   AND e.place >= coalesce((SELECT max(a.place) FROM "taken" a WHERE a.accepted AND a.table_name = t.table_name
	     AND a.exchange = t.exchange AND a.day = t.day AND a.place <= t.place), '-infinity')
	 GROUP BY t.table_name, t.exchange, t.day, t.place;--> statement-breakpoint
DROP TABLE "taken";--> statement-breakpoint
ALTER TABLE "etl"."day_rows" ALTER COLUMN "place" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "etl"."day_rows" ADD CONSTRAINT "day_rows_pkey" PRIMARY KEY("table_name","exchange","day","place");
