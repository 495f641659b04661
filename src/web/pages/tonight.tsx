import type { ComponentChildren } from 'preact';
import { today } from '../../core/clock.ts';
import { pairName } from '../../core/exchanges.ts';
import { groupBy } from '../../core/iterables.ts';
import { within } from '../../core/waits.ts';
import { count, duration, isUnusual, plural, retryText } from '../../core/wording.ts';
import { WINDOW_QUEUES, type WindowQueue } from '../../jobs/queue/queue.ts';
import type { NextTick } from '../../jobs/runs/night-schedules.ts';
import type { QuotaStatus } from '../../jobs/runs/read-status.ts';
import { readTonight, type Tonight } from '../../jobs/runs/read-tonight.ts';
import { MISSING_OF } from '../../load/state/coverage/freshness.ts';
import { gapText } from '../../load/state/coverage/gap-reasons.ts';
import { COMMANDS } from '../commands.ts';
import { ActionButton } from '../components/action-forms.tsx';
import { Command, Empty, Moment, Section } from '../components/basics.tsx';
import { type Column, Table } from '../components/data-table.tsx';
import { Badge, type Mark, MarkIcon } from '../components/marks.tsx';
import { DataSet, DataSetLink } from '../components/names.tsx';
import { Heading, type Page, type PageContext } from '../page.tsx';

type OpenRun = Tonight['openRuns'][number];

const REFRESH_S = 15;

/** Whether last night is complete, what is in progress, what is waiting, and what comes next. */
export async function tonightPage(context: PageContext): Promise<Page> {
  const [tonight, paused] = await Promise.all([readTonight(context), pausedQueues(context)]);
  const zone = context.config.EOD_TIMEZONE;
  const summary = summarizeNight(tonight);
  return {
    title: summary.title,
    refreshS: REFRESH_S,
    main: (
      <>
        <Heading title="Tonight" />
        <NightSummaryBox summary={summary} tonight={tonight} context={context} />
        <Waiting tonight={tonight} paused={paused} zone={zone} />
        <div class="columns">
          <div class="side-column">
            <Section id="runs" title="In progress">
              <OpenRuns runs={tonight.openRuns} context={context} />
            </Section>
            {summary.isFilledByFiles === true ? null : (
              <Section id="calls" title="Calls this hour">
                <Calls quota={tonight.quota} zone={zone} />
              </Section>
            )}
          </div>
          <div class="main-column">
            <Section
              id="sessions"
              title="Data sets"
              note={`Their latest session, and what is missing of the last ${MISSING_OF}`}
            >
              <Table
                caption="Data sets with their latest session"
                columns={COLUMNS}
                rows={tonight.sessions}
              />
            </Section>
            {summary.isFilledByFiles === true ? null : (
              <Section id="schedule" title="Next" note={<>Requested by the scheduler, in {zone}</>}>
                <Schedule ticks={tonight.ticks} now={today(context.clock, zone)} />
              </Section>
            )}
          </div>
        </div>
      </>
    ),
  };
}

interface NightSummary {
  readonly mark: Mark;
  readonly title: string;
  readonly text: ComponentChildren;
  /** True if only imports can fill the gaps. */
  readonly isFilledByFiles?: boolean;
}

