import { and, eq, inArray, isNotNull, max } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { sha256 } from '../../../core/sha256.ts';
import { aliasProgress, eventProgress } from '../schema/instrument-tables.ts';
import { loads } from '../schema/load-results.ts';
import type { EventDecision } from './decisions.ts';

// What the corporate events of an exchange were last computed from, so that it is not done again for the same inputs.

/** Identifies the inputs of an exchange's events, so that a change of them is noticed. */
interface EventInputs {
  readonly notices_state: number;
  readonly owners_state: number;
  readonly digest: string;
}

/**
 * Identifies what the events of an exchange would be computed from now.
 *
 * @param operations the data sets whose loads bring notices.
 * @param rules the version of the code that reads notices.
 * @returns the version 0 for notices if there never was any.
 */
export async function readEventInputs(
  db: NodePgDatabase,
  exchange: string,
  {
    operations,
    decisions,
    rules,
  }: {
    readonly operations: readonly string[];
    readonly decisions: readonly EventDecision[];
    readonly rules: string;
  },
): Promise<EventInputs> {
  const [notices] = await db
    .select({ version: max(loads.state) })
    .from(loads)
    .where(
      and(
        inArray(loads.operation, [...operations]),
        eq(loads.exchange, exchange),
        isNotNull(loads.changed_from),
      ),
    );
  const [owners] = await db
    .select({ version: aliasProgress.owners_state })
    .from(aliasProgress)
    .where(eq(aliasProgress.exchange, exchange));
  const decided = decisions
    .map((decision) => JSON.stringify(decision))
    .sort()
    .join('\n');
  return {
    notices_state: notices?.version ?? 0,
    owners_state: owners?.version ?? 0,
    digest: sha256(`${rules}\n${decided}`),
  };
}

async function readProgress(db: NodePgDatabase, exchange: string): Promise<EventInputs | null> {
  const { notices_state, owners_state, digest } = eventProgress;
  const [known] = await db
    .select({ notices_state, owners_state, digest })
    .from(eventProgress)
    .where(eq(eventProgress.exchange, exchange));
  return known ?? null;
}

/** True if the events of an exchange were last computed from exactly these inputs. */
export async function areEventsOf(
  db: NodePgDatabase,
  exchange: string,
  inputs: EventInputs,
): Promise<boolean> {
  const known = await readProgress(db, exchange);
  return (
    known !== null &&
    known.notices_state === inputs.notices_state &&
    known.owners_state === inputs.owners_state &&
    known.digest === inputs.digest
  );
}

/** True if events of any exchange were ever computed. */
export async function hasEventProgress(db: NodePgDatabase): Promise<boolean> {
  return (await db.$count(eventProgress)) > 0;
}

/** Stores what the events of an exchange were computed from. */
export async function writeEventProgress(
  db: NodePgDatabase,
  exchange: string,
  inputs: EventInputs,
): Promise<void> {
  await db
    .insert(eventProgress)
    .values({ exchange, ...inputs })
    .onConflictDoUpdate({ target: eventProgress.exchange, set: inputs });
}
