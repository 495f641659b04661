import { redactor } from '../core/environment.ts';
import type { Requested } from '../declaration/fields.ts';
import type { Operation } from '../declaration/operation.ts';
import type { Row, TableDefinition } from '../declaration/table.ts';
import { countDoubt } from './doubts.ts';
import { type Envelope, openInSlices, openResponse } from './envelope.ts';
import { countJoinedRows, findStrays, noteRedaction } from './record-visitors.ts';
import { createRecordReader } from './records.ts';
import { printable, sanitizeRecord } from './sanitize.ts';
import type { CountRule, Extracted, RawResponse, Reject, SourceSettings } from './types.ts';

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
  const slices = collect();
  const envelope = openInSlices(body, context, slices.take);
  if (envelope !== null) return slices.finish(envelope);
  const { records, ...opened } = openResponse(body, context);
  const { take, finish } = collect();
  for (let position = 0; position < records.length; position++) {
    const record = records[position];
    // Release each record once it is read, so that the parsed response shrinks as the rows grow.
    records[position] = null;
    take(position, record);
  }
  return finish(opened);
}

/** Reads the records of one response: collects their rows by table, and those that are rejected. */
function collectRecords(operation: Operation, requested: Requested, timeZone: string, body: Buffer) {
  const reader = createRecordReader(operation, requested, timeZone);
  const visitors = [findStrays(operation, requested), countJoinedRows(), ...noteRedaction(body)];
  const rejects: Reject[] = [];
  const rowsByTable = new Map<TableDefinition, Row[]>();
  const addRow = (table: TableDefinition, row: Row) => {
    const rows = rowsByTable.get(table);
    if (rows === undefined) rowsByTable.set(table, [row]);
    else rows.push(row);
  };
  return {
    /** Takes the next record of the response. */
    take(position: number, record: unknown): void {
      let result = reader.read(record);
      for (const visitor of visitors) result = visitor.visit(result, record);
      if (result.table !== null) {
        addRow(result.table, result.row);
        return;
      }
      const { table: _, ...reject } = result;
      rejects.push({ position, record: sanitizeRecord(record), ...reject });
    },
    finish({ warnings, miscount, lastLine, listsNothing }: Envelope): Extracted {
      const batches = [...rowsByTable].map(([table, rows]) => ({ table, rows }));
      const rows = batches.reduce((sum, batch) => sum + batch.rows.length, 0);
      const unknownFields = [...reader.unknownFields()]
        .slice(0, MAX_UNKNOWN)
        .map((name) => printable(name.slice(0, 200)));
      return {
        batches,
        rejects,
        fetched: rows + rejects.length,
        doubts: [
          ...visitors.flatMap(({ doubts }) => doubts?.() ?? []),
          ...(miscount === undefined ? [] : [countDoubt(miscount)]),
        ],
        listsAll: listsNothing !== true && miscount === undefined,
        ...(lastLine === undefined ? {} : { lastLine }),
        warnings: [
          ...warnings,
          ...reader.warnings(),
          ...visitors.flatMap((visitor) => visitor.warnings ?? []),
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
