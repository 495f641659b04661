import { problemsText } from '../../core/wording.ts';
import type { Finding } from '../../state/findings.ts';
import type { OpenReject } from '../../state/rejects.ts';
import { rejectCommand } from '../commands.ts';
import { Command, Empty, Moment } from './basics.tsx';
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
      empty={<Empty title="None." />}
      caption="Open rejects"
      rows={rejects}
      columns={[
        { head: 'Reject', cell: (reject) => reject.id },
        {
          head: 'Data set',
          cell: (reject) => (
            <DataSetLink {...reject} day={reject.from === reject.to ? reject.from : undefined} />
          ),
        },
        DAYS,
        {
          head: 'Why',
          wide: true,
          cell: ({ problems }) => problemsText(problems),
        },
        { head: 'Seen last', cell: (reject) => <Moment iso={reject.lastSeenAt} zone={zone} /> },
        { head: 'As it was sent', cell: (reject) => <Command>{rejectCommand(reject.id)}</Command> },
      ]}
    />
  );
}

const SEVERITY_MARKS = { error: 'missing', warning: 'suspicious', info: 'none' } as const;

/** Contradictions between data sets. */
export function FindingsTable({ findings }: { readonly findings: readonly Finding[] }) {
  return (
    <Table
      empty={<Empty title="None." />}
      caption="Findings"
      rows={findings}
      columns={[
        { head: 'Day', cell: (finding) => <span class="nowrap">{finding.date}</span> },
        {
          head: 'Severity',
          cell: (finding) => <Badge mark={SEVERITY_MARKS[finding.severity]}>{finding.severity}</Badge>,
        },
        { head: 'Check', cell: (finding) => finding.check.replaceAll('_', ' ') },
        { head: 'Data set', cell: (finding) => <DataSet {...finding} /> },
        { head: 'Instrument', cell: (finding) => finding.instrument },
        { head: 'Expected', cell: (finding) => finding.expected },
        { head: 'Found', cell: (finding) => finding.found },
        { head: 'Now', cell: (finding) => (finding.resolvedAt === null ? 'open' : 'resolved') },
      ]}
    />
  );
}
