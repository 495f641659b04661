import { bigint, integer, numeric, text } from 'drizzle-orm/pg-core';
import { ISSUE_KINDS } from '../issue-kinds.ts';
import { day, etl, moment, reference } from './columns.ts';
import { describe } from './describe.ts';

// The views of migrations/repeatable/waiting.sql.

export const issues = etl
  .view('issues', {
    kind: text('kind', { enum: ISSUE_KINDS }).notNull(),
    priority: integer('priority').notNull(),
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    exchanges: text('exchanges').array().notNull(),
    from_date: day('from_date'),
    to_date: day('to_date'),
    subject: text('subject'),
    id: text('id'),
    items: bigint('items', { mode: 'number' }).notNull(),
    effect: numeric('effect', { mode: 'number' }),
    text: text('text'),
    since: moment('since'),
  })
  .existing();
describe(issues, 'What needs a person, one row an issue.', {
  kind: 'reject (records that could not be read), withdrawal (rows that are no longer listed, whose withdrawal is withheld), suspicious (a response that lacks too many rows, or contradicts others), corporate_action (without a decision), finding (data sets contradict each other) or missing_right (the key may not use an operation or exchange that nights request).',
  priority:
    '1: rows are missing or suspicious, or prices may be wrong by a fifth or more; 3: it says little, or changes a price by less than 5 percent; 2: the others.',
  operation: 'Operation or data set concerned; empty: the exchange as a whole.',
  exchange: 'Exchange.',
  exchanges:
    'The exchanges concerned: both, if the share of a corporate action is on both, whichever lists it.',
  from_date: 'First day concerned; null where the table has no days.',
  to_date: 'Last day concerned; null where the table has no days.',
  subject:
    'What it is about: the file of rejects of which nothing else was stored either (empty: a response), the table of a withdrawal, the symbol and kind of a corporate action, the check of a finding, the instruments of a suspicious response.',
  id: 'Number of the reject, withdrawal or finding, id of the corporate action, or the imported file of a suspicious response; null where the row stands for several, and for a response of the source.',
  items: 'How many rejects or findings the row stands for; else 1.',
  effect:
    'How large it is: rejects, rows of the withdrawal, findings, or days of the suspicious response; of a corporate action by how many percent it changes the price at most, or, of one of a kind without terms, by how many the price moved; null if that is not known.',
  text: 'What is wrong, and of a split and the like without a ratio how far the price moved; of several rejects that of the first, of several findings that of the most severe one whose numbers differ most.',
  since: 'Since when it has been known.',
});

export const suspiciousWindows = etl
  .view('suspicious_windows', {
    id: reference('id').notNull(),
    operation: text('operation').notNull(),
    exchange: text('exchange').notNull(),
    from_date: day('from_date').notNull(),
    to_date: day('to_date').notNull(),
    instruments: text('instruments').array().notNull(),
    source_file: text('source_file'),
    reason: text('reason').notNull(),
    finished_at: moment('finished_at'),
  })
  .existing();
describe(
  suspiciousWindows,
  'Windows whose response is suspicious, for a reason without a reject or withdrawal of its own, until a later complete response.',
  {
    id: 'Number of the window: etl.windows.id.',
    source_file: 'The file that an import read.',
    reason: 'Why it is suspicious.',
    finished_at: 'When the window ended.',
  },
);
