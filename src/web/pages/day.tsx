import { count, plural, sentenceCase } from '../../core/wording.ts';
import { isByInstrument } from '../../declaration/operation.ts';
import type { QueueContext } from '../../jobs/context.ts';
import { type DataSetDays, readDays } from '../../jobs/runs/read-coverage.ts';
import { dataSetNamed, pairTitle } from '../../operations/registry.ts';
import { readRequestedNames } from '../../state/coverage/completeness.ts';
import {
  readDayCoverage,
  readDayLoads,
  readDayResponses,
  readWindows,
} from '../../state/coverage/covered-days.ts';
import { GAP_REASONS } from '../../state/coverage/gap-reasons.ts';
import { listFindings } from '../../state/findings.ts';
import { openRejects } from '../../state/rejects.ts';
import { COMMANDS, refetchCommand } from '../commands.ts';
import { Command, Empty, Facts, Moment, Section } from '../components/basics.tsx';
import { DAYS, numberColumns, RUN, Table } from '../components/data-table.tsx';
import { dayText } from '../components/day-kinds.tsx';
import { Badge, type Mark, markOfState } from '../components/marks.tsx';
import { FindingsTable, RejectsTable } from '../components/quality-tables.tsx';
import { coveragePath, Heading, type Page, type Requested } from '../page.tsx';
import { readDay, readPair } from './path-values.ts';

/** How many rows of each table are listed: a day that is requested instrument by instrument has hundreds. */
const LISTED = 50;

/** What became of the records of the loads. */
const COUNTS = ['fetched', 'inserted', 'updated', 'unchanged', 'withdrawn', 'rejected'] as const;

