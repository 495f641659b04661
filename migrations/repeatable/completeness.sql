-- The one definition of which trading days are stored, which are missing, and why. Gaps, the status, the pages, metrics,
-- alerts, reports of runs, nights and the view `etl.completeness` are selects of `etl.session_states`; docs/completeness.md says the same in words.

-- The exchange whose trading days a segment has, as `exchangeOfSegment` in src/core/exchanges.ts.
CREATE OR REPLACE FUNCTION etl.exchange_of_segment(code text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN code IN ('BSE', 'BFO', 'BSE_DEBT', 'BSE_IDX') THEN 'BSE' ELSE 'NSE' END
$$;
COMMENT ON FUNCTION etl.exchange_of_segment(text) IS 'The exchange whose calendar a segment follows.';

-- Reads one index entry for each pair, not all rows.
CREATE OR REPLACE FUNCTION etl.requested_pairs() RETURNS TABLE (operation text, exchange text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH RECURSIVE pair AS (
    (SELECT entry.operation, entry.exchange FROM etl.coverage entry ORDER BY entry.operation, entry.exchange LIMIT 1)
    UNION ALL
    SELECT next.operation, next.exchange FROM pair, LATERAL (
      SELECT entry.operation, entry.exchange FROM etl.coverage entry
       WHERE (entry.operation, entry.exchange) > (pair.operation, pair.exchange)
       ORDER BY entry.operation, entry.exchange LIMIT 1) next
  )
  SELECT pair.operation, pair.exchange
    FROM pair JOIN etl.expectations expectation ON expectation.operation = pair.operation
$$;
COMMENT ON FUNCTION etl.requested_pairs() IS 'Every operation and exchange that was ever requested or imported.';

CREATE OR REPLACE FUNCTION etl.has_source(settings jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT (settings ->> 'hasKey')::boolean OR EXISTS (SELECT FROM etl.runs r WHERE r.kind IN ('nightly', 'backfill', 'gap_fill'))
$$;
COMMENT ON FUNCTION etl.has_source(jsonb) IS 'True if there is a key, or if anything was ever requested with one.';

-- What the key may not use according to a diagnostic, operation or exchange; null if it says something else. NOT_ALLOWED in
-- src/state/registers.ts has the words that are written.
CREATE OR REPLACE FUNCTION etl.refused_scope(diagnostic text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT substring($1 FROM '^the key may not use this (operation|exchange): ') $$;

-- What the key may not use, as the newest day shows on which it was requested. The two parts read one entry of a small index
-- each.
CREATE OR REPLACE FUNCTION etl.not_allowed() RETURNS TABLE (operation text, exchange text, diagnostic text, since timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT expectation.operation, requested.exchange, last.diagnostic, last.checked_at
    FROM etl.expectations expectation
   CROSS JOIN LATERAL unnest(expectation.exchanges) AS requested(exchange)
   CROSS JOIN LATERAL (
     SELECT * FROM (
       (SELECT entry.day, entry.diagnostic, entry.checked_at FROM etl.coverage entry
         WHERE entry.operation = expectation.operation AND entry.exchange = requested.exchange
           AND entry.instrument = '' AND entry.state <> 'holiday'
         ORDER BY entry.day DESC LIMIT 1)
       UNION ALL
       (SELECT entry.day, entry.diagnostic, entry.checked_at FROM etl.coverage entry
         WHERE entry.operation = expectation.operation AND entry.exchange = requested.exchange AND entry.instrument <> ''
         ORDER BY entry.day DESC LIMIT 1)) newest
      ORDER BY newest.day DESC LIMIT 1) last
   WHERE etl.refused_scope(last.diagnostic) IS NOT NULL
$$;
COMMENT ON FUNCTION etl.not_allowed() IS 'Operations and exchanges that nights request, and the key may not use: what the source said, and when it was last requested.';

-- Which pairs to look at: those that somebody names, or else those that the schedules request (etl.expectations), and also
-- what else ever had a record. A pair that somebody once requested by mistake is forgotten thereby. Without a key, and if
-- nothing was ever requested with one, nobody expects what is scheduled: then only what was imported is looked at. Nobody
-- expects what the key may not use either; once it may, the days that were refused are missing.
--   named: [{"operation", "exchange"}], whose trading days are expected as if they were scheduled; null: those that are scheduled.
--   has_others: whether to look at what else was ever requested or imported.
--   settings: as in etl.session_states.
CREATE OR REPLACE FUNCTION etl.expected_pairs(named jsonb, has_others boolean, settings jsonb)
RETURNS TABLE (operation text, exchange text, is_scheduled boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH wanted AS (
    SELECT item.operation, item.exchange, true AS is_scheduled
      FROM jsonb_to_recordset(named) AS item(operation text, exchange text)
    UNION ALL
    SELECT expectation.operation, requested.exchange, true
      FROM etl.expectations expectation CROSS JOIN LATERAL unnest(expectation.exchanges) AS requested(exchange)
     WHERE named IS NULL AND etl.has_source(settings)
  ), pair AS (
    SELECT wanted.operation, wanted.exchange, wanted.is_scheduled FROM wanted
    UNION ALL
    SELECT other.operation, other.exchange, false FROM etl.requested_pairs() other
     WHERE has_others
       AND NOT EXISTS (SELECT FROM wanted known WHERE known.operation = other.operation AND known.exchange = other.exchange)
       -- In an order, so that an index is read up to the first one.
       AND (SELECT true FROM etl.coverage entry
             WHERE (entry.operation, entry.exchange) = (other.operation, other.exchange) AND entry.state = 'loaded'
             ORDER BY entry.day DESC LIMIT 1)
  )
  SELECT pair.operation, pair.exchange, pair.is_scheduled FROM pair
   WHERE NOT EXISTS (SELECT FROM etl.not_allowed() refused WHERE refused.operation = pair.operation AND refused.exchange = pair.exchange)
$$;
COMMENT ON FUNCTION etl.expected_pairs(jsonb, boolean, jsonb) IS 'The operations and exchanges of which etl.session_states lists trading days.';

-- What is expected of each of these pairs: when it is due, how long nights request it again, and of how many instruments.
-- instruments: those that the settings name; null: the first ones of the newest bhav copy, up to the limit.
CREATE OR REPLACE FUNCTION etl.expected_sets(named jsonb, has_others boolean, instruments text[], settings jsonb)
RETURNS TABLE (
  operation text, exchange text, is_scheduled boolean, is_from_files boolean, days text, variants text[],
  is_by_instrument boolean, is_empty_normal boolean, weekday integer, due_at interval, awaited_days integer, requested bigint)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT pair.operation, pair.exchange, pair.is_scheduled, expectation.exchanges = '{}', expectation.days, expectation.variants,
         expectation.is_by_instrument, expectation.is_empty_normal, expectation.weekday,
         coalesce(CASE WHEN expectation.exchanges <> '{}' THEN (settings -> 'dueMinutes' ->> expectation.operation)::int END, 1440)
           * interval '1 minute',
         -- For so many days after a trading day, nightly runs request it again; those of weekly operations once more.
         CASE WHEN expectation.days = 'quarters' THEN 92
           ELSE greatest(7, 2 * (settings ->> 'lookbackSessions')::int) + CASE WHEN expectation.weekday IS NULL THEN 0 ELSE 7 END
         END,
         CASE WHEN NOT expectation.is_of_each_instrument THEN 0
           WHEN instruments IS NOT NULL THEN cardinality(instruments)
           ELSE (SELECT least(count(DISTINCT prices.symbol), (settings ->> 'instrumentLimit')::bigint)
                   FROM market.bhavcopy_cm prices
                  WHERE prices.exchange = pair.exchange
                    AND prices.trade_date = (SELECT max(newest.trade_date) FROM market.bhavcopy_cm newest WHERE newest.exchange = pair.exchange))
         END
    FROM etl.expected_pairs(named, has_others, settings) pair
    JOIN etl.expectations expectation ON expectation.operation = pair.operation
$$;
COMMENT ON FUNCTION etl.expected_sets(jsonb, boolean, text[], jsonb) IS 'The operations and exchanges of etl.expected_pairs, and what is expected of each.';

-- How many records the responses have of a day.
CREATE OR REPLACE FUNCTION etl.records_of(operation text, exchange text, day date, is_by_instrument boolean, variants text[]) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(sum(entry.records), 0)::bigint FROM etl.coverage entry
   WHERE entry.operation = $1 AND entry.exchange = $2 AND entry.day = $3
     AND ($4 OR entry.instrument = '') AND ($5 IS NULL OR entry.variant = ANY ($5))
$$;

-- What the source or the failure said of a day, if anything. In two parts, each of which finds the states in a small index.
CREATE OR REPLACE FUNCTION etl.diagnostic_of(operation text, exchange text, day date) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT max(failed.diagnostic) FROM (
    SELECT entry.diagnostic FROM etl.coverage entry
     WHERE (entry.operation, entry.exchange, entry.day) = ($1, $2, $3)
       AND entry.instrument = '' AND entry.state IN ('failed', 'blocked')
    UNION ALL
    SELECT entry.diagnostic FROM etl.coverage entry
     WHERE (entry.operation, entry.exchange, entry.day) = ($1, $2, $3)
       AND entry.instrument <> '' AND entry.state IN ('failed', 'blocked')) failed
$$;

-- How many instruments have a response to each variant of a day; without variants, to anything on any day. A plan for any
-- arguments has to find those of a day, and those that are named, by the key.
CREATE OR REPLACE FUNCTION etl.instruments_responded(
  operation text, exchange text, day date, variants text[], instruments text[]) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN $4 IS NULL THEN (
    SELECT count(DISTINCT entry.instrument) FROM etl.coverage entry
     WHERE entry.operation = $1 AND entry.exchange = $2 AND entry.instrument <> ''
       AND entry.state IN ('loaded', 'empty', 'not_published')
       AND ($5 IS NULL OR entry.instrument = ANY ($5)))
  WHEN $5 IS NULL THEN (
    SELECT count(*) FROM (
      SELECT FROM etl.coverage entry
       WHERE entry.operation = $1 AND entry.exchange = $2 AND entry.day = $3 AND entry.variant = ANY ($4) AND entry.instrument <> ''
         AND entry.state IN ('loaded', 'empty', 'not_published')
       GROUP BY entry.instrument HAVING count(*) = cardinality($4)) r)
  ELSE (
    SELECT count(*) FROM (
      SELECT FROM etl.coverage entry
       WHERE entry.operation = $1 AND entry.exchange = $2 AND entry.day = $3 AND entry.variant = ANY ($4) AND entry.instrument = ANY ($5)
         AND entry.state IN ('loaded', 'empty', 'not_published')
       GROUP BY entry.instrument HAVING count(*) = cardinality($4)) r) END
$$;

-- What runs request in vain and try again; nothing else is known of these days until the run gives up. With the rights of
-- its owner, because readers may not read all of the windows.
CREATE OR REPLACE FUNCTION etl.failing_requests() RETURNS TABLE (operation text, exchange text, day date, error text)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT ON (failing.operation, failing.exchange, span.day) failing.operation, failing.exchange, span.day::date, failing.error
    FROM etl.windows failing
   CROSS JOIN LATERAL generate_series(failing.from_date::timestamp, failing.to_date::timestamp, '1 day') AS span(day)
   WHERE failing.state IN ('pending', 'running')
     AND failing.error IS NOT NULL
     AND failing.retry_at IS NOT NULL
     AND NOT failing.is_filtered
   ORDER BY failing.operation, failing.exchange, span.day, failing.id DESC
$$;
COMMENT ON FUNCTION etl.failing_requests() IS 'The days that runs request, whose last response was an error and which are tried again.';

-- Of which days, variants and states a pair has responses about single instruments: one index entry is read for each.
CREATE OR REPLACE FUNCTION etl.instrument_states(operation text, exchange text, from_day date, to_day date)
RETURNS TABLE (day date, variant text, state text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH RECURSIVE known AS (
    (SELECT entry.day, entry.variant, entry.state FROM etl.coverage entry
      WHERE entry.operation = $1 AND entry.exchange = $2 AND entry.instrument <> '' AND entry.day BETWEEN from_day AND to_day
      ORDER BY entry.day, entry.variant, entry.state LIMIT 1)
    UNION ALL
    SELECT next.day, next.variant, next.state FROM known CROSS JOIN LATERAL (
      SELECT entry.day, entry.variant, entry.state FROM etl.coverage entry
       WHERE entry.operation = $1 AND entry.exchange = $2 AND entry.instrument <> '' AND entry.day <= to_day
         AND (entry.day, entry.variant, entry.state) > (known.day, known.variant, known.state)
       ORDER BY entry.day, entry.variant, entry.state LIMIT 1) next
  )
  SELECT known.day, known.variant, known.state FROM known
$$;

-- How many responses of each state a pair has to each variant of a day, from two small indexes. Those about instruments are
-- counted state by state: to group all of them takes three times as long, because the texts of each are compared.
--   requested: how many instruments are requested. More responses make no difference, unless those that are awaited are
--     compared with all others.
--   instruments: those that the settings name; they are looked up day by day, because neither small index has them.
CREATE OR REPLACE FUNCTION etl.response_counts(
  operation text, exchange text, from_day date, to_day date, requested bigint, instruments text[])
RETURNS TABLE (day date, variant text, state text, is_whole boolean, entries bigint)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH known AS (
    SELECT responses.day, responses.variant, responses.state, expectation.is_of_each_instrument,
           bool_or(responses.state = 'not_published') OVER (PARTITION BY responses.day) AS is_awaiting
      FROM etl.expectations expectation CROSS JOIN LATERAL etl.instrument_states($1, $2, from_day, to_day) responses
     WHERE expectation.operation = $1
  )
  SELECT entry.day, entry.variant, entry.state, true, 1::bigint FROM etl.coverage entry
   WHERE entry.operation = $1 AND entry.exchange = $2 AND entry.instrument = '' AND entry.day BETWEEN from_day AND to_day
  UNION ALL
  SELECT known.day, known.variant, known.state, false, counted.entries
    FROM known CROSS JOIN LATERAL (
      SELECT count(*) AS entries FROM (
        SELECT FROM etl.coverage entry
         WHERE entry.operation = $1 AND entry.exchange = $2 AND entry.day = known.day AND entry.variant = known.variant
           AND entry.state = known.state AND entry.instrument <> ''
         LIMIT CASE WHEN NOT known.is_awaiting THEN greatest(requested, 1) END) single) counted
   WHERE instruments IS NULL OR NOT known.is_of_each_instrument
  UNION ALL
  SELECT listed.day, counted.variant, counted.state, false, counted.entries
    FROM (SELECT DISTINCT known.day FROM known WHERE known.is_of_each_instrument) listed
   CROSS JOIN LATERAL (
      SELECT entry.variant, entry.state, count(*) AS entries FROM etl.coverage entry
       WHERE entry.operation = $1 AND entry.exchange = $2 AND entry.day = listed.day AND entry.instrument = ANY (instruments)
       GROUP BY entry.variant, entry.state) counted
   WHERE instruments IS NOT NULL
$$;

-- What is known of the days of a pair: the best response to each, whether it is stored, whatever its share, and of how many
-- instruments there are responses to every variant. The parameters are those of etl.response_counts.
CREATE OR REPLACE FUNCTION etl.known_days(
  operation text, exchange text, from_day date, to_day date, requested bigint, instruments text[])
RETURNS TABLE (day date, found text, is_stored boolean, responded bigint)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH counted AS (
    SELECT response.day, expectation.variants, expectation.is_empty_normal,
           bool_or(is_whole AND state IN ('loaded', 'empty')) AS is_whole,
           bool_or(NOT is_whole AND NOT is_by_instrument AND state = 'loaded') AS is_partial,
           coalesce(sum(entries) FILTER (
             WHERE NOT is_whole AND state IN ('loaded', 'empty', 'not_published')), 0) AS responded,
           coalesce(sum(entries) FILTER (WHERE counts AND state = 'loaded'), 0) AS loaded,
           coalesce(sum(entries) FILTER (WHERE counts AND state = 'empty'), 0) AS empty,
           coalesce(sum(entries) FILTER (WHERE counts AND state = 'not_published'), 0) AS awaited,
           coalesce(sum(entries) FILTER (WHERE counts AND state = 'failed'), 0) AS failed,
           coalesce(sum(entries) FILTER (WHERE counts AND state = 'blocked'), 0) AS blocked
      FROM etl.expectations expectation
      JOIN etl.response_counts($1, $2, from_day, to_day, requested, instruments) response
        ON response.variant = ANY (expectation.variants)
     CROSS JOIN LATERAL (SELECT is_whole OR is_by_instrument AS counts) is_counted
     WHERE expectation.operation = $1
     GROUP BY response.day, response.variant, expectation.variants, expectation.is_empty_normal
  ), summed AS (
    SELECT counted.day, counted.is_empty_normal,
           -- Awaited if most had no response when they were requested; a few never have one. What failed, or was not
           -- requested, is missing.
           2 * sum(awaited) > greatest(
             sum(loaded + empty + awaited + failed + blocked), requested * cardinality(variants)) AS is_awaited,
           CASE WHEN sum(loaded) > 0 THEN 'loaded' WHEN sum(empty) > 0 THEN 'empty'
             WHEN sum(failed) > 0 THEN 'failed' WHEN sum(blocked) > 0 THEN 'blocked'
             WHEN bool_or(is_partial) THEN 'partial' ELSE 'not_requested' END AS best,
           CASE WHEN bool_or(is_whole) THEN requested
             WHEN count(*) < cardinality(variants) THEN 0
             ELSE least(requested, min(counted.responded)) END AS responded
      FROM counted GROUP BY counted.day, counted.is_empty_normal, variants
  )
  SELECT summed.day, CASE WHEN is_awaited THEN 'not_published' ELSE best END,
         NOT is_awaited AND (best = 'loaded' OR (best = 'empty' AND is_empty_normal)), summed.responded::bigint
    FROM summed
$$;

-- What is known of a pair that has no days: requested as a whole, part by part, or of each instrument. Once it was loaded, it
-- is stored. The parameters are those of etl.response_counts.
CREATE OR REPLACE FUNCTION etl.known_list(operation text, exchange text, requested bigint, instruments text[])
RETURNS TABLE (day date, found text, is_stored boolean, responded bigint)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(stored.day, part.day, newest.day),
         coalesce(part.found, stored.state, newest.found),
         coalesce(part.found = 'loaded', stored.day IS NOT NULL),
         CASE WHEN requested = 0 THEN 0
           ELSE least(requested, etl.instruments_responded($1, $2, NULL, NULL, instruments)) END
    FROM etl.expectations expectation
    LEFT JOIN LATERAL (
      SELECT entry.day, entry.state FROM etl.coverage entry
       WHERE entry.operation = $1
         AND entry.exchange = $2
         AND (entry.state = 'loaded' OR (entry.state = 'empty' AND expectation.is_empty_normal))
       ORDER BY entry.day DESC, entry.state DESC LIMIT 1) stored ON expectation.parts IS NULL
    LEFT JOIN LATERAL (
      -- If a response depends on no day, one without a record is not too early, but empty.
      SELECT entry.day, (ARRAY['empty', 'empty', 'failed', 'blocked'])[
               min(array_position(ARRAY['empty', 'not_published', 'failed', 'blocked'], entry.state))] AS found
        FROM etl.coverage entry WHERE entry.operation = $1 AND entry.exchange = $2
       GROUP BY entry.day ORDER BY entry.day DESC LIMIT 1) newest ON expectation.parts IS NULL AND stored.day IS NULL
    LEFT JOIN LATERAL (
      SELECT max(last.day) AS day,
             CASE WHEN bool_or(last.state = 'failed') THEN 'failed' WHEN bool_or(last.state = 'blocked') THEN 'blocked'
               WHEN count(*) = 0 THEN NULL
               WHEN count(*) FILTER (WHERE last.variant = ANY (parts)) < cardinality(parts) THEN 'partial'
               WHEN bool_or(last.state = 'loaded') THEN 'loaded' ELSE 'empty' END AS found
        FROM (
          SELECT DISTINCT ON (entry.variant) entry.variant, entry.day, entry.state FROM etl.coverage entry
           WHERE entry.operation = $1
             AND entry.exchange = $2
             AND entry.instrument = ''
             AND split_part(entry.variant, '/', 1) = split_part(expectation.parts[1], '/', 1)
           ORDER BY entry.variant, entry.day DESC) last) part ON expectation.parts IS NOT NULL
   WHERE expectation.operation = $1
$$;

-- Whether anything of a pair is stored after a day. In an order, so that an index is read up to the first one.
CREATE OR REPLACE FUNCTION etl.stored_after(operation text, exchange text, day date) RETURNS TABLE (is_stored boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT (
    SELECT true FROM etl.coverage entry
     WHERE entry.operation = $1
       AND entry.exchange = $2
       AND entry.day > $3
       AND entry.variant = ANY (expectation.variants)
       AND (entry.instrument = '' OR expectation.is_by_instrument)
       AND (entry.state = 'loaded' OR (entry.state = 'empty' AND expectation.is_empty_normal))
     ORDER BY entry.day LIMIT 1) IS TRUE
    FROM etl.expectations expectation WHERE expectation.operation = $1
  OFFSET 0
$$;

-- The trading days of an exchange or segment in a range, or, of what is published by quarters, their last days.
CREATE OR REPLACE FUNCTION etl.session_days(days text, exchange text, from_day date, to_day date) RETURNS TABLE (day date)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT session.day FROM etl.sessions session
   WHERE days <> 'quarters'
     AND session.exchange = etl.exchange_of_segment($2)
     AND session.day BETWEEN from_day AND to_day
  UNION ALL
  SELECT ends.day
    FROM generate_series(date_trunc('quarter', from_day::timestamp), to_day::timestamp, '3 months') AS quarter(begins)
   CROSS JOIN LATERAL (SELECT (quarter.begins + interval '3 months')::date - 1 AS day) ends
   WHERE days = 'quarters' AND ends.day <= to_day
$$;

-- The trading days that some operations and exchanges should have, when each is due, and what is known of it. The parameters are
-- those of etl.session_states. What is listed without days has one, of the last trading day that is due.
CREATE OR REPLACE FUNCTION etl.expected_sessions(
  named jsonb, has_others boolean, first_day date, last_day date, since date, as_of timestamptz, instruments text[],
  settings jsonb)
RETURNS TABLE (
  exchange text, operation text, day date, days text, variants text[], is_by_instrument boolean, is_from_files boolean,
  requested bigint, due_there timestamp, is_due boolean, known_on date, found text, is_stored boolean, responded bigint)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
WITH clock AS (
  SELECT as_of AT TIME ZONE (settings ->> 'zone') AS now_there
), expected AS MATERIALIZED (
  SELECT * FROM etl.expected_sets(named, has_others, instruments, settings)
), known AS (
  SELECT pair.operation, pair.exchange, known_day.day, known_day.found, known_day.is_stored, known_day.responded
    FROM expected pair CROSS JOIN LATERAL etl.known_days(pair.operation, pair.exchange,
      coalesce(since, first_day, '-infinity'), coalesce(last_day, 'infinity'), pair.requested, instruments) known_day
   WHERE pair.days <> 'none'
), listed AS (
  SELECT pair.operation, pair.exchange, list.day, list.found, list.is_stored, list.responded
    FROM expected pair CROSS JOIN LATERAL etl.known_list(pair.operation, pair.exchange, pair.requested, instruments) list
   WHERE pair.days = 'none'
), span AS (
  SELECT operation, exchange, min(day) AS stored_from, max(day) AS stored_to FROM known WHERE is_stored GROUP BY 1, 2
  UNION ALL
  -- Trading days before the first one say nothing of what has no days; the last one before it is enough.
  SELECT operation, exchange, NULL, day FROM listed WHERE is_stored
), session AS (
  SELECT pair.*, due.day, due.day + (coalesce(weekday - extract(dow FROM due.day)::int, 0) + 7) % 7 + due_at AS due_there
    FROM clock CROSS JOIN expected pair
    LEFT JOIN span ON span.operation = pair.operation AND span.exchange = pair.exchange
    -- A range in which nothing is stored may be a hole.
   CROSS JOIN LATERAL etl.stored_after(pair.operation, pair.exchange, last_day) later
   CROSS JOIN LATERAL etl.session_days(pair.days, pair.exchange,
     coalesce(first_day, span.stored_from, CASE WHEN later.is_stored THEN last_day + 1
       WHEN NOT pair.is_scheduled THEN span.stored_to - 14
       WHEN pair.days = 'quarters' THEN date_trunc('quarter', now_there)::date - 1
       ELSE now_there::date - (settings ->> 'historyDays')::int END),
     least(last_day, CASE WHEN pair.is_scheduled THEN now_there::date
       WHEN later.is_stored THEN last_day ELSE span.stored_to END)) due
   WHERE pair.is_scheduled OR span.stored_to IS NOT NULL OR later.is_stored
)
SELECT session.exchange, session.operation, session.day, days, variants, is_by_instrument, is_from_files, requested, due_there,
       due_there <= now_there AND NOT (
         known.found IS NOT DISTINCT FROM 'not_published'
         AND is_empty_normal
         AND session.day + awaited_days + due_at > now_there),
       known.day, known.found, known.is_stored, known.responded
  FROM clock CROSS JOIN session
  LEFT JOIN known ON known.operation = session.operation AND known.exchange = session.exchange AND known.day = session.day
 WHERE session.days <> 'none'
UNION ALL
SELECT newest.exchange, newest.operation, newest.day, days, variants, is_by_instrument, is_from_files, requested, due_there, true,
       listed.day, listed.found, listed.is_stored, listed.responded
  FROM (SELECT DISTINCT ON (operation, exchange) session.* FROM clock CROSS JOIN session
         WHERE days = 'none' AND last_day IS NULL AND due_there <= now_there
         ORDER BY operation, exchange, day DESC) newest
  LEFT JOIN listed ON listed.operation = newest.operation AND listed.exchange = newest.exchange
$$;

-- Why a trading day has no response: files alone bring it, it is further back than the source reaches, or nobody requested it.
-- reach: the first day that the source has.
CREATE OR REPLACE FUNCTION etl.unrequested_reason(day date, days text, is_from_files boolean, has_source boolean, reach date)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN is_from_files OR NOT has_source THEN 'not_imported'
    WHEN day < reach AND days <> 'quarters' THEN 'beyond_history'
    ELSE 'not_requested' END
$$;

-- Why a response that failed or was blocked is no data: the state, or what the diagnostic says more exactly.
CREATE OR REPLACE FUNCTION etl.refused_reason(state text, diagnostic text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN state = 'failed' AND diagnostic ~ 'count_mismatch: ' THEN 'count_mismatch'
    WHEN state = 'blocked' AND diagnostic ~* '(dates?|from\W+to)\W.*out of .*allowed range' THEN 'beyond_history'
    ELSE state END
$$;

-- The trading days of some operations and exchanges with their states.
--   named, has_others: as in etl.expected_pairs. What is named or scheduled is expected from its first stored trading day on, or
--     as far back as the source reaches; what else was requested or imported from its first to its last stored trading day.
--   first_day, last_day: these days, instead of the range of each pair.
--   since: coverage of older days is not read, as if there were none; by default that before first_day.
--   as_of: the moment that decides what is due.
--   instruments: those that the settings name; null: the first ones of the newest bhav copy, up to the limit.
--   settings: {"zone", "dueMinutes", "lookbackSessions", "historyDays", "instrumentLimit", "hasKey"}; dueMinutes says of each
--     operation how long after the midnight that a day begins with its data is due, whatever the weekday. What only files
--     fill is due when the day is over.
-- known_on is the day of the coverage that says so, which differs from the trading day where a response is about no day; found is
-- the best response to it, whatever its share.
-- Postgres inlines it, and what it consists of: with constants as arguments, and without the columns that are not selected.
-- Only the selected ones read more of the coverage than two small indexes.
CREATE OR REPLACE FUNCTION etl.session_states(
  named jsonb, has_others boolean, first_day date, last_day date, since date, as_of timestamptz, instruments text[],
  settings jsonb)
RETURNS TABLE (
  exchange text, operation text, day date, state text, reason text, detail text, due timestamptz, arrived timestamptz,
  records bigint, responded bigint, requested bigint, share numeric, found text, known_on date, checked_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
WITH source AS MATERIALIZED (
  SELECT etl.has_source(settings) AS is_there,
         (as_of AT TIME ZONE (settings ->> 'zone'))::date - (settings ->> 'historyDays')::int AS reach
), failing AS MATERIALIZED (
  SELECT failure.operation, failure.exchange, failure.day, failure.error FROM etl.failing_requests() failure
), failure AS (
  SELECT operation, exchange, day, error FROM failing
  UNION ALL
  -- Of what has no days, any request.
  SELECT DISTINCT ON (operation, exchange) operation, exchange, 'infinity', error FROM failing
), judged AS (
  SELECT session.*, coalesce(session.found, CASE WHEN failure.day IS NULL THEN 'not_requested' ELSE 'failed' END) AS best, failure.error,
         session.is_stored IS TRUE AND coalesce(session.responded, 0) >= session.requested AS is_complete,
         session.is_stored IS TRUE AND coalesce(session.responded, 0) < session.requested AS is_share
    FROM etl.expected_sessions(named, has_others, first_day, last_day, since, as_of, instruments, settings) session
    LEFT JOIN failure ON failure.operation = session.operation AND failure.exchange = session.exchange
      AND failure.day = CASE WHEN session.days = 'none' THEN 'infinity' ELSE session.day END
)
SELECT judged.exchange, judged.operation, judged.day,
       CASE WHEN judged.is_complete THEN 'complete' WHEN judged.is_due THEN 'missing' ELSE 'pending' END,
       CASE WHEN judged.is_complete THEN NULL WHEN NOT judged.is_due THEN 'not_published' WHEN judged.is_share THEN 'partial'
         WHEN judged.best = 'not_requested'
           THEN etl.unrequested_reason(judged.day, judged.days, judged.is_from_files, source.is_there, source.reach)
         WHEN judged.best IN ('failed', 'blocked') THEN etl.refused_reason(judged.best, looked_up.diagnostic)
         ELSE judged.best END,
       CASE WHEN judged.is_complete THEN NULL ELSE nullif(concat_ws('; ',
         CASE WHEN judged.is_share THEN format('%s of %s companies', looked_up.responded, judged.requested) END,
         coalesce(judged.error, etl.diagnostic_of(judged.operation, judged.exchange, judged.known_on))), '') END,
       judged.due_there AT TIME ZONE (settings ->> 'zone'),
       (SELECT min(load.committed_at) FROM etl.loads load
         WHERE load.operation = judged.operation AND load.exchange = judged.exchange AND load.to_date = judged.day AND load.fetched > 0),
       etl.records_of(judged.operation, judged.exchange, judged.known_on, judged.is_by_instrument, judged.variants),
       CASE WHEN judged.is_share THEN looked_up.responded WHEN judged.requested > 0 THEN coalesce(judged.responded, 0) END,
       nullif(judged.requested, 0),
       CASE WHEN judged.is_complete THEN 1 WHEN judged.best = 'partial' THEN NULL
         WHEN judged.is_share THEN round(looked_up.responded::numeric / judged.requested, 4) ELSE 0 END,
       judged.best, judged.known_on,
       (SELECT max(entry.checked_at) FROM etl.coverage entry
         WHERE entry.operation = judged.operation AND entry.exchange = judged.exchange AND entry.day = judged.known_on)
  FROM source CROSS JOIN judged
  -- Looked up once a trading day, and only if it is selected.
 CROSS JOIN LATERAL (
   SELECT CASE WHEN judged.is_share THEN etl.instruments_responded(
            judged.operation, judged.exchange, judged.known_on, judged.variants, instruments) END AS responded,
          CASE WHEN judged.best IN ('failed', 'blocked')
            THEN etl.diagnostic_of(judged.operation, judged.exchange, judged.known_on) END AS diagnostic
   OFFSET 0) looked_up
$$;
COMMENT ON FUNCTION etl.session_states(jsonb, boolean, date, date, date, timestamptz, text[], jsonb) IS
  'The trading days that operations should have for exchanges, and whether they are stored; the view etl.completeness says it of everything.';
