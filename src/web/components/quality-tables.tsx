import type { Finding } from '../../load/state/findings.ts';
import type { OpenReject } from '../../load/state/rejects.ts';
import { rejectCommand } from '../commands.ts';
import { Command, Moment } from './basics.tsx';
import { DAYS, Table } from './data-table.tsx';
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
