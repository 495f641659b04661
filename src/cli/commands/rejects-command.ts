import type { Config } from '../../core/config.ts';
import { usageError } from '../../core/errors.ts';
import {
  type OpenReject,
  openRejectIds,
  openRejects,
  type RejectFilter,
  readReject,
} from '../../load/state/rejects.ts';
import { pairTitle } from '../../operations/registry.ts';
import { type Cli, type JsonFlag, loadSettings, print, printJson, printRecord } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { parseExchanges } from '../options.ts';
import { type Column, momentText, plural, rangeText, table } from '../output.ts';
import { parseDataSets, parsedLate } from '../parse-request.ts';
import { dataSetColumns } from '../run-output.ts';

const COLUMNS: readonly Column<OpenReject>[] = [
  { head: 'reject', cell: (one) => one.id },
  ...dataSetColumns<OpenReject>(),
  { head: 'days', cell: (one) => rangeText(one) },
  { head: 'position', cell: (one) => one.position },
  { head: 'why', cell: (one) => whyText(one) },
];

export interface FilterFlags extends JsonFlag {
  readonly operation?: string;
  readonly exchange?: string;
}

/** A rejected record with everything that is known about it. */
export type RejectDetail = NonNullable<Awaited<ReturnType<typeof readReject>>>;

export async function listRejects(cli: Cli, flags: FilterFlags & { readonly limit: number }): Promise<void> {
  const config = await loadSettings(cli);
  const filterOf = await filterOfFlags(flags, config);
  const { drizzle } = (await openContext(cli, { config })).db;
  const filter = filterOf();
  const found = await openRejects(drizzle, filter, flags.limit);
  if (flags.json === true) return printJson(cli, found);
  if (found.length === 0) return print(cli, 'no open rejects');
  const all = (await openRejectIds(drizzle, filter)).length;
  const more =
    all > found.length
      ? `\n\nthe newest ${found.length} of ${plural(all, 'reject')}; --limit shows more`
      : '';
  print(cli, `${table(COLUMNS, found)}${more}`);
}

export async function showReject(cli: Cli, id: number, flags: JsonFlag): Promise<void> {
  const { db, config } = await openContext(cli);
  const reject = await readReject(db.drizzle, id);
  if (reject === null) throw usageError(`there is no reject ${id} ("eod rejects" lists the open ones)`);
  if (flags.json === true) return printJson(cli, reject);
  print(cli, detailText(reject, config.EOD_TIMEZONE));
  printRecord(cli, reject.record);
}

export async function filterOfFlags(
  { operation, exchange }: FilterFlags,
  config: Config,
): Promise<() => RejectFilter> {
  const names = operation === undefined ? [] : [operation];
  return parsedLate(names, config, () => ({
    operations: operation === undefined ? undefined : parseDataSets(names),
    exchanges: parseExchanges(exchange),
  }));
}

function whyText({ problems }: Pick<OpenReject, 'problems'>): string {
  return problems.map(({ path, message }) => (path === '' ? message : `${path} ${message}`)).join('; ');
}

function detailText(reject: RejectDetail, timeZone: string): string {
  const { id, position, runId, windowId, resolvedAt, file } = reject;
  const what = file === null ? 'response' : 'file';
  const [first, last] = [reject.firstSeenAt, reject.lastSeenAt].map((iso) => momentText(iso, timeZone));
  return [
    `reject ${id}: ${pairTitle(reject)} ${rangeText(reject)}`,
    `record ${position} of ${file ?? 'the response'}`,
    `first seen at ${first}, last at ${last} (${timeZone})`,
    `by run ${runId}, window ${windowId}; ${resolvedAt === null ? 'open' : `resolved at ${momentText(resolvedAt, timeZone)}`}`,
    reject.responseId === null ? `its ${what} is not kept` : `its ${what} is kept (${reject.responseId})`,
    '',
    ...reject.problems.map(({ path, message }) => `  ${path === '' ? 'record' : path}: ${message}`),
    '',
  ].join('\n');
}
