import { $ZodTransform, type ParsePayload, safeParse } from 'zod/v4/core';
import { compileMaker, compileReader } from '../core/compiled-objects.ts';
import { readMarkedNumber } from '../declaration/decimals.ts';
import { type Kind, plainName, type Requested } from '../declaration/fields.ts';
import { type DataSet, isByInstrument, type Shape } from '../declaration/operation.ts';
import { chooseReader, madeOnce, readersOf } from '../declaration/readers.ts';
import type { Row, Scalar, TableDefinition } from '../declaration/table.ts';
import { InvalidValue, isBlank, readText, type ValueReader } from '../declaration/value-readers.ts';
import { createLayouts, type Layout } from './layout.ts';
import { printable } from './sanitize.ts';
import type { Problem, Reject } from './types.ts';

/** The result of reading a record: a row of a table, or its problems. */
export type RecordResult =
  | { readonly table: TableDefinition; readonly row: Row }
  | ({ readonly table: null } & Pick<Reject, 'problems' | 'day' | 'instrument' | 'stray'>);

export interface RecordReader {
  /** Reads the next record of the response; the order matters to derived fields. */
  read(record: unknown): RecordResult;
  /** Keys of the records so far that no declared field matches. */
  unknownFields(): ReadonlySet<string>;
  warnings(): readonly string[];
}

/** What is needed to read the records of a shape, created once per response. */
type ShapeState = ReturnType<typeof createShapeState>;

/** How records of one layout are read. */
interface LayoutState {
  readonly layout: Layout;
  /** Null if the layout fits no shape. */
  readonly state: ShapeState | null;
  /** Writes the values of a record into the list of raw values. */
  readonly fill: Fill;
  /** The record's keys of which one has to name the instrument; null where none has to. */
  readonly namedBy: readonly string[] | null;
}

/** The zod schema of a table's records: raw values in, in the order of its fields, a Row out. */
type RowSchema = $ZodTransform<Row, readonly unknown[]>;

/** A problem of the value at a position in the order of the fields. */
interface ValueProblem {
  readonly at: number;
  readonly problem: string;
}

/**
 * Makes the function that turns raw values, in the order of the fields, into a row. What cannot be read is null and one
 * of the `problems`, or of the `meaningless` ones in a field that means nothing. The value before is remembered for each
 * field, because records next to each other often have the same day, series or exchange.
 */
function createRowReader(table: TableDefinition, timeZone: string) {
  const columns = table.fields.map(({ column }) => column);
  const readers = [...readersOf(table, timeZone).values()];
  const tolerant = table.fields.map(({ meaningless }) => meaningless === true);
  const lastSent: unknown[] = columns.map(() => null);
  const lastRead = readers.map((read) => read(null));
  const makeRow = compileMaker<Scalar>(columns);
  const values: Scalar[] = columns.map(() => null);
  return (raw: readonly unknown[], problems: ValueProblem[], meaningless?: ValueProblem[]): Row => {
    for (let at = 0; at < columns.length; at++) {
      const sent = raw[at];
      if (sent !== lastSent[at]) {
        lastSent[at] = sent;
        lastRead[at] = (readers[at] as ValueReader)(sent);
      }
      const value = lastRead[at] as Scalar | InvalidValue;
      if (value instanceof InvalidValue) {
        values[at] = null;
        (tolerant[at] ? meaningless : problems)?.push({ at, problem: value.problem });
      } else values[at] = value;
    }
    return makeRow(values);
  };
}

/**
 * The schema made from a table's fields, with null for what cannot be read in those that mean nothing; dates without an
 * offset are taken to be in `timeZone`. It is one transform of the whole record: with one for each field, zod would
 * allocate objects for every value.
 */
export const schemaOf = madeOnce((table, timeZone): RowSchema => {
  const readRow = createRowReader(table, timeZone);
  const transform = (input: unknown, { issues }: ParsePayload) => {
    const raw = input as readonly unknown[];
    const problems: ValueProblem[] = [];
    const row = readRow(raw, problems);
    for (const { at, problem } of problems)
      issues.push({
        code: 'custom',
        message: problem,
        input: raw[at],
        path: [table.fields[at]?.column ?? ''],
      });
    return row;
  };
  return new $ZodTransform({ type: 'transform', transform }) as RowSchema;
});

