import { isTooOld, unknownRunError } from '../../core/errors.ts';
import {
  count,
  duration,
  emptyTradingDaysText,
  hasDays,
  plural,
  retryText,
  runDaysText,
  runStateText,
} from '../../core/wording.ts';
import type { QueueContext } from '../../jobs/context.ts';
import { listEmptyTradingDays } from '../../state/runs/outcomes.ts';
import {
  listRetries,
  listRunOperations,
  listRunSummaries,
  listSuspiciousWindowsOfRuns,
  listUnloadedWindows,
  type RunSummary,
  readRunSummary,
} from '../../state/runs/reports.ts';
import { COMMANDS, runCommand } from '../commands.ts';
import { Command, Empty, Facts, Moment, Section } from '../components/basics.tsx';
import { type Column, DAYS, numberColumns, RUN, Table } from '../components/data-table.tsx';
import { Badge, markOfState } from '../components/marks.tsx';
import { DataSet, DataSetLink } from '../components/names.tsx';
import { Heading, type Page, type Requested } from '../page.tsx';
import { readRunId } from './path-values.ts';

const A_PAGE = 25;
const WINDOWS = 100;
const REFRESH_S = 15;

const kindText = (kind: string) => kind.replace('_', ' ');

/** The runs, the newest first. */
export async function runsPage(context: QueueContext, { query }: Requested): Promise<Page> {
  const requested = Number(query.get('before'));
  const before = Number.isSafeInteger(requested) && requested > 0 ? requested : null;
  const runs = await listRunSummaries(context.db.drizzle, { before, limit: A_PAGE });
  const last = runs.at(-1)?.runId ?? 1;
  return {
    title: 'Runs',
    ...(before === null ? { refreshS: REFRESH_S } : {}),
    main: (
      <>
        <Heading title="Runs">What was requested, imported or loaded again, the newest first.</Heading>
        <section class="card" aria-label="Runs">
          <Table
            empty={
              <Empty title="No runs.">
                <p>
                  <Command>{COMMANDS.backfillWeek}</Command> starts one; <Command>{COMMANDS.up}</Command>{' '}
                  starts one for every night.
                </p>
              </Empty>
            }
            caption="Runs"
            columns={columns(context.config.EOD_TIMEZONE)}
            rows={runs}
            stacked
          />
        </section>
        <nav class="pager" aria-label="Further runs">
          {before === null ? null : <a href="/runs">The newest</a>}
          {runs.length === A_PAGE && last > 1 ? <a href={`/runs?before=${last}`}>Older ones</a> : null}
        </nav>
      </>
    ),
  };
}

const columns = (zone: string): readonly Column<RunSummary>[] => [
  RUN,
  { head: 'Kind', cell: (run) => kindText(run.kind) },
  { head: 'State', cell: (run) => <Badge mark={markOfState(runStateText(run))}>{runStateText(run)}</Badge> },
  { ...DAYS, cell: (run) => (hasDays(run) ? DAYS.cell(run) : null) },
  { head: 'Started', cell: (run) => <Moment iso={run.startedAt} zone={zone} /> },
  { head: 'Took', number: true, cell: (run) => duration(run.seconds) },
  { head: 'Windows', number: true, cell: (run) => run.windows.total },
  { head: 'Failed', number: true, cell: (run) => failed(run.windows.failed + run.windows.blocked) },
  ...numberColumns('fetched', 'inserted', 'updated'),
  { head: 'Rejected', number: true, cell: (run) => failed(run.rejected) },
  { head: 'By', cell: (run) => run.requestedBy },
];

const failed = (value: number) => (value === 0 ? null : <strong class="bad">{count(value)}</strong>);

