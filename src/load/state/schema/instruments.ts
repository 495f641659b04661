import { sql } from 'drizzle-orm';
import { bigint, index, smallint, text, unique } from 'drizzle-orm/pg-core';
import { day, etl, id } from './columns.ts';

/**
 * The names under which the tables of `market` have shown instruments, and when: what the views
 * `market.instruments` and `market.instrument_aliases` are made of. Names that a table does not have are
 * '' or 0, so that the key is unique.
 */
export const observedAliases = etl.table(
  'observed_aliases',
  {
    id: id(),
    exchange: text('exchange').notNull(),
    /** Table of the schema `market`. */
    source: text('source').notNull(),
    symbol: text('symbol').notNull(),
    series: text('series').notNull(),
    isin: text('isin').notNull(),
    scrip_code: bigint('scrip_code', { mode: 'number' }).notNull(),
    name: text('name').notNull(),
    /** Rows with the same link belong to one instrument. */
    link: text('link').notNull(),
    first_seen: day('first_seen').notNull(),
    last_seen: day('last_seen').notNull(),
    /** Null only inside the transaction that inserts the row. */
    instrument_id: text('instrument_id'),
    /** See `Precedence` in load/market/identity.ts. */
    precedence: smallint('precedence').notNull().default(0),
  },
  (table) => [
    unique('observed_aliases_key').on(
      table.exchange,
      table.symbol,
      table.series,
      table.isin,
      table.scrip_code,
      table.name,
      table.link,
      table.source,
    ),
    // Without the empty values: half of the rows have none, and the planner would read them all for each row.
    index('observed_aliases_isin_idx').on(table.exchange, table.isin).where(sql`${table.isin} <> ''`),
    index('observed_aliases_scrip_code_idx')
      .on(table.exchange, table.scrip_code)
      .where(sql`${table.scrip_code} > 0`),
    // The view of aliases gives every name as text.
    index('observed_aliases_scrip_code_text_idx')
      .on(table.exchange, sql`(${table.scrip_code}::text)`)
      .where(sql`${table.scrip_code} > 0`),
    index('observed_aliases_instrument_idx').on(table.instrument_id),
  ],
);

/** Up to which state the names of each exchange are in `observed_aliases`. */
export const aliasProgress = etl.table('alias_progress', {
  exchange: text('exchange').primaryKey(),
  state: bigint('state', { mode: 'number' }).notNull(),
});
