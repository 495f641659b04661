-- The statements of market.series_changes: src/load/merge/merge-sql.ts, src/load/fold/fold-sql.ts.

-- merge.createStage
create temp table if not exists stage_series_changes on commit delete rows as
select 0 as _ord, exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
  source_received_at, source_saved_at
from market.series_changes with no data

-- merge.copy
copy pg_temp.stage_series_changes (
  _ord, exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
    source_received_at, source_saved_at
)
from stdin

-- merge.areNew
select statement_timestamp()::text as now
where not exists (
  select
  from unnest($2::date[]) as d(day),
    lateral (
      select
      from market.series_changes t
      where t.exchange = $1 and t.change_date >= d.day and t.change_date <= d.day
      order by t.change_date
      limit 1
    ) t
)
  and not exists (
    select
    from unnest($2::date[]) as d(day),
      lateral (
        select
        from market_history.series_changes t
        where t.exchange = $1 and t.change_date >= d.day and t.change_date <= d.day
        order by t.change_date
        limit 1
      ) t
  )

-- merge.copyNew
copy market.series_changes (
  exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name, source_received_at,
    source_saved_at, first_loaded_at, last_changed_at, revision, run_id, load_id
)
from stdin

-- merge.merge
with ranked as materialized (
  select s.*,
    row_number() over (
      partition by s.exchange, s.change_date, s.scrip_id, s.prev_series, s.to_series
      order by s.source_saved_at desc nulls last, s._ord desc
    ) as _rank
  from pg_temp.stage_series_changes s
),
  compared as materialized (
    select s.*,
      greatest(statement_timestamp(), t.last_changed_at + interval '1 microsecond') as _moment,
      t.tableoid as _tableoid, t.ctid as _ctid, w.revision as _withdrawn,
      coalesce(
        nullif(s.source_saved_at, $3::timestamptz) < coalesce(t.source_saved_at, w.source_saved_at),
          false
      ) as _stale,
      case
        when t.revision is null and w.revision is null then 'insert'
        when t.revision is null then 'relist'
        when nullif(s.source_saved_at, $3::timestamptz) < t.source_saved_at then 'stale'
        else 'update'
        end as _action
    from (select * from ranked where _rank = 1) s
      left join lateral (
        select t.tableoid, t.ctid, t.*
        from market.series_changes t
        where t.exchange = s.exchange
          and t.change_date = s.change_date
          and t.scrip_id = s.scrip_id
          and t.prev_series = s.prev_series
          and t.to_series = s.to_series
        limit 1
      ) t on true
      left join lateral (
        select *
        from market_history.series_changes w
        where t.revision is null
          and w.exchange = s.exchange
          and w.change_date = s.change_date
          and w.scrip_id = s.scrip_id
          and w.prev_series = s.prev_series
          and w.to_series = s.to_series
          and w.withdrawn
          and (
            select exists (
              select
              from (select distinct exchange, change_date from pg_temp.stage_series_changes) d
                join lateral (
                  select
                  from market_history.series_changes h
                  where h.withdrawn and h.exchange = d.exchange and h.change_date = d.change_date
                  limit 1
                ) h on true
            )
          )
        order by w.revision desc
        limit 1
      ) w on true
    where t.revision is null
      or nullif(s.source_saved_at, $3::timestamptz) < t.source_saved_at
      or (
        row(t.symbol, t.scrip_name) is distinct from row(s.symbol, s.scrip_name)
          or (
            s.source_received_at is not null
              and s.source_received_at is distinct from t.source_received_at
          )
          or (
            nullif(s.source_saved_at, $3::timestamptz) is not null
              and nullif(s.source_saved_at, $3::timestamptz) is distinct from t.source_saved_at
          )
      )
  ),
  inserted as (
    insert into market.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id
    )
    select exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
      source_received_at, source_saved_at, statement_timestamp(), statement_timestamp(), 1, $1, $2
    from compared
    where _action = 'insert'
    order by exchange, change_date, scrip_id, prev_series, to_series
    returning 1
  ),
  relisted as (
    insert into market.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id
    )
    select s.exchange, s.change_date, s.scrip_id, s.prev_series, s.to_series,
      case when s._stale then w.symbol else s.symbol end,
      case when s._stale then w.scrip_name else s.scrip_name end,
      case
        when s._stale then w.source_received_at
        else coalesce(s.source_received_at, w.source_received_at)
        end,
      case
        when s._stale then w.source_saved_at
        else coalesce(nullif(s.source_saved_at, $3::timestamptz), w.source_saved_at)
        end,
      w.first_loaded_at, greatest(statement_timestamp(), w.valid_to + interval '1 microsecond'),
      w.revision + 1, $1, $2
    from compared s
      join market_history.series_changes w on w.exchange = s.exchange
      and w.change_date = s.change_date
      and w.scrip_id = s.scrip_id
      and w.prev_series = s.prev_series
      and w.to_series = s.to_series
      and w.revision = s._withdrawn
    where s._action = 'relist'
    returning 1
  ),
  archived as (
    insert into market_history.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id, valid_from, valid_to, withdrawn, replaced_by_load_id
    )
    select t.exchange, t.change_date, t.scrip_id, t.prev_series, t.to_series, t.symbol,
      t.scrip_name, t.source_received_at, t.source_saved_at, t.first_loaded_at, t.last_changed_at,
      t.revision, t.run_id, t.load_id, t.last_changed_at, s._moment, false, $2
    from compared s
      join lateral (
        select *
        from market.series_changes t
        where t.ctid = s._ctid and t.tableoid = s._tableoid
        limit 1
      ) t on true
    where s._action = 'update'
  ),
  updated as (
    update market.series_changes t
    set symbol = s.symbol, scrip_name = s.scrip_name,
      source_received_at = coalesce(s.source_received_at, t.source_received_at),
      source_saved_at = coalesce(nullif(s.source_saved_at, $3::timestamptz), t.source_saved_at),
      last_changed_at = s._moment, revision = t.revision + 1, run_id = $1, load_id = $2
    from compared s
    where s._action = 'update' and t.ctid = s._ctid and t.tableoid = s._tableoid
    returning 1
  )
