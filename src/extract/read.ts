import { REDACTED } from '../core/environment.ts';
import { strayExchange } from '../core/exchanges.ts';
import { DeclarationError } from '../operations/declaration-failures.ts';
import { type AskedFor, isAskedDay } from '../operations/fields.ts';
import type { Operation } from '../operations/operation.ts';
import { RowsWriter } from '../operations/rows.ts';
import { answersMoreDays } from '../operations/spans.ts';
import type { Row, TableDefinition } from '../operations/table.ts';
import { isRedacted } from './body.ts';
import { keyRedactor } from './build-request.ts';
import { JoinedRows } from './csv.ts';
import { type CountRule, openAnswer } from './envelope.ts';
import { createFieldObserver } from './observed-fields.ts';
import { createRecordReader, type RecordReader, type RecordResult } from './records.ts';
import { printable, sanitizeRecord } from './sanitize.ts';
import { scanAnswer } from './scan-answer.ts';
import { scanCsv } from './scan-csv.ts';
import type { Batch, Extracted, Problem, RawAnswer, Reject, SourceSettings } from './types.ts';

/** The warning about an answer that contained the access key, also added to its rejects. */
const REDACTED_NOTE = `the answer held the access key; ${REDACTED} stands in its place`;

/** How many distinct unknown names are reported for an answer. */
const MAX_UNKNOWN = 200;

/** A shorter answer is parsed as a whole, because it has few records. */
const WORTH_SCANNING = 64 * 1024;

/** The rows of a shorter answer that is parsed as a whole stay objects until they are loaded. */
const WORTH_WRITING = 1024 * 1024;

/**
 * Reads an answer and validates its records; pure. Each record becomes a row of one table or a reject, or is left out
 * because its day was not asked for; `fetched` is always the sum of the first two. A large answer in JSON or CSV is read from its bytes record by record, with the same result as if it
 * were parsed as a whole, except that its rows are COPY text.
 *
 * @param scanFrom the size in bytes from which on an answer is not parsed as a whole.
 * @throws PipelineError if the answer as a whole is not data, see `openAnswer`.
 */
export function readAnswer(
  operation: Operation,
  asked: AskedFor,
  raw: RawAnswer,
  settings: Pick<SourceSettings, 'accessKey' | 'timeZone'> & { readonly count?: CountRule },
  scanFrom = WORTH_SCANNING,
): Extracted {
  const { count = 'check' } = settings;
  const context = { operation, count, redact: keyRedactor(settings.accessKey) };
  // A record that fills two tables is not scanned.
  if (raw.body.length >= scanFrom && operation.also === undefined) {
    const { linesOf, addRow, finishRows } = writeRows();
    const taking = createTaking(operation, asked, raw, settings, addRow);
    const reading = {
      ...context,
      asked,
      timeZone: settings.timeZone,
      reader: taking.reader,
      observer: taking.observer,
      linesOf,
      take: taking.take,
    };
    const scanned = scanAnswer(raw.body, reading) ?? scanCsv(raw.body, reading);
    if (scanned !== null) {
      const { records, warnings, ...others } = scanned;
      return { ...taking.finish(warnings, records), batches: finishRows(), ...others };
    }
  }
  const { records, warnings, lineEnd, listsNothing, miscount } = openAnswer(raw.body, context);
  const { addRow, finishRows } = raw.body.length >= WORTH_WRITING ? writeRows() : keepRows();
  const { take, finish } = createTaking(operation, asked, raw, settings, addRow);
  for (let position = 0; position < records.length; position++) {
    const record = records[position];
    // Release each record once it is read, so that the parsed answer shrinks as the rows grow.
    records[position] = null;
    take(position, record);
  }
  return {
    ...finish(warnings, records.length),
    batches: finishRows(),
    ...(lineEnd === undefined ? {} : { lineEnd }),
    ...(miscount === undefined ? {} : { miscount }),
    ...(listsNothing === undefined ? {} : { listsNothing }),
  };
}

