import { access, constants, mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../../core/config.ts';
import { messageOf, type PipelineError, usageError } from '../../core/errors.ts';
import { isDated as hasDays } from '../../declaration/operation.ts';
import { decideOutcome } from '../../jobs/responses/response-outcome.ts';
import { type LastRequest, listLastRequests } from '../../jobs/runs/night-calls.ts';
import { type Cli, EXIT, print, printJson } from '../cli.ts';
import { loadSettings } from '../load-settings.ts';
import { openContext } from '../open-context.ts';
import { type Column, memberColumns, plural, table } from '../output.ts';
import { sourceSettings } from '../source-settings.ts';
import { call, openSource, remedyFor, USED_UP } from './source-checks.ts';

/** After these no other call is served. */
const ENDS_ALL = new Set(['credential', 'monthly_quota', 'hourly_quota', 'wrong_address', 'network']);

type OperationReport = ReturnType<typeof describeCall>;

/**
 * Requests each operation once about its last due day, as a night would, and shows what the reader makes of the
 * responses. Each call is counted in the budget of the hour.
 *
 * @param save a folder for the bodies of the responses, which do not hold the access key.
 */
export async function examineOperations(
  cli: Cli,
  { save, json }: { readonly save: string | undefined; readonly json: boolean },
): Promise<void> {
  const config = await loadSettings(cli);
  sourceSettings(config);
  const folder = save === undefined ? null : resolve(cli.cwd, save);
  if (folder !== null) {
    // Before any call is made.
    const isReady = mkdir(folder, { recursive: true }).then(() => access(folder, constants.W_OK));
    await isReady.catch((error) => {
      throw usageError(`--save: files cannot be written in ${folder}: ${messageOf(error)}`);
    });
  }
  const context = await openContext(cli, { config });
  let dialect = config.EOD_DATE_DIALECT;
  let source = await openSource(cli, config);
  let isDialectKnown = false;
  let stopped: string | null = null;
  const reports: OperationReport[] = [];
  for (const request of listLastRequests(context)) {
    const reason = stopped ?? request.reason;
    const isDated = hasDays(request.operation, request);
    let response = reason === null ? await call(cli, context, source, request) : null;
    if (response !== null && isRefusal(response.error) && isDated && !isDialectKnown) {
      // The days may have other names at this source.
      const other = dialect === 'epoch' ? 'iso-date' : 'epoch';
      const otherSource = await openSource(cli, { ...config, EOD_DATE_DIALECT: other });
      const again = await call(cli, context, otherSource, request);
      if (again?.error === null) [response, dialect, source] = [again, other, otherSource];
    }
    if (response === null && reason === null) stopped = USED_UP;
    if (ENDS_ALL.has(response?.error?.kind ?? '')) stopped = 'not requested, as it would fail likewise';
    isDialectKnown ||= isDated && response?.error === null;
    const { operation, exchange, from } = request;
    const body = response?.body ?? null;
    const name = `${operation.name}-${exchange}-${from}.txt`;
    const file = folder === null || body === null ? null : join(folder, name);
    if (file !== null && body !== null) await writeFile(file, body);
    reports.push(describeCall(request, response, config, stopped ?? reason, file));
  }

  const isOtherDialect = dialect !== config.EOD_DATE_DIALECT;
  const isOk = stopped === null && !isOtherDialect && reports.every(({ state }) => state !== 'failed');
  if (!isOk) cli.exitCode = EXIT.failed;
  if (json) return printJson(cli, { isOk, dateDialect: dialect, operations: reports });
  print(cli, reportText(reports, isOtherDialect ? dialect : null, folder));
}

/** True if the source refuses the request itself. */
const isRefusal = (error: PipelineError | null): boolean =>
  error?.kind === 'bad_request' || error?.kind === 'unknown_diagnostic' || error?.status === 400;

/** What a call has shown; the tables that its records fill show their form. @param reason why no call was made. */
function describeCall(
  { operation, exchange, from, to, instruments }: LastRequest,
  response: Awaited<ReturnType<typeof call>>,
  config: Config,
  reason: string | null,
  file: string | null,
) {
  const about = { operation: operation.name, exchange, from, to, instruments };
  const { error = null, extracted = null } = response ?? {};
  const { batches = [], rejects = [], fetched = 0, unknownFields = [], doubts = [] } = extracted ?? {};
  const isStored =
    extracted === null || decideOutcome(extracted, config.EOD_MAX_REJECT_SHARE).state !== 'failed';
  const [{ path = '', message = '' } = {}] = rejects[0]?.problems ?? [];
  const rejected = `${rejects.length} of ${plural(fetched, 'record')} are rejected, the first: ${path} ${message}`;
  const problems = [...(rejects.length > 0 ? [rejected] : []), ...doubts.map((doubt) => doubt.message)];
  return {
    state: response === null ? 'skipped' : error === null && isStored ? 'ok' : 'failed',
    ...about,
    rows: fetched - rejects.length,
    rejects: rejects.length,
    tables: batches.filter(({ rows }) => rows.length > 0).map(({ table }) => table.name),
    unknownFields,
    problem: error === null ? problems.join('; ') || reason : `${error.kind}: ${messageOf(error)}`,
    remedy: error === null ? null : remedyFor(error.kind),
    file,
  };
}

const COLUMNS: readonly Column<OperationReport>[] = [
  ...memberColumns<OperationReport>('state', 'operation', 'exchange'),
  { head: 'day', cell: ({ to }) => to },
  ...memberColumns<OperationReport>('rows', 'rejects'),
  { head: 'fills', cell: ({ tables }) => tables.join(', ') },
];

/** @param dialect the one in which the source reads days, if it is not the one that is set. */
function reportText(
  reports: readonly OperationReport[],
  dialect: Config['EOD_DATE_DIALECT'] | null,
  folder: string | null,
): string {
  const notes = reports.flatMap(({ operation, unknownFields, problem, remedy }) => [
    ...(unknownFields.length === 0 ? [] : [`${operation}: no column reads ${unknownFields.join(', ')}`]),
    ...(problem === null ? [] : [`${operation}: ${[problem, remedy ?? []].flat().join('; ')}`]),
  ]);
  if (dialect !== null)
    notes.push(`the source names days otherwise than they are requested: set EOD_DATE_DIALECT=${dialect}`);
  if (reports.some(({ file }) => file !== null)) notes.push(`the bodies of the responses are in ${folder}`);
  const readable = reports.filter(({ state }) => state === 'ok').length;
  const verdict = `${readable} of ${plural(reports.length, 'operation')} ${readable === 1 ? 'is' : 'are'} readable.`;
  return [table(COLUMNS, reports), ...(notes.length === 0 ? [] : ['', ...notes]), '', verdict].join('\n');
}
