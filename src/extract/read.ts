import type { AskedFor } from '../operations/fields.ts';
import type { Operation } from '../operations/operation.ts';
import type { Row, TableDefinition } from '../operations/table.ts';
import { openAnswer } from './envelope.ts';
import { createRecordReader } from './records.ts';
import { keyRedactor } from './request.ts';
import { printable, sanitizeRecord } from './sanitize.ts';
import type { Extracted, RawAnswer, Reject, SourceSettings } from './types.ts';

/** Distinct unknown names one answer reports. */
const MAX_UNKNOWN = 200;

/**
 * Reads an answer and validates every record of it; pure. Each record ends as a row of one table or
 * as a reject, so `fetched` is always their sum.
 *
 * @throws PipelineError when the answer as a whole is no data: see `openAnswer`.
 */
export function readAnswer(
  operation: Operation,
  asked: AskedFor,
  raw: RawAnswer,
  settings: Pick<SourceSettings, 'accessKey' | 'timeZone'>,
): Extracted {
  const { records, warnings, lacksRecords } = openAnswer(raw.body, {
    operation,
    redact: keyRedactor(settings.accessKey),
  });
  const reader = createRecordReader(operation, asked, settings.timeZone);
  const rows = new Map<TableDefinition, Row[]>();
  const rejects: Reject[] = [];
  for (let position = 0; position < records.length; position++) {
    const record = records[position];
    // Let go of each record once it is read: the parsed answer shrinks as the rows grow.
    records[position] = null;
    const result = reader.read(record);
    if (result.table === null) {
      rejects.push({ position, record: sanitizeRecord(record), problems: result.problems });
      continue;
    }
    const batch = rows.get(result.table);
    if (batch === undefined) rows.set(result.table, [result.row]);
    else batch.push(result.row);
  }
  return {
    batches: [...rows].map(([table, rows]) => ({ table, rows })),
    rejects,
    fetched: records.length,
    ...(lacksRecords === true ? { lacksRecords } : {}),
    warnings: [...warnings, ...reader.warnings()],
    unknownFields: [...reader.unknownFields()]
      .slice(0, MAX_UNKNOWN)
      .map((name) => printable(name.slice(0, 200))),
  };
}
