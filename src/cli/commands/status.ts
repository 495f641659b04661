import type { OperationStatus, QuotaStatus, Status } from '../../jobs/runs/read-status.ts';
import type { queueOf } from '../../jobs/worker/queue.ts';
import type { RunProgress } from '../../load/state/reports.ts';
import { type Cli, type Commands, type JsonFlag, print, printJson } from '../cli.ts';
import { examples, jsonOption } from '../options.ts';
import { type Column, clockTime, table } from '../output.ts';

const COLUMNS: readonly Column<OperationStatus>[] = [
  { head: 'operation', cell: (one) => one.operation },
  { head: 'exchange', cell: (one) => one.exchange },
  { head: 'complete to', cell: (one) => one.lastComplete ?? 'nothing' },
  { head: '', cell: (one) => (one.late ? 'late' : '') },
  { head: 'missing of 30', cell: (one) => one.missingSessions },
  { head: 'rows', cell: (one) => one.lastRecords },
  { head: 'usually', cell: (one) => one.medianRecords },
  { head: 'last 10 sessions', cell: (one) => recentText(one) },
  { head: 'open rejects', cell: (one) => one.openRejects },
  { head: 'suspicious', cell: (one) => one.suspiciousWindows },
  { head: 'last run', cell: (one) => one.lastRun },
];

const RUN_COLUMNS: readonly Column<RunProgress>[] = [
  { head: 'run', cell: (run) => run.runId },
  { head: 'kind', cell: (run) => run.kind },
  { head: 'state', cell: (run) => run.state },
  { head: 'windows', cell: (run) => run.total },
  { head: 'done', cell: (run) => run.ended },
  { head: 'fetched', cell: (run) => run.fetched },
];

const STATE_NAMES: Readonly<Record<string, string>> = {
  never: 'never asked',
  not_published: 'not published',
};

export const commands: Commands = {
  status(command, cli) {
    command
      .addOption(jsonOption())
      .addHelpText('after', examples('eod status', 'eod status --json'))
      .action((flags: JsonFlag) => showStatus(cli, flags));
  },
};

async function showStatus(cli: Cli, flags: JsonFlag): Promise<void> {
  const { openContext } = await import('../open-context.ts');
  const { readStatus } = await import('../../jobs/runs/read-status.ts');
  const context = await openContext(cli);
  const status = await readStatus(context);
  if (flags.json === true) return printJson(cli, status);
  const { queueOf } = await import('../../jobs/worker/queue.ts');
  print(cli, statusText(status, { timeZone: context.config.EOD_TIMEZONE, queueOf }));
}

interface TextOptions {
  readonly timeZone: string;
  readonly queueOf: typeof queueOf;
}

function statusText(
  { operations, openRuns, queue, database, quota, keyRefused, observedSessions }: Status,
  options: TextOptions,
): string {
  return [
    table(COLUMNS, operations),
    '',
    openRuns.length === 0 ? 'no open runs' : table(RUN_COLUMNS, openRuns),
    '',
    ...observedSessions.map(
      ({ exchange, day }) =>
        `${day} is a session of ${exchange} because data came, though no calendar lists it`,
    ),
    ...(keyRefused === null ? [] : [`the source refused the access key: ${keyRefused}`]),
    ...(quota === null ? [] : [quotaText(quota, openRuns, options)]),
    `database: ${database === 'private' ? 'private Postgres (EOD_DATA_DIR)' : database}; queue: ${queue}`,
  ].join('\n');
}

/** `630 of 900 calls made since 21:00; backfills are waiting for 22:00 IST`. */
function quotaText(
  quota: QuotaStatus,
  openRuns: readonly RunProgress[],
  { timeZone, queueOf }: TextOptions,
): string {
  const clock = (iso: string) => clockTime(iso, timeZone);
  const made = `${quota.calls} of ${quota.limit} calls made since ${clock(quota.hour)}`;
  const waiting = [
    { kind: 'nightly', name: 'nightly runs', until: quota.nightsWaitUntil },
    { kind: 'backfill', name: 'backfills', until: quota.backfillsWaitUntil },
  ].flatMap(({ kind, name, until }) => {
    const open = openRuns.some((run) => queueOf(run.kind) === kind && run.state === 'running');
    return until !== null && open ? [`${name} are waiting for ${clock(until)}`] : [];
  });
  return [made, ...waiting].join('; ');
}

function recentText({ recent }: OperationStatus): string {
  return Object.entries(recent)
    .map(([state, sessions]) => `${sessions} ${STATE_NAMES[state] ?? state}`)
    .join(', ');
}