select (select count(*) from ranked where _rank > 1)::int as duplicate,
  (select count(*) from inserted)::int as inserted,
   (
    (select count(*) from updated) + (select count(*) from relisted) - count(*) filter (
      where _action = 'relist' and _stale
    )
  )::int as updated,
  ((select count(*) from (select * from ranked where _rank = 1) s) - count(*))::int as unchanged,
  (count(*) filter (where _action = 'stale' or (_action = 'relist' and _stale)))::int as stale,
   (
    (
      select count(*) from inserted
    ) + (select count(*) from updated) + (select count(*) from relisted)
  )::int as written
from compared

-- merge.mergeUnique is merge.merge but for these lines:
with compared as materialized (
select 0 as duplicate, (select count(*) from inserted)::int as inserted,
  ((select count(*) from pg_temp.stage_series_changes s) - count(*))::int as unchanged,

-- merge.withdraw
with more_stored as materialized (
  -- No row if no more are stored than were listed: then none is missing.
  select
  where $8::bigint is null
    or (
      select count(*)
      from market.series_changes t
      where t.exchange = $2 and t.change_date = any($6::date[])
    ) > $8
),
  stored as materialized (
    select t.change_date as _day, count(*) as rows,
      count(*) filter (where t.load_id = $1) as written_rows
    from more_stored, market.series_changes t
    where t.exchange = $2 and t.change_date = any($6::date[])
    group by 1
  ),
  unlisted_keys as materialized (
    select t.exchange, t.change_date, t.scrip_id, t.prev_series, t.to_series
    from more_stored, market.series_changes t
    where t.exchange = $2 and t.change_date = any($6::date[])
    except select listed.exchange, listed.change_date, listed.scrip_id, listed.prev_series,
      listed.to_series
    from more_stored, pg_temp.stage_series_changes listed
  ),
  unlisted as materialized (
    select s.exchange, s.change_date, s.scrip_id, s.prev_series, s.to_series,
      s.change_date as _day,
      greatest(statement_timestamp(), t.last_changed_at + interval '1 microsecond') as _moment
    from unlisted_keys s
      join lateral (
        select t.tableoid, t.ctid, t.*
        from market.series_changes t
        where t.exchange = s.exchange
          and t.change_date = s.change_date
          and t.scrip_id = s.scrip_id
          and t.prev_series = s.prev_series
          and t.to_series = s.to_series
        limit 1
      ) t on true
  ),
  replaced as materialized (
    select h.change_date as _day, count(*) as rows
    from market_history.series_changes h
    where h.exchange = $2
      and h.change_date = any($6::date[])
      and h.replaced_by_load_id = $1
      and not h.withdrawn
    group by 1
  ),
  counted as materialized (
    select s._day, s.unlisted_rows, stored.rows - s.unlisted_rows as remaining_rows,
      before.rows as rows_before,
      greatest(
        before.rows, ($9::jsonb ->> to_char(s._day, 'YYYY-MM-DD'))::bigint,
           (
            select case w.state when 'accepted' then w.remaining_rows else w.max_rows end
            from etl.withdrawals w
            where w.table_name = 'series_changes'
              and w.exchange = $2
              and w.day = s._day
              and w.state in ('withdrawn', 'accepted')
              and w.unlisted_rows > 0
            order by w.position desc
            limit 1
          )
      ) as max_rows,
      not $5::boolean
        and not exists (
          select from pg_temp.stage_series_changes listed where listed.change_date = s._day
        ) as is_emptied,
      s._day = any($7::date[]) as is_accepted
    from (select _day, count(*) as unlisted_rows from unlisted group by 1) s
      join stored using (_day)
      left join replaced using (_day)
      cross join lateral (
        select stored.rows - stored.written_rows + coalesce(replaced.rows, 0) as rows
      ) before
  ),
  checked as materialized (
    select *,
      is_accepted
        or (
          not is_emptied
            and max_rows - (rows_before - unlisted_rows) <= greatest(
              $4::bigint, floor(max_rows * $3::numeric)
            )
        ) as is_allowed
    from counted
  ),
  archived as (
    insert into market_history.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id, valid_from, valid_to, withdrawn, replaced_by_load_id
    )
    select t.exchange, t.change_date, t.scrip_id, t.prev_series, t.to_series, t.symbol,
      t.scrip_name, t.source_received_at, t.source_saved_at, t.first_loaded_at, t.last_changed_at,
      t.revision, t.run_id, t.load_id, t.last_changed_at, s._moment, true, $1
    from unlisted s
      join lateral (
        select t.tableoid, t.ctid, t.*
        from market.series_changes t
        where t.exchange = s.exchange
          and t.change_date = s.change_date
          and t.scrip_id = s.scrip_id
          and t.prev_series = s.prev_series
          and t.to_series = s.to_series
        limit 1
      ) t on true
    where exists (select from checked where checked.is_allowed and checked._day = s._day)
  ),
  withdrawn as (
    delete from market.series_changes t using unlisted s
    where exists (select from checked where checked.is_allowed and checked._day = s._day)
      and t.exchange = s.exchange
      and t.change_date = s.change_date
      and t.scrip_id = s.scrip_id
      and t.prev_series = s.prev_series
      and t.to_series = s.to_series
  )
