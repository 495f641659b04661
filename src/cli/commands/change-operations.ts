import type { Config } from '../../core/config.ts';
import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import { didYouMean } from '../../core/input.ts';
import { explainMissingRight, migrateDatabase, schemaState } from '../../load/migrate.ts';
import { readStoredOperations } from '../../load/state/enabled-operations.ts';
import { tablesFilledBy } from '../../operations/operation.ts';
import {
  allOperations,
  builtIn,
  isDefault,
  isInUse,
  namedBy,
  operationNamed,
  titleOf,
  type UsedOperation,
} from '../../operations/registry.ts';
import { type Cli, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { openLog, openStore } from '../open-context.ts';

/** Creates the tables of operations, and uses them from now on. */
export const enable = (cli: Cli, named: readonly string[], flags: JsonFlag) =>
  changeOperations(cli, named, true, flags);

/** Stops using operations. Their tables stay. */
export const disable = (cli: Cli, named: readonly string[], flags: JsonFlag) =>
  changeOperations(cli, named, false, flags);

async function changeOperations(
  cli: Cli,
  named: readonly string[],
  isEnabled: boolean,
  flags: JsonFlag,
): Promise<void> {
  const config = await loadSettings(cli);
  const texts = named.flatMap((text) => text.split(',')).filter((text) => text !== '');
  // A mistake is reported before a database is opened, or created.
  const declared = isEnabled ? await findDeclaredNames(config, texts, true) : [];
  if (!isEnabled) await findDeclaredNames(config, texts.filter(isDefault), false);
  const db = await openStore(cli, config, openLog(cli, config), 'short');
  try {
    const stored = (await schemaState(db)) === 'missing' ? [] : await readStoredOperations(db.drizzle);
    // What is stored can be disabled whatever has become of its file.
    const names = isEnabled ? declared : await findStoredNames(config, texts, stored);
    const known = isEnabled ? names : names.filter((name) => stored.some((one) => one.name === name));
    const change = { names: known, to: isEnabled ? 'enabled' : 'disabled', by: requesterName() } as const;
    await migrateDatabase(db, config, change);
    const changed = names.map((name) =>
      describeChanged(
        name,
        isEnabled,
        stored.some((one) => one.name === name && one.isEnabled),
      ),
    );
    if (flags.json === true) return printJson(cli, changed);
    print(cli, changed.map(changeText).join('\n'));
  } catch (error) {
    throw await explainMissingRight(db, error, 'migrate');
  }
}

/** The names that these texts mean, of operations that can be enabled. @throws PipelineError `usage` */
async function findDeclaredNames(
  { EOD_OPERATIONS_DIR: folder }: Config,
  texts: readonly string[],
  isEnabled: boolean,
): Promise<string[]> {
  const { operations: all, broken } = await allOperations(folder);
  const declared = all.map(({ operation }) => operation);
  const names = texts.map((text) => {
    const isNamed = ({ name }: { readonly name: string }) => name.toLowerCase() === text.toLowerCase();
    const unusable = broken.find(isNamed);
    if (unusable !== undefined) throw usageError(unusable.problem);
    const meant = namedBy(declared, text);
    const found = all.find(({ operation }) => operation === meant);
    const ofFiles = found === undefined ? namedBy(builtIn, text) : undefined;
    if (ofFiles !== undefined) {
      throw usageError(
        `${titleOf(ofFiles.name)} is never requested, so not enabled or disabled: files fill it, or it is computed from other data`,
      );
    }
    if (found === undefined) {
      const others = all.flatMap(({ operation, from }) => (from === 'default' ? [] : [operation.name]));
      throw usageError(
        `unknown operation "${text}"${didYouMean(text, others)} ("eod operations list --available" lists those that can be enabled)`,
      );
    }
    const { name } = found.operation;
    if (found.from !== 'default') return name;
    throw usageError(`${name} comes with eod: it is ${isEnabled ? 'enabled already' : 'never disabled'}`);
  });
  return [...new Set(names)];
}

/** The names that these texts mean, of operations that are stored, or at least declared. @throws PipelineError `usage` */
async function findStoredNames(
  config: Config,
  texts: readonly string[],
  stored: readonly UsedOperation[],
): Promise<string[]> {
  const found = texts.map(
    (text) => stored.find(({ name }) => name.toLowerCase() === text.toLowerCase())?.name ?? text,
  );
  const others = found.filter((text) => !stored.some(({ name }) => name === text));
  if (others.length === 0) return [...new Set(found)];
  const spelled = await findDeclaredNames(config, others, false);
  return [...new Set([...found.filter((text) => !others.includes(text)), ...spelled])];
}

/** What has become of an operation. If its file is missing, neither its tables nor its schedule are known. */
function describeChanged(name: string, isEnabled: boolean, wasEnabled: boolean) {
  const operation = isInUse(name) ? operationNamed(name) : null;
  return {
    name,
    isEnabled,
    isUnchanged: wasEnabled === isEnabled,
    tables: operation === null ? [] : tablesFilledBy(operation).map((table) => `market.${table.name}`),
    schedule: operation === null ? null : { at: operation.schedule.at, on: operation.schedule.on },
  };
}

function changeText(changed: ReturnType<typeof describeChanged>): string {
  const { name, isEnabled, isUnchanged, tables, schedule } = changed;
  if (!isEnabled) {
    const rows = tables.length === 0 ? 'its rows' : `the rows of ${tables.join(' and ')}`;
    return `${name}: ${isUnchanged ? 'was not enabled' : `disabled; ${rows} stay`}`;
  }
  const filled = `fills ${tables.join(' and ')}, ${schedule?.on} at ${schedule?.at}`;
  return `${name}: ${isUnchanged ? 'was enabled already' : 'enabled'}; ${filled}`;
}
