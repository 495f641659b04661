-- What waits for a person. This file is applied by `eod migrate` whenever it changes. The comments of the columns are in
-- src/state/schema/waiting.ts.

-- A response with rejected records settles nothing, because its rows were not compared with the stored ones. Of several
-- suspicious responses to the same request, the last one is listed.
CREATE OR REPLACE VIEW etl.suspicious_windows AS
  SELECT w.id, w.operation, w.exchange, w.from_date, w.to_date, w.instruments, w.source_file, w.unsettled AS reason, w.finished_at
    FROM etl.windows w
   WHERE w.unsettled IS NOT NULL AND NOT EXISTS (
     SELECT FROM etl.windows later JOIN etl.runs r ON r.id = later.run_id AND r.kind <> 'replay'
      WHERE later.operation = w.operation
        AND later.exchange = w.exchange
        AND later.from_date <= w.from_date
        AND later.to_date >= w.to_date
        AND later.instruments = w.instruments
        AND later.variant = w.variant
        AND later.state IN ('loaded', 'empty')
        AND ((later.suspicious IS NULL AND later.rejected = 0) OR later.unsettled IS NOT NULL)
        AND NOT later.is_filtered
        AND (SELECT max(a.position) FROM etl.responses a WHERE a.window_id = later.id)
          > (SELECT max(a.position) FROM etl.responses a WHERE a.window_id = w.id));