/** A run with its counts, what failed, and what can be done. */
export async function runPage(context: QueueContext, requested: Requested): Promise<Page> {
  const runId = readRunId(requested);
  const { drizzle } = context.db;
  const run = await readRunSummary(drizzle, runId);
  if (run === null) throw unknownRunError(runId);
  const zone = context.config.EOD_TIMEZONE;
  const [operations, unloaded, suspicious, empty, retries] = await Promise.all([
    listRunOperations(drizzle, [runId]),
    listUnloadedWindows(drizzle, runId, WINDOWS),
    listSuspiciousWindowsOfRuns(drizzle, [runId]),
    listEmptyTradingDays(context, [runId]),
    listRetries(drizzle, [runId]),
  ]);
  const isOpen = run.state === 'running' || run.state === 'paused';
  const ended = run.windows.total - run.windows.open;
  const notLoaded = run.windows.failed + run.windows.blocked + run.windows.cancelled;
  const mayHelp =
    unloaded.length < Math.max(1, notLoaded) || unloaded.some(({ reason }) => !isTooOld(reason));
  return {
    title: `Run ${runId}`,
    ...(isOpen ? { refreshS: REFRESH_S } : {}),
    main: (
      <>
        <Heading title={`Run ${runId}`}>{kindText(runDaysText(run))}</Heading>
        <section class="card" aria-label="The run">
          <p>
            <Badge mark={markOfState(runStateText(run))}>{runStateText(run)}</Badge>
          </p>
          {run.error === null ? null : <p class="bad">{run.error}</p>}
          {retries.map((retry) => (
            <p key={`${retry.operation} ${retry.exchange} ${retry.error}`} class="bad">
              {retryText(retry, zone)}
            </p>
          ))}
          {empty.map((dataSet) => (
            <p key={`${dataSet.operation} ${dataSet.exchange}`} class="bad">
              <DataSet {...dataSet} />: {emptyTradingDaysText(dataSet)}
            </p>
          ))}
          {isOpen ? (
            <progress max={Math.max(1, run.windows.total)} value={ended} aria-label="Windows that have ended">
              {ended} of {run.windows.total}
            </progress>
          ) : null}
          <Facts
            facts={[
              ['Started', <Moment key="s" iso={run.startedAt} zone={zone} />],
              ['Ended', <Moment key="e" iso={run.finishedAt} zone={zone} />],
              ['Took', duration(run.seconds)],
              ['Windows', count(run.windows.total)],
              ['Calls', count(run.requests)],
              ['Fetched', count(run.fetched)],
              ['Inserted', count(run.inserted)],
              ['Updated', count(run.updated)],
              ['Withdrawn', count(run.withdrawn)],
              ['Rejected', count(run.rejected)],
              ['Requested by', run.requestedBy],
            ]}
          />
          {runCommands(run, mayHelp)}
        </section>
        <Section id="operations" title="By data set">
          <Table
            empty={<Empty title="It has no windows: there was nothing to request." />}
            caption="Counts by data set"
            rows={operations}
            columns={[
              { head: 'Data set', cell: (operation) => <DataSet {...operation} /> },
              { head: 'Windows', number: true, cell: (operation) => operation.windows.total },
              { head: 'Open', number: true, cell: (operation) => operation.windows.open },
              { head: 'Skipped', number: true, cell: (operation) => operation.windows.skipped },
              {
                head: 'Failed',
                number: true,
                cell: (operation) => failed(operation.windows.failed + operation.windows.blocked),
              },
              ...numberColumns('fetched', 'inserted', 'updated', 'unchanged', 'withdrawn'),
              { head: 'Rejected', number: true, cell: (operation) => failed(operation.rejected) },
            ]}
          />
        </Section>
        {unloaded.length === 0 ? null : (
          <Section
            id="failed"
            title="Not loaded"
            note={
              notLoaded > unloaded.length
                ? `the first ${unloaded.length} of ${plural(notLoaded, 'window')}`
                : undefined
            }
          >
            <Table
              caption="Windows that were not loaded"
              rows={unloaded}
              columns={[
                { head: 'Window', cell: (window) => window.windowId },
                { head: 'Data set', cell: (window) => <DataSetLink {...window} /> },
                DAYS,
                { head: 'Instruments', cell: (window) => window.instruments.slice(0, 3).join(', ') },
                {
                  head: 'State',
                  cell: (window) => <Badge mark={markOfState(window.state)}>{window.state}</Badge>,
                },
                ...numberColumns('attempts'),
                { head: 'Why', wide: true, cell: (window) => window.reason },
              ]}
            />
          </Section>
        )}
        {suspicious.length === 0 ? null : (
          <Section id="suspicious" title="Suspicious windows">
            <Table
              caption="Windows whose response is suspicious"
              rows={suspicious.slice(0, WINDOWS)}
              columns={[
                { head: 'Window', cell: (window) => window.windowId },
                { head: 'Data set', cell: (window) => <DataSet {...window} /> },
                DAYS,
                { head: 'Why', wide: true, cell: (window) => window.reason },
              ]}
            />
          </Section>
        )}
      </>
    ),
  };
}

/** @param mayHelp whether requesting again what failed can help. */
function runCommands({ runId, state, kind }: RunSummary, mayHelp: boolean) {
  // Imports and replays are continued by the command that started them.
  const isOfWorkers = kind !== 'import' && kind !== 'replay' && kind !== 'events';
  const mayResume = isOfWorkers && (state === 'paused' || (state === 'failed' && mayHelp));
  const mayCancel = state === 'running' || state === 'paused';
  if (!mayResume && !mayCancel) return null;
  return (
    <div class="actions">
      {mayResume ? <Command>{runCommand('resume', runId)}</Command> : null}
      {mayCancel ? <Command>{runCommand('cancel', runId)}</Command> : null}
    </div>
  );
}
