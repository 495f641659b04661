import { type Dispatcher, errors, request } from 'undici';
import { type Clock, systemClock } from '../core/clock.ts';
import { redactor } from '../core/environment.ts';
import { isPipelineError, messageOf, PipelineError } from '../core/errors.ts';
import type { Logger } from '../core/log.ts';
import { createDispatcher } from '../core/proxy.ts';
import { sha256 } from '../core/sha256.ts';
import type { Operation } from '../declaration/operation.ts';
import { createBodyRedactor, readBody } from './body.ts';
import { buildUrl } from './build-request.ts';
import { diagnose, tooLarge, unreadable } from './diagnostics.ts';
import { checkResponse } from './envelope.ts';
import { readResponse } from './read.ts';
import type { ObservedDate, RawResponse, Source, SourceSettings } from './types.ts';

export { buildUrl } from './build-request.ts';
export { readResponse } from './read.ts';
export type * from './types.ts';

/** A response with all that came with it; its headers may quote the access key. */
interface Received extends RawResponse {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
}

/** How much is read of a response with an error status, which matters only if it is a diagnostic line. */
const MAX_ERROR_BYTES = 64 * 1024;

/**
 * The source service behind `settings.baseUrl`: a pool of persistent connections, and one deadline for each call, until
 * its response has arrived. Close it to release its connections.
 */
export function createSource(settings: SourceSettings, log?: Logger, clock: Clock = systemClock): Source {
  const { timeoutMs, maxResponseBytes } = settings;
  const redact = redactor([settings.accessKey]);
  const redactBody = createBodyRedactor(settings.accessKey);
  const dispatcher = createDispatcher(settings.proxies ?? {}, settings);
  let clockOffset = 0;
  let lastDate: ObservedDate | null = null;

  /**
   * One GET, without redirects, whatever its status. Throws PipelineError if no complete response arrives. The access key
   * is removed from the body, unless the status is 200.
   */
  async function sendRequest(url: string, signal?: AbortSignal): Promise<Received> {
    const sentAt = clock.now();
    const deadline = AbortSignal.timeout(timeoutMs);
    let responding = false;
    try {
      const { statusCode, headers, body } = await request(url, {
        dispatcher,
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
        headers: { accept: 'application/json, text/plain, text/csv, */*;q=0.1', 'accept-encoding': 'gzip' },
      });
      const statedAt = Date.parse(firstValue(headers.date) ?? '');
      const receivedAt = clock.now();
      lastDate = Number.isNaN(statedAt) ? null : { statedAt, sentAt, receivedAt };
      clockOffset = correctedOffset(clockOffset, statedAt, sentAt, receivedAt);
      const about = { status: statusCode, contentType: firstValue(headers['content-type']), headers };
      if (statusCode !== 200) {
        const none = { body: Buffer.alloc(0), bytes: 0 };
        const cap = Math.min(MAX_ERROR_BYTES, maxResponseBytes);
        const read = await readBody(body, headers, cap).catch(() => none);
        return { ...read, ...about, body: redactBody(read.body) };
      }
      responding = true;
      return { ...(await readBody(body, headers, maxResponseBytes)), ...about };
    } catch (error) {
      if (signal?.aborted) {
        throw new PipelineError('the call was aborted', { kind: 'aborted' });
      }
      if (error instanceof PipelineError) throw error;
      if (deadline.aborted) throw timeoutError(timeoutMs);
      throw transportError(error, { timeoutMs, redact, cutShort: responding });
    }
  }

  /** One GET. Throws PipelineError for anything but a 200 with a complete body. */
  async function requestBody(url: string, signal?: AbortSignal): Promise<Received> {
    const response = await sendRequest(url, signal);
    const { status, body, headers } = response;
    if (status === 200) return response;
    // A known diagnostic line means the same with any status.
    throw diagnose(body.toString('utf8'), redact) ?? statusError(status, firstValue(headers['retry-after']));
  }

  function check(body: Buffer, operation: Operation): void {
    try {
      checkResponse(body, { operation, redact });
    } catch (error) {
      if (!isPipelineError(error, 'unreadable')) throw error;
      throw new PipelineError(error.message, { ...error, response: body });
    }
  }
  const receive: Source['receive'] = async (operation, requested, signal) => {
    const url = buildUrl(settings, operation, requested);
    const about = {
      operation: operation.name,
      exchange: requested.exchange,
      from: requested.from,
      to: requested.to,
    };
    const start = performance.now();
    const ms = () => Math.round(performance.now() - start);
    const fail = (error: unknown): never => {
      const message = error instanceof Error ? error.message : 'unknown';
      log?.debug({ ...about, ms: ms(), error: message }, 'call failed');
      throw error;
    };
    const { status, body, contentType, bytes } = await requestBody(url, signal).catch(fail);
    log?.debug({ ...about, status, bytes, ms: ms() }, 'response');
    const hash = sha256(body);
    return {
      hash,
      bytes,
      check() {
        const redacted = redactBody(body);
        const response = { body: redacted, contentType, bytes, ...(redacted === body && { hash }) };
        try {
          check(response.body, operation);
        } catch (error) {
          fail(error);
        }
        return response;
      },
    };
  };
  return {
    receive,
    fetch: async (operation, requested, signal) => (await receive(operation, requested, signal)).check(),
    clockOffsetMs: () => clockOffset,
    lastDate: () => lastDate,
    read: (operation, requested, response, count = 'check') =>
      readResponse(operation, requested, response, { ...settings, count }),
    close: () => dispatcher.close(),
  };
}