/** Whether last night is complete: the first thing to know in the morning. */
function summarizeNight({ isUnused, sessions, openRuns }: Tonight): NightSummary {
  if (isUnused) return { mark: 'none', title: 'Nothing is loaded yet', text: null };
  const due = sessions.filter(({ lastDue }) => lastDue !== null);
  const missing = due.filter(({ isLate }) => isLate);
  const older = sessions.reduce((sum, one) => sum + missingBefore(one), 0);
  const latest = due
    .map((one) => one.lastDue ?? '')
    .sort()
    .at(-1);
  const earlier =
    older === 0 ? null : (
      <>
        {' '}
        {plural(older, 'earlier session')} {older === 1 ? 'is' : 'are'} missing as well:{' '}
        <a href="/coverage">see the coverage</a>.
      </>
    );
  const working = openRuns.some(({ state }) => state === 'running');
  const failing = new Set(openRuns.flatMap(({ retries }) => retries.map(pairName))).size;
  const failingText =
    failing === 0 ? null : (
      <>
        {' '}
        Requests of {plural(failing, 'data set')} have failed and are tried again:{' '}
        <a href="#waits">see why</a>.
      </>
    );
  if (missing.length === 0 && failing > 0) {
    return {
      mark: 'suspicious',
      title: 'Requests fail',
      text: (
        <>
          {failingText}
          {earlier}
        </>
      ),
    };
  }
  if (sessions.every(({ isScheduled }) => !isScheduled)) {
    return {
      mark: older === 0 ? 'complete' : 'suspicious',
      title: older === 0 ? 'What was imported is complete' : 'What was imported has gaps',
      text: (
        <>
          {plural(sessions.length, 'data set')}
          {latest === undefined ? null : `, up to ${latest}`}. Without an access key nothing else is expected.
          {earlier}
        </>
      ),
      isFilledByFiles: true,
    };
  }
  if (missing.length === 0) {
    return {
      mark: older === 0 ? 'complete' : 'suspicious',
      title: older === 0 ? 'Last night is complete' : 'Last night is complete, earlier days are not',
      text: (
        <>
          All {plural(due.length, 'data set')} have their latest session
          {latest === undefined ? null : `, up to ${latest}`}.{earlier}
        </>
      ),
    };
  }
  return {
    mark: working && failing === 0 ? 'running' : 'missing',
    title: !working
      ? 'Last night is not complete'
      : failing === 0
        ? 'In progress'
        : 'In progress, and requests fail',
    text: (
      <>
        {plural(missing.length, 'data set')} of {due.length} {missing.length === 1 ? 'lacks' : 'lack'} the
        latest session{working ? '; a run is loading them' : ''}.{failingText}
        {earlier}
      </>
    ),
  };
}

/** How many of the last sessions before the latest are missing. */
const missingBefore = ({ missingSessions, isLate }: Tonight['sessions'][number]) =>
  missingSessions - (isLate ? 1 : 0);

function NightSummaryBox({
  summary: { mark, title, text, isFilledByFiles },
  tonight,
  context,
}: {
  readonly summary: NightSummary;
  readonly tonight: Tonight;
  readonly context: PageContext;
}) {
  const isNothing = mark === 'none';
  return (
    <section class={`night night-${mark}`} aria-labelledby="night">
      <MarkIcon mark={mark} />
      <div>
        <h2 id="night">{title}</h2>
        {text === null ? null : <p>{text}</p>}
        {isNothing ? <FirstSteps /> : null}
        {(mark === 'missing' || mark === 'suspicious') && isFilledByFiles !== true ? (
          <div class="actions">
            <ActionButton token={context.token} action="/actions/fill-gaps" label="Fill gaps" />
            {context.token === null ? (
              <span>
                <Command>{COMMANDS.fillGaps}</Command> requests what is missing.
              </span>
            ) : null}
          </div>
        ) : null}
        {tonight.workers.seen === 0 && !isNothing && isFilledByFiles !== true ? (
          <p>
            No worker is running: <Command>{COMMANDS.up}</Command> starts one.
          </p>
        ) : null}
      </div>
    </section>
  );
}

function FirstSteps() {
  return (
    <ol class="steps">
      <li>
        See how many calls a week takes: <Command>{COMMANDS.backfillWeekDry}</Command>
      </li>
      <li>
        Load it: <Command>{COMMANDS.backfillWeek}</Command>
      </li>
      <li>
        Load every night: <Command>{COMMANDS.up}</Command>
      </li>
      <li>
        Or look at made-up data, without a key: <Command>{COMMANDS.demo}</Command>
      </li>
    </ol>
  );
}