-- Windows that are suspicious, each with its reasons: one of its records was not requested and is still an open reject, its
-- withdrawal is withheld, or it was suspicious for another reason and no later good response to all of its entries has come.
CREATE OR REPLACE FUNCTION etl.suspicious_reasons() RETURNS TABLE (window_id bigint, reason text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT reasons.window_id, string_agg(reasons.reason, '; ')
    FROM (
      SELECT r.window_id, CASE count(*) WHEN 1 THEN 'a record is' ELSE count(*) || ' records are' END
               || ' of a day, quarter or exchange that was not requested' AS reason
        FROM etl.rejects r WHERE r.is_stray AND r.resolved_at IS NULL GROUP BY r.window_id
      UNION ALL
      -- A replay folds again what other windows have loaded: the position says whose withdrawal it is.
      SELECT coalesce(nullif(a.window_id, 0), w.window_id), w.reason
        FROM etl.withdrawals w LEFT JOIN etl.responses a ON a.position = w.position WHERE w.state = 'withheld'
      UNION ALL
      SELECT s.id, s.reason FROM etl.suspicious_windows s
    ) reasons
   GROUP BY reasons.window_id
$$;

CREATE OR REPLACE FUNCTION etl.relative_difference(expected text, found text) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT abs(e.n - f.n) / nullif(greatest(abs(e.n), abs(f.n)), 0)
    FROM (SELECT CASE WHEN $1 ~ '^-?\d+(\.\d+)?$' THEN $1::numeric END AS n) e,
         (SELECT CASE WHEN $2 ~ '^-?\d+(\.\d+)?$' THEN $2::numeric END AS n) f $$;
COMMENT ON FUNCTION etl.relative_difference(text, text) IS 'The difference of two numbers as a share of the greater one; null where a text is not a number.';

-- Texts and effects are queries of their own, so that a count does not compute them.
CREATE OR REPLACE VIEW etl.issues AS
  SELECT 'reject'::text AS kind, 1 AS priority, r.operation, r.exchange, ARRAY[r.exchange] AS exchanges, r.from_date, r.to_date,
         CASE WHEN r.is_refused THEN coalesce(r.source_file, '') END AS subject, CASE WHEN r.rejects = 1 THEN r.reject_id::text END AS id,
         r.rejects AS items, r.rejects::numeric AS effect,
         CASE WHEN r.is_refused THEN r.error ELSE (SELECT string_agg(concat_ws(' ', nullif(p.path, ''), p.message), '; ')
            FROM etl.rejected_records j CROSS JOIN jsonb_to_recordset(j.problems) AS p(path text, message text)
           WHERE j.id = r.reject_id) END AS text,
         r.first_seen_at AS since
    FROM etl.open_rejects r
  UNION ALL
  SELECT 'withdrawal'::text, 1, w.operation, w.exchange, ARRAY[w.exchange], w.day, w.day, w.table_name, w.id::text, 1::bigint, w.unlisted_rows::numeric, w.reason,
         w.noted_at
    FROM etl.withdrawals w WHERE w.state = 'withheld'
  UNION ALL
  SELECT 'suspicious'::text, 1, d.operation, d.exchange, ARRAY[d.exchange], d.from_date, d.to_date,
         nullif(array_to_string(d.instruments, ','), ''), d.source_file, 1::bigint, (d.to_date - d.from_date + 1)::numeric, d.reason, d.finished_at
    FROM etl.suspicious_windows d
  UNION ALL
  -- A line for each operation, or for an exchange as a whole.
  SELECT 'missing_right'::text, 3, a.operation, min(a.exchange), array_agg(DISTINCT a.exchange), NULL::date, NULL::date, NULL::text, NULL::text,
         1::bigint, NULL::numeric, a.diagnostic, min(a.since)
    FROM (SELECT CASE WHEN etl.refused_scope(n.diagnostic) = 'exchange' THEN '' ELSE n.operation END AS operation,
                 n.exchange, n.diagnostic, n.since FROM etl.not_allowed() n) a
   GROUP BY a.operation, a.diagnostic, CASE WHEN a.operation = '' THEN a.exchange END
  UNION ALL
  SELECT 'corporate_action'::text,
         CASE WHEN etl.changes_shares(e.kind) OR e.effect >= 20 THEN 1
           WHEN e.effect < 5 THEN 3 ELSE 2 END,
         'CorporateEvents'::text, e.exchange, ARRAY(SELECT DISTINCT o.exchange FROM unnest(e.lines) AS o(exchange) ORDER BY 1), e.ex_date, e.ex_date, concat_ws(' ', e.symbol, e.kind), e.event_id, 1::bigint, e.effect,
         concat_ws('; ', e.purpose, e.status_reason, 'its price moved by ' || e.moved || ' %'), e.first_loaded_at
    FROM (SELECT DISTINCT ON (s.share, s.kind, s.item, s.chain, s.nth) s.*,
                 -- What is known on one exchange holds for the other.
                 max(etl.price_effect(s.exchange, s.instrument_id, s.ex_date, s.kind, s.ratio_old::numeric / s.ratio_new, s.amount))
                   OVER event AS effect,
                 -- A person may tell the ratio of a split from it.
                 max(CASE WHEN etl.changes_shares(s.kind) AND s.price_factor IS NULL
                       THEN (SELECT trim_scale(round(100 * m.moved, 2)) FROM etl.price_move(s.exchange, s.instrument_id, s.ex_date) m) END)
                   OVER event AS moved,
                 -- Whose prices it is about, whichever exchange lists it.
                 array_agg(s.exchange) OVER event AS lines
            FROM etl.events_of_shares('needs_review') s
          WINDOW event AS (PARTITION BY s.share, s.kind, s.item, s.chain, s.nth)
           ORDER BY s.share, s.kind, s.item, s.chain, s.nth, (s.listed_by = s.exchange) IS TRUE DESC, s.exchange DESC, s.symbol) e
  UNION ALL
  SELECT 'finding'::text, f.priority, f.operation, f.exchange, ARRAY[f.exchange], f.date, f.date, f."check",
         CASE WHEN f.findings = 1 THEN f.id::text END, f.findings, f.findings::numeric,
         (SELECT concat(nullif(g.instrument, '') || ': ', 'expected ', coalesce(g.expected, 'nothing'), ', found ', coalesce(g.found, 'nothing'))
            FROM etl.findings g WHERE g.id = f.id), f.found_at
    FROM (SELECT g.operation, g.exchange, g.date, g."check", min(array_position(ARRAY['error', 'warning', 'info'], g.severity)) AS priority,
                 count(*) AS findings, min(g.found_at) AS found_at,
                 -- The most severe, and of these the one whose numbers differ most.
                 (array_agg(g.id ORDER BY array_position(ARRAY['error', 'warning', 'info'], g.severity),
                    etl.relative_difference(g.expected, g.found) DESC NULLS LAST, g.id))[1] AS id
            FROM etl.findings g WHERE g.resolved_at IS NULL AND g.accepted_at IS NULL GROUP BY 1, 2, 3, 4) f;
