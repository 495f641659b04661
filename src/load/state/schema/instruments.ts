import { sql } from 'drizzle-orm';
import { bigint, index, primaryKey, smallint, text, unique } from 'drizzle-orm/pg-core';
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
    /** See `Precedence` in load/market/observed-aliases/identity.ts. */
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

/** By exchange, the state up to which the names in loaded rows are in `observed_aliases`. */
export const aliasProgress = etl.table('alias_progress', {
  exchange: text('exchange').primaryKey(),
  state: bigint('state', { mode: 'number' }).notNull(),
  /** The last of these states that changed which instrument a symbol names, or an instrument's first day. */
  owners_state: bigint('owners_state', { mode: 'number' }).notNull().default(0),
});

/**
 * Which instrument a symbol names on which days, with its series and alone: the rows of `market.instrument_aliases` of
 * these two kinds, kept as a table so that joins with the prices of a whole market are fast.
 */
export const aliasOwners = etl.table(
  'alias_owners',
  {
    exchange: text('exchange').notNull(),
    /** `series` or `symbol`. */
    kind: text('kind').notNull(),
    symbol: text('symbol').notNull(),
    series: text('series').notNull(),
    valid_from: day('valid_from').notNull(),
    valid_to: day('valid_to').notNull(),
    instrument_id: text('instrument_id').notNull(),
    /** Differs from `instrument_id` where the line is a second one of a share (T0, BL). */
    share_id: text('share_id').notNull(),
  },
  (table) => [
    primaryKey({
      name: 'alias_owners_pkey',
      columns: [table.exchange, table.kind, table.symbol, table.series, table.valid_from],
    }),
    index('alias_owners_instrument_idx').on(table.instrument_id),
  ],
);

/** By exchange, what its corporate events were last worked out from. */
export const eventProgress = etl.table('event_progress', {
  exchange: text('exchange').primaryKey(),
  /** The last state of `loads` whose notices they include. */
  notices_state: bigint('notices_state', { mode: 'number' }).notNull(),
  /** `alias_progress.owners_state` then. */
  owners_state: bigint('owners_state', { mode: 'number' }).notNull(),
  /** Digest of the decisions then, and of the version of the rules that read the lists. */
  digest: text('digest').notNull(),
});
