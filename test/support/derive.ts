import type { Pool } from 'pg';
import { EXCHANGES } from '../../src/core/exchanges.ts';
import { updateObservedAliases } from '../../src/load/observed-aliases/observed-aliases.ts';
import { updateEventSessions, updateHitBands, updatePriceFactors } from '../../src/load/price-tables.ts';
import { dataSetNamed } from '../../src/operations/registry.ts';
import type { Database } from '../../src/postgres/database.ts';
import { readChangedDays, readDerivedProgress, writeDerivedProgress } from '../../src/state/derived.ts';
import { readStateNumber } from '../../src/state/loads/state-numbers.ts';

/** The last call on each pool: as in `updateDerived`, which has a lock, only one derives at a time. */
const lastCalls = new WeakMap<Pool, Promise<void>>();

/** What is derived from rows, without the events, for tests that insert events of their own. */
export function deriveButEvents(db: Database): Promise<void> {
  const before = lastCalls.get(db.pool) ?? Promise.resolve();
  const call = before.catch(() => undefined).then(() => deriveAlone(db));
  lastCalls.set(db.pool, call);
  return call;
}

async function deriveAlone(db: Database): Promise<void> {
  const { stateNumber: state } = await readStateNumber(db.drizzle, null);
  const progress = await readDerivedProgress(db.drizzle);
  const changedDays = await readChangedDays(db.drizzle, progress?.state ?? null, state);
  await updateObservedAliases(db, changedDays);
  await updatePriceFactors(db.drizzle);
  for (const exchange of EXCHANGES) await updateEventSessions(db.drizzle, exchange);
  for (const range of changedDays(dataSetNamed('GetCircuitBreakers').shapes[0].table)) {
    await updateHitBands(db.drizzle, range);
  }
  await writeDerivedProgress(db.drizzle, { state, eventsDigest: null });
}
