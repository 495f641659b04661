-- What waits for a person. This file is applied by `eod migrate` whenever it changes. The comments of the columns are in
-- src/state/schema/waiting.ts.

-- A response with rejected records settles nothing, because its rows were not compared with the stored ones. Of several
-- suspicious responses to the same request, the last one is listed.
CREATE OR REPLACE VIEW etl.suspicious_windows AS
  SELECT suspicious.id, suspicious.operation, suspicious.exchange, suspicious.from_date, suspicious.to_date, suspicious.instruments,
         suspicious.source_file, suspicious.unsettled AS reason, suspicious.finished_at
    FROM etl.windows suspicious
   WHERE suspicious.unsettled IS NOT NULL AND NOT EXISTS (
     SELECT FROM etl.windows later JOIN etl.runs run ON run.id = later.run_id AND run.kind <> 'replay'
      WHERE later.operation = suspicious.operation
        AND later.exchange = suspicious.exchange
        AND later.from_date <= suspicious.from_date
        AND later.to_date >= suspicious.to_date
        AND later.instruments = suspicious.instruments
        AND later.variant = suspicious.variant
        AND later.state IN ('loaded', 'empty')
        AND ((later.suspicious IS NULL AND later.rejected = 0) OR later.unsettled IS NOT NULL)
        AND NOT later.is_filtered
        AND (SELECT max(response.position) FROM etl.responses response WHERE response.window_id = later.id)
          > (SELECT max(response.position) FROM etl.responses response WHERE response.window_id = suspicious.id));

