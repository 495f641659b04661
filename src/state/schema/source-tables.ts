import { sql } from 'drizzle-orm';
import { boolean, index, integer, jsonb, primaryKey, text, unique, uniqueIndex } from 'drizzle-orm/pg-core';
import { COVERAGE_STATES } from '../registers.ts';
import { bytea, day, etl, id, moment, ofWindow, position, requested } from './columns.ts';
import { describe } from './describe.ts';

export const callBudget = etl.table(
  'call_budget',
  {
    key_hash: text('key_hash').notNull(),
    hour: moment('hour').notNull(),
    calls: integer('calls').notNull(),
    refused_at: moment('refused_at'),
    diagnostic: text('diagnostic'),
  },
  (table) => [primaryKey({ name: 'call_budget_pkey', columns: [table.key_hash, table.hour] })],
);
describe(callBudget, 'Calls made with a key in a clock hour: one budget for all workers.', {
  hour: 'Start of the clock hour (of EOD_TIMEZONE), when the source starts counting again.',
  calls: 'Calls granted in this hour. Unit: calls.',
  refused_at:
    "When the source said that the hour's calls are used up, whatever was counted here: others may use the same key.",
  diagnostic: 'The line with which the source said so.',
});

export const sourceState = etl.table('source_state', {
  key_hash: text('key_hash').primaryKey(),
  called_at: moment('called_at').notNull(),
  refused_at: moment('refused_at'),
  diagnostic: text('diagnostic'),
  failures: integer('failures').notNull().default(0),
  failing_since: moment('failing_since'),
  failure: text('failure'),
});
describe(
  sourceState,
  'What keeps calls with a key from the source; no row while it responds and accepts the key.',
  {
    key_hash: 'Hash of the access key.',
    called_at: 'When a call last failed or was refused, or, while the source is down, was begun.',
    refused_at: 'When the source first refused the key, since it last accepted it; NULL if it does not.',
    diagnostic: 'The line with which it refused the key.',
    failures: 'Calls in a row that got no response. Unit: calls.',
    failing_since: 'When the first of these failed.',
    failure: 'Why the last of them failed.',
  },
);

export const responseBodies = etl.table('response_bodies', {
  hash: text('hash').primaryKey(),
  encoding: text('encoding').notNull(),
  body: bytea('body').notNull(),
  bytes: integer('bytes').notNull(),
});
describe(responseBodies, 'Bodies of responses, each kept once.', {
  hash: 'SHA-256 of the body as it was read, in hex.',
  encoding: 'How the body is compressed.',
  body: 'The body, compressed.',
  bytes: 'Length before compression. Unit: bytes.',
});

export const clock = etl.table('clock', { last: moment('last').notNull() }, () => [
  uniqueIndex('clock_one_idx').on(sql`(true)`),
]);
describe(clock, 'A single row: the last position that was given to a response.', {
  last: "Always later than all before; after the server's clock was set back it increases by microseconds.",
});

export const responses = etl.table(
  'responses',
  {
    id: id(),
    position: position().notNull(),
    ...ofWindow(),
    ...requested(),
    params: jsonb('params').$type<Readonly<Record<string, string>>>().notNull(),
    called_on: day('called_on').notNull(),
    hash: text('hash').references(() => responseBodies.hash),
    content_type: text('content_type'),
    fetched_at: moment('fetched_at').notNull(),
    symbols: jsonb('symbols').$type<Readonly<Record<string, string>>>(),
    said: text('said', { enum: COVERAGE_STATES }),
    records: integer('records'),
    diagnostic: text('diagnostic'),
    entries: jsonb('entries'),
    is_suspicious: boolean('is_suspicious'),
    is_believed: boolean('is_believed').notNull().default(false),
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
describe(
  responses,
  'Every response that was received, with the request that fetched it: what replay reads.',
  {
    id: 'Number of the response.',
    position:
      'Where it stands in the one order of responses: the response with the greater position is the later one. Given once, when its call was counted.',
    run_id: 'The run that fetched it.',
    window_id: 'The window that fetched it.',
    params:
      'As in etl.windows. With "file" the body is not a response but an imported CSV file of that name.',
    variant: 'Which request about a day, if the operation has several, e.g. eod/Standalone.',
    is_filtered: 'Whether it was narrowed to a part of the data, as in etl.windows.',
    called_on: 'Day of the call in EOD_TIMEZONE.',
    hash: 'The body, in etl.response_bodies; NULL if it is not kept.',
    content_type: 'Content type that the source sent.',
    fetched_at: 'When it was fetched; of a file, when it was read.',
    symbols:
      'The ticker symbols that the rows of a file without tickers were given, by scrip code: kept, so that the file is always read in the same way. Other codes are their own symbol.',
    said: 'What it said of all its entries, as etl.coverage.state; NULL where that differs, or where it is not known.',
    records: 'Records of each of its entries; NULL where that differs.',
    diagnostic:
      'What the source sent instead of data, or why it is not believed, if that is the same for all its entries.',
    entries:
      'Its entries, with what differs from one to the other; NULL if they are its last day, for each of its instruments.',
    is_suspicious: 'True if it had records that nobody requested, or fewer than it states; else NULL.',
    is_believed:
      'Whether it can show that a record is no longer sent: it had records, not too many of which were rejected, or has none on days that have nothing.',
  },
);
