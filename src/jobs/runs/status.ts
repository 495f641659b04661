import { today } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import { scheduledPairs } from '../../load/state/completeness-view.ts';
import { bestStates, type CoverageState, summarizeCoverage } from '../../load/state/coverage.ts';
import { readObservedSessions, type SessionRow } from '../../load/state/sessions.ts';
import { operations } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { refusal } from '../worker/access-key.ts';
import { keyHash } from '../worker/quota.ts';
import { type Freshness, readFreshness } from './completeness.ts';
import { exchangesOf } from './nightly.ts';
import { type Progress, runProgress } from './progress.ts';
import { type QuotaStatus, quotaStatus } from './quota-status.ts';
import { syncSessions } from './sessions.ts';

/** Sessions looked back at. */
const RECENT_SESSIONS = 10;

export interface OperationStatus extends Freshness {
  /** The watermark: last session that is loaded, or null. */
  readonly lastLoaded: Day | null;
  /** Sessions of the last ten by what is known of them; `never` for those nobody asked about. */
  readonly recent: Readonly<Partial<Record<CoverageState | 'never', number>>>;
  /** Records that were refused and not settled since. */
  readonly openRejects: number;
  /** Windows that lacked too many rows, with no good answer since: somebody should look. */
  readonly suspiciousWindows: number;
  /** The run that asked last, and when, or null. */
  readonly lastRun: number | null;
  readonly lastAskedAt: string | null;
}

export interface OpenRun extends Progress {
  readonly runId: number;
}

export interface Status {
  readonly queue: 'redis' | 'postgres';
  readonly database: 'DATABASE_URL' | 'private';
  readonly operations: readonly OperationStatus[];
  readonly openRuns: readonly OpenRun[];
  /** The key's budget of this clock hour; null where no key is set. */
  readonly quota: QuotaStatus | null;
  /** The line with which the source refused the key, or null. */
  readonly keyRefused: string | null;
  /** Sessions no calendar file lists: data came for them. */
  readonly observedSessions: readonly Pick<SessionRow, 'exchange' | 'day'>[];
}

/** Nothing is expected, or was ever loaded. */
const UNKNOWN: Omit<Freshness, 'operation' | 'exchange'> = {
  ...{ lastComplete: null, lastDue: null, late: false, missingSessions: 0 },
  ...{ lastRecords: null, medianRecords: null },
};

/** What is loaded, what is missing, and what is being worked on. */
export async function readStatus(context: Context): Promise<Status> {
  const { config, db } = context;
  await syncSessions(context);
  const known = await summarizeCoverage(db.drizzle);
  const freshness = await readFreshness(context, { expected: scheduledPairs(config), others: true });
  const rejects = await openRejects(context);
  const suspicious = await suspiciousWindows(context);
  const pairs = operations.flatMap((operation) =>
    exchangesOf(operation, config).map((exchange) => ({ operation: operation.name, exchange })),
  );
  for (const { operation, exchange } of known) {
    const listed = pairs.some((pair) => pair.operation === operation && pair.exchange === exchange);
    if (!listed) pairs.push({ operation, exchange });
  }
  const statuses: OperationStatus[] = [];
  for (const { operation, exchange } of pairs) {
    const facts = known.find((one) => one.operation === operation && one.exchange === exchange);
    const fresh = freshness.find((one) => one.operation === operation && one.exchange === exchange);
    statuses.push({
      ...(fresh ?? { ...UNKNOWN, operation, exchange }),
      lastLoaded: facts?.lastLoaded ?? null,
      recent: await recentSessions(context, operation, exchange),
      openRejects: rejects.get(`${operation}|${exchange}`) ?? 0,
      suspiciousWindows: suspicious.get(`${operation}|${exchange}`) ?? 0,
      lastRun: facts?.lastRun ?? null,
      lastAskedAt: facts?.lastAskedAt == null ? null : new Date(facts.lastAskedAt).toISOString(),
    });
  }
  return {
    queue: config.REDIS_URL === undefined ? 'postgres' : 'redis',
    database: config.DATABASE_URL === undefined ? 'private' : 'DATABASE_URL',
    operations: statuses.sort((a, b) => (a.operation < b.operation ? -1 : a.operation > b.operation ? 1 : 0)),
    openRuns: await openRuns(db.pool),
    quota: config.EOD_ACCESS_KEY === undefined ? null : await quotaStatus(context),
    keyRefused:
      config.EOD_ACCESS_KEY === undefined ? null : await refusal(db.pool, keyHash(config.EOD_ACCESS_KEY)),
    observedSessions: (await readObservedSessions(context.db.drizzle)).map(({ exchange, day }) => ({
      exchange,
      day,
    })),
  };
}

async function recentSessions(
  { db, calendar, clock, config }: Context,
  operation: string,
  exchange: string,
): Promise<OperationStatus['recent']> {
  const sessions = calendar.lastSessions(exchange, today(clock, config.EOD_TIMEZONE), RECENT_SESSIONS);
  const known = await bestStates(db.drizzle, operation, exchange, sessions);
  const counts = new Map<CoverageState | 'never', number>();
  for (const day of sessions) {
    const state = known.get(day) ?? 'never';
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
}

async function openRejects({ db }: Context): Promise<Map<string, number>> {
  const result = await db.pool.query<{ name: string; rejects: number }>(
    `select operation || '|' || exchange as name, count(*)::int as rejects
       from etl.rejects where resolved_at is null group by 1`,
  );
  return new Map(result.rows.map(({ name, rejects }) => [name, rejects]));
}

/** A later good answer for the whole of a window settles it; with refused records it was not judged. */
async function suspiciousWindows({ db }: Context): Promise<Map<string, number>> {
  const result = await db.pool.query<{ name: string; windows: number }>(
    `with real as (select w.* from etl.windows w join etl.runs r on r.id = w.run_id where r.kind <> 'preview')
     select operation || '|' || exchange as name, count(*)::int as windows from real w
      where suspicious is not null and not exists (
        select from real later
         where later.id > w.id and later.operation = w.operation and later.exchange = w.exchange
           and later.from_date <= w.from_date and later.to_date >= w.to_date and later.instruments = w.instruments
           and later.part = w.part and later.state in ('loaded', 'empty') and later.suspicious is null
           and later.rejected = 0 and not later.narrowed)
      group by 1`,
  );
  return new Map(result.rows.map(({ name, windows }) => [name, windows]));
}

async function openRuns(pool: Context['db']['pool']): Promise<OpenRun[]> {
  const found = await pool.query<{ id: number }>(
    "select id::int from etl.runs where state in ('running', 'paused') order by id",
  );
  const open: OpenRun[] = [];
  for (const { id } of found.rows) open.push({ runId: id, ...(await runProgress(pool, id)) });
  return open;
}
