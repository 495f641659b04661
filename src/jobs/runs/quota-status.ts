import type { RunKind } from '../../load/state/run-request.ts';
import type { Context } from '../context.ts';
import { queueOf } from '../worker/queue.ts';
import { currentHour, permitOf } from '../worker/quota.ts';

export interface QuotaStatus {
  /** Start of the clock hour, ISO 8601. */
  readonly hour: string;
  readonly calls: number;
  readonly limit: number;
  /** What of the limit backfills may use. */
  readonly backfillLimit: number;
  /** Until when backfills wait, ISO 8601; null when they need not. */
  readonly backfillsWaitUntil: string | null;
  /** The same for nightly runs. */
  readonly nightsWaitUntil: string | null;
}

/** What is used of the key's hour, and who waits for the next one. */
export async function quotaStatus({ config, clock, db }: Context): Promise<QuotaStatus> {
  const permit = permitOf(config, clock);
  const hour = await currentHour(db.pool, permit);
  const next = new Date(permit.hour + 3_600_000).toISOString();
  const spent = (limit: number) => hour.refused !== null || hour.calls >= limit;
  return {
    hour: new Date(permit.hour).toISOString(),
    calls: hour.calls,
    limit: permit.limit,
    backfillLimit: permit.backfillLimit,
    backfillsWaitUntil: spent(permit.backfillLimit) ? next : null,
    nightsWaitUntil: spent(permit.limit) ? next : null,
  };
}

/** Until when a run of this kind makes no more calls, ISO 8601; null when it may. */
export function waitsUntil(quota: QuotaStatus, kind: RunKind): string | null {
  return queueOf(kind) === 'nightly' ? quota.nightsWaitUntil : quota.backfillsWaitUntil;
}
