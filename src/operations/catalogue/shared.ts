import {
  type Compute,
  type DerivedField,
  date,
  derived,
  type Field,
  type Kind,
  numeric,
  symbolOf,
} from '../fields.ts';
import type { NamedSpan, RequestOption } from '../operation.ts';

/** The day of a record, where the operation calls it `Date`. A time of day in it is dropped. */
export const tradeDate = date('Date', 'trade_date', 'Trading day.', { required: true });

/** The moment in the field of the day, where the source stamps its records with the time of publication. */
export const publishedAt = derived(
  'published_at',
  'datetime',
  'When the exchange published the record: the time of day in the field of the day.',
  (_get, read) => read('Date', 'datetime') as string | null,
);

const RUPEES = { unit: 'rupees' } as const;

export const closePrice = (source: string, ...orElse: string[]): Field =>
  numeric(source, 'close_price', 'Closing price of the day.', { ...RUPEES, orElse });

export const previousClosePrice = (source: string, ...orElse: string[]): Field =>
  numeric(source, 'previous_close_price', 'Closing price of the session before.', { ...RUPEES, orElse });

/** Reads a source field as another kind than that of its column; null where it cannot be read so. */
export const readAs =
  (source: string, kind: Exclude<Kind, 'boolean'>): Compute =>
  (_get, read) =>
    read(source, kind) as string | number | null;

/**
 * The ticker symbol, where the source may send a name instead of it: one word in capitals is a symbol. The first of the
 * source fields that has a value is used.
 */
export function tickerIn(sources: readonly string[]): DerivedField {
  const symbols = sources.map((source) => [source, symbolOf(source).value] as const);
  return derived(
    'symbol',
    'text',
    'Ticker symbol: scrip_id less its series suffix; null where the source sends a name there.',
    (get, read, memory) => {
      const symbol = symbols.find(([source]) => read(source, 'text') !== null)?.[1](get, read, memory);
      return typeof symbol === 'string' && /^[^\sa-z]+$/.test(symbol) ? symbol : null;
    },
  );
}

/** Counts the records of a response that have the same values in these source fields: 1, 2, … in its order. */
export function rankAmong(column: string, sources: readonly string[], meaning: string): DerivedField {
  return derived(column, 'int4', meaning, (_get, read, memory) => {
    // Other columns of the table count in the same memory.
    const same = JSON.stringify([column, ...sources.map((source) => keyText(read(source, 'text')))]);
    const position = (memory.get(same) ?? 0) + 1;
    memory.set(same, position);
    return position;
  });
}

/** The longest text of a key. */
const LONGEST = 200;

/** A text as it is in a key: cut to what a key can have. */
export const keyText = (value: unknown): string => String(value ?? '').slice(0, LONGEST);

/** The spans that name the days before today, of these lengths. Documented samples have today in them. */
export const previousDays = (lengths: readonly number[]): NamedSpan[] =>
  lengths.map((days) => ({ value: `Previous${days}days`, from: -days, to: 0 }));

export const YESTERDAY: NamedSpan = { value: 'yesterday', from: -1, to: -1 };

export const YEAR = { pattern: '(19|20)[0-9]{2}', description: 'a year such as 2024' } as const;

/** The kinds of statements, as options of a request and as values of records. */
export const STATEMENTS = {
  natures: ['Standalone', 'Consolidated'],
  types: ['ProfitLoss', 'BalanceSheet', 'CashFlow', 'RelatedPartyTransactions', 'FR'],
  periods: ['QJ', 'QS', 'QD', 'QM', 'M6', 'M9', 'M12'],
} as const;

/** Narrows the response; several values can be joined with `+`. */
export const filter = (param: string, meaning: string, values?: readonly string[]): RequestOption => ({
  param,
  meaning,
  ...(values === undefined ? {} : { values }),
  isFilter: true,
});
