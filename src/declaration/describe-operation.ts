import { type Field, SQL_TYPES } from './fields.ts';
import { type DataSet, tablesFilledBy } from './operation.ts';
import type { TableDefinition } from './table.ts';

export type FieldDescription = ReturnType<typeof describeField>;
export type TableDescription = ReturnType<typeof describeTable>;
export type DataSetDescription = ReturnType<typeof describeDataSet>;

const INSTRUMENTS = {
  none: 'cannot be requested per instrument',
  one: 'one per request',
  many: 'up to 25 per request',
} as const;

/** Makes the entry of a data set in the data dictionary (pure). */
export function describeDataSet(dataSet: DataSet) {
  const { name, summary, exchanges, request, schedule, sample } = dataSet;
  return {
    name,
    summary,
    exchanges,
    windows: windowsText(dataSet),
    instruments: schedule === null ? null : INSTRUMENTS[request.instruments],
    options: request.options,
    schedule,
    tables: tablesFilledBy(dataSet).map(describeTable),
    sample,
  };
}

function windowsText({ windows, request }: DataSet): string {
  switch (windows.per) {
    case 'range':
      return [
        `range of days, at most ${windows.days} a request`,
        ...(windows.parts === undefined ? [] : [`also each ${windows.parts.param}, without dates`]),
        ...(windows.ahead === undefined ? [] : [`each night also the ${windows.ahead} days after it`]),
      ].join('; ');
    case 'session':
      return 'trading day, one a request';
    case 'once':
      return 'run, once: it takes no dates';
    case 'instrument':
      return `instrument, ${request.instruments === 'many' ? 'up to 25' : 'one'} a request`;
    case 'file':
      return 'imported files, or computed from stored data';
  }
}

function describeTable({ name, comment, key, fields }: TableDefinition) {
  return { name: `market.${name}`, comment, key, fields: fields.map(describeField) };
}

function describeField(field: Field) {
  const from = { response: '', request: '(the request)', derived: '(computed)' }[field.from];
  return {
    column: field.column,
    type: SQL_TYPES[field.kind],
    unit: field.unit ?? null,
    /** The source field, or in parentheses where else the value comes from. */
    source: field.from === 'response' ? field.source : from,
    meaning: field.meaning,
    isRequired: field.required === true,
  };
}
