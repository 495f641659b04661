-- Every answer gets its place in one order: the time of its call, and within a millisecond the order that answers had
-- until now, by question and body. Answers whose bodies were not kept get rows too.
CREATE TABLE "etl"."clock" (
	"last" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "clock_one_idx" ON "etl"."clock" USING btree ((true));--> statement-breakpoint
ALTER TABLE "etl"."responses" RENAME TO "answers";--> statement-breakpoint
ALTER SEQUENCE "etl"."responses_id_seq" RENAME TO "answers_id_seq";--> statement-breakpoint
ALTER INDEX "etl"."responses_pkey" RENAME TO "answers_pkey";--> statement-breakpoint
ALTER INDEX "etl"."responses_asked_idx" RENAME TO "answers_asked_idx";--> statement-breakpoint
ALTER INDEX "etl"."responses_hash_idx" RENAME TO "answers_hash_idx";--> statement-breakpoint
ALTER INDEX "etl"."responses_window_idx" RENAME TO "answers_window_idx";--> statement-breakpoint
ALTER TABLE "etl"."answers" RENAME CONSTRAINT "responses_hash_response_bodies_hash_fk" TO "answers_hash_response_bodies_hash_fk";--> statement-breakpoint
ALTER TABLE "etl"."answers" ALTER COLUMN "hash" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "etl"."answers" ALTER COLUMN "fetched_at" DROP DEFAULT;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD COLUMN "place" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "etl"."loads" ADD COLUMN "place" timestamp(6) with time zone;--> statement-breakpoint
ALTER TABLE "etl"."withdrawals" ADD COLUMN "place" timestamp(6) with time zone;--> statement-breakpoint
CREATE TEMP TABLE "load_answers" AS
	SELECT l.id AS load_id, a.id AS answer_id
	  FROM "etl"."loads" l
	  JOIN LATERAL (SELECT a.id FROM "etl"."answers" a
	    WHERE a.operation = l.operation AND a.exchange = l.exchange AND a.fetched_at = l.fetched_at AND l.hash IN (a.hash, '')
	      AND a.from_date <= l.from_date AND a.to_date >= l.to_date AND a.instruments = l.instruments
	      AND (l.hash = '' OR a.variant = l.variant AND a.filtered = l.filtered)
	    ORDER BY a.from_date, a.to_date, a.variant, a.filtered, a.hash, a.id LIMIT 1) a ON true
	 WHERE l.window_id <> 0;--> statement-breakpoint
INSERT INTO "etl"."answers" (run_id, window_id, operation, exchange, from_date, to_date, instruments, params, variant, filtered, called_on, fetched_at, loaded_at)
	SELECT DISTINCT ON (l.operation, l.exchange, l.fetched_at, l.from_date, l.to_date, l.instruments, l.variant, l.filtered, l.hash)
	       l.run_id, l.window_id, l.operation, l.exchange, l.from_date, l.to_date, l.instruments, coalesce(w.params, '{}'), l.variant, l.filtered,
	       (l.fetched_at AT TIME ZONE 'Asia/Kolkata')::date, l.fetched_at, l.committed_at
	  FROM "etl"."loads" l LEFT JOIN "etl"."windows" w ON w.id = l.window_id
	 WHERE l.window_id <> 0 AND NOT EXISTS (SELECT FROM "load_answers" k WHERE k.load_id = l.id)
	   -- A withdrawal that a person accepted is a load of its own, of one day of an answer.
	   AND NOT EXISTS (SELECT FROM "etl"."loads" o WHERE l.hash = '' AND o.id < l.id AND o.window_id = l.window_id AND o.fetched_at = l.fetched_at)
	 ORDER BY l.operation, l.exchange, l.fetched_at, l.from_date, l.to_date, l.instruments, l.variant, l.filtered, l.hash, l.id;--> statement-breakpoint
UPDATE "etl"."answers" a SET place = ranked.place
  FROM (SELECT id, date_trunc('milliseconds', fetched_at) + interval '1 microsecond' * (row_number() OVER (
          PARTITION BY date_trunc('milliseconds', fetched_at)
          ORDER BY fetched_at, operation, exchange, from_date, to_date, instruments, variant, filtered, hash, id) - 1) AS place
          FROM "etl"."answers") ranked
 WHERE ranked.id = a.id;--> statement-breakpoint
UPDATE "etl"."loads" l SET place = a.place FROM "load_answers" k JOIN "etl"."answers" a ON a.id = k.answer_id WHERE k.load_id = l.id;--> statement-breakpoint
UPDATE "etl"."loads" l SET place = coalesce(
	(SELECT min(a.place) FROM "etl"."answers" a WHERE a.operation = l.operation AND a.exchange = l.exchange AND a.fetched_at = l.fetched_at
	   AND a.from_date <= l.from_date AND a.to_date >= l.to_date AND a.instruments = l.instruments AND (l.hash = '' OR a.variant = l.variant AND a.filtered = l.filtered)),
	l.fetched_at)
 WHERE l.place IS NULL;--> statement-breakpoint
UPDATE "etl"."withdrawals" w SET place = coalesce(
	(SELECT l.place FROM "etl"."loads" l WHERE l.id = w.load_id AND l.fetched_at = w.fetched_at),
	(SELECT min(a.place) FROM "etl"."answers" a WHERE a.operation = w.operation AND a.exchange = w.exchange AND a.fetched_at = w.fetched_at
	   AND (w.day IS NULL OR w.day BETWEEN a.from_date AND a.to_date)),
	w.fetched_at);--> statement-breakpoint
UPDATE "etl"."rejects" r SET last_seen_at = a.place FROM "etl"."answers" a
 WHERE a.window_id = r.window_id AND a.fetched_at = r.last_seen_at AND a.place <> a.fetched_at;--> statement-breakpoint
INSERT INTO "etl"."clock" SELECT greatest(clock_timestamp(), max(place)) FROM "etl"."answers";--> statement-breakpoint
DROP TABLE "load_answers";--> statement-breakpoint
ALTER TABLE "etl"."answers" ALTER COLUMN "place" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "etl"."answers" ADD CONSTRAINT "answers_place_key" UNIQUE("place");--> statement-breakpoint
ALTER TABLE "etl"."loads" ALTER COLUMN "place" SET NOT NULL;--> statement-breakpoint
CREATE INDEX "loads_place_idx" ON "etl"."loads" USING btree ("place");--> statement-breakpoint
DROP INDEX "etl"."loads_fetched_idx";--> statement-breakpoint
ALTER TABLE "etl"."loads" DROP COLUMN "hash";--> statement-breakpoint
ALTER TABLE "etl"."withdrawals" ALTER COLUMN "place" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "etl"."withdrawals" DROP COLUMN "fetched_at";--> statement-breakpoint
ALTER TABLE "etl"."windows" RENAME COLUMN "response_id" TO "answer_id";--> statement-breakpoint
ALTER INDEX "etl"."windows_response_idx" RENAME TO "windows_answer_idx";
