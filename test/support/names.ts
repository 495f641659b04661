import { nameProblems } from '../../src/operations/check-declaration.ts';

/** A column of a table or view, or of the rows that a function returns, or a parameter of a function. */
export interface Column {
  readonly kind: 'relation' | 'function';
  readonly schema: string;
  /** Table, view or function. */
  readonly of: string;
  readonly name: string;
  readonly isBoolean: boolean;
  readonly comment: string | null;
}

/** Names that are those of the source's fields, or of the key, for ever. */
const FIXED: readonly string[] = ['top_gainers_losers.quantity', 'series_changes.prev_series'];

export const relationOf = ({ schema, of }: Column) => `${schema}.${of}`;

/** What is wrong with a name, by the rules. */
export function problemsOf({ schema, of, name, isBoolean, comment }: Column): string[] {
  // What a table was has its columns.
  if ([of, of.replace(/_changes$/, '')].some((one) => FIXED.includes(`${one}.${name}`))) return [];
  // Queries of history have used it from the start.
  if (schema === 'market_history' && name === 'withdrawn') return [];
  const unit = /\bUnit: ([^.]+)\./.exec(comment ?? '')?.[1];
  return nameProblems({ name, isBoolean, isMarket: schema.startsWith('market'), unit });
}
