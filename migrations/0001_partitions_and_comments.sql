-- What drizzle cannot say: partitions, functions, comments.
-- The comments of the schema market are not here: `eod migrate` writes them from the operation files.

-- Partitions live apart, so that `market` shows one table per data set and nothing else.
CREATE SCHEMA IF NOT EXISTS "market_partitions";
--> statement-breakpoint
ALTER TABLE "market"."bhavcopy_cm" RENAME TO "bhavcopy_cm_plain";
--> statement-breakpoint
ALTER TABLE "market"."bhavcopy_cm_plain" RENAME CONSTRAINT "bhavcopy_cm_pkey" TO "bhavcopy_cm_plain_pkey";
--> statement-breakpoint
CREATE TABLE "market"."bhavcopy_cm" (LIKE "market"."bhavcopy_cm_plain" INCLUDING DEFAULTS) PARTITION BY RANGE ("trade_date");
--> statement-breakpoint
DROP TABLE "market"."bhavcopy_cm_plain";
--> statement-breakpoint
-- Loads and day queries go by day, so the day comes early in the key: a session's entries lie side by
-- side. The second index serves a symbol's history. Measured: docs/performance.md.
ALTER TABLE "market"."bhavcopy_cm" ADD CONSTRAINT "bhavcopy_cm_pkey" PRIMARY KEY ("exchange", "trade_date", "symbol", "series");
--> statement-breakpoint
CREATE INDEX "bhavcopy_cm_symbol_idx" ON "market"."bhavcopy_cm" ("symbol", "trade_date");
--> statement-breakpoint
-- Makes the partition of one year. ATTACH instead of CREATE … PARTITION OF: it does not lock out
-- readers and writers of the other years.
CREATE OR REPLACE FUNCTION "etl"."ensure_year_partition"(p_table text, p_year integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  child text := format('%s_%s', p_table, p_year);
BEGIN
  IF to_regclass(format('market_partitions.%I', child)) IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('eod partition ' || child, 0));
  -- to_regclass may still remember that there was none before we waited for the lock; a query looks anew.
  IF EXISTS (SELECT FROM pg_class WHERE relname = child AND relnamespace = 'market_partitions'::regnamespace) THEN
    RETURN;
  END IF;
  EXECUTE format('CREATE TABLE market_partitions.%I (LIKE market.%I INCLUDING DEFAULTS INCLUDING COMMENTS)', child, p_table);
  EXECUTE format('ALTER TABLE market.%I ATTACH PARTITION market_partitions.%I FOR VALUES FROM (%L) TO (%L)',
    p_table, child, make_date(p_year, 1, 1), make_date(p_year + 1, 1, 1));
END
$$;
--> statement-breakpoint
COMMENT ON SCHEMA "etl" IS 'What the pipeline knows about its own work.';
--> statement-breakpoint
COMMENT ON SCHEMA "market" IS 'Market data, one table per data set.';
--> statement-breakpoint
COMMENT ON SCHEMA "market_partitions" IS 'Yearly partitions of the tables of market; query market instead.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."runs" IS 'One row a run: what was asked, by whom, its state and totals.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."id" IS 'Number of the run; what `eod run`, `resume` and `cancel` take.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."kind" IS 'backfill, nightly, import, replay or gap_fill.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."state" IS 'running; paused (stopped by hand, go on with `eod resume`); completed (every window loaded, empty or skipped for a reason); failed (a window failed or was blocked); cancelled.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."requested_by" IS 'Who asked: user and host, or the scheduler.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."request" IS 'What was asked, as JSON; never the access key.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."from_date" IS 'First day asked for.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."to_date" IS 'Last day asked for.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."tick" IS 'Schedule and time that started it; unique, so that two schedulers start one run. Null when a person did.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."deferred" IS 'Operations whose windows wait for the bhav copies of the run.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."error" IS 'Why the run as a whole stopped.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."requests" IS 'Calls made to the source.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."bytes" IS 'Bytes received. Unit: bytes.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."started_at" IS 'When the run was asked for.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."finished_at" IS 'When its last window ended; null while it is open.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."fetched" IS 'Records in the answers: the sum of inserted, updated, unchanged, stale, duplicate and rejected.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."inserted" IS 'Rows that were new.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."updated" IS 'Rows that really changed.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."unchanged" IS 'Rows that were the same already.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."stale" IS 'Records older (source_saved_at) than the stored row.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."duplicate" IS 'Records whose key came again in the same answer; the newest was kept.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."rejected" IS 'Records that did not pass; see etl.rejects.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."runs"."withdrawn" IS 'Rows the source lists no longer.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."windows" IS 'One row a request window of a run: one request''s worth of work, committed whole or not at all.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."id" IS 'Number of the window.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."run_id" IS 'The run it belongs to.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."operation" IS 'Operation of the source.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."exchange" IS 'Exchange asked.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."from_date" IS 'First day asked for.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."to_date" IS 'Last day asked for.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."instruments" IS 'Instruments asked for; empty means the whole exchange.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."params" IS 'Further request options; never the access key.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."part" IS 'Which of several questions of one day this is, e.g. eod/Standalone.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."narrowed" IS 'Narrowed by hand to a part of the data: does not count as coverage.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."state" IS 'pending, running, loaded, empty, skipped, blocked, failed or cancelled.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."attempts" IS 'How often it was started.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."requests" IS 'Calls made to the source.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."bytes" IS 'Bytes received. Unit: bytes.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."diagnostic" IS 'The source''s own line, where it answered with one.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."error" IS 'Why it failed, was blocked or skipped.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."warnings" IS 'Oddities that were not fatal, e.g. a wrong count.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."started_at" IS 'When it was first started.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."finished_at" IS 'When it ended.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."fetched" IS 'Records in the answers: the sum of inserted, updated, unchanged, stale, duplicate and rejected.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."inserted" IS 'Rows that were new.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."updated" IS 'Rows that really changed.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."unchanged" IS 'Rows that were the same already.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."stale" IS 'Records older (source_saved_at) than the stored row.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."duplicate" IS 'Records whose key came again in the same answer; the newest was kept.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."rejected" IS 'Records that did not pass; see etl.rejects.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."withdrawn" IS 'Rows the source lists no longer.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."coverage" IS 'What is known of each operation, exchange and session day; no row means never asked. Gaps are read from here.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."operation" IS 'Operation of the source.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."exchange" IS 'Exchange asked.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."day" IS 'Session day; the day of the call for operations without dates.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."instrument" IS 'Instrument, where the operation was asked per instrument; empty means the whole exchange.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."part" IS 'Which of several questions of one day, e.g. eod/Standalone.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."state" IS 'loaded, empty (exchange open, nothing listed), holiday, not_published (asked before publication), blocked or failed.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."records" IS 'Records of that day in the answer. Unit: records.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."diagnostic" IS 'The source''s own line, where it answered with one.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."run_id" IS 'The run that last asked.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."window_id" IS 'The window that last asked.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."coverage"."checked_at" IS 'When it was last asked.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."rejects" IS 'Every record that did not pass, as sent, with each of its problems.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."id" IS 'Number of the reject.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."run_id" IS 'The run that fetched it.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."window_id" IS 'The window that fetched it.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."operation" IS 'Operation of the source.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."exchange" IS 'Exchange asked.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."position" IS 'Place in the answer, from 0.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."record" IS 'The record as sent; NUL and broken Unicode are spelled out, oversized parts cut.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."problems" IS 'Each problem with the path of its field.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."rejected_at" IS 'When it was rejected.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."rejects"."resolved_at" IS 'When the record loaded after all; null while it is open.';
