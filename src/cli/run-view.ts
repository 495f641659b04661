import type { OperationReport, RunReport } from '../jobs/report.ts';
import { EXIT } from './errors.ts';
import { type Column, plural, table } from './output.ts';

/** Names this many windows that went wrong; the JSON document has them all. */
const NAMED_FAILURES = 20;

const COLUMNS: readonly Column<OperationReport>[] = [
  { head: 'operation', cell: (row) => row.operation },
  { head: 'exchange', cell: (row) => row.exchange },
  { head: 'windows', cell: (row) => row.windows.total },
  { head: 'skipped', cell: (row) => row.windows.skipped },
  { head: 'fetched', cell: (row) => row.fetched },
  { head: 'inserted', cell: (row) => row.inserted },
  { head: 'updated', cell: (row) => row.updated },
  { head: 'unchanged', cell: (row) => row.unchanged },
  { head: 'rejected', cell: (row) => row.rejected },
  { head: 'seconds', cell: (row) => row.seconds },
];

/** A run for people: one line, a table, and what deserves a word. */
export function runText(report: RunReport): string {
  const { runId, kind, state, from, to, windows, seconds } = report;
  const range = from === to ? from : `${from} to ${to}`;
  const total: OperationReport = { ...report, operation: 'total', exchange: '' };
  return [
    `run ${runId} (${kind}, ${range}): ${state} after ${seconds} s, ${windowsText(report)}`,
    '',
    table(COLUMNS, [...report.operations, total]),
    ...(windows.open > 0 ? ['', `${plural(windows.open, 'window')} left to do`] : []),
    ...(report.skips.length > 0 ? [''] : []),
    ...report.skips.map(({ reason, windows: skipped }) => `${plural(skipped, 'window')} skipped: ${reason}`),
    ...(report.kind === 'preview' ? ['', previewText(report)] : []),
    ...report.suspicious.map(({ windowId, reason }) => `suspicious: window ${windowId}: ${reason}`),
    ...(report.error === null ? [] : ['', `stopped by: ${report.error}`]),
  ].join('\n');
}

/** What a preview would have changed, by example; it stored nothing. */
function previewText({ preview, inserted, updated, withdrawn }: RunReport): string {
  const samples = preview.map(({ change, table: name, key, columns }) => {
    const values = Object.entries(columns).map(([column, value]) => `${column}: ${value.old} → ${value.new}`);
    return `  ${change}: ${name} ${Object.values(key).join(' ')}${values.length > 0 ? `: ${values.join(', ')}` : ''}`;
  });
  return [
    `nothing was stored; it would insert ${inserted}, change ${updated} and withdraw ${withdrawn} rows${samples.length > 0 ? ', for example' : ''}`,
    ...samples,
  ].join('\n');
}

function windowsText({ windows, requests }: RunReport): string {
  const parts = [`${plural(windows.total, 'window')}`, plural(requests, 'request')];
  return parts.join(', ');
}

/** The windows that went wrong, by name, or null where none did. */
export function failuresText({ failures }: RunReport): string | null {
  if (failures.length === 0) return null;
  const lines = failures.slice(0, NAMED_FAILURES).map((one) => {
    const range = one.from === one.to ? one.from : `${one.from} to ${one.to}`;
    const facts = [one.operation, one.exchange, range, ...one.instruments.slice(0, 3), one.part];
    return `  ${one.state}: ${facts.filter(Boolean).join(' ')}: ${one.error ?? 'no reason is known'}`;
  });
  const more = failures.length - lines.length;
  return [
    `${plural(failures.length, 'window')} did not load:`,
    ...lines,
    ...(more > 0 ? [`  … and ${more} more`] : []),
  ].join('\n');
}

/** 0 only if every window ended loaded, empty or skipped for a reason. */
export function exitCodeOf({ windows, state }: RunReport): number {
  const bad = windows.failed + windows.blocked + windows.cancelled;
  return bad === 0 && state !== 'failed' && state !== 'cancelled' ? EXIT.done : EXIT.failed;
}
