import { REDACTED } from '../core/environment.ts';
import { strayExchange } from '../core/exchanges.ts';
import { isRequestedDay, type Requested } from '../declaration/fields.ts';
import type { Operation } from '../declaration/operation.ts';
import type { Row, TableDefinition } from '../declaration/table.ts';
import { JoinedRows } from './csv.ts';
import { type Doubt, joinedRowsDoubt, strayDoubt } from './doubts.ts';
import type { RecordResult } from './records.ts';
import { printable } from './sanitize.ts';
import type { Problem } from './types.ts';

/** Looks at what was read of each record of a response; it may reject the record, and say at the end what that means. */
export interface RecordVisitor {
  visit(result: RecordResult, record: unknown): RecordResult;
  doubts?(): readonly Doubt[];
  readonly warnings?: readonly string[];
}

/** Rejects records of another day, exchange or quarter than was requested. */
export function findStrays(operation: Operation, requested: Requested): RecordVisitor {
  let records = 0;
  let strays = 0;
  /** Days of strays that are no problem otherwise; at most two. */
  const days = new Set<string>();
  return {
    visit(result) {
      records += 1;
      const stray = result.table === null ? null : strayProblem(operation, requested, result);
      if (stray === null) return result;
      strays += 1;
      if (stray.day !== undefined && days.size < 2) days.add(stray.day);
      return { table: null, stray: true, problems: [stray.problem] };
    },
    doubts() {
      const [day = null] = strays === records && days.size === 1 ? days : [];
      return strays === 0 ? [] : [strayDoubt(strays, day)];
    },
  };
}

/** Counts the lines of CSV that have the cells of several rows. */
export function countJoinedRows(): RecordVisitor {
  let lines = 0;
  return {
    visit(result, record) {
      if (result.table === null && record instanceof JoinedRows) lines += 1;
      return result;
    },
    doubts: () => (lines === 0 ? [] : [joinedRowsDoubt(lines, 'its rows are missing')]),
  };
}

/** The warning about a response that contained the access key, also added to its rejects. */
const REDACTED_NOTE = `the response held the access key; ${REDACTED} stands instead of it`;

/** Notes with each reject that the access key was replaced in the body, where it was. */
export function noteRedaction(body: Buffer): RecordVisitor[] {
  if (!isRedacted(body)) return [];
  const note = { path: '', message: REDACTED_NOTE };
  const visit = (result: RecordResult) =>
    result.table === null ? { ...result, problems: [...result.problems, note] } : result;
  return [{ visit, warnings: [REDACTED_NOTE] }];
}

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
  const shape = operation.shapes.find((candidate) => candidate.table === table);
  if (shape === undefined) return null;
  const { dateColumn } = table;
  if (shape.dated && dateColumn !== null) {
    const day = String(row[dateColumn]);
    if (!isRequestedDay(requested, day)) {
      const problem = {
        path: findSource(table, dateColumn),
        message: `is ${day}, a day that was not requested`,
      };
      return { problem, day };
    }
  }
  const contradiction = shape.contradiction?.(row, requested) ?? null;
  if (contradiction !== null) {
    const { column, message } = contradiction;
    return {
      problem: { path: findSource(table, column), message: printable(String(message).slice(0, 200)) },
    };
  }
  const exchange = shape.exchangeColumn === undefined ? null : row[shape.exchangeColumn];
  if (shape.exchangeColumn === undefined || !strayExchange(exchange, requested)) {
    return null;
  }
  const problem = {
    path: findSource(table, shape.exchangeColumn),
    message: `is ${printable(String(exchange).slice(0, 40))}, an exchange that was not requested`,
  };
  return { problem };
}

function findSource({ fields }: TableDefinition, column: string): string {
  const field = fields.find((candidate) => candidate.column === column);
  return field?.from === 'response' ? field.source : column;
}

/** True if the access key was replaced in this body. */
function isRedacted(body: Buffer): boolean {
  // Without its last byte, the UTF-16 text is found in both byte orders.
  return body.includes(REDACTED) || body.includes(Buffer.from(REDACTED, 'utf16le').subarray(0, -1));
}
