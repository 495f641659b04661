import { REDACTED, redactor } from '../core/environment.ts';
import { strayExchange } from '../core/exchanges.ts';
import { isRequestedDay, type Requested } from '../operations/fields.ts';
import type { Operation } from '../operations/operation.ts';
import type { Row, TableDefinition } from '../operations/table.ts';
import { JoinedRows } from './csv.ts';
import { openInSlices, openResponse } from './envelope.ts';
import { createRecordReader, type RecordResult } from './records.ts';
import { printable, sanitizeRecord } from './sanitize.ts';
import type { CountRule, Extracted, Problem, RawResponse, Reject, SourceSettings } from './types.ts';

/** The warning about a response that contained the access key, also added to its rejects. */
const REDACTED_NOTE = `the response held the access key; ${REDACTED} stands instead of it`;

/** How many distinct unknown names are reported for a response. */
const MAX_UNKNOWN = 200;

/**
 * Reads a response and validates its records; pure. Each record becomes a row of one table or a reject; `fetched` is the
 * sum of both.
 *
 * @throws PipelineError if the response as a whole is not data, see `openResponse`.
 */
export function readResponse(
  operation: Operation,
  requested: Requested,
  raw: RawResponse,
  settings: Pick<SourceSettings, 'accessKey' | 'timeZone'> & { readonly count?: CountRule },
): Extracted {
  const { count = 'check', timeZone } = settings;
  const { body } = raw;
  const context = { operation, count, redact: (text: string) => redactor([settings.accessKey])(text) };
  const collect = () => collectRecords(operation, requested, timeZone, body);
  const sliced = collect();
  const opened = openInSlices(body, context, sliced.take);
  if (opened !== null)
    return {
      ...sliced.finish(opened.warnings),
      ...(opened.miscount === undefined ? {} : { miscount: opened.miscount }),
    };
  const { records, warnings, lineEnd, listsNothing, miscount } = openResponse(body, context);
  const { take, finish } = collect();
  for (let position = 0; position < records.length; position++) {
    const record = records.at(position);
    // Release each record once it is read, so that the parsed response shrinks as the rows grow.
    if (Array.isArray(records)) records[position] = null;
    take(position, record);
  }
  return {
    ...finish(warnings),
    ...(lineEnd === undefined ? {} : { lineEnd }),
    ...(miscount === undefined ? {} : { miscount }),
    ...(listsNothing === undefined ? {} : { listsNothing }),
  };
}

type Rejected = Extract<RecordResult, { readonly table: null }>;

/** Reads the records of one response: collects their rows by table, and those that are rejected. */
function collectRecords(operation: Operation, requested: Requested, timeZone: string, body: Buffer) {
  const reader = createRecordReader(operation, requested, timeZone);
  const notes = isRedacted(body) ? [REDACTED_NOTE] : [];
  const rejects: Reject[] = [];
  /** Days of strays that are no problem otherwise; at most two. */
  const strayDays = new Set<string>();
  let joined = 0;
  const rowsOf = new Map<TableDefinition, Row[]>();
  const addRow = (table: TableDefinition, row: Row) => {
    const rows = rowsOf.get(table);
    if (rows === undefined) rowsOf.set(table, [row]);
    else rows.push(row);
  };

  const reject = (
    position: number,
    record: unknown,
    { table: _, problems, ...found }: Rejected & Pick<Reject, 'stray'>,
  ) => {
    const noted = [...problems, ...notes.map((message) => ({ path: '', message }))];
    rejects.push({ position, record: sanitizeRecord(record), ...found, problems: noted });
  };

  /** Takes the next record of the response. */
  function take(position: number, record: unknown): void {
    const result = reader.read(record);
    const stray = result.table === null ? null : strayProblem(operation, requested, result);
    if (result.table === null) {
      if (record instanceof JoinedRows) joined += 1;
      reject(position, record, result);
    } else if (stray !== null) {
      if (stray.day !== undefined && strayDays.size < 2) strayDays.add(stray.day);
      reject(position, record, { table: null, stray: true, problems: [stray.problem] });
    } else {
      addRow(result.table, result.row);
    }
  }

  return {
    take,
    finish(warnings: readonly string[]) {
      const batches = [...rowsOf].map(([table, rows]) => ({ table, rows }));
      const rows = batches.reduce((sum, batch) => sum + batch.rows.length, 0);
      const strays = rejects.filter(({ stray }) => stray === true).length;
      const unknownFields = [...reader.unknownFields()]
        .slice(0, MAX_UNKNOWN)
        .map((name) => printable(name.slice(0, 200)));
      const areStrays = rows === 0 && strays === rejects.length;
      const [otherDay] = strayDays;
      return {
        batches,
        fetched: rows + rejects.length,
        rejects,
        ...(areStrays && otherDay !== undefined && strayDays.size === 1 ? { otherDay } : {}),
        ...(strays > 0 ? { strays } : {}),
        ...(joined > 0 ? { joined } : {}),
        warnings: [
          ...warnings,
          ...reader.warnings(),
          ...notes,
          ...(unknownFields.length > 0 ? [unknownFieldsText(unknownFields)] : []),
        ],
        unknownFields,
      };
    },
  };
}

/** How many unknown names the warning lists. */
const LISTED_UNKNOWN = 20;

/** The same for all responses with these fields, so that the report of a run counts them together. */
function unknownFieldsText(names: readonly string[]): string {
  const listed = [...names].sort().slice(0, LISTED_UNKNOWN);
  const more = names.length - listed.length;
  return `the source sends fields that no column reads: ${listed.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** What to do about a response that has only records of one day, and none of those requested. */
export const otherDayText = (day: string): string =>
  `all are of ${day}: if the address serves no other day, set EOD_TRIAL_DAY=${day}`;

interface Stray {
  readonly problem: Problem;
  /** The record's own day, if that is the problem. */
  readonly day?: string;
}

/** The problem of a row of another day, exchange or quarter than was requested; null if it is of none. */
function strayProblem(
  operation: Operation,
  requested: Requested,
  { table, row }: { readonly table: TableDefinition; readonly row: Row },
): Stray | null {
  const shape = operation.shapes.find((one) => one.table === table);
  if (shape === undefined) return null;
  const { dateColumn } = table;
  if (shape.dated && dateColumn !== null) {
    const day = String(row[dateColumn]);
    if (!isRequestedDay(requested, day)) {
      const problem = {
        path: sourceOf(table, dateColumn),
        message: `is ${day}, a day that was not requested`,
      };
      return { problem, day };
    }
  }
  const contradiction = shape.contradiction?.(row, requested) ?? null;
  if (contradiction !== null) {
    const { column, message } = contradiction;
    return { problem: { path: sourceOf(table, column), message: printable(String(message).slice(0, 200)) } };
  }
  const exchange = shape.exchangeColumn === undefined ? null : row[shape.exchangeColumn];
  if (shape.exchangeColumn === undefined || !strayExchange(exchange, requested)) {
    return null;
  }
  const problem = {
    path: sourceOf(table, shape.exchangeColumn),
    message: `is ${printable(String(exchange).slice(0, 40))}, an exchange that was not requested`,
  };
  return { problem };
}

function sourceOf({ fields }: TableDefinition, column: string): string {
  const field = fields.find((one) => one.column === column);
  return field?.from === 'response' ? field.source : column;
}

/** True if the access key was replaced in this body. */
function isRedacted(body: Buffer): boolean {
  // Without its last byte, the UTF-16 text is found in both byte orders.
  return body.includes(REDACTED) || body.includes(Buffer.from(REDACTED, 'utf16le').subarray(0, -1));
}