/** Reads the records of one response. Those that are not rows have the issues that the zod schema finds. */
export function createRecordReader(operation: DataSet, requested: Requested, timeZone: string): RecordReader {
  const layoutFor = createLayouts(operation);
  const shapes = new Map<Shape, ShapeState>();
  const layouts = new Map<Layout, LayoutState>();
  const unknown = new Set<string>();
  const repeated = new Set<string>();
  // Values of fields that mean nothing and could not be read, by their path: the first of each.
  const unread = new Map<string, string>();
  // Only the request names the instrument of such records. If it names none, they are rejects.
  const nameless = isByInstrument(operation) && requested.instruments.length === 0;

  // One `sent` serves the whole response; these two variables hold the record that it reads from.
  let current: Readonly<Record<string, unknown>> = {};
  let last: LayoutState | null = null;
  const sent = (source: string): unknown => {
    const key = last?.layout.keyOf.get(plainName(source));
    return key === undefined ? undefined : readScalar(current[key]);
  };
  const kinds = new Map<Kind, ValueReader>();
  const readAs = (source: string, kind: Kind): Scalar => {
    const reader = kinds.get(kind) ?? chooseReader(kind, timeZone);
    kinds.set(kind, reader);
    const value = reader(sent(source));
    return value instanceof InvalidValue ? null : value;
  };

  const findState = (layout: Layout): LayoutState => {
    let state = layouts.get(layout);
    if (state === undefined) {
      for (const key of layout.unknown) if (unknown.size < 1_000) unknown.add(key);
      for (const key of layout.repeated) if (repeated.size < 20) repeated.add(key);
      const keys = layout.shape?.namedBy?.flatMap((source) => layout.keyOf.get(plainName(source)) ?? []);
      state = {
        layout,
        state: findShapeState(layout.shape),
        fill: createFill(layout),
        namedBy: keys ?? null,
      };
      layouts.set(layout, state);
    }
    return state;
  };

  const findShapeState = (shape: Shape | null): ShapeState | null => {
    if (shape === null) return null;
    const state = shapes.get(shape) ?? createShapeState(shape, requested, timeZone);
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
      if (last === null || last.layout !== layout) last = findState(layout);
      current = record as Readonly<Record<string, unknown>>;
      if (layout.nameless !== null && !isNamed(last, current)) last = findState(layout.nameless);
      const { state } = last;
      if (state === null) {
        return rejected([{ path: '', message: `fits no known shape of ${operation.name}` }]);
      }
      for (const [at, compute] of state.computed) state.raw[at] = compute(sent, readAs, state.memory);
      const unnamed = nameless || !isNamed(last, current);
      last.fill(current, state.raw);
      const invalid: ValueProblem[] = [];
      const meaningless: ValueProblem[] = [];
      const row = state.readRow(state.raw, invalid, meaningless);
      if (invalid.length === 0 && !unnamed) {
        for (const { at, problem } of meaningless) {
          const path = findPath(last.layout, state.shape.table.fields[at]?.column ?? '');
          if (!unread.has(path)) unread.set(path, problem);
        }
        return { table: state.shape.table, row };
      }
      const { layout: read } = last;
      const problems = [
        ...(unnamed ? [{ path: '', message: 'names no instrument' }] : []),
        ...(safeParse(state.schema, state.raw).error?.issues ?? []).map((issue) => ({
          path: findPath(read, String(issue.path[0])),
          message: issue.message,
        })),
      ];
      return { ...rejected(problems), ...readNames(state, timeZone) };
    },
    unknownFields: () => unknown,
    warnings: () => [
      ...[...repeated].map(
        (key) => `${printable(key.slice(0, 200))} repeats a field of the record; the first is used`,
      ),
      ...(unread.size === 0 ? [] : [unreadText(unread)]),
    ],
  };
}

/** The value of a field as declarations see it: they convert it to text, where a nested value could throw or recurse. */
const readScalar = (value: unknown): unknown =>
  typeof value === 'object' ? null : (readMarkedNumber(value) ?? value);

/** True if at least one of the fields that name the instrument has a value. A code of 0 is none. */
function isNamed({ namedBy }: LayoutState, record: Readonly<Record<string, unknown>>): boolean {
  if (namedBy === null) return true;
  for (const key of namedBy) {
    const value = readScalar(record[key]);
    if (!isBlank(value) && Number(value) !== 0) return true;
  }
  return false;
}

function unreadText(unread: ReadonlyMap<string, string>): string {
  const problems = [...unread].map(([path, problem]) => `${path} ${problem}`);
  return `what cannot be read in fields that mean nothing here is stored as null: ${problems.join(', ')}`;
}

function rejected(problems: readonly Problem[]): RecordResult {
  return { table: null, problems };
}

/** The day and the instrument of a rejected record, as far as they can be read. */
function readNames({ shape, raw }: ShapeState, timeZone: string): Pick<Reject, 'day' | 'instrument'> {
  const { symbolColumn, table } = shape;
  const sent = (column: string) => raw[table.fields.findIndex((field) => field.column === column)];
  const day =
    shape.dated && table.dateColumn !== null ? chooseReader('date', timeZone)(sent(table.dateColumn)) : null;
  const instrument = symbolColumn === undefined ? null : readText(sent(symbolColumn));
  return {
    ...(typeof day === 'string' ? { day } : {}),
    ...(typeof instrument === 'string' ? { instrument } : {}),
  };
}

function createShapeState(shape: Shape, requested: Requested, timeZone: string) {
  const { fields } = shape.table;
  return {
    shape,
    schema: schemaOf(shape.table, timeZone),
    readRow: createRowReader(shape.table, timeZone),
    /** Raw values in the order of the fields, overwritten for each record to avoid allocations. */
    raw: fields.map((field): unknown => (field.from === 'request' ? field.value(requested) : null)),
    /** By position of the field. */
    computed: fields.flatMap((field, at) => {
      const compute =
        field.from === 'derived' ? field.value : field.from === 'response' ? field.compute : undefined;
      return compute === undefined ? [] : [[at, compute] as const];
    }),
    memory: new Map<string, number>(),
  };
}

type Fill = (record: Readonly<Record<string, unknown>>, raw: unknown[]) => void;

/** Makes the function that writes the values of a record into a list in the order of the fields. */
function createFill({ sources }: Layout): Fill {
  const onlyKeys: (string | null)[] = [];
  for (const { at, keys } of sources) {
    while (onlyKeys.length <= at) onlyKeys.push(null);
    if (keys.length === 1) onlyKeys[at] = keys[0] ?? null;
  }
  const readOnlyKeys = compileReader<unknown>(onlyKeys);
  const others = sources.filter(({ keys }) => keys.length !== 1);
  return (record, raw) => {
    readOnlyKeys(record, raw);
    for (const { at, keys } of others) {
      const key = keys.find((name) => !isBlank(record[name])) ?? keys.at(-1);
      raw[at] = key === undefined ? null : record[key];
    }
  };
}

/** The record's key for a column's field, for problems; the declared name if it has none. */
function findPath({ sources }: Layout, column: string): string {
  const source = sources.find(({ field }) => field.column === column);
  if (source === undefined) return column;
  return source.keys[0] === undefined ? source.field.source : printable(source.keys[0]);
}
