import { sql } from 'drizzle-orm';
import { bigint, index, numeric, primaryKey, smallint, text, unique, uniqueIndex } from 'drizzle-orm/pg-core';
import { day, etl, id } from './columns.ts';
import { describe } from './describe.ts';

export const observedAliases = etl.table(
  'observed_aliases',
  {
    id: id(),
    exchange: text('exchange').notNull(),
    source: text('source').notNull(),
    symbol: text('symbol').notNull(),
    series: text('series').notNull(),
    isin: text('isin').notNull(),
    scrip_code: bigint('scrip_code', { mode: 'number' }).notNull(),
    name: text('name').notNull(),
    link: text('link').notNull(),
    first_seen: day('first_seen').notNull(),
    last_seen: day('last_seen').notNull(),
    instrument_id: text('instrument_id'),
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
describe(
  observedAliases,
  'The names under which the tables of market have shown instruments, and when: what the views market.instruments and market.instrument_aliases are made of.',
  {
    id: 'Number of the row.',
    exchange: 'Exchange.',
    source: 'Table of the schema market whose rows carry these names.',
    symbol: 'Ticker symbol; empty where the table has none.',
    series: 'Series or group; empty where the table has none.',
    isin: 'ISIN; empty where the table has none.',
    scrip_code: 'Number on the exchange (BSE: the scrip code); 0 where the table has none.',
    name: 'Name, its first 200 characters; empty where the table has none.',
    link: 'Rows with the same link belong to one instrument (the two sides of a series change); else empty.',
    first_seen: 'First day with such a row.',
    last_seen: 'Last day with such a row.',
    instrument_id: 'The instrument it belongs to: market.instruments.instrument_id.',
    precedence:
      '0: the share or fund a bare symbol means; 1: another security of that symbol, e.g. a bond; 2: a second line of a share (T0, BL).',
  },
);

export const aliasOwners = etl.table(
  'alias_owners',
  {
    exchange: text('exchange').notNull(),
    kind: text('kind').notNull(),
    symbol: text('symbol').notNull(),
    series: text('series').notNull(),
    valid_from: day('valid_from').notNull(),
    valid_to: day('valid_to').notNull(),
    instrument_id: text('instrument_id').notNull(),
    share_id: text('share_id').notNull(),
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
describe(
  aliasOwners,
  'Which instrument a symbol names on which days, with its series and alone: the rows of market.instrument_aliases of these two kinds, stored so that joins with the prices of a whole market are fast.',
  {
    exchange: 'Exchange.',
    kind: 'series: the symbol with its series; symbol: the symbol alone.',
    symbol: 'Ticker symbol.',
    series: 'Series (NSE) or group (BSE) if the kind is series, else empty.',
    valid_from: 'First day; -infinity if no other instrument used the name before.',
    valid_to: 'Day after the last one; infinity if no other instrument took the name over.',
    instrument_id: 'The instrument: market.instruments.instrument_id.',
    share_id:
      'The share whose events change its price: the instrument itself, or, for a second line (T0, BL), the share that it is a line of.',
  },
);

export const priceFactors = etl.table(
  'price_factors',
  {
    exchange: text('exchange').notNull(),
    share_id: text('share_id').notNull(),
    known_from: day('known_from').notNull(),
    known_to: day('known_to').notNull(),
    valid_from: day('valid_from').notNull(),
    valid_to: day('valid_to').notNull(),
    ratio_old: numeric('ratio_old').notNull(),
    ratio_new: numeric('ratio_new').notNull(),
  },
  (table) => [
    primaryKey({
      name: 'price_factors_pkey',
      columns: [table.exchange, table.share_id, table.known_from, table.valid_from],
    }),
  ],
);
describe(
  priceFactors,
  'What market.price_factors computes from market.corporate_events, without dividends, of each day: stored so that adjusted prices of whole markets are fast.',
  {
    exchange: 'Exchange.',
    share_id: 'The share: market.series_aliases.share_id.',
    known_from: 'First day that prices may be compared with; an ex-date.',
    known_to: 'Day after the last one: the next ex-date; infinity after the last event.',
    valid_from: 'First trading day that the factor changes; -infinity before the first event.',
    valid_to: 'Day after the last one, an ex-date.',
    ratio_old: 'Prices are multiplied by ratio_old ÷ ratio_new.',
    ratio_new: 'See ratio_old.',
  },
);

export const eventSessions = etl.table(
  'event_sessions',
  {
    exchange: text('exchange').notNull(),
    symbol: text('symbol').notNull(),
    trade_date: day('trade_date').notNull(),
  },
  (table) => [
    primaryKey({ name: 'event_sessions_pkey', columns: [table.exchange, table.symbol, table.trade_date] }),
  ],
);
describe(
  eventSessions,
  'The only trading days whose previous close events may change, so that market.prices looks at no others.',
  {
    exchange: 'Exchange.',
    symbol: 'Ticker symbol of that day.',
    trade_date: 'The ex-date of an event, or the first trading day from it on.',
  },
);

export const hitBands = etl.table(
  'hit_bands',
  {
    exchange: text('exchange').notNull(),
    trade_date: day('trade_date').notNull(),
    symbol: text('symbol').notNull(),
    series: text('series').notNull(),
    bands: text('bands').notNull(),
  },
  (table) => [
    primaryKey({
      name: 'hit_bands_pkey',
      columns: [table.exchange, table.trade_date, table.symbol, table.series],
    }),
  ],
);
describe(
  hitBands,
  'market.circuit_breakers with one row a security and day, so that market.prices joins it quickly.',
  {
    exchange: 'Exchange.',
    trade_date: 'Trading day.',
    symbol: 'Ticker symbol.',
    series: 'Series.',
    bands: 'Bands that it hit, H, L or HL, as in market.prices.band_hit.',
  },
);

export const derived = etl.table(
  'derived',
  {
    state: bigint('state', { mode: 'number' }).notNull(),
    events_digest: text('events_digest'),
    version: text('version').notNull(),
  },
  () => [uniqueIndex('derived_one_idx').on(sql`(true)`)],
);
describe(
  derived,
  'A single row: which loads are included in what is derived from the rows of market, i.e. in etl.observed_aliases, etl.alias_owners, market.corporate_events, etl.price_factors, etl.event_sessions and etl.hit_bands. Without it, all of that is computed from nothing at the end of the next run.',
  {
    state: 'State number of the last load that is included.',
    events_digest:
      'Digest of the decisions that the events were computed with; null if they have to be computed again.',
    version: 'Version of eod that computed it; another one computes everything from nothing.',
  },
);
