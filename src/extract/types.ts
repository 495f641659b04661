import type { AskedFor } from '../operations/fields.ts';
import type { Operation } from '../operations/operation.ts';
import type { Rows } from '../operations/rows.ts';
import type { Row, Scalar, TableDefinition } from '../operations/table.ts';

export type { Row, Scalar };

/** The settings that extraction needs. */
export interface SourceSettings {
  readonly baseUrl: string;
  readonly accessKey: string;
  readonly dateDialect: 'epoch' | 'iso-date';
  readonly dateFormat: 'String' | 'Epoch';
  readonly format: 'Json' | 'Xml' | 'Csv' | 'CsvContent';
  readonly timeZone: string;
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  /** Connections kept open to the source. */
  readonly connections: number;
  readonly tlsVerify: boolean;
}

/** One problem of one record. */
export interface Problem {
  /** Source field path, e.g. `ClosePrice`; empty when the record as a whole is at fault. */
  readonly path: string;
  readonly message: string;
}

export interface Reject {
  /** Place in the answer, from 0. */
  readonly position: number;
  /** The record as sent, made safe for jsonb (no NUL, no lone surrogates, bounded size and depth). */
  readonly record: unknown;
  readonly problems: readonly Problem[];
  /** The day and the instrument that it names itself, as far as it can be read. */
  readonly day?: string;
  readonly instrument?: string;
}

/** Validated records for one table, in the order of the answer. */
interface Batch {
  readonly table: TableDefinition;
  readonly rows: Rows;
}

/** A body as it came, before reading. */
export interface RawAnswer {
  readonly body: Buffer;
  readonly contentType: string | null;
  /** Bytes that travelled (compressed, where the source compresses). */
  readonly bytes: number;
}

/** An answer, read and validated. `fetched` = rows of all batches + rejects; of a file whose rows fill two tables, of the first. */
export interface Extracted {
  readonly batches: readonly Batch[];
  readonly rejects: readonly Reject[];
  readonly fetched: number;
  /** Of CSV: does its last line have an end? Where that is usual, an answer without it was cut off. */
  readonly lineEnd?: boolean;
  /** Records of a day, or of an exchange, that was not asked for; they are among the rejects. */
  readonly strays?: number;
  /** What is wrong with the answer as a whole but not fatal, e.g. its count. */
  readonly warnings: readonly string[];
  /** Keys of records that no declared field has. */
  readonly unknownFields: readonly string[];
}

/** A Date header, in milliseconds since the epoch: cut to the second by the source, and when it came. */
export interface ObservedDate {
  readonly said: number;
  readonly receivedAt: number;
}

/** The source as the rest of the pipeline sees it. */
export interface Source {
  /**
   * One GET. Throws PipelineError for anything but a data answer, diagnostics included.
   *
   * @param signal aborts the call (kind `aborted`).
   */
  fetch(operation: Operation, asked: AskedFor, signal?: AbortSignal): Promise<RawAnswer>;
  /** Milliseconds by which the source's clock is ahead of ours, as far as its answers have shown. */
  clockOffsetMs(): number;
  /** What the Date header of the last answer said, and when that came by our clock; null before the first. */
  lastDate(): ObservedDate | null;
  /** Reads and validates an answer; pure. */
  read(operation: Operation, asked: AskedFor, answer: RawAnswer): Extracted;
  close(): Promise<void>;
}
