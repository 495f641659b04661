import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { Requested } from '../../src/declaration/fields.ts';
import type { Operation } from '../../src/declaration/operation.ts';
import { type RawResponse, readResponse, type SourceSettings } from '../../src/extract/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
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

/** The request of an operation's own sample, with changes. */
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

/** A server on loopback for the running test. `handler` responds to its requests, which are collected. */
export async function serve(handler: (request: IncomingMessage, response: ServerResponse) => void) {
  const requests: IncomingMessage[] = [];
  const listener: RequestListener = (request, response) => {
    requests.push(request);
    handler(request, response);
  };
  const server = createServer(listener);
  return { baseUrl: await listen(server), requests, server };
}
