-- The one definition of which sessions are stored, which are missing, and why. Gaps, the status, the pages, metrics,
-- alerts, reports of runs, nights and the view `etl.completeness` are selects of `etl.session_states`; docs/completeness.md says the same in words.

-- The exchange whose sessions a segment has, as `exchangeOfSegment` in src/core/exchanges.ts.
CREATE OR REPLACE FUNCTION etl.exchange_of_segment(code text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN code IN ('BSE', 'BFO', 'BSE_DEBT', 'BSE_IDX') THEN 'BSE' ELSE 'NSE' END
$$;
COMMENT ON FUNCTION etl.exchange_of_segment(text) IS 'The exchange whose calendar a segment follows.';

-- Reads one index entry for each pair, not all rows.
CREATE OR REPLACE FUNCTION etl.requested_pairs() RETURNS TABLE (operation text, exchange text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH RECURSIVE pair AS (
    (SELECT c.operation, c.exchange FROM etl.coverage c ORDER BY c.operation, c.exchange LIMIT 1)
    UNION ALL
    SELECT next.operation, next.exchange FROM pair, LATERAL (
      SELECT c.operation, c.exchange FROM etl.coverage c
       WHERE (c.operation, c.exchange) > (pair.operation, pair.exchange)
       ORDER BY c.operation, c.exchange LIMIT 1) next
  )
  SELECT p.operation, p.exchange FROM pair p JOIN etl.expectations e ON e.operation = p.operation
$$;
COMMENT ON FUNCTION etl.requested_pairs() IS 'Every operation and exchange that was ever requested or imported.';

CREATE OR REPLACE FUNCTION etl.has_source(settings jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT (settings ->> 'hasKey')::boolean OR EXISTS (SELECT FROM etl.runs r WHERE r.kind IN ('nightly', 'backfill', 'gap_fill'))
$$;
COMMENT ON FUNCTION etl.has_source(jsonb) IS 'True if there is a key, or if anything was ever requested with one.';

-- What the key may not use, as the newest day shows on which it was requested: the text is that of NOT_ALLOWED in
-- src/state/registers.ts. The two parts read one entry of a small index each.
CREATE OR REPLACE FUNCTION etl.not_allowed() RETURNS TABLE (operation text, exchange text, diagnostic text, since timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT e.operation, x.exchange, n.diagnostic, n.checked_at
    FROM etl.expectations e
   CROSS JOIN LATERAL unnest(e.exchanges) AS x(exchange)
   CROSS JOIN LATERAL (
     SELECT * FROM (
       (SELECT c.day, c.diagnostic, c.checked_at FROM etl.coverage c
         WHERE c.operation = e.operation AND c.exchange = x.exchange AND c.instrument = '' AND c.state <> 'holiday'
         ORDER BY c.day DESC LIMIT 1)
       UNION ALL
       (SELECT c.day, c.diagnostic, c.checked_at FROM etl.coverage c
         WHERE c.operation = e.operation AND c.exchange = x.exchange AND c.instrument <> ''
         ORDER BY c.day DESC LIMIT 1)) newest
      ORDER BY newest.day DESC LIMIT 1) n
   WHERE n.diagnostic ~ '^the key may not use this (operation|exchange): '
$$;
COMMENT ON FUNCTION etl.not_allowed() IS 'Operations and exchanges that nights request, and the key may not use: what the source said, and when it was last requested.';

-- Which pairs to look at: those that somebody names, or else those that the schedules request (etl.expectations), and also
-- what else ever had a record. A pair that somebody once requested by mistake is forgotten thereby. Without a key, and if
-- nothing was ever requested with one, nobody expects what is scheduled: then only what was imported is looked at. Nobody
-- expects what the key may not use either; once it may, the days that were refused are missing.
CREATE OR REPLACE FUNCTION etl.expected_pairs(named jsonb, has_others boolean, settings jsonb)
RETURNS TABLE (operation text, exchange text, is_scheduled boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH wanted AS (
    SELECT w.operation, w.exchange FROM (
      SELECT n.operation, n.exchange FROM jsonb_to_recordset(named) AS n(operation text, exchange text)
      UNION ALL
      SELECT e.operation, x.exchange FROM etl.expectations e CROSS JOIN LATERAL unnest(e.exchanges) AS x(exchange)
       WHERE named IS NULL AND etl.has_source(settings)) w
     WHERE NOT EXISTS (SELECT FROM etl.not_allowed() a WHERE a.operation = w.operation AND a.exchange = w.exchange)
  )
  SELECT w.operation, w.exchange, true FROM wanted w
  UNION ALL
  SELECT r.operation, r.exchange, false FROM etl.requested_pairs() r
   WHERE has_others AND NOT EXISTS (SELECT FROM wanted w WHERE w.operation = r.operation AND w.exchange = r.exchange)
     AND NOT EXISTS (SELECT FROM etl.not_allowed() a WHERE a.operation = r.operation AND a.exchange = r.exchange)
     -- In an order, so that an index is read up to the first one.
     AND (SELECT true FROM etl.coverage c WHERE (c.operation, c.exchange) = (r.operation, r.exchange) AND c.state = 'loaded'
           ORDER BY c.day DESC LIMIT 1)
$$;
COMMENT ON FUNCTION etl.expected_pairs(jsonb, boolean, jsonb) IS 'The operations and exchanges of which etl.session_states lists sessions.';

-- How many records the responses have of a day.
CREATE OR REPLACE FUNCTION etl.records_of(operation text, exchange text, day date, is_by_instrument boolean, variants text[]) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(sum(c.records), 0)::bigint FROM etl.coverage c
   WHERE c.operation = $1 AND c.exchange = $2 AND c.day = $3
     AND ($4 OR c.instrument = '') AND ($5 IS NULL OR c.variant = ANY ($5))
$$;

-- What the source or the failure said of a day, if anything. In two parts, each of which finds the states in a small index.
CREATE OR REPLACE FUNCTION etl.diagnostic_of(operation text, exchange text, day date) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT max(d.diagnostic) FROM (
    SELECT c.diagnostic FROM etl.coverage c
     WHERE (c.operation, c.exchange, c.day) = ($1, $2, $3) AND c.instrument = '' AND c.state IN ('failed', 'blocked')
    UNION ALL
    SELECT c.diagnostic FROM etl.coverage c
     WHERE (c.operation, c.exchange, c.day) = ($1, $2, $3) AND c.instrument <> '' AND c.state IN ('failed', 'blocked')) d
$$;

-- How many instruments have a response to each variant of a day; without variants, to anything on any day. A plan for any
-- arguments has to find those of a day, and those that are named, by the key.
CREATE OR REPLACE FUNCTION etl.instruments_responded(
  operation text, exchange text, day date, variants text[], instruments text[]) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN $4 IS NULL THEN (
    SELECT count(DISTINCT c.instrument) FROM etl.coverage c
     WHERE c.operation = $1 AND c.exchange = $2 AND c.instrument <> '' AND c.state IN ('loaded', 'empty', 'not_published')
       AND ($5 IS NULL OR c.instrument = ANY ($5)))
  WHEN $5 IS NULL THEN (
    SELECT count(*) FROM (
      SELECT FROM etl.coverage c
       WHERE c.operation = $1 AND c.exchange = $2 AND c.day = $3 AND c.variant = ANY ($4) AND c.instrument <> ''
         AND c.state IN ('loaded', 'empty', 'not_published')
       GROUP BY c.instrument HAVING count(*) = cardinality($4)) r)
  ELSE (
    SELECT count(*) FROM (
      SELECT FROM etl.coverage c
       WHERE c.operation = $1 AND c.exchange = $2 AND c.day = $3 AND c.variant = ANY ($4) AND c.instrument = ANY ($5)
         AND c.state IN ('loaded', 'empty', 'not_published')
       GROUP BY c.instrument HAVING count(*) = cardinality($4)) r) END
$$;

-- What runs request in vain and try again; nothing else is known of these days until the run gives up. With the rights of
-- its owner, because readers may not read all of the windows.
CREATE OR REPLACE FUNCTION etl.failing_requests() RETURNS TABLE (operation text, exchange text, day date, error text)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT ON (w.operation, w.exchange, d.day) w.operation, w.exchange, d.day::date, w.error
    FROM etl.windows w CROSS JOIN LATERAL generate_series(w.from_date::timestamp, w.to_date::timestamp, '1 day') AS d(day)
   WHERE w.state IN ('pending', 'running') AND w.error IS NOT NULL AND w.retry_at IS NOT NULL AND NOT w.is_filtered
   ORDER BY w.operation, w.exchange, d.day, w.id DESC
$$;
COMMENT ON FUNCTION etl.failing_requests() IS 'The days that runs request, whose last response was an error and which are tried again.';

-- The sessions of some operations and exchanges with their states.
--   named, has_others, settings: as in etl.expected_pairs. What is named or scheduled is expected from its first stored session
--     on, or as far back as the source reaches; what else was requested or imported from its first to its last stored session.
--   first_day, last_day: these days, instead of the range of each pair.
--   since: coverage of older days is not read, as if there were none; by default that before first_day.
--   instruments: those that the settings name; null: the first ones of the newest bhav copy, up to the limit.
--   settings: {"zone", "dueMinutes", "lookbackSessions", "historyDays", "instrumentLimit", "hasKey"}; dueMinutes says of each
--     operation how long after the midnight that a day begins with its data is due, whatever the weekday. What only files
--     fill is due when the day is over.
-- known_on is the day of the coverage that says so, which differs from the session where a response is about no day; found is
-- the best response to it, whatever its share.
-- Postgres inlines it: with constants as arguments, and without the columns that are not selected. Only the selected
-- ones read more of the coverage than two small indexes.
CREATE OR REPLACE FUNCTION etl.session_states(
  named jsonb, has_others boolean, first_day date, last_day date, since date, as_of timestamptz, instruments text[],
  settings jsonb)
RETURNS TABLE (
  exchange text, operation text, day date, state text, reason text, detail text, due timestamptz, arrived timestamptz,
  records bigint, responded bigint, requested bigint, share numeric, found text, known_on date, checked_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
WITH RECURSIVE clock AS (
  SELECT as_of AT TIME ZONE (settings ->> 'zone') AS now_there,
         (as_of AT TIME ZONE (settings ->> 'zone'))::date AS today,
         (as_of AT TIME ZONE (settings ->> 'zone'))::date - (settings ->> 'historyDays')::int AS reach,
         etl.has_source(settings) AS has_source
), expected AS MATERIALIZED (
  SELECT p.operation, p.exchange, p.is_scheduled,
         e.exchanges = '{}' AS is_from_files, e.days, e.variants, e.parts, e.is_by_instrument, e.is_of_each_instrument,
         e.is_empty_normal, e.weekday,
         coalesce(CASE WHEN e.exchanges <> '{}' THEN (settings -> 'dueMinutes' ->> e.operation)::int END, 1440)
           * interval '1 minute' AS due_at,
         -- For so many days after a session, nightly runs request it again; those of weekly operations once more.
         CASE WHEN e.days = 'quarters' THEN 92
           ELSE greatest(7, 2 * (settings ->> 'lookbackSessions')::int) + CASE WHEN e.weekday IS NULL THEN 0 ELSE 7 END
         END AS awaited_days,
         CASE WHEN NOT e.is_of_each_instrument THEN 0
           WHEN instruments IS NOT NULL THEN cardinality(instruments)
           ELSE (SELECT least(count(DISTINCT b.symbol), (settings ->> 'instrumentLimit')::bigint)
                   FROM market.bhavcopy_cm b
                  WHERE b.exchange = p.exchange
                    AND b.trade_date = (SELECT max(n.trade_date) FROM market.bhavcopy_cm n WHERE n.exchange = p.exchange))
         END AS requested
    FROM etl.expected_pairs(named, has_others, settings) p JOIN etl.expectations e ON e.operation = p.operation
), kind AS (
  -- Of which days, variants and states there are responses about single instruments: one index entry is read for each.
  (SELECT x.operation, x.exchange, f.day, f.variant, f.state
     FROM expected x CROSS JOIN LATERAL (
       SELECT c.day, c.variant, c.state FROM etl.coverage c
        WHERE c.operation = x.operation AND c.exchange = x.exchange AND c.instrument <> ''
          AND c.day BETWEEN coalesce(since, first_day, '-infinity') AND coalesce(last_day, 'infinity')
        ORDER BY c.day, c.variant, c.state LIMIT 1) f
    WHERE x.days <> 'none')
  UNION ALL
  SELECT k.operation, k.exchange, n.day, n.variant, n.state
    FROM kind k CROSS JOIN LATERAL (
      SELECT c.day, c.variant, c.state FROM etl.coverage c
       WHERE c.operation = k.operation AND c.exchange = k.exchange AND c.instrument <> ''
         AND (c.day, c.variant, c.state) > (k.day, k.variant, k.state) AND c.day <= coalesce(last_day, 'infinity')
       ORDER BY c.day, c.variant, c.state LIMIT 1) n
), responses AS (
  -- How many responses of each state there are to each variant of a day, from two small indexes. Those about instruments
  -- are counted kind by kind: to group all of them takes three times as long, because the texts of each are compared.
  SELECT w.operation, w.exchange, w.day, w.variant, w.state, true AS is_whole, 1::bigint AS entries
    FROM etl.coverage w
   WHERE w.instrument = '' AND w.day BETWEEN coalesce(since, first_day, '-infinity') AND coalesce(last_day, 'infinity')
     AND (has_others OR w.operation = ANY (ARRAY(SELECT x.operation FROM expected x))
       AND w.exchange = ANY (ARRAY(SELECT x.exchange FROM expected x)))
  UNION ALL
  SELECT k.operation, k.exchange, k.day, k.variant, k.state, false, n.entries
    FROM (SELECT k.*, x.requested, x.is_of_each_instrument,
                 bool_or(k.state = 'not_published') OVER (PARTITION BY k.operation, k.exchange, k.day) AS is_awaiting
            FROM kind k JOIN expected x ON x.operation = k.operation AND x.exchange = k.exchange) k
   CROSS JOIN LATERAL (
      SELECT count(*) AS entries FROM (
        SELECT FROM etl.coverage i
         WHERE i.operation = k.operation AND i.exchange = k.exchange AND i.day = k.day AND i.variant = k.variant
           AND i.state = k.state AND i.instrument <> ''
         -- More than are requested make no difference, unless those that are awaited are compared with all others.
         LIMIT CASE WHEN NOT k.is_awaiting THEN greatest(k.requested, 1) END) i) n
   WHERE instruments IS NULL OR NOT k.is_of_each_instrument
  UNION ALL
  -- Named instruments are looked up day by day: neither small index has them.
  SELECT k.operation, k.exchange, k.day, n.variant, n.state, false, n.entries
    FROM (SELECT DISTINCT k.operation, k.exchange, k.day FROM kind k
           WHERE k.operation = ANY (ARRAY(SELECT x.operation FROM expected x WHERE x.is_of_each_instrument))) k
   CROSS JOIN LATERAL (
      SELECT i.variant, i.state, count(*) AS entries FROM etl.coverage i
       WHERE i.operation = k.operation AND i.exchange = k.exchange AND i.day = k.day AND i.instrument = ANY (instruments)
       GROUP BY i.variant, i.state) n
   WHERE instruments IS NOT NULL
), counted AS (
  SELECT x.operation, x.exchange, c.day, c.variant, x.is_by_instrument, x.variants, x.requested, x.is_empty_normal,
         bool_or(c.is_whole AND c.state IN ('loaded', 'empty')) AS is_whole,
         bool_or(NOT c.is_whole AND NOT x.is_by_instrument AND c.state = 'loaded') AS is_partial,
         coalesce(sum(c.entries) FILTER (WHERE NOT c.is_whole AND c.state IN ('loaded', 'empty', 'not_published')), 0) AS responded,
         coalesce(sum(c.entries) FILTER (WHERE k.counts AND c.state = 'loaded'), 0) AS loaded,
         coalesce(sum(c.entries) FILTER (WHERE k.counts AND c.state = 'empty'), 0) AS empty,
         coalesce(sum(c.entries) FILTER (WHERE k.counts AND c.state = 'not_published'), 0) AS awaited,
         coalesce(sum(c.entries) FILTER (WHERE k.counts AND c.state = 'failed'), 0) AS failed,
         coalesce(sum(c.entries) FILTER (WHERE k.counts AND c.state = 'blocked'), 0) AS blocked
    FROM expected x
    JOIN responses c ON c.operation = x.operation AND c.exchange = x.exchange AND c.variant = ANY (x.variants)
   CROSS JOIN LATERAL (SELECT c.is_whole OR x.is_by_instrument AS counts) k
   WHERE x.days <> 'none'
   GROUP BY x.operation, x.exchange, c.day, c.variant, x.is_by_instrument, x.variants, x.requested, x.is_empty_normal
), summed AS (
  SELECT k.operation, k.exchange, k.day, k.requested, k.is_empty_normal,
         -- Awaited if most had no response when they were requested; a few never have one. What failed, or was not
         -- requested, is missing.
         2 * sum(k.awaited) > greatest(sum(k.loaded + k.empty + k.awaited + k.failed + k.blocked),
                                       k.requested * cardinality(k.variants)) AS is_awaited,
         CASE WHEN sum(k.loaded) > 0 THEN 'loaded' WHEN sum(k.empty) > 0 THEN 'empty'
           WHEN sum(k.failed) > 0 THEN 'failed' WHEN sum(k.blocked) > 0 THEN 'blocked'
           WHEN bool_or(k.is_partial) THEN 'partial' ELSE 'not_requested' END AS best,
         CASE WHEN bool_or(k.is_whole) THEN k.requested
           WHEN count(*) < cardinality(k.variants) THEN 0
           ELSE least(k.requested, min(k.responded)) END AS responded
    FROM counted k GROUP BY k.operation, k.exchange, k.day, k.requested, k.is_empty_normal, k.variants
), known AS (
  SELECT s.operation, s.exchange, s.day, s.requested, s.responded,
         CASE WHEN s.is_awaited THEN 'not_published' ELSE s.best END AS found,
         NOT s.is_awaited AND (s.best = 'loaded' OR s.best = 'empty' AND s.is_empty_normal) AS is_stored
    FROM summed s
), listed AS (
  -- What has no days: requested as a whole, part by part, or of each instrument. Once it was loaded, it is stored.
  SELECT x.operation, x.exchange, coalesce(stored.day, part.day, newest.day) AS day, x.requested,
         coalesce(part.found, stored.state, newest.found) AS found,
         coalesce(part.found = 'loaded', stored.day IS NOT NULL) AS is_stored,
         CASE WHEN x.requested = 0 THEN 0 ELSE least(x.requested, (
           SELECT count(DISTINCT i.instrument) FROM etl.coverage i
            WHERE i.operation = x.operation AND i.exchange = x.exchange AND i.instrument <> '' AND i.state IN ('loaded', 'empty', 'not_published')
              AND (instruments IS NULL OR i.instrument = ANY (instruments)))) END AS responded
    FROM expected x
    LEFT JOIN LATERAL (
      SELECT c.day, c.state FROM etl.coverage c
       WHERE c.operation = x.operation AND c.exchange = x.exchange
         AND (c.state = 'loaded' OR c.state = 'empty' AND x.is_empty_normal)
       ORDER BY c.day DESC, c.state DESC LIMIT 1) stored ON x.parts IS NULL
    LEFT JOIN LATERAL (
      -- If a response depends on no day, one without a record is not too early, but empty.
      SELECT c.day, (ARRAY['empty', 'empty', 'failed', 'blocked'])[
               min(array_position(ARRAY['empty', 'not_published', 'failed', 'blocked'], c.state))] AS found
        FROM etl.coverage c WHERE c.operation = x.operation AND c.exchange = x.exchange
       GROUP BY c.day ORDER BY c.day DESC LIMIT 1) newest ON x.parts IS NULL AND stored.day IS NULL
    LEFT JOIN LATERAL (
      SELECT max(p.day) AS day,
             CASE WHEN bool_or(p.state = 'failed') THEN 'failed' WHEN bool_or(p.state = 'blocked') THEN 'blocked'
               WHEN count(*) = 0 THEN NULL
               WHEN count(*) FILTER (WHERE p.variant = ANY (x.parts)) < cardinality(x.parts) THEN 'partial'
               WHEN bool_or(p.state = 'loaded') THEN 'loaded' ELSE 'empty' END AS found
        FROM (
          SELECT DISTINCT ON (c.variant) c.variant, c.day, c.state FROM etl.coverage c
           WHERE c.operation = x.operation AND c.exchange = x.exchange AND c.instrument = ''
             AND split_part(c.variant, '/', 1) = split_part(x.parts[1], '/', 1)
           ORDER BY c.variant, c.day DESC) p) part ON x.parts IS NOT NULL
   WHERE x.days = 'none'
), span AS (
  SELECT k.operation, k.exchange, min(k.day) AS stored_from, max(k.day) AS stored_to FROM known k WHERE k.is_stored GROUP BY 1, 2
  UNION ALL
  -- Sessions before the first one say nothing of what has no days; the last one before it is enough.
  SELECT l.operation, l.exchange, NULL, l.day FROM listed l WHERE l.is_stored
), ranged AS (
  SELECT x.*,
         coalesce(first_day, s.stored_from, CASE WHEN later.is_stored THEN last_day + 1
           WHEN NOT x.is_scheduled THEN s.stored_to - 14
           WHEN x.days = 'quarters' THEN date_trunc('quarter', clock.now_there)::date - 1 ELSE clock.reach END) AS from_day,
         least(last_day, CASE WHEN x.is_scheduled THEN clock.today WHEN later.is_stored THEN last_day ELSE s.stored_to END) AS to_day
    FROM clock CROSS JOIN expected x
    LEFT JOIN span s ON s.operation = x.operation AND s.exchange = x.exchange
   CROSS JOIN LATERAL (
     -- A range in which nothing is stored may be a hole. In an order, so that an index is read up to the first one.
     SELECT (SELECT true FROM etl.coverage c
              WHERE c.operation = x.operation AND c.exchange = x.exchange AND c.day > last_day AND c.variant = ANY (x.variants)
                AND (c.instrument = '' OR x.is_by_instrument) AND (c.state = 'loaded' OR c.state = 'empty' AND x.is_empty_normal)
              ORDER BY c.day LIMIT 1) IS TRUE AS is_stored
     OFFSET 0) later
   WHERE x.is_scheduled OR s.stored_to IS NOT NULL OR later.is_stored
), session AS (
  SELECT r.*, s.day, s.day + (coalesce(r.weekday - extract(dow FROM s.day)::int, 0) + 7) % 7 + r.due_at AS due_there
    FROM ranged r
    JOIN LATERAL (
      SELECT o.day FROM etl.sessions o
       WHERE r.days <> 'quarters' AND o.exchange = etl.exchange_of_segment(r.exchange) AND o.day BETWEEN r.from_day AND r.to_day
      UNION ALL
      SELECT q.day
        FROM generate_series(date_trunc('quarter', r.from_day::timestamp), r.to_day::timestamp, '3 months') AS f(begins)
       CROSS JOIN LATERAL (SELECT (f.begins + interval '3 months')::date - 1 AS day) q
       WHERE r.days = 'quarters' AND q.day <= r.to_day) s ON true
), failing AS MATERIALIZED (
  SELECT f.operation, f.exchange, f.day, f.error FROM etl.failing_requests() f
), row AS (
  SELECT s.*, k.day AS known_on, coalesce(k.found, CASE WHEN f.day IS NULL THEN 'not_requested' ELSE 'failed' END) AS found, f.error, coalesce(k.is_stored, false) AS is_stored,
         coalesce(k.responded, 0) AS counted,
         s.due_there <= clock.now_there AND NOT (k.found IS NOT DISTINCT FROM 'not_published' AND s.is_empty_normal
           AND s.day + s.awaited_days + s.due_at > clock.now_there) AS is_due
    FROM clock CROSS JOIN session s
    LEFT JOIN known k ON k.operation = s.operation AND k.exchange = s.exchange AND k.day = s.day
    LEFT JOIN failing f ON f.operation = s.operation AND f.exchange = s.exchange AND f.day = s.day
   WHERE s.days <> 'none'
  UNION ALL
  SELECT s.*, l.day, coalesce(l.found, CASE WHEN f.error IS NULL THEN 'not_requested' ELSE 'failed' END), f.error, coalesce(l.is_stored, false), coalesce(l.responded, 0), true
    FROM (SELECT DISTINCT ON (u.operation, u.exchange) u.* FROM clock CROSS JOIN session u
           WHERE u.days = 'none' AND last_day IS NULL AND u.due_there <= clock.now_there
           ORDER BY u.operation, u.exchange, u.day DESC) s
    LEFT JOIN listed l ON l.operation = s.operation AND l.exchange = s.exchange
    LEFT JOIN LATERAL (
      SELECT i.error FROM failing i WHERE i.operation = s.operation AND i.exchange = s.exchange LIMIT 1) f ON true
), judged AS (
  SELECT r.*, r.is_stored AND r.counted >= r.requested AS is_complete,
         r.is_stored AND r.counted < r.requested AS is_share
    FROM row r
)
SELECT j.exchange, j.operation, j.day,
       CASE WHEN j.is_complete THEN 'complete' WHEN j.is_due THEN 'missing' ELSE 'pending' END,
       CASE WHEN j.is_complete THEN NULL WHEN NOT j.is_due THEN 'not_published' WHEN j.is_share THEN 'partial'
         WHEN j.found = 'failed' AND etl.diagnostic_of(j.operation, j.exchange, j.known_on) ~ 'count_mismatch: ' THEN 'count_mismatch'
         WHEN j.found = 'blocked' AND etl.diagnostic_of(j.operation, j.exchange, j.known_on)
           ~* '(dates?|from\W+to)\W.*out of .*allowed range' THEN 'beyond_history'
         WHEN j.found = 'not_requested' AND (j.is_from_files OR NOT clock.has_source) THEN 'not_imported'
         WHEN j.found = 'not_requested' AND j.day < clock.reach AND j.days <> 'quarters' AND clock.has_source THEN 'beyond_history'
         WHEN j.found = 'not_requested' THEN 'not_requested' ELSE j.found END,
       CASE WHEN j.is_complete THEN NULL ELSE nullif(concat_ws('; ',
         CASE WHEN j.is_share THEN format('%s of %s companies', r.responded, j.requested) END,
         coalesce(j.error, etl.diagnostic_of(j.operation, j.exchange, j.known_on))), '') END,
       j.due_there AT TIME ZONE (settings ->> 'zone'),
       (SELECT min(l.committed_at) FROM etl.loads l
         WHERE l.operation = j.operation AND l.exchange = j.exchange AND l.to_date = j.day AND l.fetched > 0),
       etl.records_of(j.operation, j.exchange, j.known_on, j.is_by_instrument, j.variants),
       CASE WHEN j.is_share THEN r.responded
         WHEN j.requested > 0 THEN j.counted END,
       nullif(j.requested, 0),
       CASE WHEN j.is_complete THEN 1 WHEN j.found = 'partial' THEN NULL WHEN j.is_share
         THEN round(r.responded::numeric / j.requested, 4)
         ELSE 0 END,
       j.found, j.known_on,
       (SELECT max(c.checked_at) FROM etl.coverage c
         WHERE c.operation = j.operation AND c.exchange = j.exchange AND c.day = j.known_on)
  FROM clock CROSS JOIN judged j
  -- Counted once a session, and only if it is selected.
 CROSS JOIN LATERAL (
   SELECT CASE WHEN j.is_share THEN etl.instruments_responded(j.operation, j.exchange, j.known_on, j.variants, instruments) END AS responded
   OFFSET 0) r
$$;
COMMENT ON FUNCTION etl.session_states(jsonb, boolean, date, date, date, timestamptz, text[], jsonb) IS
  'The sessions that operations should have for exchanges, and whether they are stored; the view etl.completeness says it of everything.';
