import { usageError } from '../../core/errors.ts';
import { didYouMean } from '../../core/input.ts';
import type { DataSetDescription, FieldDescription, TableDescription } from '../../operations/describe.ts';
import { allowedText } from '../../operations/operation.ts';
import { type Cli, type Commands, type JsonFlag, print, printJson, printRecord } from '../cli.ts';
import { examples, jsonOption } from '../options.ts';
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

export const commands: Commands = {
  operations(command, cli) {
    command
      .argument('[name]', 'an operation, or data set of imported files')
      .addOption(jsonOption())
      .addHelpText('after', examples('eod operations', 'eod operations GetBhavCopyCM'))
      .action((name: string | undefined, flags: JsonFlag) => describeOperations(cli, name, flags));
  },
};

async function describeOperations(cli: Cli, name: string | undefined, flags: JsonFlag): Promise<void> {
  const { findDataSet, dataSets, namesFilling, tables } = await import('../../operations/registry.ts');
  const { describeDataSet } = await import('../../operations/describe.ts');
  if (name === undefined) {
    const all = dataSets.map(describeDataSet);
    return flags.json === true ? printJson(cli, all) : print(cli, table(OPERATION_COLUMNS, all));
  }
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
  const one = describeDataSet(findDataSet(name));
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
