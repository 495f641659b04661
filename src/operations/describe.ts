import { type Field, SQL_TYPES } from './fields.ts';
import {
  type DataSet,
  isOperation,
  type Operation,
  type RequestOption,
  type Schedule,
  tablesFilledBy,
} from './operation.ts';
import type { TableDefinition } from './table.ts';

export interface FieldDescription {
  readonly column: string;
  readonly type: string;
  readonly unit: string | null;
  /** The source field, or in parentheses where else the value comes from. */
  readonly source: string;
  readonly meaning: string;
  readonly required: boolean;
}

export interface TableDescription {
  readonly name: string;
  readonly comment: string;
  readonly key: readonly string[];
  readonly fields: readonly FieldDescription[];
}

/** The entry of a data set in the data dictionary. One that comes from files has no exchanges, schedule or sample. */
export interface DataSetDescription {
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

/** Makes the entry of a data set in the data dictionary (pure). */
export function describeDataSet(dataSet: DataSet): DataSetDescription {
  if (isOperation(dataSet)) return describeOperation(dataSet);
  const { name, summary } = dataSet;
  const tables = tablesFilledBy(dataSet).map(describeTable);
  return {
    name,
    summary,
    exchanges: [],
    windows: 'imported files, or computed from stored data',
    instruments: null,
    options: [],
    schedule: null,
    tables,
    sample: null,
  };
}

function describeOperation(operation: Operation): DataSetDescription {
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
      return `range of days, at most ${windows.days} a request${
        windows.parts === undefined ? '' : `; also each ${windows.parts.param}, without dates`
      }`;
    case 'session':
      return 'session, one a request';
    case 'once':
      return 'run, once: it takes no dates';
    case 'instrument':
      return 'instrument, one a request';
  }
}

function describeTable({ name, comment, key, fields }: TableDefinition): TableDescription {
  return { name: `market.${name}`, comment, key, fields: fields.map(describeField) };
}

function describeField(field: Field): FieldDescription {
  const source = { answer: '', request: '(the request)', derived: '(computed)' }[field.from];
  return {
    column: field.column,
    type: SQL_TYPES[field.kind],
    unit: field.unit ?? null,
    source: field.from === 'answer' ? field.source : source,
    meaning: field.meaning,
    required: field.required === true,
  };
}
