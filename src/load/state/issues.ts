import { and, arrayOverlaps, asc, count, inArray, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { IssueKind } from './issue-kinds.ts';
import { issues } from './schema/waiting.ts';

/** Which issues; nothing given means all. */
interface IssueFilter {
  readonly kinds?: readonly IssueKind[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
}

/** Something that needs a person. */
export type Issue = Awaited<ReturnType<typeof listIssues>>[number];

const matching = ({ kinds, exchanges }: IssueFilter) =>
  and(
    kinds === undefined ? undefined : inArray(issues.kind, [...kinds]),
    exchanges === undefined ? undefined : arrayOverlaps(issues.exchanges, [...exchanges]),
  );

/** What needs a person, and how many match of each kind. */
export async function readIssues(db: NodePgDatabase, filter: IssueFilter, limit: number) {
  const listed = await listIssues(db, filter, limit);
  return { counts: await countIssues(db, filter), issues: listed };
}

/**
 * What needs a person. Where rows are missing or suspicious, or prices may be wrong by a fifth or more, comes first; then the
 * newest day, and of one day the largest effect.
 */
export function listIssues(db: NodePgDatabase, filter: IssueFilter, limit: number) {
  return (
    db
      .select({
        kind: issues.kind,
        priority: issues.priority,
        operation: issues.operation,
        exchange: issues.exchange,
        exchanges: issues.exchanges,
        from: issues.from_date,
        to: issues.to_date,
        subject: issues.subject,
        id: issues.id,
        items: issues.items,
        effect: issues.effect,
        text: issues.text,
        since: sql<string | null>`to_json(${issues.since})#>>'{}'`,
      })
      .from(issues)
      .where(matching(filter))
      // Rows without a day are of now.
      .orderBy(
        asc(issues.priority),
        sql`${issues.to_date} desc nulls first`,
        sql`${issues.effect} desc nulls last`,
        asc(issues.kind),
        asc(issues.operation),
        asc(issues.exchange),
        asc(issues.subject),
        asc(issues.id),
      )
      .limit(limit)
  );
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
