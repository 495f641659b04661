// Processor time to read a response and to write its rows as COPY text, each the way it is done beside the plain
// way, in turns: `npm run bench:read`. It is processor time and not elapsed time, so that a busy machine matters less.

import { encodeValue } from '../src/declaration/rows.ts';
import type { Row, TableDefinition } from '../src/declaration/table.ts';
import { openResponse } from '../src/extract/envelope.ts';
import { createRecordReader } from '../src/extract/records.ts';
import { encodeRows } from '../src/load/merge/copy-text.ts';
import { operationNamed } from '../src/operations/registry.ts';
import { machineFacts, median, table } from './support/figures.ts';
import { parseFlags } from './support/flags.ts';
import { bodyFor, renderDay } from './support/records.ts';

const flags = parseFlags({
  rounds: { type: 'string', default: '9' },
  json: { type: 'boolean', default: false },
});

const DAY = '2025-08-29';
const RECORDS = 5_000;
const operation = operationNamed('GetBhavCopyCM');
const [{ table: market }] = operation.shapes;
const requested = { exchange: 'BSE', from: DAY, to: DAY, instruments: [], params: {}, calledOn: DAY };
const bodies = Array.from({ length: 8 }, (_, variant) => bodyFor(renderDay(RECORDS, variant), DAY));

function read(records: readonly unknown[]): Row[] {
  const reader = createRecordReader(operation, requested, 'Asia/Kolkata');
  const rows: Row[] = [];
  for (const record of records) {
    const result = reader.read(record);
    if (result.table === null) throw new Error('a record was rejected');
    rows.push(result.row);
  }
  return rows;
}

/** Bytes of the rows' COPY text, made value by value. */
function encodeSimply({ fields }: TableDefinition, rows: readonly Row[]): number {
  const lines = rows.map((row, index) =>
    [String(index), ...fields.map(({ column }) => encodeValue(row[column] ?? null))].join('\t'),
  );
  return Buffer.from(`${lines.join('\n')}\n`).length;
}

function encode(rows: readonly Row[]): number {
  let bytes = 0;
  for (const piece of encodeRows(market, rows, { positions: true })) bytes += piece.length;
  return bytes;
}

/** Processor time of each part in microseconds a record, of all threads: collecting garbage is part of it. */
const parts: Record<string, number[]> = {};

function measure<Result>(part: string, work: (body: number) => Result): Result[] {
  const before = process.cpuUsage();
  const results = bodies.map((_, body) => work(body));
  const { user, system } = process.cpuUsage(before);
  parts[part] = [...(parts[part] ?? []), (user + system) / (bodies.length * RECORDS)];
  return results;
}

for (let round = 0; round < Number(flags.rounds); round += 1) {
  const responses = measure('JSON parsed, numbers that would be rounded marked', (at) => {
    return openResponse(bodies[at] as Buffer, { operation, redact: (text) => text }).records;
  });
  const recordsOf = (at: number) => responses[at] as unknown[];
  const rows = measure('read by the zod schema', (at) => read(recordsOf(at)));
  const simple = measure('COPY text value by value', (at) => encodeSimply(market, rows[at] as Row[]));
  const bytes = measure('COPY text as bytes', (at) => encode(rows[at] as Row[]));
  if (simple.join() !== bytes.join()) throw new Error('the texts differ');
}

if (flags.json) console.log(JSON.stringify({ machine: machineFacts(), parts }));
else {
  console.log(
    `\n${machineFacts()}; medians of ${flags.rounds} rounds of ${bodies.length * RECORDS} records\n`,
  );
  const figures = Object.entries(parts).map(([part, times]) => [part, median(times).toFixed(2)]);
  console.log(table(['processor time', 'µs a record'], figures));
}
