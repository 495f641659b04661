import { sql } from 'drizzle-orm';
import { index, primaryKey, unique, uniqueIndex } from 'drizzle-orm/pg-core';
import { day, declareTable, id, number, numeric, smallint, text } from './declare-table.ts';

export const observedAliases = declareTable(
  'observed_aliases',
  'The names under which the tables of market have shown instruments, and when: what the views market.instruments and market.instrument_aliases are made of.',
  {
    id: id('Number of the row.'),
    exchange: text('Exchange.').notNull(),
    source: text('Table of the schema market whose rows carry these names.').notNull(),
    symbol: text('Ticker symbol; empty where the table has none.').notNull(),
    series: text('Series or group; empty where the table has none.').notNull(),
    isin: text('ISIN; empty where the table has none.').notNull(),
    scrip_code: number('Number on the exchange (BSE: the scrip code); 0 where the table has none.').notNull(),
    name: text('Name, its first 200 characters; empty where the table has none.').notNull(),
    link: text(
      'Rows with the same link belong to one instrument (the two sides of a series change); else empty.',
    ).notNull(),
    first_seen: day('First day with such a row.').notNull(),
    last_seen: day('Last day with such a row.').notNull(),
    instrument_id: text('The instrument it belongs to: market.instruments.instrument_id.'),
    precedence: smallint(
      '0: the share or fund a bare symbol means; 1: another security of that symbol, e.g. a bond; 2: a second line of a share (T0, BL).',
    )
      .notNull()
      .default(0),
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

export const aliasOwners = declareTable(
  'alias_owners',
  'Which instrument a symbol names on which days, with its series and alone: the rows of market.instrument_aliases of these two kinds, stored so that joins with the prices of a whole market are fast.',
  {
    exchange: text('Exchange.').notNull(),
    kind: text('series: the symbol with its series; symbol: the symbol alone.').notNull(),
    symbol: text('Ticker symbol.').notNull(),
    series: text('Series (NSE) or group (BSE) if the kind is series, else empty.').notNull(),
    valid_from: day('First day; -infinity if no other instrument used the name before.').notNull(),
    valid_to: day('Day after the last one; infinity if no other instrument took the name over.').notNull(),
    instrument_id: text('The instrument: market.instruments.instrument_id.').notNull(),
    share_id: text(
      'The share whose events change its price: the instrument itself, or, for a second line (T0, BL), the share that it is a line of.',
    ).notNull(),
  },
  (table) => [
    primaryKey({
      name: 'alias_owners_pkey',
      columns: [table.exchange, table.kind, table.symbol, table.series, table.valid_from],
    }),
    index('alias_owners_instrument_idx').on(table.instrument_id),
    // Few names have a later period, so that looking for it costs prices of whole markets nothing.
    index('alias_owners_later_idx')
      .on(table.exchange, table.symbol, table.series, table.valid_from)
      .where(sql`${table.kind} = 'series' and ${table.valid_from} > '-infinity'`),
  ],
);

export const priceFactors = declareTable(
  'price_factors',
  'What market.price_factors computes from market.corporate_events, without dividends, of each day: stored so that adjusted prices of whole markets are fast.',
  {
    exchange: text('Exchange.').notNull(),
    share_id: text('The share: market.series_aliases.share_id.').notNull(),
    known_from: day('First day that prices may be compared with; an ex-date.').notNull(),
    known_to: day('Day after the last one: the next ex-date; infinity after the last event.').notNull(),
    valid_from: day('First trading day that the factor changes; -infinity before the first event.').notNull(),
    valid_to: day('Day after the last one, an ex-date.').notNull(),
    ratio_old: numeric('Prices are multiplied by ratio_old ÷ ratio_new.').notNull(),
    ratio_new: numeric('See ratio_old.').notNull(),
  },
  (table) => [
    primaryKey({
      name: 'price_factors_pkey',
      columns: [table.exchange, table.share_id, table.known_from, table.valid_from],
    }),
  ],
);

export const eventSessions = declareTable(
  'event_sessions',
  'The only trading days whose previous close events may change, so that market.prices looks at no others.',
  {
    exchange: text('Exchange.').notNull(),
    symbol: text('Ticker symbol of that day.').notNull(),
    trade_date: day('The ex-date of an event, or the first trading day from it on.').notNull(),
  },
  (table) => [
    primaryKey({ name: 'event_sessions_pkey', columns: [table.exchange, table.symbol, table.trade_date] }),
  ],
);

export const hitBands = declareTable(
  'hit_bands',
  'market.circuit_breakers with one row a security and day, so that market.prices joins it quickly.',
  {
    exchange: text('Exchange.').notNull(),
    trade_date: day('Trading day.').notNull(),
    symbol: text('Ticker symbol.').notNull(),
    series: text('Series.').notNull(),
    bands: text('Bands that it hit, H, L or HL, as in market.prices.band_hit.').notNull(),
  },
  (table) => [
    primaryKey({
      name: 'hit_bands_pkey',
      columns: [table.exchange, table.trade_date, table.symbol, table.series],
    }),
  ],
);

export const derived = declareTable(
  'derived',
  'A single row: which loads are included in what is derived from the rows of market, i.e. in etl.observed_aliases, etl.alias_owners, market.corporate_events, etl.price_factors, etl.event_sessions and etl.hit_bands. Without it, all of that is computed from nothing at the end of the next run.',
  {
    state: number('State number of the last load that is included.').notNull(),
    events_digest: text(
      'Digest of the decisions that the events were computed with; null if they have to be computed again.',
    ),
    version: text('Version of eod that computed it; another one computes everything from nothing.').notNull(),
  },
  () => [uniqueIndex('derived_one_idx').on(sql`(true)`)],
);
