-- Functions. This file is applied by `eod migrate` whenever it changes, so every statement must be safe to repeat.
-- A function whose parameters change has to be dropped here first.

-- Creates the partition of one year. ATTACH instead of CREATE … PARTITION OF, because ATTACH does not lock out
-- readers and writers of the other years. It runs with the rights of its owner, so that a role that may only read and
-- write rows can load a year of which nothing is stored yet; hence only a role that is granted it may call it.
CREATE OR REPLACE FUNCTION etl.ensure_year_partition(p_table text, p_year integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  child text := format('%s_%s', p_table, p_year);
BEGIN
  IF to_regclass(format('market_partitions.%I', child)) IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('eod partition ' || child, 0));
  -- Checked again by a query, because to_regclass may return what was true before the wait for the lock.
  IF EXISTS (SELECT FROM pg_class WHERE relname = child AND relnamespace = 'market_partitions'::regnamespace) THEN
    RETURN;
  END IF;
  EXECUTE format('CREATE TABLE market_partitions.%I (LIKE market.%I INCLUDING DEFAULTS INCLUDING COMMENTS)', child, p_table);
  EXECUTE format('ALTER TABLE market.%I ATTACH PARTITION market_partitions.%I FOR VALUES FROM (%L) TO (%L)',
    p_table, child, make_date(p_year, 1, 1), make_date(p_year + 1, 1, 1));
END
$$;
REVOKE EXECUTE ON FUNCTION etl.ensure_year_partition(text, integer) FROM PUBLIC;

-- Queries need statistics at once: autovacuum comes up to a minute after a table was filled first, until when a join of
-- views may take a thousand times as long, and never to partitioned tables, whose statistics joins over years need. This
-- analyzes one table that was never analyzed, or of whose rows more than a tenth have changed since, and returns its
-- name; null if there is none, or if another session is at it. Of a table without partitions the server counts changes,
-- which another session reports up to a second late: so its growth counts as well. With the rights of its owner, as only
-- owners may. Tables that others have locked are left alone. Before Postgres 18, partitions are analyzed with theirs.
CREATE OR REPLACE FUNCTION etl.analyze_tables(p_but_not text[] DEFAULT '{}') RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  due text;
  columns text;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('eod:analyze', 0)) THEN
    RETURN NULL;
  END IF;
  -- The size of a table that is locked would be waited for.
  WITH unlocked AS MATERIALIZED (
    SELECT c.oid, c.relname, c.relnamespace, c.relkind, c.reltuples, c.relpages FROM pg_class c
     WHERE c.oid NOT IN (SELECT l.relation FROM pg_locks l WHERE l.mode = 'AccessExclusiveLock' AND l.relation IS NOT NULL))
  SELECT t.name INTO due
    FROM (SELECT format('%I.%I', n.nspname, c.relname) AS name, c.reltuples::float8 AS known,
                 sum(greatest(pg_stat_get_live_tuples(i.inhrelid), p.reltuples, 0)) AS live, sum(pg_relation_size(i.inhrelid)) AS bytes
            FROM unlocked c
            JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname IN ('market', 'market_history')
            JOIN pg_inherits i ON i.inhparent = c.oid
            JOIN unlocked p ON p.oid = i.inhrelid
           WHERE c.relkind = 'p' GROUP BY 1, 2
          UNION ALL
          SELECT format('%I.%I', n.nspname, c.relname),
                 CASE WHEN coalesce(pg_stat_get_last_analyze_time(c.oid), pg_stat_get_last_autoanalyze_time(c.oid)) IS NULL THEN -1
                   ELSE c.reltuples END,
                 c.reltuples + greatest(pg_stat_get_mod_since_analyze(c.oid),
                   c.reltuples * (pg_relation_size(c.oid) / current_setting('block_size')::float8 / nullif(c.relpages, 0) - 1)),
                 pg_relation_size(c.oid)
            FROM unlocked c
            JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname IN ('market', 'market_history', 'market_partitions', 'etl')
           WHERE c.relkind = 'r') AS t
   WHERE t.bytes > 0 AND (t.known < 0 OR abs(t.live - t.known) > 50 + t.known / 10) AND t.name <> ALL (p_but_not)
   ORDER BY t.name LIMIT 1;
  IF due IS NOT NULL THEN
    -- Of a partition its indexed columns, by which it is joined: all of them take six times as long, and autovacuum comes.
    SELECT format('(%s)', string_agg(format('%I', a.attname), ', ')) INTO columns
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.oid = due::regclass AND c.relispartition
       AND a.attnum = ANY (SELECT unnest(i.indkey) FROM pg_index i WHERE i.indrelid = c.oid) HAVING count(*) > 0;
    EXECUTE concat('ANALYZE (SKIP_LOCKED) ', CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'ONLY ' END, due, columns);
  END IF;
  RETURN due;
