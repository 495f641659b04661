/**
 * The vocabulary in which operation files state their fields. One line per field: the source's
 * name for it, our column, what it means, its unit. The zod schema, the drizzle column, the COPY
 * encoder, the column comment, the data dictionary and the sandbox's answer all come from that line.
 */

/** How a value is read, stored and written; see `extract/values.ts` for the reading rules. */
export type Kind = 'text' | 'int2' | 'int4' | 'int8' | 'numeric' | 'boolean' | 'date' | 'datetime';

/** The column type of each kind, as Postgres names it. */
export const SQL_TYPES: Readonly<Record<Kind, string>> = {
  text: 'text',
  int2: 'smallint',
  int4: 'integer',
  int8: 'bigint',
  numeric: 'numeric',
  boolean: 'boolean',
  date: 'date',
  datetime: 'timestamptz',
};

interface FieldOptions {
  /** Unit of the value, for comments and the data dictionary: `rupees`, `shares`, `percent`. */
  readonly unit?: string;
  /** A record without this value is a reject. */
  readonly required?: boolean;
  /** What a key column holds when the source leaves the value out: a key is never null. */
  readonly absent?: '' | 0;
  /** Other source names that carry the same value, tried in order after the first. */
  readonly orElse?: readonly string[];
}

/** A field of the source's answer. */
export interface AnswerField extends FieldOptions {
  readonly from: 'answer';
  /** The name in the service's interface description; matched without regard to case. */
  readonly source: string;
  readonly column: string;
  readonly kind: Kind;
  readonly meaning: string;
}

/** What a request was about, for values that only the request knows. */
export interface AskedFor {
  readonly exchange: string;
  /** First and last day asked for. */
  readonly from: string;
  readonly to: string;
  readonly instruments: readonly string[];
  readonly params: Readonly<Record<string, string>>;
  /** Day of the call in the source's time zone. */
  readonly calledOn: string;
}

/** A column whose value comes from the request, because the answer does not carry it. */
interface RequestField extends FieldOptions {
  readonly from: 'request';
  readonly column: string;
  readonly kind: Kind;
  readonly meaning: string;
  readonly value: (asked: AskedFor) => string;
}

/** Returns a value of the record as sent, by the name of its source field. */
export type Sent = (source: string) => unknown;

/** A column that is computed from the record and its place in the answer. */
export interface DerivedField extends FieldOptions {
  readonly from: 'derived';
  readonly column: string;
  readonly kind: Kind;
  readonly meaning: string;
  /**
   * Called once per record in the order of the answer, rejected records included.
   * `memory` lives as long as the answer.
   */
  readonly value: (sent: Sent, memory: Map<string, number>) => string | number | null;
}

export type Field = AnswerField | RequestField | DerivedField;

type AnswerFieldMaker = (
  source: string,
  column: string,
  meaning: string,
  options?: FieldOptions,
) => AnswerField;

function answerField(kind: Kind): AnswerFieldMaker {
  return (source, column, meaning, options = {}) => ({
    from: 'answer',
    source,
    column,
    kind,
    meaning,
    ...options,
  });
}

/** Text, trimmed; empty means null. */
export const text = answerField('text');
/** Whole number of at most 32 bits: codes, years. */
export const int4 = answerField('int4');
/** Whole number of at most 64 bits: quantities and counts. A fraction is a reject. */
export const int8 = answerField('int8');
/** Decimal number, stored with every digit the source printed: money, prices, ratios. */
export const numeric = answerField('numeric');
export const boolean = answerField('boolean');
/** Calendar day without a zone. */
export const date = answerField('date');
/** Date-time of the source's clock (Asia/Kolkata), stored as an instant. */
export const datetime = answerField('datetime');

/** A column filled from the request. */
export function fromRequest(
  column: string,
  kind: Kind,
  meaning: string,
  value: RequestField['value'],
): RequestField {
  return { from: 'request', column, kind, meaning, value, required: true };
}

/** A column computed from the record. */
export function derived(
  column: string,
  kind: Kind,
  meaning: string,
  value: DerivedField['value'],
): DerivedField {
  return { from: 'derived', column, kind, meaning, value };
}
