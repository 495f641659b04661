import { today } from '../../core/clock.ts';
import type { Day } from '../../core/days.ts';
import { scheduledPairs } from '../../load/state/completeness-view.ts';
import type { CoverageState } from '../../load/state/coverage.ts';
import { operations } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { refusal } from '../worker/access-key.ts';
import { keyHash } from '../worker/quota.ts';
import { type Freshness, readFreshness } from './completeness.ts';
import { exchangesOf } from './nightly.ts';
import { type Progress, runProgress } from './progress.ts';
import { type QuotaStatus, quotaStatus } from './quota-status.ts';
import { observedSessions, type SessionRow, syncSessions } from './sessions.ts';

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
  const known = await coverageFacts(context);
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
      lastAskedAt: facts?.lastAskedAt.toISOString() ?? null,
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
    observedSessions: (await observedSessions(context)).map(({ exchange, day }) => ({ exchange, day })),
  };
}

interface CoverageFacts {
  readonly operation: string;
  readonly exchange: string;
  readonly lastLoaded: Day | null;
  readonly lastRun: number | null;
  readonly lastAskedAt: Date;
}

async function coverageFacts({ db }: Context): Promise<CoverageFacts[]> {
  const result = await db.pool.query<CoverageFacts>(
    `select operation, exchange, to_char(max(day) filter (where state = 'loaded'), 'YYYY-MM-DD') as "lastLoaded",
       max(run_id)::int as "lastRun", max(checked_at) as "lastAskedAt"
     from etl.coverage group by operation, exchange`,
  );
  return result.rows;
}

async function recentSessions(
  { db, calendar, clock, config }: Context,
  operation: string,
  exchange: string,
): Promise<OperationStatus['recent']> {
  const sessions = calendar.lastSessions(exchange, today(clock, config.EOD_TIMEZONE), RECENT_SESSIONS);
  // A day asked instrument by instrument counts under the most that was achieved on it.
  const result = await db.pool.query<{ state: CoverageState | 'never'; days: number }>(
    `select coalesce(known.state, 'never') as state, count(*)::int as days
       from unnest($3::date[]) as session(day) left join lateral (
         select state from etl.coverage
          where operation = $1 and exchange = $2 and day = session.day
          order by array_position(array['loaded', 'empty', 'not_published', 'failed', 'blocked', 'holiday'], state)
          limit 1) known on true
      group by 1 order by 2 desc`,
    [operation, exchange, sessions],
  );
  return Object.fromEntries(result.rows.map(({ state, days }) => [state, days]));
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
