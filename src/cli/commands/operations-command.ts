import type { Config } from '../../core/config.ts';
import { usageError } from '../../core/errors.ts';
import { didYouMean } from '../../core/input.ts';
import type { Declared } from '../../operations/declared.ts';
import type {
  DataSetDescription,
  FieldDescription,
  TableDescription,
} from '../../operations/describe-operation.ts';
import { allowedText, tablesFilledBy } from '../../operations/operation.ts';
import type { UsedOperation } from '../../operations/registry.ts';
import type { CheckFlags } from '../check-operations.ts';
import {
  type Cli,
  type Commands,
  type JsonFlag,
  loadSettings,
  logStderr,
  print,
  printJson,
  printRecord,
} from '../cli.ts';
import type { DraftFlags } from '../draft-operation.ts';
import { examples, jsonOption, listOf } from '../options.ts';
import { bold, type Column, columnsOf, table } from '../output.ts';

const OPERATION_COLUMNS: readonly Column<DataSetDescription>[] = [
  { head: 'operation', cell: (one) => one.name },
  { head: 'exchanges', cell: (one) => one.exchanges.join(',') },
  {
    head: 'scheduled',
    cell: (one) => (one.schedule === null ? 'with files' : `${one.schedule.on} ${one.schedule.at}`),
  },
  { head: 'table', cell: (one) => one.tables.map(({ name }) => name.replace(/^market\./, '')).join(', ') },
  { head: 'summary', cell: (one) => one.summary },
];

const FIELD_COLUMNS: readonly Column<FieldDescription>[] = [
  ...columnsOf<FieldDescription>('column', 'type', 'unit'),
  { head: 'source field', cell: (field) => field.source },
  ...columnsOf<FieldDescription>('meaning'),
];

/** An operation that can be enabled, with what this database does with it. */
interface Available extends DataSetDescription {
  readonly isEnabled: boolean;
  readonly from: Declared['from'];
}

const AVAILABLE_COLUMNS: readonly Column<Available>[] = [
  { head: 'operation', cell: (one) => one.name },
  { head: 'enabled', cell: (one) => (one.isEnabled ? 'yes' : 'no') },
  { head: 'declared in', cell: (one) => DECLARED_IN[one.from] },
  ...OPERATION_COLUMNS.slice(1),
];

const DECLARED_IN: Readonly<Record<Declared['from'], string>> = {
  default: 'eod',
  catalogue: 'the catalogue',
  folder: 'your folder',
};

interface ListFlags extends JsonFlag {
  readonly available?: boolean;
}

export const commands: Commands = {
  operations(command, cli) {
    command.addHelpText(
      'after',
      examples(
        'eod operations',
        'eod operations GetBhavCopyCM',
        'eod operations list --available',
        'eod operations enable GetVoting',
        'eod operations disable GetVoting',
        'eod operations draft GetVoting.json',
        'eod operations draft GetVoting',
        'eod operations check operations/GetVoting.mjs',
      ),
    );
    listOf(command, 'an operation')
      .argument('[name]', 'an operation, or data set of imported files')
      .option(
        '--available',
        'also those that can be enabled: the catalogue, and your own (EOD_OPERATIONS_DIR)',
      )
      .addOption(jsonOption())
      .action((name: string | undefined, flags: ListFlags) =>
        name === undefined ? listOperations(cli, flags) : describeOperation(cli, name, flags),
      );
    command
      .command('enable')
      .description('Create the tables of operations, and ask for them every night from now on.')
      .argument('<names...>', 'operations of the catalogue, or of your own (EOD_OPERATIONS_DIR)')
      .addOption(jsonOption())
      .action((names: string[], flags: JsonFlag) => changeOperations(cli, names, true, flags));
    command
      .command('disable')
      .description('Ask for operations no longer. Their rows and history stay.')
      .argument('<names...>', 'operations that were enabled')
      .addOption(jsonOption())
      .action((names: string[], flags: JsonFlag) => changeOperations(cli, names, false, flags));
    command
      .command('draft')
      .description(
        'Write the declaration of an operation from an answer that was saved, or print the lines for fields that no column of an operation reads; guesses are marked.',
      )
      .argument(
        '<answer>',
        'JSON, XML, or CSV with a header, which has the name of the operation; or an operation with kept answers',
      )
      .option('--name <operation>', 'the name by which the source is asked, if the file has another')
      .option('--print', 'print the declaration; else it is a new file in EOD_OPERATIONS_DIR')
      .action(async (answer: string, flags: DraftFlags) => {
        const { draftOperation } = await import('../draft-operation.ts');
        return draftOperation(cli, answer, flags);
      });
    command
      .command('check')
      .description('Test declarations against their samples, without a database.')
      .argument('<files...>', 'modules that declare operations, or names of operations')
      .option('--answer <file>', 'read this saved answer instead of the sample')
      .addOption(jsonOption())
      .action(async (files: string[], flags: CheckFlags) => {
        const { checkOperations } = await import('../check-operations.ts');
        return checkOperations(cli, files, flags);
      });
  },
};