select to_char(_day, 'YYYY-MM-DD') as day, unlisted_rows::int as "unlistedRows",
  remaining_rows::int as "remainingRows", rows_before::int as "rowsBefore",
  max_rows::int as "maxRows", is_emptied as "isEmptied", is_allowed as "isAllowed",
  case
    when is_allowed then '[]'::jsonb
    else (
      select jsonb_agg(
        jsonb_build_object(
          'exchange', s.exchange::text, 'change_date', s.change_date::text, 'scrip_id',
            s.scrip_id::text, 'prev_series', s.prev_series::text, 'to_series', s.to_series::text
        )
        order by s.exchange, s.change_date, s.scrip_id, s.prev_series, s.to_series
      )
      from unlisted s
      where s._day = checked._day
    )
    end as rows
from checked
order by _day

-- merge.countRows
select count(*)::int as rows
from market.series_changes t
where t.exchange = $1 and t.change_date = any($2::date[])

-- merge.readDays
select count(t.ctid) from market.series_changes t where t.exchange = $1 and t.change_date = any($2)

-- fold.createCopy
create temp table fold_series_changes (
  like market.series_changes, primary key (exchange, change_date, scrip_id, prev_series, to_series)
) on commit drop;
create temp table fold_history_series_changes (
  like market_history.series_changes,
    primary key (exchange, change_date, scrip_id, prev_series, to_series, revision)
) on commit drop

