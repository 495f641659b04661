import type { ServerResponse } from 'node:http';
import type { Fault } from '../faults.ts';

/** A response to send. */
export interface Reply {
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const TEXT = 'text/plain; charset=utf-8';

/** Sends a body with status 200. */
export function send(response: ServerResponse, reply: Reply): void {
  response.end(begin(response, reply));
}

/** Sends the headers of a reply. @returns its body */
function begin(response: ServerResponse, { contentType, body, headers }: Reply): Buffer {
  const buffer = Buffer.from(body, 'utf8');
  response.writeHead(200, { 'content-type': contentType, ...headers, 'content-length': buffer.length });
  return buffer;
}

const HTML =
  '<!DOCTYPE html><html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>';
const TRICKLES = 20;

/** Sends a fault that needs no data. @returns false for other kinds of faults. */
export function sendFault(response: ServerResponse, fault: Fault): boolean {
  switch (fault.kind) {
    case 'status':
      plain(response, Number(fault.value ?? 503), 'The service is out of order.');
      return true;
    case 'retry-after':
      response.setHeader('retry-after', fault.value ?? '1');
      plain(response, 429, 'Too many requests.');
      return true;
    case 'reset':
      response.socket?.resetAndDestroy();
      return true;
    case 'hang':
      return true;
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
      response.end(HTML);
      return true;
    case 'empty-body':
      response.writeHead(200, { 'content-type': TEXT, 'content-length': 0 });
      response.end();
      return true;
    default:
      return false;
  }
}

/** Sends good data that a fault changes, cuts off or slows down. */
export async function sendDamaged(response: ServerResponse, reply: Reply, fault: Fault): Promise<void> {
  if (fault.kind === 'half-json') {
    send(response, { ...reply, body: reply.body.slice(0, Math.ceil(reply.body.length / 2)) });
    return;
  }
  const buffer = begin(response, reply);
  if (fault.kind === 'truncate') {
    // The first half must be sent before the connection closes.
    response.write(buffer.subarray(0, Math.floor(buffer.length / 2)), () => response.socket?.destroy());
    return;
  }
  await trickle(response, buffer, Number(fault.value ?? 2_000));
}

async function trickle(response: ServerResponse, buffer: Buffer, milliseconds: number): Promise<void> {
  const step = Math.max(1, Math.ceil(buffer.length / TRICKLES));
  for (let at = 0; at < buffer.length && !response.destroyed; at += step) {
    await pause(response, milliseconds / TRICKLES);
    if (!response.destroyed) response.write(buffer.subarray(at, at + step));
  }
  response.end();
}

/** Waits, or until the client closes the connection. */
export function pause(response: ServerResponse, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      response.off('close', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    response.once('close', done);
  });
}

/** Sends a status with a line of text. */
export function plain(response: ServerResponse, status: number, line: string): void {
  response.writeHead(status, { 'content-type': TEXT });
  response.end(line);
}
