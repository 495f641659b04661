/** What no name contains as a word or ends with. */
export const AVOIDED: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/(^|_)(pct|percentage|perc)(_|$)|_per$|^percent_|_percent_(?!change$)/, '_percent at the end'],
  [/(^|_)(crores|lakhs|lacs?|cr|mn|rs)(_|$)|(^|_)(crore|lakh|ms)_/, 'the unit at the end, in the singular'],
  [/(^|_)(qty|num|no_of|vol|px|prev)(_|$)/, 'the whole word'],
  [/(^|_)(ticker|scripcode|scripid|security_code|security_id|bse_code|nse_symbol)$/, 'symbol or scrip_code'],
];

// The rules of column names at the top of docs/tables.md.

/** How a name ends whose values have a unit. */
const ENDINGS: readonly (readonly [unit: RegExp, ending: string])[] = [
  [/\bcrores?\b/i, '_crore'],
  [/\blakhs?\b/i, '_lakh'],
  [/\bthousands?\b/i, '_thousand'],
  [/\bmillions?\b/i, '_million'],
  [/\bpercentage points\b/i, '_percent_change'],
  [/\bpercent\b/i, '_percent'],
  [/\bmilliseconds\b/i, '_ms'],
];

/** What is called otherwise in `market`, where prices and quantities are. */
const AVOIDED_IN_MARKET: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/(^|_)(open|high|low|close|ltp)$|^last$/, 'a name that ends in _price'],
  [/^(quantity|volume|shares|trades)$/, 'traded_quantity, turnover or trade_count'],
];

const SNAKE_CASE = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;

export const isSnakeCase = (name: string): boolean => SNAKE_CASE.test(name);

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
  // The table of a table's changes has the same columns.
  if ([of, of.replace(/_changes$/, '')].some((relation) => FIXED.includes(`${relation}.${name}`))) return [];
  // Queries of history have used it from the start.
  if (schema === 'market_history' && name === 'withdrawn') return [];
  const problems = [...AVOIDED, ...(schema.startsWith('market') ? AVOIDED_IN_MARKET : [])].flatMap(
    ([pattern, instead]) => (pattern.test(name) ? [`instead: ${instead}`] : []),
  );
  if (!isSnakeCase(name)) problems.push('not in snake_case');
  if (isBoolean !== /^(is|has)_/.test(name))
    problems.push('only booleans begin with is_ or has_, and all of them');
  const unit = /\bUnit: ([^.]+)\./.exec(comment ?? '')?.[1];
  if (unit !== undefined) {
    const due = ENDINGS.find(([pattern]) => pattern.test(unit))?.[1] ?? null;
    const ending = ENDINGS.find(([, ending]) => name.endsWith(ending))?.[1] ?? null;
    if (due !== ending) problems.push(`it is in ${unit}: ${due ?? 'no unit'} at the end`);
  }
  return problems;
}