/** The queues that are paused; null if the queue does not respond. */
async function pausedQueues({ queues, log }: PageContext): Promise<readonly WindowQueue[] | null> {
  const isStopped = Promise.all(WINDOW_QUEUES.map((name) => queues.windows[name].isPaused()));
  return within(isStopped).then(
    (paused) => WINDOW_QUEUES.filter((_, at) => paused[at]),
    (error) => {
      log.warn({ err: error }, 'dashboard: the queue does not respond');
      return null;
    },
  );
}

/** A list of everything that keeps work from going on; nothing if there is no such thing. */
function Waiting({
  tonight,
  paused,
  zone,
}: {
  readonly tonight: Tonight;
  readonly paused: readonly WindowQueue[] | null;
  readonly zone: string;
}) {
  const { quota, keyRefused, openRuns } = tonight;
  const waits: ComponentChildren[] = [
    ...(keyRefused === null
      ? []
      : [
          <>
            The source refuses the access key: <q>{keyRefused}</q>. No call is made with it.
          </>,
        ]),
    ...(paused === null ? [<>The queue does not respond: no work is started until it does.</>] : []),
    ...(paused ?? []).map((name) => (
      <>
        The queue of {name === 'nightly' ? 'nightly runs' : 'backfills'} is paused; starting or resuming a run
        continues it.
      </>
    )),
    ...openRuns.flatMap(({ runId, retries }) =>
      retries.map((retry) => (
        <>
          <a href={`/runs/${runId}`}>Run {runId}</a>: {retryText(retry, zone)}.
        </>
      )),
    ),
    ...openRuns
      .filter(({ waitReasons }) => waitReasons.length > 0)
      .map((run) => (
        <>
          <a href={`/runs/${run.runId}`}>Run {run.runId}</a>{' '}
          {run.waitReasons.map((one) => waitReasonText(one, zone)).join('; ')}.
        </>
      )),
    ...(quota?.nightsWaitUntil != null && openRuns.length === 0
      ? [
          <>
            The calls of this hour are used up; more can be made from{' '}
            <Moment iso={quota.nightsWaitUntil} zone={zone} form="clock" /> on.
          </>,
        ]
      : []),
  ];
  if (waits.length === 0) return null;
  return (
    <Section id="waits" title="Waiting">
      <ul class="plain">
        {waits.map((wait, at) => (
          <li key={at}>{wait}</li>
        ))}
      </ul>
    </Section>
  );
}

function waitReasonText(reason: OpenRun['waitReasons'][number], zone: string): string {
  const clock = (iso: string) =>
    new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit' }).format(
      Date.parse(iso),
    );
  switch (reason.why) {
    case 'paused':
      return 'was paused by hand: resume it to go on';
    case 'no_worker':
      return 'waits for a worker: none is running';
    case 'calls_used':
      return `waits for ${clock(reason.until)}: the calls of this hour are used up`;
    case 'key_refused':
      return 'waits for an access key that the source accepts';
    case 'lists':
      return 'plans the rest once what it has requested is loaded, because that lists what else to request';
  }
}

const COLUMNS: readonly Column<Tonight['sessions'][number]>[] = [
  { head: 'Data set', cell: (one) => <DataSetLink {...one} /> },
  {
    head: 'Latest session',
    cell: ({ lastDue, isLate, reason, detail }) =>
      lastDue === null ? (
        <Badge mark="none">not due yet</Badge>
      ) : isLate ? (
        <Badge mark="missing">{`${lastDue}: ${reason === null ? 'missing' : gapText({ reason, detail: reason === 'partial' ? detail : null })}`}</Badge>
      ) : (
        <Badge mark="complete">{lastDue}</Badge>
      ),
  },
  {
    head: 'Complete to',
    cell: ({ completeTo, lastComplete }) =>
      lastComplete === null ? (
        <span class="muted">no complete day yet</span>
      ) : (
        <>
          {completeTo ?? <span class="muted">no complete day yet</span>}
          {completeTo === lastComplete ? null : <span class="muted">, latest {lastComplete}</span>}
        </>
      ),
  },
  {
    head: 'Records',
    number: true,
    cell: ({ lastRecords, medianRecords }) =>
      lastRecords === null ? null : (
        <>
          {count(lastRecords)}
          {isUnusual(lastRecords, medianRecords) ? (
            <span class="muted"> usually {count(Math.round(medianRecords ?? 0))}</span>
          ) : null}
        </>
      ),
  },
  {
    head: `Missing of ${MISSING_OF}`,
    number: true,
    cell: ({ missingSessions }) =>
      missingSessions === 0 ? <span class="muted">0</span> : <strong class="bad">{missingSessions}</strong>,
  },
  {
    head: 'Rejects',
    number: true,
    cell: ({ openRejects }) =>
      openRejects === 0 ? <span class="muted">0</span> : <a href="/quality">{count(openRejects)}</a>,
  },
];

