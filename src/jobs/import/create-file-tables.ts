import { requesterName } from '../../core/environment.ts';
import { messageOf, PipelineError } from '../../core/errors.ts';
import { explainMissingRight, migrateDatabase } from '../../load/migrate.ts';
import { type Operation, tablesFilledBy } from '../../operations/operation.ts';
import { allOperations } from '../../operations/registry.ts';
import type { Context } from '../context.ts';

/** Makes the files of a segment known, and creates their tables; false if no operation declares them. */
export type Preparer = (segment: string) => Promise<boolean>;

/**
 * Creates a function that creates, once for an import, the tables of an operation whose files are imported though it was
 * never enabled. It is not asked for: files alone fill its tables.
 *
 * @param onPrepared is told the operation.
 */
export function createPreparer(
  context: Context,
  onPrepared: (operation: Operation) => void = () => undefined,
): Preparer {
  const prepared = new Map<string, Promise<boolean>>();
  return (segment) => {
    const known = prepared.get(segment) ?? prepare(context, segment, onPrepared);
    prepared.set(segment, known);
    return known;
  };
}

async function prepare(
  { db, config }: Context,
  segment: string,
  onPrepared: (operation: Operation) => void,
): Promise<boolean> {
  const { operations } = await allOperations(config.EOD_OPERATIONS_DIR);
  const operation = operations.find((one) => one.operation.udiff?.segment === segment)?.operation;
  if (operation === undefined) return false;
  try {
    await migrateDatabase(db, config, { names: [operation.name], to: 'filled', by: requesterName() });
  } catch (error) {
    const explained = await explainMissingRight(db, error, 'migrate');
    if (!(explained instanceof PipelineError) || explained.kind !== 'usage') throw explained;
    const names = tablesFilledBy(operation).map(({ name }) => `market.${name}`);
    throw new PipelineError(`needs ${names.join(' and ')}: ${messageOf(explained)}`, { kind: 'unreadable' });
  }
  onPrepared(operation);
  return true;
}
