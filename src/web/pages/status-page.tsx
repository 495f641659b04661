import type { ComponentChildren } from 'preact';
import { pairName } from '../../core/exchanges.ts';
import { within } from '../../core/waits.ts';
import { clockTime, count, duration, plural, retryText, sentenceCase } from '../../core/wording.ts';
import type { QueueContext } from '../../jobs/context.ts';
import { countQueued } from '../../jobs/queue/queue.ts';
import type { NextTick } from '../../jobs/runs/night-schedules.ts';
import { callsLeft, type QuotaStatus } from '../../jobs/runs/read-status.ts';
import { readTonight, type Tonight } from '../../jobs/runs/read-tonight.ts';
import { MISSING_OF } from '../../state/coverage/freshness.ts';
import { COMMANDS, pipelineAdvice, runCommand } from '../commands.ts';
import { Command, Empty, Moment, Section } from '../components/basics.tsx';
import { DataSetsTable } from '../components/data-sets-table.tsx';
import { Table } from '../components/data-table.tsx';
import { Badge, type Mark, MarkIcon } from '../components/marks.tsx';
import { DataSet } from '../components/names.tsx';
import { FirstSteps, Heading, type Page } from '../page.tsx';

type OpenRun = Tonight['openRuns'][number];

const REFRESH_S = 15;

/** Whether the latest trading day is complete, what is in progress or waits, and what comes next. */
export async function statusPage(context: QueueContext): Promise<Page> {
  const [tonight, hasQueue] = await Promise.all([readTonight(context), queueResponds(context)]);
  const zone = context.config.EOD_TIMEZONE;
  const { operations } = tonight;
  const hasRequests = operations.length === 0 || operations.some(({ isScheduled }) => isScheduled);
  return {
    title: summarizeNight(tonight).title,
    refreshS: REFRESH_S,
    main: (
      <>
        <Heading title="Status" />
        {nightBox(tonight, hasRequests, zone)}
        {tonight.isUnused && tonight.openRuns.length === 0 ? null : (
          <div class="columns">
            <div class="side-column">
              <Section id="runs" title="In progress">
                {inProgress(tonight, hasQueue, context)}
              </Section>
              {hasRequests ? (
                <Section id="calls" title="Calls this hour">
                  {callsLeftInHour(tonight.quota, zone)}
                </Section>
              ) : null}
            </div>
            <div class="main-column">
              <Section
                id="sessions"
                title="Data sets"
                note={`Their latest trading day, and what is missing of the last ${MISSING_OF}`}
              >
                <DataSetsTable {...tonight} />
              </Section>
              {hasRequests ? scheduleList(tonight.ticks) : null}
            </div>
          </div>
        )}
      </>
    ),
  };
}

/** The worst that is true of the pipeline, or the latest trading day that is complete. */
function summarizeNight({ isUnused, operations, openRuns, pipeline }: Tonight): {
  readonly mark: Mark;
  readonly title: string;
} {
  if (pipeline.cause !== null) {
    const isLoading =
      pipeline.state === 'missing' &&
      openRuns.some(({ state, retries }) => state === 'running' && retries.length === 0);
    return { mark: isLoading ? 'running' : 'missing', title: sentenceCase(pipeline.cause) };
  }
  if (isUnused) return { mark: 'none', title: 'Nothing is loaded yet' };
  const days = operations.flatMap(({ lastDue }) => lastDue ?? []);
  if (days.length === 0) return { mark: 'pending', title: 'No trading day is due yet' };
  return { mark: 'complete', title: `${days.sort().at(-1)} is complete` };
}

/** Since when the pipeline is in a state, and the run that shows it. */
function occasionText({ since, runId }: Tonight['pipeline'], zone: string) {
  if (since === null && runId === null) return null;
  return (
    <p>
      {since === null ? null : (
        <>
          Since <Moment iso={since} zone={zone} />.{' '}
        </>
      )}
      {runId === null ? null : (
        <>
          <a href={`/runs/${runId}`}>Run {runId}</a> shows more.
        </>
      )}
    </p>
  );
}

function nightBox(tonight: Tonight, hasRequests: boolean, zone: string) {
  const { workers, pipeline, openRuns } = tonight;
  const { mark, title } = summarizeNight(tonight);
  const advice = pipelineAdvice(pipeline);
  const failing = new Set(openRuns.flatMap(({ retries }) => retries.map(pairName))).size;
  return (
    <section class={`night night-${mark}`} aria-labelledby="night">
      <MarkIcon mark={mark} />
      <div>
        <h2 id="night">{title}</h2>
        {occasionText(pipeline, zone)}
        {failing === 0 ? null : (
          <p>
            Requests of {plural(failing, 'data set')} have failed and are tried again:{' '}
            <a href="#runs">see why</a>.
          </p>
        )}
        {advice === null ? null : (
          <p>
            <Command>{advice.command}</Command> {advice.does}.
          </p>
        )}
        {mark === 'none' ? (
          <FirstSteps />
        ) : workers.seen === 0 && hasRequests ? (
          <p>
            No worker is running: <Command>{COMMANDS.up}</Command> starts one.
          </p>
        ) : null}
      </div>
    </section>
  );
}

/** Whether the queue responds. */
async function queueResponds({ queues, log }: QueueContext): Promise<boolean> {
  return within(countQueued(queues.windows.nightly)).then(
    () => true,
    (error) => {
      log.warn({ err: error }, 'dashboard: the queue does not respond');
      return false;
    },
  );
}

