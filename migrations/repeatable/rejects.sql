-- Which rejected records are still rejects. This file is applied by `eod migrate` whenever it changes. The comments of the
-- columns are in src/state/schema/load-results.ts.

-- A query for one reject looks for the responses of its days first, in a query of their own, because an operation may have
-- responses of thousands of days.
CREATE OR REPLACE VIEW etl.reject_resolutions AS
  SELECT reject.id AS reject_id, reject.last_seen_at, response.position AS resolved_at
    FROM etl.rejected_records reject
   CROSS JOIN LATERAL (
      SELECT *
        FROM etl.responses about
       WHERE about.is_believed
         AND NOT about.is_filtered
         AND daterange(about.from_date, about.to_date, '[]')
           @> CASE WHEN reject.is_dated THEN daterange(reject.from_date, reject.to_date, '[]') ELSE 'empty' END
      OFFSET 0
    ) response
   WHERE response.operation = reject.operation
     AND response.exchange = reject.exchange
     AND response.variant = reject.variant
     AND response.position > reject.last_seen_at
     AND (response.instruments = '{}' OR (reject.instruments <> '{}' AND reject.instruments <@ response.instruments));

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
         (SELECT min(resolution.resolved_at) FROM etl.reject_resolutions resolution WHERE resolution.reject_id = reject.id)
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
   WHERE (SELECT min(resolution.resolved_at) FROM etl.reject_resolutions resolution WHERE resolution.reject_id = part.reject_id) IS NULL
   GROUP BY part.operation, part.exchange, part.from_date, part.to_date, part.is_refused;
