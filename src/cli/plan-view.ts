import type { OperationPlan, PlanSummary } from '../jobs/plan-summary.ts';
import { type Column, plural, table } from './output.ts';

const COLUMNS: readonly Column<OperationPlan>[] = [
  { head: 'operation', cell: (row) => row.operation },
  { head: 'exchange', cell: (row) => row.exchange },
  { head: 'windows', cell: (row) => row.windows },
  { head: 'requests', cell: (row) => row.requests },
  { head: 'skipped', cell: (row) => row.skipped },
  { head: '', cell: (row) => (row.estimated ? 'at most; planned once the bhav copy is in' : '') },
];

/** What a backfill would ask, for people. */
export function planText(plan: PlanSummary): string {
  const total = { ...plan, operation: 'total', exchange: '', estimated: false };
  const most = plan.estimated ? 'at most ' : '';
  return [
    table(COLUMNS, [...plan.operations, total]),
    '',
    `${plan.from} to ${plan.to}: ${most}${plural(plan.requests, 'request')}; nothing was asked`,
  ].join('\n');
}
