import { systemClock, today } from '../core/clock.ts';
import { addDays, isWeekend } from '../core/days.ts';

/** A week of past days, as the help of the command line shows it. */
function exampleWeek(): { readonly from: string; readonly to: string } {
  let to = addDays(today(systemClock, 'Asia/Kolkata'), -1);
  while (isWeekend(to)) to = addDays(to, -1);
  return { from: addDays(to, -7), to };
}

const week = exampleWeek();

/**
 * The commands that pages tell people to type. No other file of the dashboard names one, and a test looks each up
 * in the command line.
 */
export const COMMANDS = {
  up: 'eod up',
  demo: 'eod demo',
  status: 'eod status',
  backfillWeek: `eod backfill --all --from ${week.from} --to ${week.to}`,
  backfillWeekDry: `eod backfill --all --from ${week.from} --to ${week.to} --dry-run`,
  gaps: 'eod gaps',
  fillGaps: 'eod fill-gaps',
  reconcile: 'eod reconcile',
  importLists: 'eod import FILE',
  migrate: 'eod migrate',
  withdrawals: 'eod withdrawals',
  retryRejects: 'eod rejects retry',
  config: 'eod config',
} as const;

/** The command that shows a run, or does something to it. */
export const runCommand = (verb: 'run' | 'resume' | 'cancel', runId: number) => `eod ${verb} ${runId}`;

/** The command that asks for one day of a data set again. */
export const refetchCommand = (operation: string, exchange: string, day: string) =>
  `eod backfill ${operation} --exchange ${exchange} --from ${day} --to ${day} --force`;

/** The command that shows a rejected record as it was sent. */
export const rejectCommand = (id: number) => `eod rejects show ${id}`;

/** The command that decides what a corporate event does to prices. */
export const eventCommand = (id: string) => `eod events set ${id} --factor A:B`;

/** The command that describes a data set on a terminal. */
export const operationCommand = (name: string) => `eod operations ${name}`;
