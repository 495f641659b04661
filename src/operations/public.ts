/**
 * What the package exports as `eod-pipeline/operations`: everything that a file with an operation of your own needs.
 * See docs/import.md.
 */
export type { Compute, DerivedField, Field, Kind, Requested, ResponseField } from './fields.ts';
export {
  boolean,
  date,
  datetime,
  dayFirst,
  derived,
  fromRequest,
  int4,
  int8,
  numeric,
  occurrence,
  symbolOf,
  text,
  withoutCommas,
} from './fields.ts';
export { defineFormat } from './file-format.ts';
export type {
  InstrumentRequest,
  Operation,
  RequestInput,
  RequestOption,
  Schedule,
  Shape,
} from './operation.ts';
export { defineFileSet, defineOperation } from './operation.ts';
export type { Row, TableDefinition } from './table.ts';
export { defineTable } from './table.ts';