END
$$;
REVOKE EXECUTE ON FUNCTION etl.analyze_tables(text[]) FROM PUBLIC;

-- States: loads are numbered in the order of their commits (etl.loads.state), so that a number names what was stored.
CREATE OR REPLACE FUNCTION market.state() RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT coalesce(max(state), 0) FROM etl.loads $$;
COMMENT ON FUNCTION market.state() IS 'The number of the state that this query sees. Kept with a report, it identifies the data of the report: market_history.<table>_at(number).';

CREATE OR REPLACE FUNCTION market.state(ts timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT state FROM etl.loads WHERE committed_at <= ts ORDER BY committed_at DESC, state DESC LIMIT 1), 0)
$$;
COMMENT ON FUNCTION market.state(timestamptz) IS 'The number of the last state that was committed by this moment.';

-- Takes advisory locks (state/loads/locks.ts) until the transaction ends, in the order that all transactions keep, so that
-- no two of them wait for each other.
CREATE OR REPLACE FUNCTION etl.take_locks(locks jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM CASE WHEN l.shared THEN pg_advisory_xact_lock_shared(l.key) ELSE pg_advisory_xact_lock(l.key) END
     FROM (SELECT hashtextextended(lock->>'name', 0) AS key, (lock->>'shared')::boolean AS shared
             FROM jsonb_array_elements(locks) AS lock ORDER BY 1) AS l;
END
$$;

-- Takes the lock of states until the transaction ends, then returns the next state and its time. Each statement of a
-- volatile function sees what was committed before it, so after the wait this one sees the last state.
CREATE OR REPLACE FUNCTION etl.next_state(OUT state bigint, OUT committed_at timestamptz)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('eod:states', 0));
  SELECT coalesce(max(l.state), 0) + 1, greatest(clock_timestamp(), max(l.committed_at)) INTO state, committed_at
    FROM (SELECT l.state, l.committed_at FROM etl.loads l ORDER BY l.state DESC LIMIT 1) l;
END
$$;

-- For the functions of past states: a number that is not taken yet must not show whatever is stored now.
CREATE OR REPLACE FUNCTION etl.is_state(number bigint) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  newest bigint := (SELECT coalesce(max(state), 0) FROM etl.loads);
BEGIN
  IF number BETWEEN 0 AND newest THEN
    RETURN true;
  END IF;
  RAISE EXCEPTION 'there is no state %: the newest is %', coalesce(number::text, 'null'), newest
    USING ERRCODE = 'invalid_parameter_value', HINT = 'market.state() is the newest, market.state(timestamptz) that of a moment; 0 is before the first load.';
END
$$;
COMMENT ON FUNCTION etl.is_state(bigint) IS 'True if there is a state with this number, else an error that names the newest.';

-- Before the first load, in state 0, no table had a row, whatever its history is now.
CREATE OR REPLACE FUNCTION etl.is_state(number bigint, of_table text) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  first_load timestamptz;
BEGIN
  IF number = 0 THEN
    SELECT min(committed_at) INTO first_load FROM etl.loads;
    RAISE NOTICE 'market.% has no row in state 0: %', of_table,
      coalesce('the first load was at ' || to_char(first_load, 'YYYY-MM-DD HH24:MI:SS TZH:TZM'), 'nothing has been loaded yet');
  END IF;
  RETURN etl.is_state(number);
END
$$;
COMMENT ON FUNCTION etl.is_state(bigint, text) IS 'True if the table can be shown in the state with this number, else an error that names the newest.';

CREATE OR REPLACE FUNCTION etl.are_states(from_state bigint, to_state bigint, of_table text) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
  IF from_state > to_state THEN
    RAISE EXCEPTION 'state % is after state %', from_state, to_state
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Give the earlier state first.';
  END IF;
  -- Every table can be followed from state 0 on, which needs no notice that it is empty there.
  RETURN (from_state = 0 OR etl.is_state(from_state, of_table)) AND etl.is_state(to_state, of_table);
END
$$;
COMMENT ON FUNCTION etl.are_states(bigint, bigint, text) IS 'True if the table can be shown in both states, the earlier first, else an error that says why not.';
