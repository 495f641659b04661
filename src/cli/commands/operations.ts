import {
  type DataSetDescription,
  describeDataSet,
  type FieldDescription,
  type TableDescription,
} from '../../declaration/describe-operation.ts';
import { allowedText, scheduleText } from '../../declaration/operation.ts';
import { dataSets, findDataSets } from '../../operations/registry.ts';
import { requestedOperations } from '../../operations/requested.ts';
import { type Cli, print, printJson, printRecord } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { optional } from '../options.ts';
import { bold, type Column, memberColumns, table } from '../output.ts';

/** A data set with what the settings say of it. */
interface ListedSet extends DataSetDescription {
  /** True if EOD_OPERATIONS requests it. */
  readonly isRequested: boolean;
}

const OPERATION_COLUMNS: readonly Column<ListedSet>[] = [
  { head: 'operation', cell: (dataSet) => dataSet.name },
  { head: 'exchanges', cell: (dataSet) => dataSet.exchanges.join(',') },
  { head: 'requested', cell: requestedText },
  {
    head: 'table',
    cell: (dataSet) => dataSet.tables.map(({ name }) => name.replace(/^market\./, '')).join(', '),
  },
  { head: 'summary', cell: (dataSet) => dataSet.summary },
];

function requestedText({ schedule, isRequested }: ListedSet): string {
  if (schedule === null) return 'never: from files';
  return isRequested ? scheduleText(schedule) : 'not by EOD_OPERATIONS';
}

const FIELD_COLUMNS: readonly Column<FieldDescription>[] = [
  ...memberColumns<FieldDescription>('column', 'type', 'unit'),
  { head: 'source field', cell: (field) => field.source },
  ...memberColumns<FieldDescription>('meaning'),
];

export default defineCommand({
  path: 'operations',
  group: 'Look',
  summary:
    'List the operations; with a name, show its parameters, tables, fields and units (the data dictionary).',
  args: { name: optional('an operation, or data set of imported files') },
  examples: ['eod operations', 'eod operations GetBhavCopyCM'],
  async run(cli, { name: typed, json }) {
    if (typed !== undefined) return describeOperation(cli, typed, json);
    const requested = requestedOperations(await loadSettings(cli)).map(({ name }) => name);
    const all = dataSets.map((dataSet) => {
      const { name, ...described } = describeDataSet(dataSet);
      return { name, isRequested: requested.includes(name), ...described };
    });
    if (json) printJson(cli, all);
    else print(cli, table(OPERATION_COLUMNS, all));
  },
});

function describeOperation(cli: Cli, name: string, json: boolean) {
  const described = findDataSets(name).map(describeDataSet);
  if (json) return printJson(cli, described.length === 1 ? described[0] : described);
  for (const [at, description] of described.entries()) {
    print(cli, `${at === 0 ? '' : '\n'}${descriptionText(description)}`);
    if (description.sample !== null) printRecord(cli, description.sample.response);
  }
}

function descriptionText(description: DataSetDescription): string {
  const options = description.options.map((option) => {
    const { param, meaning, fallback } = option;
    const allowed = allowedText(option);
    return `  ${param}: ${meaning}${allowed === null ? '' : ` (${allowed})`}${fallback === undefined ? '' : `; ${fallback} when not given`}`;
  });
  return [
    `${bold(description.name)}: ${description.summary}`,
    '',
    ...(description.schedule === null
      ? [`comes from   ${description.windows}`]
      : [
          `exchanges    ${description.exchanges.join(', ')} when none are named`,
          `windows      ${description.windows}`,
          `instruments  ${description.instruments}`,
          `scheduled    ${scheduleText(description.schedule)}`,
        ]),
    ...(options.length === 0 ? [] : ['options', ...options]),
    ...description.tables.flatMap(tableText),
    ...(description.sample === null ? [] : ['', bold('sample response')]),
  ].join('\n');
}

function tableText({ name, comment, key, fields }: TableDescription): string[] {
  return ['', bold(name), comment, `key: ${key.join(', ')}`, '', table(FIELD_COLUMNS, fields)];
}