async function listOperations(cli: Cli, flags: ListFlags): Promise<void> {
  const { describeDataSet } = await import('../../operations/describe-operation.ts');
  const { allOperations, dataSets, operations } = await import('../../operations/registry.ts');
  const config = await loadSettings(cli);
  const { openKnown } = await import('../open-context.ts');
  await openKnown(cli, config);
  if (flags.available !== true) {
    const all = dataSets.map(describeDataSet);
    return flags.json === true ? printJson(cli, all) : print(cli, table(OPERATION_COLUMNS, all));
  }
  const declared = await allOperations(config.EOD_OPERATIONS_DIR);
  const all = declared.operations.map(({ operation, from }): Available => {
    const { name, ...described } = describeDataSet(operation);
    return { name, isEnabled: operations.some((one) => one.name === name), from, ...described };
  });
  for (const { problem } of declared.broken) logStderr(cli, `eod: ${problem}`);
  if (flags.json === true) printJson(cli, all);
  else print(cli, table(AVAILABLE_COLUMNS, all));
}

async function changeOperations(
  cli: Cli,
  named: readonly string[],
  isEnabled: boolean,
  flags: JsonFlag,
): Promise<void> {
  const { requesterName } = await import('../../core/environment.ts');
  const { explainMissingRight, migrateDatabase, schemaState } = await import(
    '../../load/database/migrate.ts'
  );
  const { readStoredOperations } = await import('../../load/state/enabled-operations.ts');
  const { openLog, openStore } = await import('../open-context.ts');
  const config = await loadSettings(cli);
  const texts = named.flatMap((text) => text.split(',')).filter((text) => text !== '');
  // A mistake is told before a database is opened, or created.
  const declared = isEnabled ? await findDeclaredNames(config, texts, true) : [];
  if (!isEnabled) await findDeclaredNames(config, await defaultsAmong(texts), false);
  const db = await openStore(cli, config, openLog(cli, config), 'short');
  try {
    const stored = (await schemaState(db)) === 'missing' ? [] : await readStoredOperations(db.drizzle);
    // What is stored can be disabled whatever has become of its file.
    const names = isEnabled ? declared : await findStoredNames(config, texts, stored);
    const known = isEnabled ? names : names.filter((name) => stored.some((one) => one.name === name));
    const change = { names: known, to: isEnabled ? 'enabled' : 'disabled', by: requesterName() } as const;
    await migrateDatabase(db, config, change);
    const wereEnabled = stored.flatMap((one) => (one.isEnabled ? [one.name] : []));
    const changed = await describeChanged(names, isEnabled, wereEnabled);
    if (flags.json === true) return printJson(cli, changed);
    print(cli, changed.map(changeText).join('\n'));
  } catch (error) {
    throw await explainMissingRight(db, error, 'migrate');
  }
}

/** Those texts that name operations which come with eod. */
async function defaultsAmong(texts: readonly string[]): Promise<string[]> {
  const { isDefault } = await import('../../operations/registry.ts');
  return texts.filter(isDefault);
}

