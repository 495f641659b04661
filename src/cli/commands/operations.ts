import { type Field, SQL_TYPES } from '../../operations/fields.ts';
import {
  allowedText,
  type DataSet,
  isOperation,
  type Operation,
  type RequestOption,
  type Schedule,
  tablesFilledBy,
} from '../../operations/operation.ts';
import type { TableDefinition } from '../../operations/table.ts';
import { type Cli, type Commands, type JsonFlag, print, printJson, printRecord } from '../cli.ts';
import { examples, jsonOption } from '../options.ts';
import { bold, type Column, table } from '../output.ts';

interface FieldDescription {
  readonly column: string;
  readonly type: string;
  readonly unit: string | null;
  /** Source field, or where else the value comes from. */
  readonly source: string;
  readonly meaning: string;
  readonly required: boolean;
}

interface TableDescription {
  readonly name: string;
  readonly comment: string;
  readonly key: readonly string[];
  readonly fields: readonly FieldDescription[];
}

/** An operation as the data dictionary tells it, all of it from its own file; or a data set that comes with files, which is not asked for. */
interface Description {
  readonly name: string;
  readonly summary: string;
  readonly exchanges: readonly string[];
  readonly windows: string;
  readonly instruments: string | null;
  readonly options: readonly RequestOption[];
  readonly schedule: Schedule | null;
  readonly tables: readonly TableDescription[];
  readonly sample: Operation['sample'] | null;
}

const INSTRUMENTS = {
  none: 'cannot be asked by instrument',
  one: 'one per request',
  many: 'up to 25 per request',
} as const;

const OPERATION_COLUMNS: readonly Column<Description>[] = [
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
  { head: 'column', cell: (field) => field.column },
  { head: 'type', cell: (field) => field.type },
  { head: 'unit', cell: (field) => field.unit },
  { head: 'source field', cell: (field) => field.source },
  { head: 'meaning', cell: (field) => field.meaning },
];

export const commands: Commands = {
  operations(command, cli) {
    command
      .argument('[name]', 'one operation, or data set of imported files, in any case')
      .addOption(jsonOption())
      .addHelpText('after', examples('eod operations', 'eod operations GetBhavCopyCM'))
      .action((name: string | undefined, flags: JsonFlag) => describeOperations(cli, name, flags));
  },
};

async function describeOperations(cli: Cli, name: string | undefined, flags: JsonFlag): Promise<void> {
  const { anyDataSetNamed, dataSets } = await import('../../operations/registry.ts');
  if (name === undefined) {
    const all = dataSets.map(describe);
    return flags.json === true ? printJson(cli, all) : print(cli, table(OPERATION_COLUMNS, all));
  }
  const one = describe(anyDataSetNamed(name));
  if (flags.json === true) return printJson(cli, one);
  print(cli, descriptionText(one));
  if (one.sample !== null) printRecord(cli, one.sample.answer);
}

/** Everything there is to know about a data set (pure). */
function describe(dataSet: DataSet): Description {
  if (isOperation(dataSet)) return describeOperation(dataSet);
  const { name, summary } = dataSet;
  const tables = tablesFilledBy(dataSet).map(describeTable);
  return {
    name,
    summary,
    exchanges: [],
    windows: 'imported files, or worked out from what is stored',
    instruments: null,
    options: [],
    schedule: null,
    tables,
    sample: null,
  };
}

function describeOperation(operation: Operation): Description {
  return {
    name: operation.name,
    summary: operation.summary,
    exchanges: operation.exchanges,
    windows: windowsText(operation),
    instruments: INSTRUMENTS[operation.request.instruments],
    options: operation.request.options,
    schedule: operation.schedule,
    tables: tablesFilledBy(operation).map(describeTable),
    sample: operation.sample,
  };
}

function windowsText({ windows }: Operation): string {
  switch (windows.per) {
    case 'range':
      return `range of days, at most ${windows.days} a request`;
    case 'session':
      return 'session, one a request';
    case 'once':
      return 'run, once: it knows no dates';
    case 'instrument':
      return 'instrument, one a request';
  }
}

function describeTable({ name, comment, key, fields }: TableDefinition): TableDescription {
  return { name: `market.${name}`, comment, key, fields: fields.map(describeField) };
}

function describeField(field: Field): FieldDescription {
  const source = { answer: '', request: '(the request)', derived: '(worked out)' }[field.from];
  return {
    column: field.column,
    type: SQL_TYPES[field.kind],
    unit: field.unit ?? null,
    source: field.from === 'answer' ? field.source : source,
    meaning: field.meaning,
    required: field.required === true,
  };
}

function descriptionText(one: Description): string {
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
