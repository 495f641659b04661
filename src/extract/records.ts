import type { AskedFor, Kind, WorkOut } from '../operations/fields.ts';
import type { DataSet, Shape } from '../operations/operation.ts';
import type { Row, Scalar, TableDefinition } from '../operations/table.ts';
import { unsafeNumberText } from './decimals.ts';
import { type GeneratedReader, generatedReader } from './generated-reader.ts';
import { createLayouts, type Layout, plainName } from './layout.ts';
import { type RowSchema, readerOf, readersOf, schemaOf } from './record-schema.ts';
import { printable } from './sanitize.ts';
import type { Problem, Reject } from './types.ts';
import { InvalidValue, isBlank, readText, type ValueReader } from './values.ts';

/** The result of reading a record: a row of a table, or its problems. */
export type RecordResult =
  | { readonly table: TableDefinition; readonly row: Row }
  | ({ readonly table: null } & Pick<Reject, 'problems' | 'day' | 'instrument'>);

export interface RecordReader {
  /** Reads the next record of the answer; the order matters to derived fields. */
  read(record: unknown): RecordResult;
  /** The layout of the record read last; null if it was not a record. */
  lastLayout(): Layout | null;
  /** Keys of the records so far that no declared field matches. */
  unknownFields(): ReadonlySet<string>;
  warnings(): readonly string[];
}

/** What is needed to read the records of a shape, created once per answer. */
interface ShapeState {
  readonly shape: Shape;
  readonly schema: RowSchema;
  /** Raw values by column, overwritten for each record to avoid allocations. */
  readonly raw: Record<string, unknown>;
  readonly workedOut: readonly { readonly column: string; readonly workOut: WorkOut }[];
  readonly memory: Map<string, number>;
}

/** How records of one layout are read. */
interface LayoutState {
  readonly layout: Layout;
  /** Null if the layout fits no shape. */
  readonly state: ShapeState | null;
  /** How many records were read so far, until there is a reader. */
  records: number;
  /** Generated once there are enough records; null before that, and if none can be generated. */
  reader: GeneratedReader | null;
}

/** Code for a layout is generated after this many records of it. */
const WORTH_GENERATING = 16;

/**
 * Reads the records of one answer: with the zod schema, or, if there are many and a record has no problems, with code
 * generated from the same declarations, which has the same result.
 *
 * @param generateAfter how many records of a layout are read with the schema before code is generated.
 */
export function createRecordReader(
  operation: DataSet,
  asked: AskedFor,
  timeZone: string,
  generateAfter = WORTH_GENERATING,
): RecordReader {
  const layoutFor = createLayouts(operation);
  const shapes = new Map<Shape, ShapeState>();
  const layouts = new Map<Layout, LayoutState>();
  const unknown = new Set<string>();
  const repeated = new Set<string>();
  // Only the request names the instrument of such records. If it names none, they are rejects.
  // Values of fields that mean nothing and could not be read, by their path: the first of each.
  const unread = new Map<string, string>();
  const nameless = operation.windows.per === 'instrument' && asked.instruments.length === 0;

  // One `sent` serves the whole answer; these two variables hold the record that it reads from.
  let current: Readonly<Record<string, unknown>> = {};
  let last: LayoutState | null = null;
  const sent = (source: string): unknown => {
    const key = last?.layout.keyOf.get(plainName(source));
    const value = key === undefined ? undefined : current[key];
    // Operations convert these to text, where a nested value could throw or recurse.
    return typeof value === 'object' ? null : (unsafeNumberText(value) ?? value);
  };
  const kinds = new Map<Kind, ValueReader>();
  const readAs = (source: string, kind: Kind): Scalar => {
    const reader = kinds.get(kind) ?? readerOf(kind, timeZone);
    kinds.set(kind, reader);
    const value = reader(sent(source));
    return value instanceof InvalidValue ? null : value;
  };

  const stateOf = (layout: Layout): LayoutState => {
    let found = layouts.get(layout);
    if (found === undefined) {
      for (const key of layout.unknown) if (unknown.size < 1_000) unknown.add(key);
      for (const key of layout.repeated) if (repeated.size < 20) repeated.add(key);
      found = { layout, state: shapeStateOf(layout.shape), records: 0, reader: null };
      layouts.set(layout, found);
    }
    return found;
  };

  const shapeStateOf = (shape: Shape | null): ShapeState | null => {
    if (shape === null) return null;
    const state = shapes.get(shape) ?? createShapeState(shape, asked, timeZone);
    shapes.set(shape, state);
    return state;
  };

  return {
    read(record) {
      if (typeof record !== 'object' || record === null || Array.isArray(record)) {
        last = null;
        const message = Array.isArray(record)
          ? 'is not a record but a list, as is a row of CSV with more cells than the header'
          : 'is not a record';
        return rejected([{ path: '', message }]);
      }
      const layout = layoutFor(record);
      if (last === null || last.layout !== layout) last = stateOf(layout);
      current = record as Readonly<Record<string, unknown>>;
      if (layout.nameless !== null && layout.shape !== null && !isNamed(layout.shape, sent)) {
        last = stateOf(layout.nameless);
      }
      const found = last;
      const { state } = found;
      if (state === null) {
        return rejected([{ path: '', message: `fits no known shape of ${operation.name}` }]);
      }
      for (const { column, workOut } of state.workedOut)
        state.raw[column] = workOut(sent, readAs, state.memory);
      const unnamed = nameless || !isNamed(state.shape, sent);
      if (found.records++ === generateAfter) found.reader = generatedReader(found.layout, timeZone);
      const row = unnamed || found.reader === null ? null : found.reader(current, state.raw);
      if (row !== null) return { table: state.shape.table, row };
      fill(state, found.layout, current);
      const parsed = state.schema.safeParse(state.raw);
      if (parsed.success && !unnamed) {
        for (const [column, problem] of unreadOf(state, timeZone)) {
          const path = pathOf(found.layout, column);
          if (!unread.has(path)) unread.set(path, problem);
        }
        return { table: state.shape.table, row: parsed.data };
      }
      const problems = [
        ...(unnamed ? [{ path: '', message: 'names no instrument' }] : []),
        ...(parsed.error?.issues ?? []).map((issue) => ({
          path: pathOf(found.layout, String(issue.path[0])),
          message: issue.message,
        })),
      ];
      return { ...rejected(problems), ...namesOf(state, timeZone) };
    },
    lastLayout: () => last?.layout ?? null,
    unknownFields: () => unknown,
    warnings: () => [
      ...[...repeated].map(
        (key) => `${printable(key.slice(0, 200))} repeats a field of the record; the first counts`,
      ),
      ...(unread.size === 0 ? [] : [unreadText(unread)]),
    ],
  };
}

