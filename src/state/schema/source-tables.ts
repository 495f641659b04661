import { sql } from 'drizzle-orm';
import { index, primaryKey, unique, uniqueIndex } from 'drizzle-orm/pg-core';
import { COVERAGE_STATES } from '../registers.ts';
import {
  boolean,
  bytes,
  day,
  declareTable,
  id,
  integer,
  json,
  keyHash,
  moment,
  ofWindow,
  oneOf,
  position,
  requested,
  text,
} from './declare-table.ts';

export const callBudget = declareTable(
  'call_budget',
  'Calls made with a key in a clock hour: one budget for all workers.',
  {
    key_hash: keyHash().notNull(),
    hour: moment(
      'Start of the clock hour (of EOD_TIMEZONE), when the source starts counting again.',
    ).notNull(),
    calls: integer('Calls granted in this hour. Unit: calls.').notNull(),
    refused_at: moment(
      "When the source said that the hour's calls are used up, whatever was counted here: others may use the same key.",
    ),
    diagnostic: text('The line with which the source said so.'),
  },
  (table) => [primaryKey({ name: 'call_budget_pkey', columns: [table.key_hash, table.hour] })],
);

export const sourceState = declareTable(
  'source_state',
  'What keeps calls with a key from the source; no row while it responds and accepts the key.',
  {
    key_hash: text('Hash of the access key.').primaryKey(),
    called_at: moment(
      'When a call last failed or was refused, or, while the source is down, was begun.',
    ).notNull(),
    refused_at: moment(
      'When the source first refused the key, since it last accepted it; NULL if it does not.',
    ),
    diagnostic: text('The line with which it refused the key.'),
    failures: integer('Calls in a row that got no response. Unit: calls.').notNull().default(0),
    failing_since: moment('When the first of these failed.'),
    failure: text('Why the last of them failed.'),
  },
);

export const responseBodies = declareTable('response_bodies', 'Bodies of responses, each kept once.', {
  hash: text('SHA-256 of the body as it was read, in hex.').primaryKey(),
  encoding: text('How the body is compressed.').notNull(),
  body: bytes('The body, compressed.').notNull(),
  bytes: integer('Length before compression. Unit: bytes.').notNull(),
});

export const clock = declareTable(
  'clock',
  'A single row: the last position that was given to a response.',
  {
    last: moment(
      "Always later than all before; after the server's clock was set back it increases by microseconds.",
    ).notNull(),
  },
  () => [uniqueIndex('clock_one_idx').on(sql`(true)`)],
);

export const responses = declareTable(
  'responses',
  'Every response that was received, with the request that fetched it: what replay reads.',
  {
    id: id('Number of the response.'),
    position: position(
      'Where it stands in the one order of responses: the response with the greater position is the later one. Given once, when its call was counted.',
    ).notNull(),
    ...ofWindow('The run that fetched it.', 'The window that fetched it.'),
    ...requested('Which request about a day, if the operation has several, e.g. eod/Standalone.'),
    params: json(
      'As in etl.windows. With "file" the body is not a response but an imported CSV file of that name.',
    )
      .$type<Readonly<Record<string, string>>>()
      .notNull(),
    called_on: day('Day of the call in EOD_TIMEZONE.').notNull(),
    hash: text('The body, in etl.response_bodies; NULL if it is not kept.').references(
      () => responseBodies.hash,
    ),
    content_type: text('Content type that the source sent.'),
    fetched_at: moment('When it was fetched; of a file, when it was read.').notNull(),
    symbols: json(
      'The ticker symbols that the rows of a file without tickers were given, by scrip code: kept, so that the file is always read in the same way. Other codes are their own symbol.',
    ).$type<Readonly<Record<string, string>>>(),
    said: oneOf(
      COVERAGE_STATES,
      'What it said of all its entries, as etl.coverage.state; NULL where that differs, or where it is not known.',
    ),
    records: integer('Records of each of its entries; NULL where that differs.'),
    diagnostic: text(
      'What the source sent instead of data, or why it is not believed, if that is the same for all its entries.',
    ),
    entries: json(
      'Its entries, with what differs from one to the other; NULL if they are its last day, for each of its instruments.',
    ),
    is_suspicious: boolean(
      'True if it had records that nobody requested, or fewer than it states; else NULL.',
    ),
    is_believed: boolean(
      'Whether it can show that a record is no longer sent: it had records, not too many of which were rejected, or has none on days that have nothing.',
    )
      .notNull()
      .default(false),
  },
  (table) => [
    unique('responses_position_key').on(table.position),
    index('responses_requested_idx').on(table.operation, table.exchange, table.from_date),
    index('responses_hash_idx').on(table.hash),
    index('responses_window_idx').on(table.window_id),
    // Those that may resolve a reject of some days.
    index('responses_believed_idx')
      .using('gist', sql`daterange(${table.from_date}, ${table.to_date}, '[]')`)
      .where(sql`${table.is_believed} and not ${table.is_filtered}`),
  ],
);