/** Collects rows as objects, by table. */
function keepRows() {
  const rows = new Map<TableDefinition, Row[]>();
  return {
    addRow(table: TableDefinition, row: Row): void {
      const batch = rows.get(table);
      if (batch === undefined) rows.set(table, [row]);
      else batch.push(row);
    },
    finishRows: (): Batch[] => [...rows].map(([table, rows]) => ({ table, rows })),
  };
}

/** Collects rows as COPY text, which is kept outside the heap, by table. */
function writeRows() {
  const writers = new Map<TableDefinition, RowsWriter>();
  const linesOf = (table: TableDefinition): RowsWriter => {
    const lines = writers.get(table) ?? new RowsWriter(table);
    writers.set(table, lines);
    return lines;
  };
  return {
    linesOf,
    addRow: (table: TableDefinition, row: Row): void => linesOf(table).add(row),
    finishRows(): Batch[] {
      const written = [...writers.values()].filter(({ ends }) => ends.length > 0);
      return written.map((lines) => ({ table: lines.table, rows: lines.finish() }));
    },
  };
}

/** Reads the records of one answer, and collects those that are rejected. */
function createTaking(
  operation: Operation,
  asked: AskedFor,
  raw: RawAnswer,
  { timeZone }: Pick<SourceSettings, 'timeZone'>,
  addRow: (table: TableDefinition, row: Row) => void,
) {
  const reader = createRecordReader(operation, asked, timeZone);
  const observer = createFieldObserver();
  const rejects: Reject[] = [];
  /** Days of strays that are no problem otherwise; at most two. */
  const strayDays = new Set<string>();
  const changed = isRedacted(raw.body);
  let strays = 0;
  let joined = 0;
  const also = createAlsoReader(operation, asked, timeZone);
  /** Rows and rejects besides those of the operation's own tables. */
  let besides = 0;
  /** Records of days that were not asked for, where a request can only name a longer span. */
  let leftOut = 0;
  const isLeftOut = (result: RecordResult): boolean => {
    if (!answersMoreDays(operation)) return false;
    const day = result.table === null ? result.day : dayOfRow(operation, result);
    return day !== undefined && !isAskedDay(asked, day);
  };
  return {
    reader,
    observer,
    take(position: number, record: unknown): void {
      let result: RecordResult;
      let stray: Stray | null = null;
      try {
        result = reader.read(record);
        stray = result.table === null ? null : strayProblem(operation, asked, result);
      } catch (error) {
        result = rejectedBy(error);
      }
      const layout = reader.lastLayout();
      if (layout !== null) observer.add(layout, record as Readonly<Record<string, unknown>>);
      if (isLeftOut(result)) {
        leftOut += 1;
        return;
      }
      if (stray !== null) strays += 1;
      if (record instanceof JoinedRows) joined += 1;
      if (stray?.day !== undefined && strayDays.size < 2) strayDays.add(stray.day);
      if (result.table !== null && stray === null) {
        addRow(result.table, result.row);
        const other = also?.(record);
        if (other === undefined) return;
        besides += 1;
        if (other.table === null) rejects.push({ position, record: sanitizeRecord(record), ...other });
        else addRow(operation.also?.table ?? other.table, other.row);
        return;
      }
      const { table: _, ...reject } =
        result.table === null
          ? result
          : { table: null, stray: true, problems: stray === null ? [] : [stray.problem] };
      const problems = changed ? [...reject.problems, { path: '', message: REDACTED_NOTE }] : reject.problems;
      rejects.push({ position, record: sanitizeRecord(record), ...reject, problems });
    },
    /** @param records how many the answer has. */
    finish: (warnings: readonly string[], records: number) => ({
      fetched: records - leftOut + besides,
      ...withTrialDay(rejects, strays === records && strayDays.size === 1 ? [...strayDays][0] : undefined),
      ...(strays > 0 ? { strays } : {}),
      ...(joined > 0 ? { joined } : {}),
      warnings: [
        ...warnings,
        ...reader.warnings(),
        ...(changed ? [REDACTED_NOTE] : []),
        ...(leftOut > 0 ? [leftOutText(leftOut)] : []),
      ],
      unknownFields: [...reader.unknownFields()]
        .slice(0, MAX_UNKNOWN)
        .map((name) => printable(name.slice(0, 200))),
      observed: observer.finish(),
    }),
  };
}

