import { waitFor } from '../support/wait-for.ts';
import type { Setup } from './support.ts';

export const LIMITED = 'Calls per hour are limited.';

export const QUARTER = {
  operations: ['GetBhavCopyCM'],
  exchanges: ['NSE'],
  from: '2025-06-16',
  to: '2025-09-11',
};

export const at = (time: string) => Date.parse(`2025-09-12T${time}+05:30`);

export const queueOf = ({ queues }: Setup) => queues.windows.backfill;

/** Milliseconds for which the queue hands out no job. */
export const limitedFor = (setup: Setup) => queueOf(setup).getRateLimitTtl(1_000_000);

/** Waits for jobs under way too: each would limit the queue once more, by the time at which it began. */
export const whenLimited = (setup: Setup) =>
  waitFor(async () => (await queueOf(setup).getActiveCount()) === 0 && (await limitedFor(setup)) > 0);

export const closedHours = async ({ db }: Setup) =>
  (await db.pool.query('select from etl.call_budget where refused_at is not null')).rowCount;
