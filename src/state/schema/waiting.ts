import { ISSUE_KINDS } from '../issue-kinds.ts';
import {
  day,
  decimal,
  declareView,
  exchange,
  integer,
  moment,
  number,
  oneOf,
  operation,
  text,
  texts,
} from './declare-table.ts';

// The views of migrations/repeatable/waiting.sql.

export const issues = declareView('issues', 'What needs a person, one row an issue.', {
  kind: oneOf(
    ISSUE_KINDS,
    'reject (records that could not be read), withdrawal (rows that are no longer listed, whose withdrawal is withheld), suspicious (a response that lacks too many rows, or contradicts others), corporate_action (without a decision), finding (data sets contradict each other) or missing_right (the key may not use an operation or exchange that nights request).',
  ).notNull(),
  priority: integer(
    '1: rows are missing or suspicious, or prices may be wrong by a fifth or more; 3: it says little, or changes a price by less than 5 percent; 2: the others.',
  ).notNull(),
  operation: text('Operation or data set concerned; empty: the exchange as a whole.').notNull(),
  exchange: text('Exchange.').notNull(),
  exchanges: texts(
    'The exchanges concerned: both, if the share of a corporate action is on both, whichever lists it.',
  ).notNull(),
  from_date: day('First day concerned; null where the table has no days.'),
  to_date: day('Last day concerned; null where the table has no days.'),
  subject: text(
    'What it is about: the file of rejects of which nothing else was stored either (empty: a response), the table of a withdrawal, the symbol and kind of a corporate action, the check of a finding, the instruments of a suspicious response.',
  ),
  id: text(
    'Number of the reject, withdrawal or finding, id of the corporate action, or the imported file of a suspicious response; null where the row stands for several, and for a response of the source.',
  ),
  items: number('How many rejects or findings the row stands for; else 1.').notNull(),
  effect: decimal(
    'How large it is: rejects, rows of the withdrawal, findings, or days of the suspicious response; of a corporate action by how many percent it changes the price at most, or, of one of a kind without terms, by how many the price moved; null if that is not known.',
  ),
  text: text(
    'What is wrong, and of a split and the like without a ratio how far the price moved; of several rejects that of the first, of several findings that of the most severe one whose numbers differ most.',
  ),
  since: moment('Since when it has been known.'),
});

export const suspiciousWindows = declareView(
  'suspicious_windows',
  'Windows whose response is suspicious, for a reason without a reject or withdrawal of its own, until a later complete response.',
  {
    id: number('Number of the window: etl.windows.id.').notNull(),
    operation: operation(),
    exchange: exchange(),
    from_date: day('First day requested.').notNull(),
    to_date: day('Last day requested.').notNull(),
    instruments: texts('Instruments requested; empty means the whole exchange.').notNull(),
    source_file: text('The file that an import read.'),
    reason: text('Why it is suspicious.').notNull(),
    finished_at: moment('When the window ended.'),
  },
);
