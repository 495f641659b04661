import type { ProxySettings } from '../core/proxy.ts';
import type { Requested } from '../declaration/fields.ts';
import type { Operation } from '../declaration/operation.ts';
import type { DateDialect } from '../declaration/request-parameters.ts';
import type { TableRows } from '../declaration/rows.ts';
import type { Row, Scalar } from '../declaration/table.ts';
import type { Doubt } from './doubts.ts';

export type { Row, Scalar };

/** The settings that extraction needs. */
export interface SourceSettings {
  readonly baseUrl: string;
  readonly accessKey: string;
  readonly dateDialect: DateDialect;
  readonly dateFormat: 'String' | 'Epoch';
  readonly format: 'Json' | 'Xml' | 'Csv' | 'CsvContent';
  readonly timeZone: string;
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  /** Connections kept open to the source. */
  readonly connections: number;
  readonly tlsVerify: boolean;
  /** Absent: calls go through no proxy. */
  readonly proxies?: ProxySettings;
}

/** One problem of one record. */
export interface Problem {
  /** Path of the source field, e.g. `ClosePrice`; empty if it is a problem of the whole record. */
  readonly path: string;
  readonly message: string;
}

export interface Reject {
  /** Position in the response, from 0. */
  readonly position: number;
  /** The record as sent, made safe for jsonb (no NUL, no lone surrogates, bounded size and depth). */
  readonly record: unknown;
  readonly problems: readonly Problem[];
  /** The day and the instrument that the record names itself, as far as they can be read. */
  readonly day?: string;
  readonly instrument?: string;
  /** Whether it is of a day, quarter or exchange that was not requested. */
  readonly stray?: boolean;
}

/** A response before its records are read. */
export interface RawResponse {
  readonly body: Buffer;
  readonly contentType: string | null;
  /** Bytes that were received (compressed, if the source compresses). */
  readonly bytes: number;
  /** SHA-256 of the body in hex, if that is known. */
  readonly hash?: string;
}

/** A response, read and validated. */
export interface Extracted {
  /** Its rows for each table, in the order of the response. */
  readonly batches: readonly TableRows[];
  readonly rejects: readonly Reject[];
  /** How many records: rows of all batches + rejects; for a file whose rows fill two tables, those of the first. */
  readonly fetched: number;
  /** For CSV: whether the last line has a line end. If that is usual, a response without one was cut off. */
  readonly lastLine?: 'ended' | 'open';
  /** Why it may not have all records that were requested. */
  readonly doubts: readonly Doubt[];
  /** Whether stored rows that it does not list are withdrawn. They are not if it only says that there is no data. */
  readonly listsAll: boolean;
  /** Problems of the response as a whole that are not fatal, e.g. a wrong count. */
  readonly warnings: readonly string[];
  /** Keys of records that no declared field matches; they are also a warning. */
  readonly unknownFields: readonly string[];
}

/** A Date header, truncated to seconds by the source, and when it was received; in milliseconds since the epoch. */
export interface ObservedDate {
  readonly statedAt: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** A response as it came. Nothing is known of it but its bytes, which may quote the access key. */
export interface ReceivedResponse {
  /** SHA-256 of its bytes, in hex. */
  readonly hash: string;
  /** Size of the body as it was sent. */
  readonly bytes: number;
  /** Looks for the access key, and for diagnostics. @throws PipelineError for anything but a data response. */
  check(): RawResponse;
}

export interface Source {
  /**
   * One GET. @throws PipelineError if no complete response with the status 200 arrives.
   *
   * @param signal aborts the call (kind `aborted`).
   */
  receive(operation: Operation, requested: Requested, signal?: AbortSignal): Promise<ReceivedResponse>;
  /** The same, with the check of the response. */
  fetch(operation: Operation, requested: Requested, signal?: AbortSignal): Promise<RawResponse>;
  /** Milliseconds by which the source's clock is ahead of the local one, as far as its responses have shown. */
  clockOffsetMs(): number;
  /** The Date header of the last response, and when it was received by the local clock; null before the first. */
  lastDate(): ObservedDate | null;
  /** Reads and validates a response; pure. */
  read(operation: Operation, requested: Requested, response: RawResponse, count?: CountRule): Extracted;
  close(): Promise<void>;
}

/**
 * What is made of a response that states more records than it has. `check`: it is refused, because it may have been
 * cut. `accept`: it is read, and the difference is reported. `ignore`: the count means something else.
 */
export type CountRule = 'check' | 'accept' | 'ignore';

export interface EnvelopeContext {
  readonly count?: CountRule;
  readonly operation: Operation;
  /** Removes the access key from a text. */
  readonly redact: (text: string) => string;
}
