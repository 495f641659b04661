import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { expect } from 'vitest';
import { PipelineError } from '../../src/core/errors.ts';
import {
  type Extracted,
  type RawResponse,
  readResponse,
  type SourceSettings,
} from '../../src/extract/index.ts';
import { encodeRows } from '../../src/load/market/merge/copy-text.ts';
import type { Requested } from '../../src/operations/fields.ts';
import type { Operation } from '../../src/operations/operation.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { countValues, EncodedRows, type Rows } from '../../src/operations/rows.ts';
import { listen } from '../support/http-server.ts';

export const KEY = "k3y/s'e+cr!et&0123456789";

/** The key as it is, percent-encoded as JavaScript does, and as an address holds it. */
export const KEY_FORMS = [
  KEY,
  encodeURIComponent(KEY),
  encodeURIComponent(KEY).replaceAll("'", '%27').replaceAll('!', '%21'),
];

export const SETTINGS: SourceSettings = {
  baseUrl: 'https://source.invalid:4532',
  accessKey: KEY,
  dateDialect: 'epoch',
  dateFormat: 'String',
  format: 'Json',
  timeZone: 'Asia/Kolkata',
  timeoutMs: 5_000,
  maxResponseBytes: 8 * 1024 * 1024,
  connections: 2,
  tlsVerify: true,
};

/** What an operation's own sample requested, with changes. */
export function requestedOf(operation: Operation, changes: Partial<Requested> = {}): Requested {
  return { ...operation.sample.requested, calledOn: '2025-02-28', ...changes };
}

export function raw(body: Buffer | string | object): RawResponse {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const buffer = Buffer.from(text as string);
  return { body: buffer, contentType: 'text/plain', bytes: buffer.length };
}

/** Reads a body as a response to the operation's sample request. */
export function readAs(name: string, body: Buffer | string | object, changes: Partial<Requested> = {}) {
  const operation = operationNamed(name);
  return readResponse(operation, requestedOf(operation, changes), raw(body), SETTINGS);
}

/** A server on loopback for the running test. `handler` responses its requests, which are collected. */
export async function serve(handler: (request: IncomingMessage, response: ServerResponse) => void) {
  const requests: IncomingMessage[] = [];
  const listener: RequestListener = (request, response) => {
    requests.push(request);
    handler(request, response);
  };
  const server = createServer(listener);
  return { baseUrl: await listen(server), requests, server };
}

/** Sizes from which on a response is read record by record. */
export const ALWAYS = 0;
export const NEVER = Number.POSITIVE_INFINITY;

/** How often each value occurs, where a number and the same number as a text are one value: in Postgres they are. */
function countTexts(rows: Rows, column: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [value, times] of countValues(rows, column)) {
    counts.set(String(value), (counts.get(String(value)) ?? 0) + times);
  }
  return counts;
}

/** Everything that is stored or reported a response; what it fails with, where it is none. */
export function readFacts(
  operation: Operation,
  requested: Requested,
  body: Buffer | string,
  scanFrom: number,
) {
  let extracted: Extracted;
  try {
    extracted = readResponse(operation, requested, raw(body), SETTINGS, scanFrom);
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    return { scanned: false, result: { ...error, message: error.message } };
  }
  const { batches, ...rest } = extracted;
  const tables = batches.map(({ table, rows }) => ({
    table: table.name,
    length: rows.length,
    text: Buffer.concat([...encodeRows(table, rows, { positions: true, audit: '\tx' })]).toString(),
    // no matter who takes the rows as objects gets the same.
    again: Buffer.concat([...encodeRows(table, [...rows], { positions: true, audit: '\tx' })]).toString(),
    columns: [...rows].map((row) => Object.keys(row)),
    counts: [table.dateColumn, 'source_saved_at', ...table.key].map((column) =>
      column === null ? [] : [...countTexts(rows, column)],
    ),
  }));
  const scanned = batches.some(({ rows }) => rows instanceof EncodedRows);
  return { scanned, result: { ...rest, tables } };
}

/** Whether a body is scanned where that is allowed; what is read has to be the same as without it. */
export function isScanned(operation: Operation, requested: Requested, body: Buffer): boolean {
  const [slow, fast] = [NEVER, ALWAYS].map((scanFrom) => readFacts(operation, requested, body, scanFrom));
  expect(fast?.result).toStrictEqual(slow?.result);
  expect(slow?.scanned).toBe(false);
  return fast?.scanned === true;
}
