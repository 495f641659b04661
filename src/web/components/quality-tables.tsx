import { predicateOf, type SchemaChange } from '../../load/state/answers/schema-changes.ts';
import type { Finding } from '../../load/state/findings.ts';
import type { OpenReject } from '../../load/state/rejects.ts';
import { draftCommand, rejectCommand } from '../commands.ts';
import { Command, Moment } from './basics.tsx';
import { DAYS, RUN, Table } from './data-table.tsx';
import { Badge } from './marks.tsx';
import { DataSet, DataSetLink } from './names.tsx';

/** Rejected records and what is wrong with them. */
export function RejectsTable({
  rejects,
  zone,
}: {
  readonly rejects: readonly OpenReject[];
  readonly zone: string;
}) {
  return (
    <Table
      caption="Open rejects"
      rows={rejects}
      columns={[
        { head: 'Reject', cell: (one) => one.id },
        {
          head: 'Data set',
          cell: (one) => <DataSetLink {...one} day={one.from === one.to ? one.from : undefined} />,
        },
        DAYS,
        {
          head: 'Why',
          wide: true,
          cell: (one) =>
            one.problems
              .map(({ path, message }) => (path === '' ? message : `${path} ${message}`))
              .join('; '),
        },
        { head: 'Seen last', cell: (one) => <Moment iso={one.lastSeenAt} zone={zone} /> },
        { head: 'As it was sent', cell: (one) => <Command>{rejectCommand(one.id)}</Command> },
      ]}
    />
  );
}

const SEVERITY_MARKS = { error: 'missing', warning: 'suspicious', info: 'none' } as const;

/** Contradictions between data sets. */
export function FindingsTable({ findings }: { readonly findings: readonly Finding[] }) {
  return (
    <Table
      caption="Findings"
      rows={findings}
      columns={[
        { head: 'Day', cell: (one) => <span class="nowrap">{one.date}</span> },
        {
          head: 'Severity',
          cell: (one) => <Badge mark={SEVERITY_MARKS[one.severity]}>{one.severity}</Badge>,
        },
        { head: 'Check', cell: (one) => one.check.replaceAll('_', ' ') },
        { head: 'Data set', cell: (one) => <DataSet {...one} /> },
        { head: 'Instrument', cell: (one) => one.instrument },
        { head: 'Expected', cell: (one) => one.expected },
        { head: 'Found', cell: (one) => one.found },
        { head: 'Now', cell: (one) => (one.resolvedAt === null ? 'open' : 'resolved') },
      ]}
    />
  );
}

/** What the source has changed about the fields of its answers. */
export function ChangedFields({
  changes,
  zone,
}: {
  readonly changes: readonly SchemaChange[];
  readonly zone: string;
}) {
  return (
    <Table
      caption="Changed fields"
      rows={changes}
      columns={[
        { head: 'Field', cell: (one) => one.field },
        { head: 'Data set', cell: (one) => <DataSet {...one} /> },
        { head: 'What', wide: true, cell: predicateOf },
        { head: 'Seen', cell: (one) => <Moment iso={one.at} zone={zone} /> },
        RUN,
        {
          head: 'Declare it',
          cell: (one) => (one.change === 'new' ? <Command>{draftCommand(one.operation)}</Command> : null),
        },
      ]}
    />
  );
}
