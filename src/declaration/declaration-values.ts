/** The Postgres type of each kind of value. */
export const SQL_TYPES = {
  text: 'text',
  int2: 'smallint',
  int4: 'integer',
  int8: 'bigint',
  numeric: 'numeric',
  boolean: 'boolean',
  date: 'date',
  datetime: 'timestamptz',
} as const;

/** How a value is read, stored and written; see `declaration/value-readers.ts` for the reading rules. */
export type Kind = keyof typeof SQL_TYPES;

/** A value of a kind. Days and date-times are text; so are numbers that a double cannot hold exactly. */
export type ValueOf<ColumnKind extends Kind> = ColumnKind extends 'boolean'
  ? boolean
  : ColumnKind extends 'int2' | 'int4'
    ? number
    : ColumnKind extends 'int8' | 'numeric'
      ? number | string
      : string;

/** A value to store. */
export type Scalar = ValueOf<Kind> | null;

/** One validated record, by column name, without the columns of LOAD_AUDIT. */
export type Row = Record<string, Scalar>;

/** The weekday on which a schedule requests, as in `weekday` of core/days.ts; null: every day. */
export const SCHEDULED_WEEKDAYS = { daily: null, friday: 5, saturday: 6, sunday: 0 } as const;

/** The groups in which data sets are listed, in their order. */
export const GROUPS = [
  'prices',
  'trading',
  'corporate actions',
  'fundamentals',
  'ownership',
  'reference',
] as const;
