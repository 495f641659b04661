import type { ComponentChildren } from 'preact';
import { completeText, count, isUnusual } from '../../core/wording.ts';
import type { Current } from '../../jobs/runs/read-status.ts';
import { MISSING_OF } from '../../state/coverage/freshness.ts';
import { gapText } from '../../state/coverage/gap-reasons.ts';
import { type Column, Table } from './data-table.tsx';
import { Badge } from './marks.tsx';
import { byTitle, DataSetLink, groupTitle } from './names.tsx';

type TradingDay = Current['operations'][number];
type List = Current['lists'][number];

/** A line of the table: what is known by trading day, or a list. */
type Line = TradingDay | List;

const isList = (line: Line): line is List => 'records' in line;

/** What a column shows of a trading day; of a list by default nothing. */
const ofTradingDay =
  (cell: (line: TradingDay) => ComponentChildren, ofList: (line: List) => ComponentChildren = () => null) =>
  (line: Line) =>
    isList(line) ? ofList(line) : cell(line);

const COLUMNS: readonly Column<Line>[] = [
  {
    head: 'Data set',
    cell: (line) => (
      <>
        <DataSetLink operation={line.operation} exchange={line.exchange} />
        {isList(line) || !line.isRequested ? <span class="muted"> comes from files</span> : null}
      </>
    ),
  },
  {
    head: 'Latest trading day',
    cell: ofTradingDay(
      ({ lastDue, isLate, reason, detail }) =>
        lastDue === null ? (
          <Badge mark="none">not due yet</Badge>
        ) : isLate ? (
          <Badge mark="missing">{`${lastDue}: ${reason === null ? 'missing' : gapText({ reason, detail: reason === 'partial' ? detail : null })}`}</Badge>
        ) : (
          <Badge mark="complete">{lastDue}</Badge>
        ),
      ({ day }) => day,
    ),
  },
  {
    head: 'Complete to',
    cell: ofTradingDay(completeText, ({ isDaily }) => (
      <span class="muted">{isDaily ? 'daily' : 'a list'}</span>
    )),
  },
  {
    head: 'Records',
    number: true,
    cell: ofTradingDay(
      ({ lastRecords, medianRecords, lastComplete, lastDue }) =>
        lastRecords === null || lastRecords === 0 ? null : (
          <>
            {count(lastRecords)}
            {lastComplete === lastDue ? null : <span class="muted"> on {lastComplete}</span>}
            {isUnusual(lastRecords, medianRecords) ? (
              <span class="muted"> usually {count(Math.round(medianRecords ?? 0))}</span>
            ) : null}
          </>
        ),
      ({ records }) => records,
    ),
  },
  {
    head: `Missing of ${MISSING_OF}`,
    number: true,
    cell: ofTradingDay(({ missingSessions }) =>
      missingSessions === 0 ? null : <strong class="bad">{missingSessions}</strong>,
    ),
  },
  {
    head: 'Rejects',
    number: true,
    cell: ofTradingDay(({ openRejects }) =>
      openRejects === 0 ? null : <a href="/issues?kind=reject">{count(openRejects)}</a>,
    ),
  },
];

/** The latest trading day of each data set, and what is missing; lists have their newest file. */
export function DataSetsTable({ operations, lists }: Pick<Current, 'operations' | 'lists'>) {
  return (
    <Table
      caption="Data sets with their latest trading day"
      columns={COLUMNS}
      rows={byTitle<Line>([...operations, ...lists])}
      groupOf={groupTitle}
    />
  );
}