function OpenRuns({ runs, context }: { readonly runs: readonly OpenRun[]; readonly context: PageContext }) {
  if (runs.length === 0) {
    return (
      <Empty title="No run is open.">
        <p>
          <a href="/runs">The runs so far</a>
        </p>
      </Empty>
    );
  }
  return (
    <ul class="plain runs">
      {runs.map((run) => (
        <li key={run.runId}>
          <RunProgress run={run} context={context} />
        </li>
      ))}
    </ul>
  );
}

function RunProgress({ run, context }: { readonly run: OpenRun; readonly context: PageContext }) {
  const { runId, kind, state, total, ended, fetched, finishAt } = run;
  const zone = context.config.EOD_TIMEZONE;
  const left = finishAt === null ? null : Math.max(0, (Date.parse(finishAt) - context.clock.now()) / 1000);
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
      <div class="actions">
        {state === 'paused' ? (
          <ActionButton
            token={context.token}
            action={`/actions/runs/${runId}/resume`}
            label={`Resume run ${runId}`}
          />
        ) : null}
        <ActionButton
          token={context.token}
          action={`/actions/runs/${runId}/cancel`}
          label={`Cancel run ${runId}`}
          kind="danger"
        />
      </div>
    </>
  );
}

function Calls({ quota, zone }: { readonly quota: QuotaStatus | null; readonly zone: string }) {
  if (quota === null) {
    return (
      <Empty title="No access key is set in this process.">
        <p>
          The budget belongs to a key: set <code>EOD_ACCESS_KEY</code> to see it here.
        </p>
      </Empty>
    );
  }
  const { calls, limit, backfillLimit, hour } = quota;
  const reserve = limit - backfillLimit;
  return (
    <>
      <p class="big">
        <strong>{count(Math.max(0, limit - calls))}</strong> of {count(limit)} left
      </p>
      <meter min={0} max={limit} value={Math.min(calls, limit)} aria-label="Calls made in this hour">
        {calls} of {limit}
      </meter>
      <p class="muted">
        {count(calls)} made since <Moment iso={hour} zone={zone} form="clock" />. Backfills may make{' '}
        {count(Math.max(0, backfillLimit - calls))} more; {count(reserve)} are reserved for nights.
      </p>
    </>
  );
}

/** How many times are listed; the rest repeats every day. */
const TIMES = 12;

function Schedule({ ticks, now }: { readonly ticks: readonly NextTick[]; readonly now: string }) {
  const sorted = ticks.toSorted((a, b) => (a.next < b.next ? -1 : 1));
  const times = groupBy(sorted, ({ next }) => next);
  const listed = [...times].slice(0, TIMES);
  const more = times.size - listed.length;
  return (
    <>
      <ol class="timeline">
        {listed.map(([next, group]) => {
          const local = group[0]?.nextLocal ?? '';
          return (
            <li key={next}>
              <time dateTime={next} class="nowrap">
                {local.slice(0, 10) === now ? '' : `${local.slice(5, 10)} `}
                <strong>{local.slice(11, 16)}</strong>
              </time>
              <span>
                {group.map((one) => (
                  <span key={one.id} class="block">
                    <DataSet operation={one.operation} exchange={one.exchange} />
                  </span>
                ))}
              </span>
            </li>
          );
        })}
      </ol>
      {more > 0 ? <p class="muted">and {plural(more, 'further time')}</p> : null}
    </>
  );
}
