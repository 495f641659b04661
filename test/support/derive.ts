import { EXCHANGES } from '../../src/core/exchanges.ts';
import { DERIVED_LOCK } from '../../src/jobs/events/update-derived.ts';
import type { Database } from '../../src/load/database/database.ts';
import { takeSessionLock } from '../../src/load/database/session-lock.ts';
import { updateObservedAliases } from '../../src/load/market/observed-aliases/observed-aliases.ts';
import {
  updateEventSessions,
  updateHitBands,
  updatePriceFactors,
} from '../../src/load/market/price-tables.ts';
import { readChangedDays, readDerivedProgress, writeDerivedProgress } from '../../src/load/state/derived.ts';
import { readStateNumber } from '../../src/load/state/loads/state-numbers.ts';
import { dataSetNamed } from '../../src/operations/registry.ts';

/** What is derived from rows, without the events, for tests that insert events of their own. */
export async function deriveButEvents(db: Database): Promise<void> {
  const lock = await takeSessionLock(db, DERIVED_LOCK);
  try {
    await derive(db);
  } finally {
    await lock.release();
  }
}

async function derive(db: Database): Promise<void> {
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
