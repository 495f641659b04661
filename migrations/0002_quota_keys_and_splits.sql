CREATE TABLE "etl"."access_keys" (
	"key_hash" text PRIMARY KEY NOT NULL,
	"state" text NOT NULL,
	"diagnostic" text,
	"last_good_at" timestamp with time zone,
	"probing_until" timestamp with time zone,
	"refused_at" timestamp with time zone,
	CONSTRAINT "access_keys_state" CHECK ("etl"."access_keys"."state" in ('unknown', 'good', 'refused'))
);
--> statement-breakpoint
CREATE TABLE "etl"."call_budget" (
	"key_hash" text NOT NULL,
	"hour" timestamp with time zone NOT NULL,
	"calls" integer NOT NULL,
	"refused_at" timestamp with time zone,
	"diagnostic" text,
	CONSTRAINT "call_budget_pkey" PRIMARY KEY("key_hash","hour")
);
--> statement-breakpoint
CREATE TABLE "etl"."range_limits" (
	"key_hash" text NOT NULL,
	"operation" text NOT NULL,
	"days" integer NOT NULL,
	"learned_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "range_limits_pkey" PRIMARY KEY("key_hash","operation")
);
--> statement-breakpoint
ALTER TABLE "etl"."windows" DROP CONSTRAINT "windows_state";--> statement-breakpoint
ALTER TABLE "etl"."windows" ADD COLUMN "parent_id" bigint;--> statement-breakpoint
ALTER TABLE "etl"."windows" ADD CONSTRAINT "windows_state" CHECK ("etl"."windows"."state" in ('pending', 'running', 'loaded', 'empty', 'skipped', 'blocked', 'failed', 'cancelled', 'split'));--> statement-breakpoint
-- Takes a window on, if its run goes on, the key may be used and the hour's budget has a call left;
-- all in one transaction, so that what is counted and what is asked cannot drift apart.
-- Answers {"outcome": "gone" | "refused" | "probing" | "spent" | "claimed", …}.
CREATE OR REPLACE FUNCTION "etl"."claim_window"(
  p_window bigint, p_key text, p_now timestamptz, p_hour timestamptz, p_limit integer,
  p_backfill_limit integer, p_probe_until timestamptz) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  claimed record;
  known record;
  allowed integer;
  probe boolean := false;
BEGIN
  SELECT w.*, r.kind AS run_kind INTO claimed
    FROM etl.windows w JOIN etl.runs r ON r.id = w.run_id
   WHERE w.id = p_window AND w.state IN ('pending', 'running') AND r.state = 'running'
     FOR UPDATE OF w;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'gone');
  END IF;

  -- A key nobody has used for a while is tried by one call before the others follow.
  INSERT INTO etl.access_keys (key_hash, state) VALUES (p_key, 'unknown') ON CONFLICT DO NOTHING;
  SELECT * INTO known FROM etl.access_keys WHERE key_hash = p_key;
  IF known.state = 'refused' AND known.refused_at > p_now - interval '12 hours' THEN
    RETURN jsonb_build_object('outcome', 'refused', 'diagnostic', known.diagnostic);
  END IF;
  IF known.state <> 'good' OR known.last_good_at < p_now - interval '10 minutes' THEN
    UPDATE etl.access_keys SET probing_until = p_probe_until
     WHERE key_hash = p_key AND (probing_until IS NULL OR probing_until <= p_now);
    IF NOT FOUND THEN
      RETURN jsonb_build_object('outcome', 'probing');
    END IF;
    probe := true;
  END IF;

  allowed := CASE WHEN claimed.run_kind = 'nightly' THEN p_limit ELSE p_backfill_limit END;
  IF allowed > 0 THEN
    INSERT INTO etl.call_budget AS b (key_hash, hour, calls) VALUES (p_key, p_hour, 1)
      ON CONFLICT (key_hash, hour) DO UPDATE SET calls = b.calls + 1
      WHERE b.calls < allowed AND b.refused_at IS NULL;
  END IF;
  IF allowed <= 0 OR NOT FOUND THEN
    IF probe THEN
      UPDATE etl.access_keys SET probing_until = NULL WHERE key_hash = p_key;
    END IF;
    RETURN jsonb_build_object('outcome', 'spent');
  END IF;

  UPDATE etl.windows
     SET state = 'running', attempts = attempts + 1, requests = requests + 1,
         started_at = coalesce(started_at, clock_timestamp())
   WHERE id = p_window
  RETURNING started_at, attempts INTO claimed.started_at, claimed.attempts;
  RETURN jsonb_build_object('outcome', 'claimed', 'probe', probe, 'window', jsonb_build_object(
    'id', claimed.id, 'runId', claimed.run_id, 'runKind', claimed.run_kind,
    'operation', claimed.operation, 'exchange', claimed.exchange,
    'from', claimed.from_date, 'to', claimed.to_date, 'instruments', to_jsonb(claimed.instruments),
    'params', claimed.params, 'part', claimed.part, 'narrowed', claimed.narrowed,
    'attempts', claimed.attempts,
    'ageMs', round(extract(epoch FROM clock_timestamp() - claimed.started_at) * 1000)));
END
$$;
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."parent_id" IS 'The window this one was split from, because the source refused its range or the answer was too large.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."windows"."state" IS 'pending, running, loaded, empty, skipped, blocked, failed or cancelled; split: replaced by the windows that name it as parent, and counted there.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."call_budget" IS 'Calls made with a key in a clock hour: one budget for all workers.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."call_budget"."key_hash" IS 'Hash of the access key; never the key.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."call_budget"."hour" IS 'Start of the clock hour (of EOD_TIMEZONE), when the source counts anew.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."call_budget"."calls" IS 'Calls granted in this hour. Unit: calls.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."call_budget"."refused_at" IS 'When the source said that the hour is spent, whatever we counted: somebody else may use the key.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."call_budget"."diagnostic" IS 'The line with which it said so.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."access_keys" IS 'What is known of each access key, by hash.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."access_keys"."key_hash" IS 'Hash of the access key; never the key.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."access_keys"."state" IS 'unknown, good or refused.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."access_keys"."diagnostic" IS 'The line with which the source refused it.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."access_keys"."last_good_at" IS 'When the source last accepted it.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."access_keys"."probing_until" IS 'Until when one worker tries it while the others wait.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."access_keys"."refused_at" IS 'When the source refused it.';
--> statement-breakpoint
COMMENT ON TABLE "etl"."range_limits" IS 'The longest range the source allowed, learned from its refusals.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."range_limits"."key_hash" IS 'Hash of the access key; never the key.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."range_limits"."operation" IS 'Operation of the source.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."range_limits"."days" IS 'Days a request may span. Unit: days.';
--> statement-breakpoint
COMMENT ON COLUMN "etl"."range_limits"."learned_at" IS 'When the source said so.';