-- fold.analyzeCopy
analyze pg_temp.fold_series_changes (exchange, change_date, scrip_id, prev_series, to_series);
analyze pg_temp.fold_history_series_changes (
  exchange, change_date, scrip_id, prev_series, to_series
)

-- fold.copyNew
copy pg_temp.fold_series_changes (
  exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name, source_received_at,
    source_saved_at, first_loaded_at, last_changed_at, revision, run_id, load_id
)
from stdin

-- fold.noteKeys
create temp table fold_keys_series_changes on commit drop as
select distinct exchange, change_date, scrip_id, prev_series, to_series
from pg_temp.stage_series_changes

-- fold.keepNotedKeys
delete from pg_temp.fold_series_changes f
where not exists (
  select
  from pg_temp.fold_keys_series_changes k
  where k.exchange = f.exchange
    and k.change_date = f.change_date
    and k.scrip_id = f.scrip_id
    and k.prev_series = f.prev_series
    and k.to_series = f.to_series
)

-- fold.merge is merge.merge in the temporary tables, but for these lines:


-- fold.withdraw is merge.withdraw in the temporary tables, but for these lines:
        before.rows, ($9::jsonb ->> to_char(s._day, 'YYYY-MM-DD'))::bigint, null

-- fold.settle
with last as materialized (
  select f.*, true as _live
  from (
    select exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
      source_received_at, source_saved_at, load_id as _load
    from pg_temp.fold_series_changes
  ) f
  union all (
    select distinct on (
      h.exchange, h.change_date, h.scrip_id, h.prev_series, h.to_series
    ) h.exchange,
      h.change_date, h.scrip_id, h.prev_series, h.to_series, h.symbol, h.scrip_name,
      h.source_received_at, h.source_saved_at, h.load_id, false
    from pg_temp.fold_history_series_changes h
    where h.withdrawn
      and not exists (
        select
        from pg_temp.fold_series_changes f
        where f.exchange = h.exchange
          and f.change_date = h.change_date
          and f.scrip_id = h.scrip_id
          and f.prev_series = h.prev_series
          and f.to_series = h.to_series
      )
    order by h.exchange, h.change_date, h.scrip_id, h.prev_series, h.to_series, h.revision desc
  )
),
  compared as materialized (
    select s.*,
      greatest(statement_timestamp(), t.last_changed_at + interval '1 microsecond') as _moment,
      t.load_id as _stored_load, w.revision as _withdrawn, w.valid_to as _ended,
      w.first_loaded_at as _first,
      case
        when t.revision is not null
          and row(
            t.symbol, t.scrip_name, t.source_received_at, t.source_saved_at
          ) is distinct from row(
            s.symbol, s.scrip_name, s.source_received_at, s.source_saved_at
          ) then 'update'
        when t.revision is not null then 'none'
        when s._live and w.revision is null then 'insert'
        when s._live then 'relist'
        when w.revision is null
          or row(
            w.symbol, w.scrip_name, w.source_received_at, w.source_saved_at
          ) is distinct from row(
            s.symbol, s.scrip_name, s.source_received_at, s.source_saved_at
          ) then 'remember'
        else 'none'
        end as _action
    from last s
      left join lateral (
        select t.tableoid, t.ctid, t.*
        from market.series_changes t
        where t.exchange = s.exchange
          and t.change_date = s.change_date
          and t.scrip_id = s.scrip_id
          and t.prev_series = s.prev_series
          and t.to_series = s.to_series
        limit 1
      ) t on true
      left join lateral (
        select *
        from market_history.series_changes w
        where t.revision is null
          and w.withdrawn
          and w.exchange = s.exchange
          and w.change_date = s.change_date
          and w.scrip_id = s.scrip_id
          and w.prev_series = s.prev_series
          and w.to_series = s.to_series
        order by w.revision desc
        limit 1
      ) w on true
  ),
  inserted as (
    insert into market.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id
    )
    select s.exchange, s.change_date, s.scrip_id, s.prev_series, s.to_series, s.symbol,
      s.scrip_name, s.source_received_at, s.source_saved_at, statement_timestamp(),
      statement_timestamp(),
      1 + coalesce(
        (
          select max(h.revision)
          from market_history.series_changes h
          where h.exchange = s.exchange
            and h.change_date = s.change_date
            and h.scrip_id = s.scrip_id
            and h.prev_series = s.prev_series
            and h.to_series = s.to_series
        ),
          0
      ),
      $1, $2
    from compared s
    where s._action = 'insert'
    order by s.exchange, s.change_date, s.scrip_id, s.prev_series, s.to_series
  ),
  relisted as (
    insert into market.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id
    )
    select s.exchange, s.change_date, s.scrip_id, s.prev_series, s.to_series, s.symbol,
      s.scrip_name, s.source_received_at, s.source_saved_at, w.first_loaded_at,
      greatest(statement_timestamp(), w.valid_to + interval '1 microsecond'), w.revision + 1, $1, $2
    from compared s
      join market_history.series_changes w on w.exchange = s.exchange
      and w.change_date = s.change_date
      and w.scrip_id = s.scrip_id
      and w.prev_series = s.prev_series
      and w.to_series = s.to_series
      and w.revision = s._withdrawn
    where s._action = 'relist'
  ),
  remembered as (
    insert into market_history.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id, valid_from, valid_to, withdrawn, replaced_by_load_id
    )
    select s.exchange, s.change_date, s.scrip_id, s.prev_series, s.to_series, s.symbol,
      s.scrip_name, s.source_received_at, s.source_saved_at, coalesce(s._first, begins), begins,
      coalesce(s._withdrawn, 0) + 1, $1, $2, begins, begins + interval '1 microsecond', true, $2
    from compared s, greatest(statement_timestamp(), s._ended) as begins
    where s._action = 'remember'
  ),
  archived as (
    insert into market_history.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id, valid_from, valid_to, withdrawn, replaced_by_load_id
    )
    select t.exchange, t.change_date, t.scrip_id, t.prev_series, t.to_series, t.symbol,
      t.scrip_name, t.source_received_at, t.source_saved_at, t.first_loaded_at, t.last_changed_at,
      t.revision, t.run_id, t.load_id, t.last_changed_at, s._moment, false, $2
    from compared s
      join lateral (
        select t.tableoid, t.ctid, t.*
        from market.series_changes t
        where t.exchange = s.exchange
          and t.change_date = s.change_date
          and t.scrip_id = s.scrip_id
          and t.prev_series = s.prev_series
          and t.to_series = s.to_series
        limit 1
      ) t on true
    where s._action = 'update'
  ),
  updated as (
    update market.series_changes t
    set symbol = s.symbol, scrip_name = s.scrip_name, source_received_at = s.source_received_at,
      source_saved_at = s.source_saved_at, last_changed_at = s._moment, revision = t.revision + 1,
      run_id = $1, load_id = $2
    from compared s
    where s._action = 'update'
      and t.exchange = s.exchange
      and t.change_date = s.change_date
      and t.scrip_id = s.scrip_id
      and t.prev_series = s.prev_series
      and t.to_series = s.to_series
  )
