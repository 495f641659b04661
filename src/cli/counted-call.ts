import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../core/clock.ts';
import type { Config } from '../core/config.ts';
import { messageOf, PipelineError } from '../core/errors.ts';
import { assessEvidence } from '../jobs/policy/failure-policy.ts';
import { computeCallLimit, fullHourWait } from '../jobs/policy/quota.ts';
import type { Database } from '../postgres/database.ts';
import { readServerTime } from '../postgres/inspect.ts';
import { closeHour, openHour, returnCall, takeCall } from '../state/source/call-budget.ts';
import { noteSourceResponded } from '../state/source/source-state.ts';
import type { Cli } from './cli.ts';

// Calls that a command makes itself, beside those of windows.

/**
 * Counts a call that is about to be made, where calls can be counted. Waits for the full hour if it is near: a call sent
 * at the end of one hour and received in the next would count against the wrong one.
 *
 * @returns what it was counted against; null if no call may be made.
 */
export async function countedCall({ life }: Cli, config: Config, db: Database | null) {
  // The hour is that of the workers' calls, whatever the clock of this machine says.
  const now = () => (db === null ? systemClock.now() : readServerTime(db.pool));
  await sleep(fullHourWait(await now(), config.EOD_TIMEZONE), undefined, { signal: life.signal });
  const hourNow = await now();
  const callLimit = computeCallLimit(config, { now: () => hourNow });
  return db === null || (await takeCall(db.drizzle, callLimit)) ? callLimit : null;
}

/** Stores for the workers what the call showed about the key and the hour's quota. */
export async function storeEvidence(
  db: Database,
  callLimit: ReturnType<typeof computeCallLimit>,
  error: unknown,
): Promise<void> {
  const { source, key, hour } =
    error === null ? { source: 'success', key: 'accepted', hour: 'open' } : assessEvidence(error, 1);
  if (error instanceof PipelineError && error.isUnsent === true) await returnCall(db.drizzle, callLimit);
  if (hour === 'closed') await closeHour(db.drizzle, callLimit, messageOf(error));
  else if (hour === 'open') await openHour(db.drizzle, callLimit);
  // A refused key is left to a worker, which sends the alert.
  if (source === 'success' && key !== 'refused')
    await noteSourceResponded(db.drizzle, callLimit.keyHash, key === 'accepted');
}