/** A Date header that differs from the local clock by more than this is ignored. */
const MAX_CLOCK_OFFSET_MS = 1_800_000;

/**
 * By how much the source's clock is ahead of the local one: the known offset, moved into the bounds that another Date
 * header sets. The header is truncated to seconds, and was written at some moment between `sentAt` and `receivedAt`.
 */
function correctedOffset(known: number, date: number, sentAt: number, receivedAt: number): number {
  if (!(Math.abs(date - receivedAt) <= MAX_CLOCK_OFFSET_MS)) return known;
  return Math.min(Math.max(known, date - receivedAt), date + 999 - sentAt);
}

function firstValue(header: string | string[] | undefined): string | null {
  return (Array.isArray(header) ? header[0] : header) ?? null;
}

function statusError(status: number, retryAfter: string | null): PipelineError {
  // The key was not accepted, either by the source or by a proxy in front of it.
  if (status === 401) {
    return new PipelineError('the access key was refused with HTTP status 401', { kind: 'credential' });
  }
  const retryAfterMs = retryAfter === null ? null : retryDelay(retryAfter);
  return new PipelineError(`the source responded with HTTP status ${status}`, {
    kind: 'http_status',
    status,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  });
}

/** The milliseconds that a Retry-After header states, which is in seconds or an HTTP date; null if it is neither. */
export function retryDelay(header: string, now = Date.now()): number | null {
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) || !/[a-z]/i.test(text) ? null : Math.max(0, at - now);
}

function timeoutError(timeoutMs: number, isUnsent = false): PipelineError {
  return new PipelineError(`no complete response within ${timeoutMs} ms`, { kind: 'timeout', isUnsent });
}

const TIMEOUT_CODES = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** Our own aborts are distinguished before: apart from them, undici aborts a request if a proxy refuses to connect. */
const REFUSED_BY_PROXY = 'UND_ERR_ABORTED';

/**
 * Classifies what undici, zlib or the socket threw. Their errors can contain the request with its key, so they are not
 * passed on as a cause: only code and message are copied, without the key.
 */
function transportError(
  error: unknown,
  { timeoutMs, redact, cutShort }: { timeoutMs: number; redact: (text: string) => string; cutShort: boolean },
): PipelineError {
  const code = readCode(error);
  const isUnsent = !cutShort && isUnsentBy(error, code);
  if (code !== null && TIMEOUT_CODES.has(code)) return timeoutError(timeoutMs, isUnsent);
  if (code?.startsWith('Z_') || code?.startsWith('ERR_BROTLI') || code?.startsWith('ERR__ERROR')) {
    return unreadable(`its compression is broken (${code})`, { cutShort });
  }
  if (code === 'ERR_BUFFER_TOO_LARGE') return tooLarge('it does not fit into memory');
  const message = redact(messageOf(error)).trim() || 'connection failed';
  const wrong = cutShort ? null : problemOfAddress(error, code);
  if (wrong !== null) {
    return new PipelineError(`${wrong}: correct EOD_BASE_URL, or the proxy (${code ?? message})`, {
      kind: 'wrong_address',
      isUnsent,
    });
  }
  const detail = code === null || message.includes(code) ? message : `${code}: ${message}`;
  const sentence = cutShort
    ? 'the connection broke in the middle of the response'
    : code === REFUSED_BY_PROXY
      ? 'the proxy does not connect us to the source'
      : 'the source cannot be reached';
  return new PipelineError(`${sentence}: ${detail}`, { kind: 'network', cutShort, isUnsent });
}

/** Whether an error shows that there was no connection, so that the source got nothing. */
function isUnsentBy(error: unknown, code: string | null): boolean {
  if (code !== null && (UNSENT_CODES.has(code) || NO_TLS.test(code))) return true;
  // Node joins the errors of a host's addresses, each of which was tried.
  if (error instanceof AggregateError) return true;
  const syscall = error instanceof Error && 'syscall' in error ? error.syscall : null;
  return syscall === 'connect' || syscall === 'getaddrinfo';
}

const UNSENT_CODES = new Set(['UND_ERR_CONNECT_TIMEOUT', REFUSED_BY_PROXY]);

/** What OpenSSL says of bytes that are no TLS. */
const NO_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|HTTPS_PROXY_REQUEST)$/;

/** Whether bytes begin like an alert or a handshake of TLS: with its type and the major version. */
const isTls = (bytes: string) => [0x15, 0x16].includes(bytes.charCodeAt(0)) && bytes.charCodeAt(1) === 3;

/**
 * What is wrong with the address, if something responds there that is not what the address says; null if that is not
 * known. Unlike an outage, this does not pass.
 */
function problemOfAddress(error: unknown, code: string | null): string | null {
  if (code !== null && NO_TLS.test(code))
    return 'the address begins with https://, and the server there does not speak TLS';
  if (code === 'UND_ERR_HEADERS_OVERFLOW')
    return 'the server at this address is another one: its response begins with more headers than are read';
  if (!(error instanceof errors.HTTPParserError)) return null;
  return 'data' in error && isTls(String(error.data))
    ? 'the address begins with http://, and the server there speaks TLS: https://'
    : 'the server at this address does not speak HTTP';
}

function readCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