-- Windows that are suspicious, each with its reasons: one of its records was not requested and is still an open reject, its
-- withdrawal is withheld, or it was suspicious for another reason and no later good response to all of its entries has come.
CREATE OR REPLACE FUNCTION etl.suspicious_reasons() RETURNS TABLE (window_id bigint, reason text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT reasons.window_id, string_agg(reasons.reason, '; ')
    FROM (
      SELECT reject.window_id, CASE count(*) WHEN 1 THEN 'a record is' ELSE count(*) || ' records are' END
               || ' of a day, quarter or exchange that was not requested' AS reason
        FROM etl.rejects reject WHERE reject.is_stray AND reject.resolved_at IS NULL GROUP BY reject.window_id
      UNION ALL
      -- A replay folds again what other windows have loaded: the position says whose withdrawal it is.
      SELECT coalesce(nullif(response.window_id, 0), withdrawal.window_id), withdrawal.reason
        FROM etl.withdrawals withdrawal LEFT JOIN etl.responses response ON response.position = withdrawal.position
       WHERE withdrawal.state = 'withheld'
      UNION ALL
      SELECT suspicious.id, suspicious.reason FROM etl.suspicious_windows suspicious
    ) reasons
   GROUP BY reasons.window_id
$$;

CREATE OR REPLACE FUNCTION etl.relative_difference(expected text, found text) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT abs(numbers.expected - numbers.found) / nullif(greatest(abs(numbers.expected), abs(numbers.found)), 0)
    FROM (SELECT CASE WHEN $1 ~ '^-?\d+(\.\d+)?$' THEN $1::numeric END AS expected,
                 CASE WHEN $2 ~ '^-?\d+(\.\d+)?$' THEN $2::numeric END AS found) numbers
$$;
COMMENT ON FUNCTION etl.relative_difference(text, text) IS 'The difference of two numbers as a share of the greater one; null where a text is not a number.';

-- Texts and effects are queries of their own, so that a count does not compute them.
CREATE OR REPLACE VIEW etl.issues AS
  SELECT 'reject'::text AS kind, 1 AS priority, reject.operation, reject.exchange, ARRAY[reject.exchange] AS exchanges,
         reject.from_date, reject.to_date, CASE WHEN reject.is_refused THEN coalesce(reject.source_file, '') END AS subject,
         CASE WHEN reject.rejects = 1 THEN reject.reject_id::text END AS id,
         reject.rejects AS items, reject.rejects::numeric AS effect,
         CASE WHEN reject.is_refused THEN reject.error ELSE (SELECT string_agg(concat_ws(' ', nullif(problem.path, ''), problem.message), '; ')
            FROM etl.rejected_records record CROSS JOIN jsonb_to_recordset(record.problems) AS problem(path text, message text)
           WHERE record.id = reject.reject_id) END AS text,
         reject.first_seen_at AS since
    FROM etl.open_rejects reject
  UNION ALL
  SELECT 'withdrawal'::text, 1, withdrawal.operation, withdrawal.exchange, ARRAY[withdrawal.exchange], withdrawal.day, withdrawal.day,
         withdrawal.table_name, withdrawal.id::text, 1::bigint, withdrawal.unlisted_rows::numeric, withdrawal.reason,
         withdrawal.noted_at
    FROM etl.withdrawals withdrawal WHERE withdrawal.state = 'withheld'
  UNION ALL
  SELECT 'suspicious'::text, 1, suspicious.operation, suspicious.exchange, ARRAY[suspicious.exchange], suspicious.from_date, suspicious.to_date,
         nullif(array_to_string(suspicious.instruments, ','), ''), suspicious.source_file, 1::bigint,
         (suspicious.to_date - suspicious.from_date + 1)::numeric, suspicious.reason, suspicious.finished_at
    FROM etl.suspicious_windows suspicious
  UNION ALL
  -- A line for each operation, or for an exchange as a whole.
  SELECT 'missing_right'::text, 3, missing.operation, min(missing.exchange), array_agg(DISTINCT missing.exchange),
         NULL::date, NULL::date, NULL::text, NULL::text, 1::bigint, NULL::numeric, missing.diagnostic, min(missing.since)
    FROM (SELECT CASE WHEN etl.refused_scope(refused.diagnostic) = 'exchange' THEN '' ELSE refused.operation END AS operation,
                 refused.exchange, refused.diagnostic, refused.since FROM etl.not_allowed() refused) missing
   GROUP BY missing.operation, missing.diagnostic, CASE WHEN missing.operation = '' THEN missing.exchange END
  UNION ALL
  SELECT 'corporate_action'::text,
         CASE WHEN etl.changes_shares(event.kind) OR event.effect >= 20 THEN 1
           WHEN event.effect < 5 THEN 3 ELSE 2 END,
         'CorporateEvents'::text, event.exchange,
         ARRAY(SELECT DISTINCT listed.exchange FROM unnest(event.lines) AS listed(exchange) ORDER BY 1),
         event.ex_date, event.ex_date, concat_ws(' ', event.symbol, event.kind), event.event_id, 1::bigint, event.effect,
         concat_ws('; ', event.purpose, event.status_reason, 'its price moved by ' || event.moved || ' %'), event.first_loaded_at
    FROM (SELECT DISTINCT ON (line.share, line.kind, line.item, line.chain, line.nth) line.*,
                 -- What is known on one exchange holds for the other.
                 max(etl.price_effect(line.exchange, line.instrument_id, line.ex_date, line.kind,
                       line.ratio_old::numeric / line.ratio_new, line.amount))
                   OVER event AS effect,
                 -- A person may tell the ratio of a split from it.
                 max(CASE WHEN etl.changes_shares(line.kind) AND line.price_factor IS NULL
                       THEN (SELECT trim_scale(round(100 * move.moved, 2))
                               FROM etl.price_move(line.exchange, line.instrument_id, line.ex_date) move) END)
                   OVER event AS moved,
                 -- Whose prices it is about, whichever exchange lists it.
                 array_agg(line.exchange) OVER event AS lines
            FROM etl.events_of_shares('needs_review') line
          WINDOW event AS (PARTITION BY line.share, line.kind, line.item, line.chain, line.nth)
           ORDER BY line.share, line.kind, line.item, line.chain, line.nth,
                    (line.listed_by = line.exchange) IS TRUE DESC, line.exchange DESC, line.symbol) event
  UNION ALL
  SELECT 'finding'::text, grouped.priority, grouped.operation, grouped.exchange, ARRAY[grouped.exchange],
         grouped.date, grouped.date, grouped."check",
         CASE WHEN grouped.findings = 1 THEN grouped.id::text END, grouped.findings, grouped.findings::numeric,
         (SELECT concat(nullif(finding.instrument, '') || ': ', 'expected ', coalesce(finding.expected, 'nothing'),
                   ', found ', coalesce(finding.found, 'nothing'))
            FROM etl.findings finding WHERE finding.id = grouped.id), grouped.found_at
    FROM (SELECT finding.operation, finding.exchange, finding.date, finding."check",
                 min(array_position(ARRAY['error', 'warning', 'info'], finding.severity)) AS priority,
                 count(*) AS findings, min(finding.found_at) AS found_at,
                 -- The most severe, and of these the one whose numbers differ most.
                 (array_agg(finding.id ORDER BY array_position(ARRAY['error', 'warning', 'info'], finding.severity),
                    etl.relative_difference(finding.expected, finding.found) DESC NULLS LAST, finding.id))[1] AS id
            FROM etl.findings finding WHERE finding.resolved_at IS NULL AND finding.accepted_at IS NULL GROUP BY 1, 2, 3, 4) grouped;
