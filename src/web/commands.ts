import { exampleDays } from '../core/clock.ts';

const week = exampleDays();

/** The commands that pages mention. No other file of the dashboard contains one, and a test checks that each exists. */
export const COMMANDS = {
  up: 'eod up',
  demo: 'eod demo',
  status: 'eod status',
  backfillWeek: `eod backfill --all --from ${week.from} --to ${week.to}`,
  backfillWeekDry: `eod backfill --all --from ${week.from} --to ${week.to} --dry-run`,
  gaps: 'eod gaps',
  fillGaps: 'eod gaps fill',
  reconcile: 'eod reconcile',
  import: 'eod import FILE',
  operations: 'eod operations',
  migrate: 'eod migrate',
  withdrawals: 'eod withdrawals',
  retryRejects: 'eod rejects retry',
  config: 'eod config',
} as const;

/** The command that checks days which were never checked since they were loaded. */
export const reconcileCommand = (from: string, to: string) => `eod reconcile --from ${from} --to ${to}`;

/** The command that resumes or cancels a run. */
export const runCommand = (verb: 'resume' | 'cancel', runId: number) => `eod runs ${verb} ${runId}`;

/** The command that requests one day of a data set again. */
export const refetchCommand = (operation: string, exchange: string, day: string) =>
  `eod backfill ${operation} --exchange ${exchange} --from ${day} --to ${day} --force`;

/** The command that shows a rejected record as the source sent it. */
export const rejectCommand = (id: number) => `eod rejects ${id}`;

/** The command that decides what a corporate event does to prices. */
export const eventCommand = (id: string) => `eod events set ${id} --factor A:B`;

/** The command that proposes declarations of the fields which no column of an operation reads. */
export const draftCommand = (operation: string) => `eod operations draft ${operation}`;
