import pg from 'pg';
import type { Operation } from '../../operations/operation.ts';
import { operations } from '../../operations/registry.ts';

/** One operation asked of one exchange. */
export interface Pair {
  readonly operation: string;
  readonly exchange: string;
}

export interface CompletenessInput {
  /** Expected from their first complete session on; over the source's reach where nothing is there. */
  readonly expected: readonly Pair[];
  /** Also whatever else was ever loaded, between its first and last complete session. */
  readonly others: boolean;
  /** Judge as of this moment; null: whenever the query runs. */
  readonly now: Date | null;
  readonly timeZone: string;
  /** `HH:mm` at which a session's data is published. */
  readonly publishedAt: string;
  /** How many days back the source is expected to reach. */
  readonly historyDays: number;
  /** Instead of the range of each pair. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

const WEEKDAYS = { daily: null, sunday: 0, friday: 5, saturday: 6 } as const;

/** What is known of an operation and session, best first; RANKS numbers the cases of `known`. */
const RANKS = { loaded: 1, empty: 2, not_published: 3, failed: 4, blocked: 5, partial: 6, unknown: 7 };

/**
 * Every session an operation should have of an exchange, and what became of it: exchange, operation,
 * day, state, reason, detail, records, checked_at. The view etl.completeness and `eod gaps` are this
 * one query.
 *
 * An operation asked per instrument counts as there with any instrument; one that knows no dates has
 * a single line, complete once it was ever loaded, and none in a range that has an end.
 */
export function completenessSql(input: CompletenessInput): string {
  const { now, others } = input;
  const moment = now === null ? 'statement_timestamp()' : `${text(now.toISOString())}::timestamptz`;
  const from = input.from === undefined ? 'null::date' : `${text(input.from)}::date`;
  const to = input.to === undefined ? 'null::date' : `${text(input.to)}::date`;
  const there = `${moment} at time zone ${text(input.timeZone)}`;
  return `with clock as (
  select ${there} as now_there, (${there})::date as today, ${from} as from_day, ${to} as to_day,
    (${there})::date - ${input.historyDays} as reach
), operation (operation, parts, whole, empty_is_normal, weekday, due_at) as (
  values ${operations.map((one) => operationRow(one, input.publishedAt)).join(',\n    ')}
), expected (operation, exchange) as (
  ${pairRows(input.expected)}
), answer as (
  select c.operation, c.exchange, c.day, c.state, c.records, c.diagnostic, c.checked_at, o.whole and c.instrument <> '' as part_of_day, o.empty_is_normal,
    case when o.whole and c.instrument <> '' then case c.state when 'loaded' then ${RANKS.partial} else ${RANKS.unknown} end
      else case c.state when 'loaded' then ${RANKS.loaded} when 'empty' then ${RANKS.empty}
        when 'not_published' then ${RANKS.not_published} when 'failed' then ${RANKS.failed}
        when 'blocked' then ${RANKS.blocked} else ${RANKS.unknown} end end as rank
  from etl.coverage c join operation o using (operation)
  where o.parts is null or c.part = any (o.parts)
), known as (
  select operation, exchange, day, min(rank) as rank,
    min(rank) = ${RANKS.loaded} or (min(rank) = ${RANKS.empty} and bool_and(empty_is_normal)) as complete,
    coalesce(sum(records) filter (where not part_of_day), 0)::bigint as records,
    max(diagnostic) filter (where state in ('failed', 'blocked')) as diagnostic, max(checked_at) as checked_at
  from answer group by operation, exchange, day
), span as (
  select operation, exchange, min(day) as first_day, max(day) as last_day, max(checked_at) as checked_at
  from known where complete group by operation, exchange
), pair as (
  select e.operation, e.exchange,
    coalesce(clock.from_day, case when o.parts is not null then s.first_day end, clock.reach) as from_day,
    least(clock.to_day, clock.today) as to_day
  from clock, expected e join operation o using (operation) left join span s using (operation, exchange)
  union all
  select s.operation, s.exchange, coalesce(clock.from_day, s.first_day), least(clock.to_day, s.last_day)
  from clock, span s
  where ${others} and not exists (
    select from expected e where e.operation = s.operation and e.exchange = s.exchange)
), due as (
  select p.operation, p.exchange, s.day, o.parts is null as undated,
    s.day + (coalesce(o.weekday - extract(dow from s.day)::int, 0) + 7) % 7 + o.due_at <= clock.now_there as is_due
  from clock, pair p join operation o using (operation)
  join etl.sessions s on s.exchange = p.exchange and s.day between p.from_day and p.to_day
), session as (
  select d.exchange, d.operation, d.day, d.is_due, coalesce(k.complete, false) as complete,
    coalesce(k.rank, ${RANKS.unknown}) as rank, k.diagnostic, coalesce(k.records, 0) as records, k.checked_at
  from due d left join known k using (operation, exchange, day) where not d.undated
  union all
  select d.exchange, d.operation, max(d.day), true, s.last_day is not null, ${RANKS.unknown}, null,
    coalesce(max(k.records), 0), s.checked_at
  from clock, due d left join span s using (operation, exchange)
  left join known k on k.operation = s.operation and k.exchange = s.exchange and k.day = s.last_day
  where d.undated and d.is_due and clock.to_day is null
  group by d.exchange, d.operation, s.last_day, s.checked_at
)
select exchange, operation, day,
  case when complete then 'complete' when is_due then 'missing' else 'pending' end as state,
  case when complete then null when not is_due then 'not_published'
    when rank = ${RANKS.empty} then 'empty' when rank = ${RANKS.not_published} then 'not_published'
    when rank = ${RANKS.failed} then 'failed'
    when rank = ${RANKS.blocked} and diagnostic like '%out of allowed range%' then 'beyond_history'
    when rank = ${RANKS.blocked} then 'blocked' when rank = ${RANKS.partial} then 'partial'
    when day < clock.reach then 'beyond_history' else 'never_asked' end as reason,
  case when complete then null else diagnostic end as detail,
  records, checked_at
from session, clock`;
}

function operationRow(operation: Operation, publishedAt: string): string {
  const { name, emptyIsNormal, schedule } = operation;
  const parts = sessionParts(operation);
  // Data is not late before the schedule asks for it; weekly operations have until their weekday.
  const dueAt = schedule.at > publishedAt ? schedule.at : publishedAt;
  const cells = [
    text(name),
    parts === null ? 'null::text[]' : `array[${parts.map(text).join(', ')}]::text[]`,
    String(operation.windows.per !== 'instrument'),
    String(emptyIsNormal),
    `${WEEKDAYS[schedule.on] ?? 'null'}::int`,
    `${text(dueAt)}::time`,
  ];
  return `(${cells.join(', ')})`;
}

/** Which questions an operation has for a session, or null where it knows none: it is undated. */
function sessionParts({ windows }: Operation): string[] | null {
  if (windows.per === 'once') return null;
  if (windows.per !== 'instrument') return [''];
  const day = '2025-02-27';
  const asks = windows.asks({ sessions: [day], from: day, to: day, today: '2025-03-03', live: false });
  const parts = asks.filter((ask) => ask.from === day && ask.to === day).map((ask) => ask.part);
  return parts.length === 0 ? null : parts;
}

function pairRows(pairs: readonly Pair[]): string {
  if (pairs.length === 0) return 'select null::text, null::text where false';
  return `values ${pairs.map((pair) => `(${text(pair.operation)}, ${text(pair.exchange)})`).join(',\n    ')}`;
}

const text = (value: string): string => pg.escapeLiteral(value);