select (count(*) filter (where _action = 'insert'))::int as inserted,
  (count(*) filter (where _action in ('update', 'relist')))::int as updated,
  (count(*) filter (where _live and _action = 'none'))::int as unchanged,
  (count(*) filter (where _action <> 'none'))::int as changed
from compared

-- fold.withdrawUnlisted
with gone as materialized (
  select s.exchange, s.change_date, s.scrip_id, s.prev_series, s.to_series,
    greatest(statement_timestamp(), t.last_changed_at + interval '1 microsecond') as _moment
  from (
    select t.exchange, t.change_date, t.scrip_id, t.prev_series, t.to_series
    from market.series_changes t
    where t.exchange = $1 and t.change_date = any($2::date[])
    except select f.exchange, f.change_date, f.scrip_id, f.prev_series, f.to_series
    from pg_temp.fold_series_changes f
  ) s
    join lateral (
      select t.tableoid, t.ctid, t.*
      from market.series_changes t
      where t.exchange = s.exchange
        and t.change_date = s.change_date
        and t.scrip_id = s.scrip_id
        and t.prev_series = s.prev_series
        and t.to_series = s.to_series
      limit 1
    ) t on true
),
  archived as (
    insert into market_history.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id, valid_from, valid_to, withdrawn, replaced_by_load_id
    )
    select t.exchange, t.change_date, t.scrip_id, t.prev_series, t.to_series, t.symbol,
      t.scrip_name, t.source_received_at, t.source_saved_at, t.first_loaded_at, t.last_changed_at,
      t.revision, t.run_id, t.load_id, t.last_changed_at, s._moment, true, $3
    from gone s
      join lateral (
        select t.tableoid, t.ctid, t.*
        from market.series_changes t
        where t.exchange = s.exchange
          and t.change_date = s.change_date
          and t.scrip_id = s.scrip_id
          and t.prev_series = s.prev_series
          and t.to_series = s.to_series
        limit 1
      ) t on true
    where true
  ),
  withdrawn as (
    delete from market.series_changes t using gone s
    where t.exchange = s.exchange
      and t.change_date = s.change_date
      and t.scrip_id = s.scrip_id
      and t.prev_series = s.prev_series
      and t.to_series = s.to_series
  )
