import type { OperationReport, RunReport } from '../load/state/reports.ts';
import { differencesText } from './difference-view.ts';
import { EXIT } from './errors.ts';
import { type Column, count, plural, table } from './output.ts';

/** Names this many windows that went wrong, or rows of a preview; the JSON document has more. */
const NAMED = 20;

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
];
/** Rare enough to be shown only where there are any. */
const RARE_COLUMNS: readonly Column<OperationReport>[] = [
  { head: 'stale', cell: (row) => row.stale },
  { head: 'duplicate', cell: (row) => row.duplicate },
  { head: 'withdrawn', cell: (row) => row.withdrawn },
];
const SECONDS: Column<OperationReport> = { head: 'seconds', cell: (row) => row.seconds };

/** A run for people: one line, a table, and what deserves a word. */
export function runText(report: RunReport): string {
  const { runId, kind, state, from, to, windows, seconds } = report;
  const range = rangeText(from, to);
  const total: OperationReport = { ...report, operation: 'total', exchange: '' };
  const rare = RARE_COLUMNS.filter(({ cell }) => cell(total) !== 0);
  return [
    `run ${runId} (${kind}, ${range}): ${state} after ${seconds} s, ${windowsText(report)}`,
    '',
    table([...COLUMNS, ...rare, SECONDS], [...report.operations, total]),
    ...(windows.open > 0 ? ['', `${plural(windows.open, 'window')} left to do`] : []),
    ...(report.skips.length > 0 ? [''] : []),
    ...report.skips.map(({ reason, windows: skipped }) => `${plural(skipped, 'window')} skipped: ${reason}`),
    ...(report.kind === 'preview' ? ['', previewText(report)] : []),
    ...suspiciousLines(report),
    ...(report.error === null ? [] : ['', `stopped by: ${report.error}`]),
  ].join('\n');
}

/** What a preview would have changed, by example; it stored nothing. */
function previewText({ preview, skips, ...counts }: RunReport): string {
  const { inserted, updated, withdrawn, unchanged, stale, rejected } = counts;
  const shown = preview.slice(0, NAMED);
  const more = preview.length - shown.length;
  return [
    `nothing was stored; it would insert ${count(inserted)}, change ${count(updated)} and withdraw ${count(withdrawn)} rows (${count(unchanged)} unchanged, ${count(stale)} stale, ${count(rejected)} rejected)${shown.length > 0 ? ', for example' : ''}`,
    ...(shown.length === 0 ? [] : ['', differencesText(shown)]),
    ...(more > 0 ? ['', `${plural(more, 'further example')} with --json`] : []),
    ...(skips.some(({ reason }) => reason.startsWith('loaded already'))
      ? ['what is loaded already was not asked for; --force compares that too']
      : []),
  ].join('\n');
}

/** Answers that lacked too many rows to be believed, by name. */
function suspiciousLines({ suspicious }: RunReport): string[] {
  if (suspicious.length === 0) return [];
  const more = suspicious.length - NAMED;
  return [
    '',
    ...suspicious
      .slice(0, NAMED)
      .map(
        ({ operation, exchange, from, to, reason }) =>
          `suspicious: ${operation} ${exchange} ${rangeText(from, to)}: ${reason}`,
      ),
    ...(more > 0 ? [`… and ${more} more`] : []),
  ];
}

function rangeText(from: string, to: string): string {
  return from === to ? from : `${from} to ${to}`;
}

function windowsText({ windows, requests }: RunReport): string {
  const parts = [`${plural(windows.total, 'window')}`, plural(requests, 'request')];
  return parts.join(', ');
}

/** The windows that went wrong, by name, or null where none did. */
export function failuresText({ failures }: RunReport): string | null {
  if (failures.length === 0) return null;
  const lines = failures.slice(0, NAMED).map((one) => {
    const facts = [
      one.operation,
      one.exchange,
      rangeText(one.from, one.to),
      ...one.instruments.slice(0, 3),
      one.part,
    ];
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
