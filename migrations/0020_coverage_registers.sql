-- The state of a question follows from what its answers said of it: `etl.coverage` gets a column for each register, and the
-- columns that say the state are generated. The view of the gaps is written again after the migrations; until then it
-- has its columns without a row, so that views of users that refer to it stay.
DO $$
DECLARE columns text;
BEGIN
  SELECT string_agg(format('NULL::%s AS %I', format_type(atttypid, atttypmod), attname), ', ' ORDER BY attnum) INTO columns
    FROM pg_attribute WHERE attrelid = to_regclass('etl.completeness') AND attnum > 0 AND NOT attisdropped;
  IF columns IS NOT NULL THEN
    EXECUTE 'CREATE OR REPLACE VIEW etl.completeness AS SELECT ' || columns || ' WHERE false';
  END IF;
END $$;
--> statement-breakpoint
ALTER TABLE "etl"."coverage" ADD COLUMN "last_place" timestamp(6) with time zone,
  ADD COLUMN "last_said" text,
  ADD COLUMN "last_records" bigint DEFAULT 0 NOT NULL,
  ADD COLUMN "last_diagnostic" text,
  ADD COLUMN "loaded_place" timestamp(6) with time zone,
  ADD COLUMN "loaded_records" bigint,
  ADD COLUMN "doubted_place" timestamp(6) with time zone,
  ADD COLUMN "emptied_place" timestamp(6) with time zone,
  ADD COLUMN "refused_place" timestamp(6) with time zone;
--> statement-breakpoint
-- What is stored becomes what was said last, at the place of the answer that said it.
UPDATE "etl"."coverage" c SET last_place = known.place, last_said = CASE WHEN known.refused IS NULL THEN c.state ELSE 'empty' END,
    last_records = c.records, last_diagnostic = c.diagnostic, refused_place = known.refused,
    loaded_place = CASE WHEN c.state = 'loaded' THEN known.place END, loaded_records = CASE WHEN c.state = 'loaded' THEN c.records END
  FROM (SELECT o.ctid AS row, coalesce(l.place, o.checked_at) AS place,
          CASE WHEN o.state = 'failed' AND o.diagnostic = 'the answer has no rows of this day, but some are stored' THEN l.place END AS refused
          FROM "etl"."coverage" o
          LEFT JOIN (SELECT window_id, operation, exchange, max(place) AS place FROM "etl"."loads" WHERE window_id <> 0 GROUP BY 1, 2, 3) l
            USING (window_id, operation, exchange)) known
 WHERE c.ctid = known.row;
--> statement-breakpoint
ALTER TABLE "etl"."coverage" ALTER COLUMN "last_place" SET NOT NULL, ALTER COLUMN "last_said" SET NOT NULL;
--> statement-breakpoint
ALTER TABLE "etl"."coverage" DROP CONSTRAINT "coverage_state",
  drop column "state",
  drop column "records",
  drop column "diagnostic";
--> statement-breakpoint
ALTER TABLE "etl"."coverage" ADD COLUMN "state" text GENERATED ALWAYS AS (case when (loaded_place is not null and (doubted_place is null or loaded_place > doubted_place)
    and (emptied_place is null or loaded_place >= emptied_place)) then 'loaded' when (refused_place is not distinct from last_place and last_said in ('empty', 'not_published')) then 'failed' else last_said end) STORED NOT NULL,
  ADD COLUMN "records" bigint GENERATED ALWAYS AS (case when (loaded_place is not null and (doubted_place is null or loaded_place > doubted_place)
    and (emptied_place is null or loaded_place >= emptied_place)) then loaded_records else last_records end) STORED NOT NULL,
  ADD COLUMN "diagnostic" text GENERATED ALWAYS AS (case when (refused_place is not distinct from last_place and last_said in ('empty', 'not_published')) then 'the answer has no rows of this day, but some are stored' else last_diagnostic end) STORED,
  ADD CONSTRAINT "coverage_said" CHECK ("etl"."coverage"."last_said" in ('loaded', 'empty', 'holiday', 'not_published', 'blocked', 'failed'));
