-- What is selected of `etl.coverage`, and its registers (src/state/registers.ts) as the sum of the facts: of what each response
-- said of its entries (etl.responses) and did with the rows of days (etl.withdrawals). This file is applied by `eod migrate`
-- whenever it changes.

-- The trading days of an operation that were loaded for the whole exchange: when, by which window, from which response.
CREATE OR REPLACE FUNCTION etl.loaded_trading_days(operation text)
RETURNS TABLE (exchange text, day date, records bigint, checked_at timestamptz, window_id bigint, loaded_position timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT entry.exchange, entry.day, entry.records, entry.checked_at, entry.window_id, entry.loaded_position
    FROM etl.coverage entry
   WHERE entry.operation = $1 AND entry.instrument = '' AND entry.variant = '' AND entry.state = 'loaded'
$$;

-- What a response said of each of its entries. It is kept once where it said the same of all of them: src/state/responses/response-facts.ts.
-- The parameters are columns of etl.responses.
CREATE OR REPLACE FUNCTION etl.said_of_entries(
  to_date date, instruments text[], said text, records integer, diagnostic text, entries jsonb)
RETURNS TABLE (day date, instrument text, said_of_entry text, records_of_entry bigint, diagnostic_of_entry text)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT $1, requested.instrument, $3, $4::bigint, $5
    FROM unnest(CASE WHEN $2 = '{}' THEN '{""}' ELSE $2 END) AS requested(instrument)
   WHERE $3 IS NOT NULL AND $6 IS NULL
  UNION ALL
  SELECT entry.day, coalesce(entry.instrument, ''), coalesce(entry.state, $3), coalesce(entry.records, $4), coalesce(entry.diagnostic, $5)
    FROM jsonb_to_recordset($6) AS entry(day date, instrument text, state text, records bigint, diagnostic text)
$$;

-- Whether a stored register that differs from the sum is wrong. One that is later is right if it is of a call without a
-- response, or of a response of which it is not known what it said.
CREATE OR REPLACE FUNCTION etl.is_register_wrong(stored_position timestamptz, summed_position timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT stored_position IS NULL
      OR stored_position <= coalesce(summed_position, '-infinity')
      OR EXISTS (
        SELECT FROM etl.responses response
         WHERE response.position = stored_position AND (response.said IS NOT NULL OR response.entries IS NOT NULL))
$$;

-- The registers of entries as the sum of the facts, and which of those that are stored differ. Without days, of all entries.
--   stored_row: where the entry is in etl.coverage; null if it is not there.
CREATE OR REPLACE FUNCTION etl.compared_coverage(operations text[], at_exchange text, from_day date, to_day date)
RETURNS TABLE (
  stored_row tid, operation text, exchange text, day date, instrument text, variant text,
  last_position timestamptz, last_said text, last_records bigint, last_diagnostic text,
  loaded_position timestamptz, loaded_records bigint, suspicious_position timestamptz,
  emptied_position timestamptz, withheld_position timestamptz,
  is_last_different boolean, is_loaded_different boolean, is_suspicious_different boolean, is_emptied_different boolean,
  is_withheld_different boolean)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH accepted AS MATERIALIZED (
    -- Where a person has accepted that a response left no row of a day, it said that the day is empty.
    SELECT withdrawal.position, coalesce(withdrawal.day, response.called_on) AS day
      FROM etl.withdrawals withdrawal JOIN etl.responses response ON response.position = withdrawal.position
     WHERE withdrawal.state = 'accepted' AND withdrawal.remaining_rows = 0
  ), said AS (
    SELECT response.operation, response.exchange, entry.day, entry.instrument, response.variant, response.position,
           entry.records, entry.diagnostic, response.is_suspicious,
           CASE WHEN entry.said = 'not_published' AND entry.instrument = ''
                 AND (response.position, entry.day) IN (SELECT accepted.position, accepted.day FROM accepted)
             THEN 'empty' ELSE entry.said END AS said
      FROM etl.responses response
     CROSS JOIN LATERAL etl.said_of_entries(
         response.to_date, response.instruments, response.said, response.records, response.diagnostic, response.entries)
        AS entry(day, instrument, said, records, diagnostic)
     WHERE response.operation = ANY (operations)
       AND response.exchange = at_exchange
       AND (
         from_day IS NULL
         OR (response.from_date <= to_day AND response.to_date >= from_day)
         -- Some responses are about the day of their call.
         OR response.called_on BETWEEN from_day AND to_day
       )
  ), summed AS (
    SELECT said.operation, said.exchange, said.day, said.instrument, said.variant,
           max(position) AS last_position,
           (array_agg(said.said ORDER BY position DESC))[1] AS last_said,
           (array_agg(said.records ORDER BY position DESC))[1] AS last_records,
           (array_agg(said.diagnostic ORDER BY position DESC))[1] AS last_diagnostic,
           max(position) FILTER (WHERE said.said = 'loaded') AS loaded_position,
           (array_agg(said.records ORDER BY position DESC) FILTER (WHERE said.said = 'loaded'))[1] AS loaded_records,
           max(position) FILTER (WHERE is_suspicious) AS suspicious_position
      FROM said
     WHERE from_day IS NULL OR said.day BETWEEN from_day AND to_day
     GROUP BY said.operation, said.exchange, said.day, said.instrument, said.variant
  ), effect AS (
    -- The newest responses that took the last row of a day, or whose withdrawal was withheld. Where the rows have no days,
    -- the day is that of the call.
    SELECT response.operation, response.exchange, coalesce(withdrawal.day, response.called_on) AS day, response.variant,
           max(response.position) FILTER (WHERE withdrawal.state IN ('withdrawn', 'accepted')) AS emptied_position,
           max(response.position) FILTER (WHERE withdrawal.state IN ('withheld', 'outdated')) AS withheld_position
      FROM etl.withdrawals withdrawal
      JOIN etl.responses response ON response.position = withdrawal.position AND response.exchange = withdrawal.exchange
     WHERE response.operation = ANY (operations)
       AND response.exchange = at_exchange
       AND (withdrawal.state IN ('withheld', 'outdated') OR (withdrawal.unlisted_rows > 0 AND withdrawal.remaining_rows = 0))
       AND (from_day IS NULL OR coalesce(withdrawal.day, response.called_on) BETWEEN from_day AND to_day)
     GROUP BY 1, 2, 3, 4
  ), stored AS (
    SELECT entry.ctid AS stored_row, entry.* FROM etl.coverage entry
     WHERE entry.operation = ANY (operations)
       AND entry.exchange = at_exchange
       AND (from_day IS NULL OR entry.day BETWEEN from_day AND to_day)
  )
  SELECT stored.stored_row, entry.operation, entry.exchange, entry.day, entry.instrument, entry.variant,
         summed.last_position, summed.last_said, summed.last_records, summed.last_diagnostic,
         summed.loaded_position, summed.loaded_records, summed.suspicious_position,
         effect.emptied_position, effect.withheld_position,
         (stored.last_position, stored.last_said, stored.last_records, stored.last_diagnostic)
             IS DISTINCT FROM (summed.last_position, summed.last_said, summed.last_records, summed.last_diagnostic)
           AND etl.is_register_wrong(stored.last_position, summed.last_position),
         (stored.loaded_position, stored.loaded_records) IS DISTINCT FROM (summed.loaded_position, summed.loaded_records)
           AND etl.is_register_wrong(stored.loaded_position, summed.loaded_position),
         stored.suspicious_position IS DISTINCT FROM summed.suspicious_position
           AND etl.is_register_wrong(stored.suspicious_position, summed.suspicious_position),
         stored.emptied_position IS DISTINCT FROM effect.emptied_position
           AND etl.is_register_wrong(stored.emptied_position, effect.emptied_position),
         stored.withheld_position IS DISTINCT FROM effect.withheld_position
           AND etl.is_register_wrong(stored.withheld_position, effect.withheld_position)
    FROM stored
    FULL JOIN summed USING (operation, exchange, day, instrument, variant) AS entry
    LEFT JOIN effect
      ON effect.operation = entry.operation
     AND effect.exchange = entry.exchange
     AND effect.day = entry.day
     AND effect.variant = entry.variant
     AND entry.instrument = ''
$$;