/** What cannot be read in those fields of a record that mean nothing, by column. */
function* unreadOf({ shape: { table }, raw }: ShapeState, timeZone: string): Generator<[string, string]> {
  for (const { column, meaningless } of table.fields) {
    if (meaningless !== true) continue;
    const value = readersOf(table, timeZone).get(column)?.(raw[column]);
    if (value instanceof InvalidValue) yield [column, value.problem];
  }
}

function unreadText(unread: ReadonlyMap<string, string>): string {
  const problems = [...unread].map(([path, problem]) => `${path} ${problem}`);
  return `what cannot be read in fields that mean nothing here is stored as null: ${problems.join(', ')}`;
}

function rejected(problems: readonly Problem[]): RecordResult {
  return { table: null, problems };
}

/** The day and the instrument of a rejected record, as far as they can be read. */
function namesOf({ shape, raw }: ShapeState, timeZone: string): Pick<Reject, 'day' | 'instrument'> {
  const { symbolColumn, table } = shape;
  const day =
    shape.dated && table.dateColumn !== null ? readerOf('date', timeZone)(raw[table.dateColumn]) : null;
  const instrument = symbolColumn === undefined ? null : readText(raw[symbolColumn]);
  return {
    ...(typeof day === 'string' ? { day } : {}),
    ...(typeof instrument === 'string' ? { instrument } : {}),
  };
}

function createShapeState(shape: Shape, asked: AskedFor, timeZone: string): ShapeState {
  const { fields } = shape.table;
  const raw: Record<string, unknown> = {};
  for (const field of fields) raw[field.column] = field.from === 'request' ? field.value(asked) : null;
  return {
    shape,
    schema: schemaOf(shape.table, timeZone),
    raw,
    workedOut: fields.flatMap((field) => {
      const workOut =
        field.from === 'derived' ? field.value : field.from === 'answer' ? field.workOut : undefined;
      return workOut === undefined ? [] : [{ column: field.column, workOut }];
    }),
    memory: new Map(),
  };
}

function fill({ raw }: ShapeState, { sources }: Layout, record: Readonly<Record<string, unknown>>): void {
  for (let at = 0; at < sources.length; at++) {
    const { field, keys } = sources[at] as Layout['sources'][number];
    let value = keys.length === 0 ? null : record[keys[0] as string];
    for (let next = 1; next < keys.length && isBlank(value); next++) value = record[keys[next] as string];
    raw[field.column] = value;
  }
}

/** Does at least one of the fields that name the instrument have a value? A code of 0 is none. */
function isNamed({ namedBy }: Shape, sent: (source: string) => unknown): boolean {
  if (namedBy === undefined) return true;
  return namedBy.some((source) => {
    const value = sent(source);
    return !isBlank(value) && Number(value) !== 0;
  });
}

/** The record's key for a column's field, for problems; the declared name if it has none. */
function pathOf({ sources }: Layout, column: string): string {
  const source = sources.find(({ field }) => field.column === column);
  if (source === undefined) return column;
  return source.keys[0] === undefined ? source.field.source : printable(source.keys[0]);
}
