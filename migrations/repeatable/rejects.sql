-- Which rejected records are still rejects. This file is applied by `eod migrate` whenever it changes. The comments of the
-- columns are in src/state/schema/load-results.ts.

-- The positions of the responses which show that a rejected record is no longer sent or can be read now: those that list all
-- they should, later than the last one that had the record, about all that was requested with it. Their days are looked for
-- first, in a query of their own, because an operation may have responses of thousands of days. Postgres inlines it.
CREATE OR REPLACE FUNCTION etl.responses_resolving(reject etl.rejected_records) RETURNS TABLE (resolved_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT response.position
    FROM (
      SELECT *
        FROM etl.responses about
       WHERE about.is_believed
         AND NOT about.is_filtered
         AND daterange(about.from_date, about.to_date, '[]')
           @> CASE WHEN ($1).is_dated THEN daterange(($1).from_date, ($1).to_date, '[]') ELSE 'empty' END
      OFFSET 0
    ) response
   WHERE response.operation = ($1).operation
     AND response.exchange = ($1).exchange
     AND response.variant = ($1).variant
     AND response.position > ($1).last_seen_at
     AND (response.instruments = '{}' OR (($1).instruments <> '{}' AND ($1).instruments <@ response.instruments))
$$;

-- In two parts, so that a query of open rejects reads an index of those that are not settled.
CREATE OR REPLACE VIEW etl.rejects AS
  SELECT reject.id, reject.run_id, reject.window_id, reject.operation, reject.exchange, reject.position, reject.from_date,
         reject.to_date, reject.fingerprint, reject.record, reject.problems, reject.is_stray, reject.first_seen_at,
         reject.last_seen_at, reject.accepted_at, reject.accepted_by, reject.settled_at AS resolved_at
    FROM etl.rejected_records reject WHERE reject.settled_at IS NOT NULL
  UNION ALL
  SELECT reject.id, reject.run_id, reject.window_id, reject.operation, reject.exchange, reject.position, reject.from_date,
         reject.to_date, reject.fingerprint, reject.record, reject.problems, reject.is_stray, reject.first_seen_at,
         reject.last_seen_at, reject.accepted_at, reject.accepted_by,
         (SELECT min(response.resolved_at) FROM etl.responses_resolving(reject) response)
    FROM etl.rejected_records reject WHERE reject.settled_at IS NULL;

-- What resolves a record resolves all of its response and day, so it is looked for once for these.
CREATE OR REPLACE VIEW etl.open_rejects AS
  SELECT part.operation, part.exchange, part.from_date, part.to_date, sum(part.rejects)::bigint AS rejects,
         min(part.reject_id) AS reject_id, min(part.first_seen_at) AS first_seen_at, part.is_refused,
         min(part.source_file) AS source_file, min(part.error) AS error
    FROM (
      SELECT reject.operation, reject.exchange, reject.from_date, reject.to_date,
             run_window.state IS NOT DISTINCT FROM 'failed' AS is_refused, count(*) AS rejects, min(reject.id) AS reject_id,
             min(reject.first_seen_at) AS first_seen_at, min(run_window.source_file) AS source_file,
             min(run_window.error) AS error
        FROM etl.rejected_records reject LEFT JOIN etl.windows run_window ON run_window.id = reject.window_id
       WHERE reject.settled_at IS NULL AND reject.accepted_at IS NULL
       GROUP BY reject.operation, reject.exchange, reject.from_date, reject.to_date, reject.variant, reject.instruments,
                reject.is_dated, reject.last_seen_at, run_window.state IS NOT DISTINCT FROM 'failed'
    ) part
    JOIN etl.rejected_records sample ON sample.id = part.reject_id
   WHERE NOT EXISTS (SELECT FROM etl.responses_resolving(sample))
   GROUP BY part.operation, part.exchange, part.from_date, part.to_date, part.is_refused;