select
from gone

-- fold.selectDifferences
with last as materialized (
  select f.*, true as _live
  from (
    select exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
      source_received_at, source_saved_at, load_id as _load
    from pg_temp.fold_series_changes
  ) f
  union all (
    select distinct on (
      h.exchange, h.change_date, h.scrip_id, h.prev_series, h.to_series
    ) h.exchange,
      h.change_date, h.scrip_id, h.prev_series, h.to_series, h.symbol, h.scrip_name,
      h.source_received_at, h.source_saved_at, h.load_id, false
    from pg_temp.fold_history_series_changes h
    where h.withdrawn
      and not exists (
        select
        from pg_temp.fold_series_changes f
        where f.exchange = h.exchange
          and f.change_date = h.change_date
          and f.scrip_id = h.scrip_id
          and f.prev_series = h.prev_series
          and f.to_series = h.to_series
      )
    order by h.exchange, h.change_date, h.scrip_id, h.prev_series, h.to_series, h.revision desc
  )
),
  compared as materialized (
    select s.*,
      greatest(statement_timestamp(), t.last_changed_at + interval '1 microsecond') as _moment,
      t.load_id as _stored_load, w.revision as _withdrawn, w.valid_to as _ended,
      w.first_loaded_at as _first,
      case
        when t.revision is not null
          and row(
            t.symbol, t.scrip_name, t.source_received_at, t.source_saved_at
          ) is distinct from row(
            s.symbol, s.scrip_name, s.source_received_at, s.source_saved_at
          ) then 'update'
        when t.revision is not null then 'none'
        when s._live and w.revision is null then 'insert'
        when s._live then 'relist'
        when w.revision is null
          or row(
            w.symbol, w.scrip_name, w.source_received_at, w.source_saved_at
          ) is distinct from row(
            s.symbol, s.scrip_name, s.source_received_at, s.source_saved_at
          ) then 'remember'
        else 'none'
        end as _action
    from last s
      left join lateral (
        select t.tableoid, t.ctid, t.*
        from market.series_changes t
        where t.exchange = s.exchange
          and t.change_date = s.change_date
          and t.scrip_id = s.scrip_id
          and t.prev_series = s.prev_series
          and t.to_series = s.to_series
        limit 1
      ) t on true
      left join lateral (
        select *
        from market_history.series_changes w
        where t.revision is null
          and w.withdrawn
          and w.exchange = s.exchange
          and w.change_date = s.change_date
          and w.scrip_id = s.scrip_id
          and w.prev_series = s.prev_series
          and w.to_series = s.to_series
        order by w.revision desc
        limit 1
      ) w on true
  )
