import type { Field, Kind } from '../operations/fields.ts';
import type { Operation, RequestOption, Schedule } from '../operations/operation.ts';
import type { TableDefinition } from '../operations/table.ts';

export interface FieldDescription {
  readonly column: string;
  readonly type: string;
  readonly unit: string | null;
  /** Source field, or where else the value comes from. */
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

/** An operation as the data dictionary tells it; all of it from its own file. */
export interface Description {
  readonly name: string;
  readonly summary: string;
  readonly exchanges: readonly string[];
  readonly windows: string;
  readonly instruments: string;
  readonly options: readonly RequestOption[];
  readonly schedule: Schedule;
  readonly tables: readonly TableDescription[];
  readonly sample: Operation['sample'];
}

const TYPES: Readonly<Record<Kind, string>> = {
  text: 'text',
  int2: 'smallint',
  int4: 'integer',
  int8: 'bigint',
  numeric: 'numeric',
  boolean: 'boolean',
  date: 'date',
  datetime: 'timestamptz',
};

const INSTRUMENTS = {
  none: 'cannot be asked by instrument',
  one: 'one per request',
  many: 'up to 25 per request',
} as const;

/** Everything there is to know about an operation (pure). */
export function describe(operation: Operation): Description {
  return {
    name: operation.name,
    summary: operation.summary,
    exchanges: operation.exchanges,
    windows: windowsText(operation),
    instruments: INSTRUMENTS[operation.request.instruments],
    options: operation.request.options,
    schedule: operation.schedule,
    tables: operation.shapes.map(({ table }) => describeTable(table)),
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
    type: TYPES[field.kind],
    unit: field.unit ?? null,
    source: field.from === 'answer' ? field.source : source,
    meaning: field.meaning,
    required: field.required === true,
  };
}