/** What keeps all work from going on. */
function waitsOfAll({ quota, openRuns }: Tonight, hasQueue: boolean, zone: string) {
  const waits: ComponentChildren[] = hasQueue
    ? []
    : ['The queue does not respond: no work is started until it does.'];
  if (quota?.nightsWaitUntil != null && openRuns.length === 0) {
    waits.push(
      <>
        The calls of this hour are used up; more can be made from{' '}
        <Moment iso={quota.nightsWaitUntil} zone={zone} form="clock" /> on.
      </>,
    );
  }
  return waits;
}

function waitReasonText(reason: OpenRun['waitReasons'][number], zone: string): string {
  switch (reason.why) {
    case 'paused':
      return reason.error === null ? 'is paused' : `was paused: ${reason.error}`;
    case 'no_worker':
      return 'waits for a worker: none is running';
    case 'calls_used':
      return `waits for ${clockTime(reason.until, zone)}: ${reason.usedUp}`;
    case 'key_refused':
      return 'waits for an access key that the source accepts';
    case 'lists':
      return 'plans what depends on the prices once they are loaded';
  }
}

/** Runs with their progress, and everything that waits. */
function inProgress(tonight: Tonight, hasQueue: boolean, context: QueueContext) {
  const { openRuns } = tonight;
  const waits = waitsOfAll(tonight, hasQueue, context.config.EOD_TIMEZONE);
  return (
    <>
      <Waits waits={waits} />
      {openRuns.length === 0 ? (
        <p class="muted">
          No run is open: <a href="/runs">the runs so far</a>.
        </p>
      ) : (
        <ul class="plain runs">
          {openRuns.map((run) => (
            <li key={run.runId}>{runInProgress(run, context)}</li>
          ))}
        </ul>
      )}
    </>
  );
}

function Waits({ waits }: { readonly waits: readonly ComponentChildren[] }) {
  return waits.length === 0 ? null : (
    <ul class="waits" aria-label="Waiting">
      {waits.map((wait, at) => (
        <li key={at}>
          <MarkIcon mark="paused" />
          <span>{wait}</span>
        </li>
      ))}
    </ul>
  );
}

function runInProgress(run: OpenRun, { config, clock }: QueueContext) {
  const { runId, kind, state, total, ended, fetched, finishAt, retries, waitReasons } = run;
  const zone = config.EOD_TIMEZONE;
  const left = finishAt === null ? null : Math.max(0, (Date.parse(finishAt) - clock.now()) / 1000);
  return (
    <>
      <p class="run-line">
        <a href={`/runs/${runId}`}>
          Run {runId} ({kind.replace('_', ' ')})
        </a>{' '}
        <Badge mark={state === 'paused' ? 'paused' : 'running'}>{state}</Badge>
      </p>
      <progress max={Math.max(total, 1)} value={ended} aria-label={`Windows of run ${runId} that have ended`}>
        {ended} of {total}
      </progress>
      <p class="muted">
        {count(ended)} of {plural(total, 'window')}, {count(fetched)} records
        {left === null ? null : (
          <>
            ; {duration(left)} left, until <Moment iso={finishAt} zone={zone} form="clock" />
          </>
        )}
      </p>
      <Waits
        waits={[
          ...retries.map((retry) => `${retryText(retry, zone)}.`),
          ...waitReasons.map((reason) => `It ${waitReasonText(reason, zone)}.`),
        ]}
      />
      {state === 'paused' ? (
        <p>
          <Command>{runCommand('resume', runId)}</Command> continues it.
        </p>
      ) : null}
    </>
  );
}

function callsLeftInHour(quota: QuotaStatus | null, zone: string) {
  if (quota === null) {
    return (
      <Empty title="No access key is set in this process.">
        <p>
          The budget belongs to a key: set <code>EOD_ACCESS_KEY</code> to see it here.
        </p>
      </Empty>
    );
  }
  const { calls, limit, hour } = quota;
  const { left, forBackfills, reserved } = callsLeft(quota);
  return (
    <>
      <p class="big">
        <strong>{count(left)}</strong> of {count(limit)} left
      </p>
      <meter min={0} max={limit} value={Math.min(calls, limit)} aria-label="Calls made in this hour">
        {calls} of {limit}
      </meter>
      <p class="muted">
        {count(calls)} made since <Moment iso={hour} zone={zone} form="clock" />. Backfills may make{' '}
        {count(forBackfills)} more; {count(reserved)} are reserved for nights.
      </p>
    </>
  );
}

function scheduleList(ticks: readonly NextTick[]) {
  const sorted = ticks.toSorted((a, b) => (a.next < b.next ? -1 : 1));
  return (
    <details class="card">
      <summary>
        <h2 class="inline">Next</h2>
        {sorted[0] === undefined ? null : (
          <span class="note">
            {timeText(sorted[0].nextLocal)} <DataSet {...sorted[0]} />
          </span>
        )}
      </summary>
      <Table
        caption="When each data set is requested next"
        rows={sorted}
        columns={[
          { head: 'Data set', cell: (tick) => <DataSet {...tick} /> },
          { head: 'Requested next', cell: (tick) => timeText(tick.nextLocal) },
        ]}
      />
    </details>
  );
}

/** `2025-11-27 21:15`. */
const timeText = (local: string) => local.slice(0, '2025-11-27 21:15'.length);