/** The rejection of a record with which a function of its declaration fails. @throws any other error */
function rejectedBy(error: unknown): RecordResult {
  if (!(error instanceof DeclarationError)) throw error;
  return { table: null, problems: [{ path: '', message: printable(error.message) }] };
}

/** Reads records for the table that they fill besides; null if there is none. */
function createAlsoReader(
  operation: Operation,
  asked: AskedFor,
  timeZone: string,
): RecordReader['read'] | null {
  const { also } = operation;
  if (also === undefined) return null;
  const table = { ...also.table, fields: also.fields };
  const reader = createRecordReader(
    { ...operation, shapes: [{ table, has: [], dated: false, fullSet: 'none' }] },
    asked,
    timeZone,
  );
  return (record) => {
    try {
      return reader.read(record);
    } catch (error) {
      return rejectedBy(error);
    }
  };
}

/** A request can only name more days than were asked for, so this is normal. */
const leftOutText = (records: number): string =>
  `${records === 1 ? 'a record is' : `${records} records are`} of days that were not asked for, and left out`;

/** The day of a row whose records have the day that was asked for; undefined if they have none. */
function dayOfRow(
  { shapes }: Operation,
  { table, row }: { readonly table: TableDefinition; readonly row: Row },
): string | undefined {
  const isDated = shapes.some((shape) => shape.table === table && shape.dated);
  return isDated && table.dateColumn !== null ? String(row[table.dateColumn]) : undefined;
}

/** What to do about an answer that has only records of one day, and none of those asked for. */
export const trialAddressText = (day: string): string =>
  `this looks like a trial address, which always answers for ${day}: if it is one, set EOD_TRIAL_DAY=${day}`;

/** The rejects of an answer; if all of its records are of one other day, each says so. */
function withTrialDay(rejects: readonly Reject[], trialDay: string | undefined) {
  if (trialDay === undefined) return { rejects };
  const note = { path: '', message: trialAddressText(trialDay) };
  return {
    rejects: rejects.map((reject) => ({ ...reject, problems: [...reject.problems, note] })),
    trialDay,
  };
}

interface Stray {
  readonly problem: Problem;
  /** The record's own day, if that is the problem. */
  readonly day?: string;
}

/** The problem of a row of another day, exchange or quarter than was asked for; null if it is of none. */
function strayProblem(
  operation: Operation,
  asked: AskedFor,
  { table, row }: { readonly table: TableDefinition; readonly row: Row },
): Stray | null {
  const shape = operation.shapes.find((one) => one.table === table);
  if (shape === undefined) return null;
  const { dateColumn } = table;
  if (shape.dated && dateColumn !== null) {
    const day = String(row[dateColumn]);
    if (!isAskedDay(asked, day)) {
      const problem = {
        path: sourceOf(table, dateColumn),
        message: `is ${day}, a day that was not asked for`,
      };
      return { problem, day };
    }
  }
  const contradiction = shape.contradiction?.(row, asked) ?? null;
  if (contradiction !== null) {
    const { column, message } = contradiction;
    return { problem: { path: sourceOf(table, column), message: printable(String(message).slice(0, 200)) } };
  }
  const exchange = shape.exchangeColumn === undefined ? null : row[shape.exchangeColumn];
  if (shape.exchangeColumn === undefined || !strayExchange(exchange, asked)) {
    return null;
  }
  const problem = {
    path: sourceOf(table, shape.exchangeColumn),
    message: `is ${printable(String(exchange).slice(0, 40))}, an exchange that was not asked`,
  };
  return { problem };
}

function sourceOf({ fields }: TableDefinition, column: string): string {
  const field = fields.find((one) => one.column === column);
  return field?.from === 'answer' ? field.source : column;
}
