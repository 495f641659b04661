import { usageError } from '../../core/errors.ts';
import { didYouMean } from '../../core/input.ts';
import type { Declared } from '../../operations/declared.ts';
import {
  type DataSetDescription,
  describeDataSet,
  type FieldDescription,
  type TableDescription,
} from '../../operations/describe-operation.ts';
import { allowedText, scheduleText } from '../../operations/operation.ts';
import { allNamedBy, allOperations, dataSets, operations } from '../../operations/registry.ts';
import { type Cli, type JsonFlag, loadSettings, logStderr, print, printJson, printRecord } from '../cli.ts';
import { openEnabledOperations } from '../open-context.ts';
import { bold, type Column, columnsOf, table } from '../output.ts';

const OPERATION_COLUMNS: readonly Column<DataSetDescription>[] = [
  { head: 'operation', cell: (one) => one.name },
  { head: 'exchanges', cell: (one) => one.exchanges.join(',') },
  {
    head: 'scheduled',
    cell: (one) => (one.schedule === null ? 'with files' : scheduleText(one.schedule)),
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

export async function listOperations(
  cli: Cli,
  flags: JsonFlag & { readonly available?: boolean },
): Promise<void> {
  const config = await loadSettings(cli);
  await openEnabledOperations(cli, config);
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

export async function describeOperation(cli: Cli, name: string, flags: JsonFlag): Promise<void> {
  const config = await loadSettings(cli);
  const declared = await allOperations(config.EOD_OPERATIONS_DIR);
  const unusable = declared.broken.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (unusable !== undefined) throw usageError(unusable.problem);
  const inUse = new Set(dataSets.map((dataSet) => dataSet.name));
  const others = declared.operations.flatMap(({ operation }) =>
    inUse.has(operation.name) ? [] : [operation],
  );
  const all = [...dataSets, ...others];
  const known = all.map((dataSet) => dataSet.name);
  const found = allNamedBy(all, name).map(describeDataSet);
  if (found.length === 0) {
    const guess = didYouMean(name, known);
    const relation = name.replace(/^market\./, '');
    // Operations are in camel case.
    const isView = guess === '' && /^[a-z\d_]+$/.test(relation);
    const where = isView
      ? `; docs/tables.md describes views, as does "\\d+ market.${relation}" in psql`
      : guess;
    throw usageError(`unknown operation "${name}"${where}`, 'list_operations');
  }
  if (flags.json === true) return printJson(cli, found.length === 1 ? found[0] : found);
  for (const [at, one] of found.entries()) {
    print(cli, `${at === 0 ? '' : '\n'}${descriptionText(one)}`);
    if (one.sample !== null) printRecord(cli, one.sample.response);
  }
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
          `windows      ${one.windows}`,
          `instruments  ${one.instruments}`,
          `scheduled    ${scheduleText(one.schedule)}`,
        ]),
    ...(options.length === 0 ? [] : ['options', ...options]),
    ...one.tables.flatMap(tableText),
    ...(one.sample === null ? [] : ['', bold('sample response')]),
  ].join('\n');
}

function tableText({ name, comment, key, fields }: TableDescription): string[] {
  return ['', bold(name), comment, `key: ${key.join(', ')}`, '', table(FIELD_COLUMNS, fields)];
}
