import { and, arrayOverlaps, count, inArray, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Day } from '../core/days.ts';
import { type IssueKind, SMALL_EFFECT } from './issue-kinds.ts';
import { issues } from './schema/waiting.ts';

/** Which issues; nothing given means all. */
interface IssueFilter {
  readonly kinds?: readonly IssueKind[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
}

/** Something that needs a person. */
export interface Issue {
  readonly kind: IssueKind;
  readonly priority: number;
  readonly operation: string;
  readonly exchange: string;
  readonly exchanges: readonly string[];
  readonly from: Day | null;
  readonly to: Day | null;
  readonly subject: string | null;
  readonly id: string | null;
  /** How many rejects, findings or corporate actions it stands for. */
  readonly items: number;
  readonly effect: number | null;
  readonly text: string | null;
  readonly since: string | null;
}

const matching = ({ kinds, exchanges }: IssueFilter) =>
  and(
    kinds === undefined ? undefined : inArray(issues.kind, [...kinds]),
    exchanges === undefined ? undefined : arrayOverlaps(issues.exchanges, [...exchanges]),
  );

/** How many issues a line of a list stands for. */
export const issuesIn = ({ kind, items }: Pick<Issue, 'kind' | 'items'>): number =>
  kind === 'corporate_action' ? items : 1;

/** What needs a person, and how many match of each kind. */
export async function readIssues(db: NodePgDatabase, filter: IssueFilter, limit: number) {
  const listed = await listIssues(db, filter, limit);
  return { counts: await countIssues(db, filter), issues: listed };
}

/**
 * What needs a person. Where rows are missing or suspicious, or prices may be wrong by a fifth or more, comes first; then the
 * newest day, and of one day the largest effect. Corporate actions that move prices little are one issue, because one
 * command settles all of them.
 */
export async function listIssues(db: NodePgDatabase, filter: IssueFilter, limit: number) {
  const result = await db.execute<Issue & Record<string, unknown>>(sql`
    with line as (
      select *, case when kind = 'corporate_action' and effect < ${SMALL_EFFECT} then 0 else row_number() over () end as number
        from ${issues} where ${matching(filter) ?? sql`true`}
    )
    select kind, max(priority) as priority, min(operation) as operation, min(exchange) as exchange,
           string_to_array(string_agg(array_to_string(exchanges, ','), ','), ',') as exchanges,
           min(from_date)::text as "from", max(to_date)::text as "to",
           case when count(*) = 1 then min(subject) end as subject, case when count(*) = 1 then min(id) end as id,
           sum(items)::float8 as items, max(effect)::float8 as effect,
           (array_agg(text order by to_date desc nulls first, effect desc nulls last))[1] as text,
           to_json(min(since))#>>'{}' as since
      from line
     group by kind, number
     -- Issues without a day are about the present, and come first.
     order by priority, "to" desc nulls first, effect desc nulls last, kind, operation, exchange, subject, id
     limit ${limit}`);
  return result.rows.map((issue) => ({ ...issue, exchanges: [...new Set(issue.exchanges)].sort() }));
}

/** How many issues there are of each kind, and how many rejects and findings these stand for; none of a kind without. */
export function countIssues(db: NodePgDatabase, filter: IssueFilter = {}) {
  return db
    .select({ kind: issues.kind, issues: count(), items: sql<number>`sum(${issues.items})::float8` })
    .from(issues)
    .where(matching(filter))
    .groupBy(issues.kind)
    .orderBy(issues.kind);
}