/** The names that these texts mean, of operations that can be enabled. @throws PipelineError `usage` */
async function findDeclaredNames(
  { EOD_OPERATIONS_DIR: folder }: Config,
  texts: readonly string[],
  isEnabled: boolean,
): Promise<string[]> {
  const { allOperations } = await import('../../operations/registry.ts');
  const { operations: all, broken } = await allOperations(folder);
  const names = texts.map((text) => {
    const isNamed = ({ name }: { readonly name: string }) => name.toLowerCase() === text.toLowerCase();
    const unusable = broken.find(isNamed);
    if (unusable !== undefined) throw usageError(unusable.problem);
    const found = all.find(({ operation }) => isNamed(operation));
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

interface Changed {
  readonly name: string;
  readonly isEnabled: boolean;
  /** Was it in that state before? */
  readonly isUnchanged: boolean;
  /** None if its file is away. */
  readonly tables: readonly string[];
  /** Null if its file is away. */
  readonly schedule: { readonly at: string; readonly on: string } | null;
}

/** @param before the operations that were enabled. */
async function describeChanged(
  names: readonly string[],
  isEnabled: boolean,
  before: readonly string[],
): Promise<Changed[]> {
  const { isInUse, operationNamed } = await import('../../operations/registry.ts');
  return names.map((name) => {
    const operation = isInUse(name) ? operationNamed(name) : null;
    return {
      name,
      isEnabled,
      isUnchanged: before.includes(name) === isEnabled,
      tables: operation === null ? [] : tablesFilledBy(operation).map((table) => `market.${table.name}`),
      schedule: operation === null ? null : { at: operation.schedule.at, on: operation.schedule.on },
    };
  });
}

function changeText({ name, isEnabled, isUnchanged, tables, schedule }: Changed): string {
  if (!isEnabled) {
    const rows = tables.length === 0 ? 'its rows' : `the rows of ${tables.join(' and ')}`;
    return `${name}: ${isUnchanged ? 'was not enabled' : `disabled; ${rows} stay`}`;
  }
  const filled = `fills ${tables.join(' and ')}, ${schedule?.on} at ${schedule?.at}`;
  return `${name}: ${isUnchanged ? 'was enabled already' : 'enabled'}; ${filled}`;
}

async function describeOperation(cli: Cli, name: string, flags: JsonFlag): Promise<void> {
  const {
    allOperations,
    dataSets: used,
    namesFilling,
    tables,
  } = await import('../../operations/registry.ts');
  const { describeDataSet } = await import('../../operations/describe-operation.ts');
  const config = await loadSettings(cli);
  const declared = await allOperations(config.EOD_OPERATIONS_DIR);
  const unusable = declared.broken.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (unusable !== undefined) throw usageError(unusable.problem);
  const dataSets = [...used, ...declared.operations.map(({ operation }) => operation)];
  const known = dataSets.map((dataSet) => dataSet.name);
  if (!known.some((one) => one.toLowerCase() === name.toLowerCase())) {
    const relation = name.replace(/^market\./, '');
    const [filling] = namesFilling(tables.filter((one) => one.name === relation));
    if (filling !== undefined) {
      throw usageError(`${name} is a table: "eod operations ${filling}", which fills it, describes it`);
    }
    // Operations are in camel case.
    const isOther = didYouMean(name, known) === '';
    if (isOther && /^[a-z\d_]+$/.test(relation)) {
      const where = `docs/tables.md describes views, as does "\\d+ market.${relation}" in psql`;
      throw usageError(`unknown operation "${name}"; ${where}`, 'list_operations');
    }
  }
  const found = dataSets.find((dataSet) => dataSet.name.toLowerCase() === name.toLowerCase());
  if (found === undefined)
    throw usageError(`unknown operation "${name}"${didYouMean(name, known)}`, 'list_operations');
  const one = describeDataSet(found);
  if (flags.json === true) return printJson(cli, one);
  print(cli, descriptionText(one));
  if (one.sample !== null) printRecord(cli, one.sample.answer);
}

function descriptionText(one: DataSetDescription): string {
  const options = one.options.map((option) => {
    const { param, meaning, fallback } = option;
    const allowed = allowedText(option);
    return `  ${param}: ${meaning}${allowed === null ? '' : ` (${allowed})`}${fallback === undefined ? '' : `; ${fallback} when not given`}`;
  });
  return [
    `${bold(one.name)}: ${one.summary}`,
    '',
    ...(one.schedule === null
      ? [`comes from   ${one.windows}`]
      : [
          `exchanges    ${one.exchanges.join(', ')} when none are named`,
          `asked by     ${one.windows}`,
          `instruments  ${one.instruments}`,
          `scheduled    ${one.schedule.on} at ${one.schedule.at}`,
        ]),
    ...(options.length === 0 ? [] : ['options', ...options]),
    ...one.tables.flatMap(tableText),
    ...(one.sample === null ? [] : ['', bold('sample answer')]),
  ].join('\n');
}

function tableText({ name, comment, key, fields }: TableDescription): string[] {
  return ['', bold(name), comment, `key: ${key.join(', ')}`, '', table(FIELD_COLUMNS, fields)];
}