select case _action when 'update' then 'differs' else 'missing' end as problem,
  jsonb_build_object(
    'exchange', s.exchange::text, 'change_date', s.change_date::text, 'scrip_id',
      s.scrip_id::text, 'prev_series', s.prev_series::text, 'to_series', s.to_series::text
  ) as key,
  coalesce(s._stored_load, s._load)::float8 as "loadId"
from compared s
where _live and _action in ('insert', 'relist', 'update')
union all
select 'unexpected',
  jsonb_build_object(
    'exchange', t.exchange::text, 'change_date', t.change_date::text, 'scrip_id',
      t.scrip_id::text, 'prev_series', t.prev_series::text, 'to_series', t.to_series::text
  ),
  t.load_id::float8
from market.series_changes t
where t.exchange = $1
  and t.change_date = any($2::date[])
  and ($3::text[] is null or true)
  and not exists (
    select
    from pg_temp.fold_series_changes f
    where f.exchange = t.exchange
      and f.change_date = t.change_date
      and f.scrip_id = t.scrip_id
      and f.prev_series = t.prev_series
      and f.to_series = t.to_series
  )

-- fold.isEmpty
select
where not exists (
  select
  from market.series_changes t
  where t.exchange = $1 and t.change_date = any($2::date[]) and ($3::text[] is null or true)
)
  and not exists (
    select
    from market_history.series_changes t
    where t.exchange = $1 and t.change_date = any($2::date[]) and ($3::text[] is null or true)
  )

-- fold.storeCopy
with past as (
  insert into market_history.series_changes select * from pg_temp.fold_history_series_changes
),
  live as (
    insert into market.series_changes (
      exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
        source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
        load_id
    )
    select exchange, change_date, scrip_id, prev_series, to_series, symbol, scrip_name,
      source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id,
      load_id
    from pg_temp.fold_series_changes
    order by exchange, change_date, scrip_id, prev_series, to_series
  )
select (select count(*) from pg_temp.fold_series_changes)::float8 as inserted,
  (select count(*) from pg_temp.fold_series_changes)::float8 + (
    select count(*) from pg_temp.fold_history_series_changes
  ) as changed,
  array(
    select load_id::float8
    from pg_temp.fold_series_changes
    union select load_id
    from pg_temp.fold_history_series_changes
    union select replaced_by_load_id
    from pg_temp.fold_history_series_changes
  ) as loads

-- fold.hasConflict
select
from pg_temp.stage_series_changes s
  join lateral (
    select t.tableoid, t.ctid, t.*
    from market.series_changes t
    where t.exchange = s.exchange
      and t.change_date = s.change_date
      and t.scrip_id = s.scrip_id
      and t.prev_series = s.prev_series
      and t.to_series = s.to_series
    limit 1
  ) t on true
where (
   (
    row(t.symbol, t.scrip_name) is distinct from row(s.symbol, s.scrip_name)
      or (
        s.source_received_at is not null
          and s.source_received_at is distinct from t.source_received_at
      )
      or (
        nullif(s.source_saved_at, $1::timestamptz) is not null
          and nullif(s.source_saved_at, $1::timestamptz) is distinct from t.source_saved_at
      )
  )
    and not coalesce(nullif(s.source_saved_at, $1::timestamptz) < t.source_saved_at, false)
)
  or s.source_saved_at = $1::timestamptz
  or exists (select from etl.loads l where l.fetched_at = t.source_saved_at)
limit 1
