import { EXCHANGES } from '../../core/exchanges.ts';
import { NAMING_TABLES, updateObservedAliases } from '../../load/observed-aliases/observed-aliases.ts';
import { updateEventSessions, updateHitBands, updatePriceFactors } from '../../load/price-tables.ts';
import { analyzeTables } from '../../load/statistics.ts';
import { dataSetNamed } from '../../operations/registry.ts';
import { takeSessionLock, trySessionLock } from '../../postgres/session-lock.ts';
import {
  type ChangedDays,
  readChangedDays,
  readDerivedProgress,
  writeDerivedProgress,
} from '../../state/derived.ts';
import { readStateNumber } from '../../state/loads/state-numbers.ts';
import type { Context } from '../context.ts';
import { readEventsDigest, updateCorporateEvents } from './update-events.ts';

/** Whoever derives holds this lock, so that no step reads what another process is about to write. */
const LOCK = 'eod:derived';

/**
 * Brings what is derived from the rows up to date with all loads and decisions so far: names of instruments → corporate
 * events → price factors → price bands hit → statistics for the planner. Each step computes what its inputs say, for
 * the exchanges and days that changed; a process that ends in between leaves it to the next call. Safe to repeat, and
 * to call from several processes.
 *
 * @param options.isAwaited false: nothing is done if another process is at it.
 * @throws PipelineError of kind `database` or `database_unreachable`.
 */
export async function updateDerived(
  context: Context,
  { isAwaited = true }: { readonly isAwaited?: boolean } = {},
): Promise<void> {
  const { db, log } = context;
  // Checked before the lock is taken, because this is called at the end of every run.
  if (await isUpToDate(context)) return;
  const lock = isAwaited ? await takeSessionLock(db, LOCK) : await trySessionLock(db, LOCK);
  if (lock === null) return;
  try {
    // Events are loaded like a response, and the factors follow from that load.
    while (!(await isUpToDate(context)) && (await deriveOnce(context)).hasStoredEvents);
  } finally {
    await lock.release();
  }
  await analyzeTables(db).catch((err) => log.warn({ err }, 'could not analyze tables'));
}

async function isUpToDate({ db }: Context): Promise<boolean> {
  const progress = await readDerivedProgress(db.drizzle);
  const { stateNumber } = await readStateNumber(db.drizzle, null);
  return progress?.state === stateNumber && progress.eventsDigest === (await readEventsDigest(db));
}

const EVENTS = dataSetNamed('CorporateEvents').shapes[0].table;
const BANDS = dataSetNamed('GetCircuitBreakers').shapes[0].table;

/** One pass of the steps, for what loads have changed since the last one. */
async function deriveOnce(context: Context): Promise<{ readonly hasStoredEvents: boolean }> {
  const { db } = context;
  // Read before the rows, so that what is loaded meanwhile is derived from by the next pass.
  const { stateNumber: state } = await readStateNumber(db.drizzle, null);
  const progress = await readDerivedProgress(db.drizzle);
  const changedDays = await readChangedDays(db.drizzle, progress?.state ?? null, state);
  await updateObservedAliases(db, changedDays);
  const events = await updateCorporateEvents(context, changedDays);
  await updatePriceTables(db, changedDays);
  await writeDerivedProgress(db.drizzle, { state, eventsDigest: events.digest });
  return events;
}

async function updatePriceTables({ drizzle }: Context['db'], changedDays: ChangedDays): Promise<void> {
  if (changedDays(EVENTS).length > 0) await updatePriceFactors(drizzle);
  for (const exchange of EXCHANGES) {
    const hasChanged = [EVENTS, ...NAMING_TABLES].some((table) => changedDays(table, exchange).length > 0);
    if (hasChanged) await updateEventSessions(drizzle, exchange);
  }
  for (const range of changedDays(BANDS)) await updateHitBands(drizzle, range);
}
