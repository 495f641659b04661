-- Functions. This file is applied by `eod migrate` whenever it changes, so every statement must be safe to repeat.
-- A function whose parameters change has to be dropped here first.

-- Creates the partition of one year. ATTACH instead of CREATE … PARTITION OF, because ATTACH does not lock out
-- readers and writers of the other years.
CREATE OR REPLACE FUNCTION etl.ensure_year_partition(p_table text, p_year integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  child text := format('%s_%s', p_table, p_year);
BEGIN
  IF to_regclass(format('market_partitions.%I', child)) IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('eod partition ' || child, 0));
  -- Asked again by a query, because to_regclass may still answer from before the wait for the lock.
  IF EXISTS (SELECT FROM pg_class WHERE relname = child AND relnamespace = 'market_partitions'::regnamespace) THEN
    RETURN;
  END IF;
  EXECUTE format('CREATE TABLE market_partitions.%I (LIKE market.%I INCLUDING DEFAULTS INCLUDING COMMENTS)', child, p_table);
  EXECUTE format('ALTER TABLE market.%I ATTACH PARTITION market_partitions.%I FOR VALUES FROM (%L) TO (%L)',
    p_table, child, make_date(p_year, 1, 1), make_date(p_year + 1, 1, 1));
END
$$;

-- Takes a window on, if its run goes on, the key may be used and the hour's budget has a call left;
-- all in one transaction, so that what is counted and what is asked cannot drift apart.
-- Answers {"outcome": "gone" | "refused" | "probing" | "spent" | "claimed", …}.
CREATE OR REPLACE FUNCTION etl.claim_window(
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
