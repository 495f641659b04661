import { exampleDays } from '../core/clock.ts';
import type { Config } from '../core/config.ts';
import { EXCHANGES } from '../core/exchanges.ts';
import { quoteForShell } from '../core/wording.ts';
import { suggestedFactor } from '../jobs/events/suggested-factor.ts';
import type { AdvisedState } from '../jobs/runs/pipeline-state.ts';
import { settingWithout } from '../operations/requested.ts';
import { SMALL_EFFECT } from '../state/issue-kinds.ts';
import type { Issue } from '../state/issues.ts';

const week = exampleDays();

/** The commands that pages mention. No other file of the dashboard contains one, and a test checks that each exists. */
export const COMMANDS = {
  up: 'eod up',
  demo: 'eod demo',
  backfillWeek: `eod backfill --all --from ${week.from} --to ${week.to}`,
  backfillWeekDry: `eod backfill --all --from ${week.from} --to ${week.to} --dry-run`,
  fillGaps: 'eod gaps fill',
  reconcile: 'eod reconcile',
  import: 'eod import FILE',
  operations: 'eod operations',
  retryRejects: 'eod rejects retry',
} as const;

/** What a new user can do: commands, and what each does. */
export const FIRST_STEPS = [
  { command: COMMANDS.backfillWeekDry, does: 'shows how many calls a week takes' },
  { command: COMMANDS.backfillWeek, does: 'loads it' },
  { command: COMMANDS.up, does: 'then loads every night' },
  { command: COMMANDS.import, does: 'loads files of the exchanges, without a key' },
  { command: COMMANDS.demo, does: 'shows all of it with made-up data, without a key' },
] as const;

/** A text or page whose commands have --demo; "eod demo", which loads its data, stays. */
export const withDemoFlags = (text: string): string =>
  text.replace(/(^ *|["'>])eod (?!--demo |demo\b)(?=[a-z])/gm, '$1eod --demo ');

/** The command that checks days which were never checked since they were loaded. */
export const reconcileCommand = (from: string, to: string) => `eod reconcile --from ${from} --to ${to}`;

/** The command that resumes or cancels a run. */
export const runCommand = (verb: 'resume' | 'cancel', runId: number) => `eod runs ${verb} ${runId}`;

/** The command that helps in a state of the pipeline, and what it does; null if all is well. */
export function pipelineAdvice({ remedy, runId, nextTry }: AdvisedState) {
  const advice = (command: string, does: string) => ({ command, does });
  switch (remedy) {
    case null:
      return null;
    case 'try_key':
      return advice(
        runId === null ? 'eod doctor' : runCommand('resume', runId),
        `tries the key now${nextTry === null ? '' : `; otherwise ${nextTry} does`}`,
      );
    case 'check_storage':
      return advice('eod doctor', 'shows what Postgres refuses');
    case 'follow_run':
      return advice(`eod runs ${runId}`, 'shows how far the run is, and what it tries again when');
    case 'await_source':
      return advice(runCommand('resume', runId ?? 0), 'requests what is left, once the source responds');
    case 'resume':
      return advice(runCommand('resume', runId ?? 0), 'requests again what failed');
    case 'fill_gaps':
      return advice(COMMANDS.fillGaps, 'requests what is missing');
    case 'import_files':
      return advice('eod gaps', 'lists them; import the files of these days');
  }
}

/** The command that requests one day of a data set again. */
export const refetchCommand = (operation: string, exchange: string, day: string) =>
  `eod backfill ${operation} --exchange ${exchange} --from ${day} --to ${day} --force`;

/** The command that shows a rejected record as the source sent it. */
export const rejectCommand = (id: number) => `eod rejects ${id}`;

/** The command that decides what a corporate event does to prices. */
export const eventCommand = (id: string, factor = 'A:B') =>
  `eod events set ${quoteForShell(id)} --factor ${factor}`;

/** The factor that an issue suggests for a corporate action of `ABC split`; null if it has to be looked up. */
const suggestFactor = ({ subject, text }: Issue) =>
  suggestedFactor(subject?.split(' ').at(-1) ?? '', text ?? '');

/** What has to be known of the factors in the commands of some issues. */
export function factorNotes(issues: readonly Issue[]): string[] {
  const actions = issues.filter(({ kind, id }) => kind === 'corporate_action' && id !== null);
  const factors = actions.filter(({ priority }) => priority === 1).map(suggestFactor);
  return [
    ...(actions.length > 0
      ? ['--factor A:B multiplies earlier prices by A ÷ B; --ignore leaves them as they are']
      : []),
    ...(factors.some((factor) => factor !== null)
      ? ['a factor in a command follows from the text of the action, or from the move of its price: check it']
      : []),
    ...(factors.includes(null)
      ? [
          "A:B is shares before : shares after, from the exchange's notice; for a demerger, price after : price before",
        ]
      : []),
  ];
}

/** The other exchanges of the setting; if it has no other one, those that there are. */
function exchangesWithout({ EOD_EXCHANGES }: Pick<Config, 'EOD_EXCHANGES'>, exchange: string | null): string {
  const without = (names: readonly string[]) => names.filter((name) => name !== exchange);
  const others = without(EOD_EXCHANGES);
  return (others.length > 0 ? others : without(EXCHANGES)).join();
}

/**
 * The command that settles an issue, or the setting: a person accepts it, decides it, or requests the data again.
 *
 * @param config the settings in force.
 */
export function issueCommand(issue: Issue, config: Pick<Config, 'EOD_OPERATIONS' | 'EOD_EXCHANGES'>): string {
  const { kind, priority, operation, exchange, from, to, subject, id } = issue;
  const days = `--from ${from} --to ${to}`;
  const requestAgain = `eod backfill ${operation} --exchange ${exchange} ${days}`;
  switch (kind) {
    case 'reject':
      // Nothing of their response is stored, so that all of it is missing.
      if (subject !== null)
        return subject === '' ? `${requestAgain} --force` : `eod import ${quoteForShell(subject)} --force`;
      return `eod rejects accept ${id ?? `--operation ${operation} --exchange ${exchange} ${days}`}`;
    case 'withdrawal':
      return `eod withdrawals accept ${id}`;
    case 'corporate_action':
      if (id === null) return `eod events ignore --below ${SMALL_EFFECT}`;
      return priority === 1
        ? eventCommand(id, suggestFactor(issue) ?? undefined)
        : `eod events set ${quoteForShell(id)} --ignore`;
    case 'finding':
      return `eod findings accept ${id ?? `--check ${subject} --exchange ${exchange} ${days}`}`;
    case 'missing_right':
      return operation === ''
        ? `EOD_EXCHANGES=${exchangesWithout(config, exchange)}`
        : `EOD_OPERATIONS=${settingWithout(config, operation)}`;
    case 'suspicious': {
      if (id !== null) return `eod import ${quoteForShell(id)} --force`;
      const instruments = subject === null ? '' : ` --instruments '${subject}'`;
      return `${requestAgain}${instruments} --force`;
    }
  }
}