/** Everything that is known about a day of a data set. */
export async function dayPage(context: QueueContext, requested: Requested): Promise<Page> {
  const day = readDay(requested);
  const pair = { ...readPair(requested), day };
  const { db, config } = context;
  const zone = config.EOD_TIMEZONE;
  const { operation, exchange } = pair;
  const [requestedNames, [set], coverage, loads, responses, rejects, { findings, total: allFindings }] =
    await Promise.all([
      readRequestedNames(db.drizzle),
      readDays(context, [pair], { from: day, to: day }),
      readDayCoverage(db.drizzle, pair, LISTED),
      readDayLoads(db.drizzle, pair, LISTED),
      readDayResponses(db.drizzle, pair, LISTED),
      openRejects(db.drizzle, { operations: [operation], exchanges: [exchange], from: day, to: day }, LISTED),
      listFindings(db.drizzle, {
        operation,
        exchanges: [exchange],
        from: day,
        to: day,
        resolved: true,
        limit: LISTED,
      }),
    ]);
  const windowIds = [...coverage.listed, ...loads, ...responses].flatMap(({ windowId }) => windowId ?? []);
  const windows = (await readWindows(db.drizzle, [...new Set(windowIds)])).slice(0, LISTED);
  const perInstrument = isByInstrument(dataSetNamed(operation));
  return {
    title: `${pairTitle(pair)}, ${day}`,
    main: (
      <>
        <Heading title={`${pairTitle(pair)}, ${day}`}>
          {dayBadge(set)}{' '}
          <a href={`${coveragePath(pair)}?year=${day.slice(0, 4)}`}>All of {day.slice(0, 4)}</a>
        </Heading>
        <Section id="counts" title="Counts" note="Of the loads below, which may include other days">
          {loads.length === 0 ? (
            <Empty title="Nothing was loaded for this day.">
              <p>
                {requestedNames.has(operation) ? (
                  <>
                    <Command>{refetchCommand(operation, exchange, day)}</Command> requests it.
                  </>
                ) : (
                  <>
                    <Command>{COMMANDS.import}</Command> loads its file.
                  </>
                )}
              </p>
            </Empty>
          ) : (
            <Facts
              facts={COUNTS.map((name) => [
                sentenceCase(name),
                count(loads.reduce((sum, load) => sum + load[name], 0)),
              ])}
            />
          )}
        </Section>
        <Section id="known" title="Coverage" note={listedNote(coverage.listed.length, coverage.total)}>
          <Table
            empty={<Empty title="This day was not requested yet." />}
            caption="Coverage of the day"
            rows={coverage.listed}
            columns={[
              {
                head: perInstrument ? 'Instrument' : 'Requested',
                cell: (part) => part.instrument || 'the whole exchange',
              },
              ...(perInstrument
                ? [{ head: 'Request', cell: (part: (typeof coverage.listed)[number]) => part.variant }]
                : []),
              {
                head: 'State',
                cell: (part) => <Badge mark={markOfState(part.state)}>{part.state.replace('_', ' ')}</Badge>,
              },
              ...numberColumns('records'),
              { head: 'Requested last', cell: (part) => <Moment iso={part.checkedAt} zone={zone} /> },
              RUN,
              { head: 'The source said', wide: true, cell: (part) => part.diagnostic },
            ]}
          />
        </Section>
        <Section id="windows" title="Windows">
          <Table
            empty={<Empty title="No window was about this day." />}
            caption="Windows that were about the day"
            rows={windows}
            columns={[
              { head: 'Window', cell: (window) => window.id },
              RUN,
              DAYS,
              {
                head: 'State',
                cell: (window) =>
                  window.suspicious === null ? (
                    <Badge mark={markOfState(window.state)}>{window.state}</Badge>
                  ) : (
                    <Badge mark="suspicious">suspicious</Badge>
                  ),
              },
              { head: 'Calls', number: true, cell: (window) => window.requests },
              ...numberColumns('fetched', 'rejected'),
              { head: 'Ended', cell: (window) => <Moment iso={window.finishedAt} zone={zone} /> },
              { head: 'Remarks', wide: true, cell: (window) => window.suspicious ?? window.reason },
            ]}
          />
        </Section>
        <Section id="loads" title="Loads and revisions">
          <Table
            empty={<Empty title="None." />}
            caption="Loads that covered the day, the newest first"
            rows={loads}
            columns={[
              { head: 'Load', cell: (load) => load.loadId },
              { head: 'State after it', number: true, cell: (load) => load.stateNumber },
              DAYS,
              { head: 'Instruments', cell: (load) => load.instruments.slice(0, 3).join(', ') || 'all' },
              ...numberColumns('fetched', 'inserted', 'updated', 'unchanged', 'withdrawn'),
              { head: 'Stored', cell: (load) => <Moment iso={load.committedAt} zone={zone} /> },
            ]}
          />
        </Section>
        <Section id="responses" title="Kept responses">
          <Table
            empty={<Empty title="No response about this day is kept." />}
            caption="Kept responses and files about the day"
            rows={responses}
            columns={[
              { head: 'Response', cell: (response) => response.id },
              DAYS,
              { head: 'Requested with', cell: requestedText },
              { head: 'Type', cell: (response) => response.contentType },
              ...numberColumns('bytes'),
              {
                head: 'Kept in',
                number: true,
                cell: (response) => `${count(response.keptBytes)} (${response.encoding})`,
              },
              { head: 'Fetched', cell: (response) => <Moment iso={response.fetchedAt} zone={zone} /> },
              { head: 'SHA-256', cell: (response) => <code>{response.hash.slice(0, 12)}</code> },
            ]}
          />
        </Section>
        <Section id="rejects" title="Open rejects">
          <RejectsTable rejects={rejects} zone={zone} />
        </Section>
        <Section id="findings" title="Findings" note={listedNote(findings.length, allFindings)}>
          <FindingsTable findings={findings} />
        </Section>
      </>
    ),
  };
}

function dayBadge(set: DataSetDays | undefined) {
  const first = set?.days[0];
  if (first === undefined) return null;
  const mark: Mark = first.kind === 'nothing' ? 'none' : first.kind;
  const text =
    first.kind === 'missing' && first.reason !== null ? `missing: ${GAP_REASONS[first.reason]}` : null;
  return <Badge mark={mark}>{text ?? dayText(first).slice(first.day.length + 2)}</Badge>;
}

function requestedText({ instruments, variant, params }: DayResponse): string {
  const options = Object.entries(params).map(([name, value]) => `${name}=${value}`);
  return [...instruments.slice(0, 3), variant, ...options].filter(Boolean).join(', ');
}

type DayResponse = Awaited<ReturnType<typeof readDayResponses>>[number];

const listedNote = (listed: number, total: number) =>
  total > listed ? `${count(listed)} of ${plural(total, 'line')}` : undefined;
