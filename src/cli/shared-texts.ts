import type { Pair } from '../core/exchanges.ts';
import { momentText, type Retry, retryText } from '../core/wording.ts';
import type { Current } from '../jobs/runs/read-status.ts';
import { listedAs } from '../operations/registry.ts';
import type { Finding } from '../state/findings.ts';
import type { WorkersSeen } from '../state/workers.ts';
import { pipelineAdvice } from '../web/commands.ts';
import { type Cli, logNote } from './cli.ts';
import { type Column, firstLines } from './output.ts';

// What several commands print.

/** The columns of a list that name a data set and its exchange. */
export function dataSetColumns<Row extends Pair>(): Column<Row>[] {
  return [
    { head: 'data set', cell: ({ operation }) => listedAs(operation) },
    { head: 'exchange', cell: ({ exchange }) => exchange },
  ];
}

/** The first lines of a report: the worst that is true of the pipeline, since when, and the command that helps. */
export function pipelineLines(
  { pipeline, isUnused }: Pick<Current, 'pipeline' | 'isUnused'>,
  timeZone: string,
): string[] {
  const { cause, since, runId } = pipeline;
  const advice = pipelineAdvice(pipeline);
  if (cause === null && isUnused) return [];
  if (cause === null) return ['everything that is due is loaded', ''];
  const facts = [
    ...(since === null ? [] : [`since ${momentText(since, timeZone)}`]),
    ...(runId === null ? [] : [`run ${runId} shows more`]),
  ];
  return [
    `${cause}${facts.length === 0 ? '' : ` (${facts.join('; ')})`}`,
    ...(advice === null ? [] : [`"${advice.command}" ${advice.does}`]),
    '',
  ];
}

/** What failed so far and is tried again. */
export const retryLines = (retries: readonly Retry[], timeZone: string): string[] =>
  firstLines(
    retries,
    (retry) => retryText(retry, timeZone),
    (left) => `… and ${left} more that failed and are tried again`,
  );

/** A sentence that says since when no worker is running; null while one is. */
export function noWorkersText({ seen, lastSeenAt }: WorkersSeen, timeZone: string): string | null {
  if (seen > 0) return null;
  const last = lastSeenAt === null ? '' : `, the last one at ${momentText(lastSeenAt, timeZone)}`;
  return `no worker has been seen for a minute${last}; "eod up" starts one`;
}

/** Whether a reject or a finding is open, or when it was settled, and by whom. */
export function settlementText(
  { resolvedAt, acceptedAt, acceptedBy }: Pick<Finding, 'resolvedAt' | 'acceptedAt' | 'acceptedBy'>,
  timeZone: string,
): string {
  if (resolvedAt !== null) return `resolved at ${momentText(resolvedAt, timeZone)}`;
  return acceptedAt === null ? 'open' : `accepted by ${acceptedBy} at ${momentText(acceptedAt, timeZone)}`;
}

/** Says for which years Monday to Friday are assumed to be trading days, because the calendar has no data for them. */
export function logUnknownYears(cli: Cli, years: readonly string[]): void {
  if (years.length === 0) return;
  logNote(cli, `no calendar data for ${years.join(', ')}: Monday to Friday was assumed (EOD_CALENDAR_FILE)`);
}
