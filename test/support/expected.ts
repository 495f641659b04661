import type { Field, Requested } from '../../src/declaration/fields.ts';
import type { Operation, Shape } from '../../src/declaration/operation.ts';
import type { TableDefinition } from '../../src/declaration/table.ts';
import { createSource } from '../../src/extract/index.ts';
import type { Source } from '../../src/extract/types.ts';
import type { Database } from '../../src/postgres/database.ts';

/** A record as the source sends it. */
export type SourceRecord = Readonly<Record<string, unknown>>;

/** A column as the source prints it, so that what is stored can be compared with what was sent. */
function printed(field: Field): string {
  const column = `"${field.column}"`;
  if (field.kind === 'date') return `to_char(${column}, 'MM-DD-YYYY')`;
  if (field.kind === 'datetime')
    return `to_char(${column} at time zone 'Asia/Kolkata', 'MM-DD-YYYY HH24:MI:SS')`;
  return `${column}::text`;
}

/** All rows of a table, each value as the source would print it. */
export async function storedRows(
  store: Database,
  table: TableDefinition,
): Promise<Record<string, unknown>[]> {
  const columns = table.fields.map((field) => `${printed(field)} as "${field.column}"`).join(', ');
  const result = await store.pool.query<Record<string, unknown>>(
    `select ${columns} from market.${table.name}`,
  );
  return result.rows;
}

/** What a record should look like once stored, computed without the pipeline's own reader. */
export function expectedRow(
  shape: Shape,
  requested: Requested,
  record: SourceRecord,
  memory: Map<string, number>,
) {
  const byName = new Map(Object.entries(record).map(([name, value]) => [name.toLowerCase(), value]));
  const sent = (name: string) => byName.get(name.toLowerCase());
  return Object.fromEntries(
    shape.table.fields.map((field) => [field.column, textOf(field, requested, sent, memory)]),
  );
}

function textOfValue(value: unknown): string | null {
  const text = value === undefined || value === null ? '' : String(value).trim();
  return text === '' || text.startsWith('01-01-0001') ? null : text;
}

function textOf(
  field: Field,
  requested: Requested,
  sent: (name: string) => unknown,
  memory: Map<string, number>,
): string | null {
  if (field.from === 'request') {
    const value = field.value(requested);
    return field.kind === 'date' ? value.replace(/^(\d+)-(\d+)-(\d+)$/, '$2-$3-$1') : value;
  }
  const compute = field.from === 'derived' ? field.value : field.compute;
  if (compute !== undefined) {
    const read = (source: string, kind: string) => {
      const text = textOfValue(sent(source));
      const [, month, date, year, time = '00:00:00'] =
        /^(\d\d)-(\d\d)-(\d{4})(?: ([\d:]+))?$/.exec(text ?? '') ?? [];
      const isDay = kind === 'date' || kind === 'datetime';
      // A day is no number, and a number is no day.
      if (isDay !== (year !== undefined) && (isDay || kind === 'numeric')) return null;
      if (!isDay) return text;
      return `${year}-${month}-${date}${kind === 'date' ? '' : ` ${time}+05:30`}`;
    };
    const value = compute(sent, read, memory);
    if (value === null) return null;
    // As the source prints it.
    return field.kind === 'date' || field.kind === 'datetime'
      ? String(value)
          .replace(/^(\d+)-(\d+)-(\d+)/, '$2-$3-$1')
          .replace('+05:30', '')
      : String(value);
  }
  if (field.from === 'derived') return null;
  const sources = [field.source, ...(field.orElse ?? [])];
  const text = sources.map((source) => textOfValue(sent(source))).find((text) => text !== null);
  if (text !== undefined) return field.kind === 'date' ? (text.split(' ')[0] ?? text) : text;
  return field.absent === undefined ? null : String(field.absent);
}

/** The records of a response, bare object or list. */
export const recordsOf = (response: unknown): SourceRecord[] => {
  const { Value, ...bare } = response as { Value?: SourceRecord[] };
  return Value ?? [bare];
};

/** The shape of an operation that this response has. */
export function shapeOf(operation: Operation, response: unknown): Shape {
  const [first] = recordsOf(response);
  const names = new Set(Object.keys(first ?? {}).map((name) => name.toLowerCase()));
  const has = (source: string) => names.has(source.toLowerCase());
  const fits = (shape: Shape) => shape.has.every(has) && (shape.hasOneOf?.some(has) ?? true);
  const fields = ({ table }: Shape) => table.fields.filter((field) => field.from === 'response');
  const read = (shape: Shape) => fields(shape).filter(({ source }) => has(source)).length;
  const fitting = operation.shapes.filter(fits);
  fitting.sort((a, b) => read(b) - read(a) || fields(a).length - fields(b).length);
  return fitting[0] ?? operation.shapes[0];
}

const MADE_UP_DAY = '2025-02-27';

/** A record of a shape with a value in every field, made from the declaration alone. */
export function makeRecord(shape: Shape): SourceRecord {
  const values = {
    text: 'Ab & Co',
    int2: 7,
    int4: 2024,
    int8: 9007199254740991,
    numeric: 1234567.891,
    boolean: true,
    date: '02-27-2025',
    datetime: '02-27-2025 21:02:40',
  };
  return Object.fromEntries(
    shape.table.fields.flatMap((field) => {
      if (field.from !== 'response') return [];
      return [[field.source, field.column === shape.exchangeColumn ? 'NSE' : values[field.kind]]];
    }),
  );
}

/** The request of the sample, widened to the day of made-up records. */
export function widenedRequest({ sample }: Operation): Requested {
  const { from, to } = sample.requested;
  return {
    ...sample.requested,
    from: from < MADE_UP_DAY ? from : MADE_UP_DAY,
    to: to > MADE_UP_DAY ? to : MADE_UP_DAY,
    calledOn: '2025-02-28',
  };
}

/** For reading responses only: nothing listens at its address. */
export function offlineSource(create = createSource): Source {
  return create({
    baseUrl: 'http://127.0.0.1:9',
    accessKey: 'k',
    dateDialect: 'epoch',
    dateFormat: 'String',
    format: 'Json',
    timeZone: 'Asia/Kolkata',
    timeoutMs: 1_000,
    maxResponseBytes: 1_000_000,
    connections: 1,
    tlsVerify: true,
  });
}
