import { requesterName } from '../../core/environment.ts';
import { usageError } from '../../core/errors.ts';
import { pairTitle } from '../../operations/registry.ts';
import {
  acceptRejects,
  type OpenReject,
  openRejectIds,
  openRejects,
  type RejectFilter,
  readReject,
} from '../../state/rejects.ts';
import { type Cli, type JsonFlag, print, printJson, printRecord } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { parseOpenRange, type RangeFlags } from '../options.ts';
import { type Column, momentText, plural, rangeText, table } from '../output.ts';
import { parseDataSets } from '../parse-request.ts';
import { dataSetColumns } from '../run-output.ts';

const COLUMNS: readonly Column<OpenReject>[] = [
  { head: 'reject', cell: (reject) => reject.id },
  ...dataSetColumns<OpenReject>(),
  { head: 'days', cell: (reject) => rangeText(reject) },
  { head: 'position', cell: (reject) => reject.position },
  { head: 'why', cell: (reject) => whyText(reject) },
];

export interface FilterFlags extends JsonFlag, RangeFlags {
  readonly operation?: string;
  readonly exchange?: readonly string[];
}

/** A rejected record with everything that is known about it. */
export type RejectDetail = NonNullable<Awaited<ReturnType<typeof readReject>>>;

export async function listRejects(cli: Cli, flags: FilterFlags & { readonly limit: number }): Promise<void> {
  const filter = filterOfFlags(flags);
  const { drizzle } = (await openContext(cli)).db;
  const rejects = await openRejects(drizzle, filter, flags.limit);
  if (flags.json === true) return printJson(cli, rejects);
  if (rejects.length === 0) return print(cli, 'no open rejects');
  const all = (await openRejectIds(drizzle, filter)).length;
  const more =
    all > rejects.length
      ? `\n\nthe newest ${rejects.length} of ${plural(all, 'reject')}; --limit shows more`
      : '';
  print(cli, `${table(COLUMNS, rejects)}${more}`);
}

export async function showReject(cli: Cli, id: number, flags: JsonFlag): Promise<void> {
  const { db, config } = await openContext(cli);
  const reject = await readReject(db.drizzle, id);
  if (reject === null) throw usageError(`there is no reject ${id} ("eod rejects" lists the open ones)`);
  if (flags.json === true) return printJson(cli, reject);
  print(cli, detailText(reject, config.EOD_TIMEZONE));
  printRecord(cli, reject.record);
}

/** Where nothing was accepted. */
const NONE_ACCEPTED = 'no open reject matches whose other records are stored';

/** Accepts one reject, or all that match. */
export async function accept(cli: Cli, id: number | undefined, flags: FilterFlags): Promise<void> {
  const { operation, exchange, from, to } = flags;
  if ([id, operation, exchange, from, to].every((value) => value === undefined))
    throw usageError('say which: eod rejects accept 17, or --operation, --exchange, --from and --to');
  const filter = { ...filterOfFlags(flags), ...(id === undefined ? {} : { ids: [id] }) };
  const { drizzle } = (await openContext(cli)).db;
  const accepted = await acceptRejects(drizzle, filter, requesterName());
  if (id !== undefined && accepted === 0)
    throw usageError(
      `reject ${id} cannot be accepted: it is not open, or nothing of its response was stored ("eod issues" has the command)`,
    );
  if (flags.json === true) return printJson(cli, { accepted });
  print(
    cli,
    accepted === 0
      ? NONE_ACCEPTED
      : `${plural(accepted, 'reject')} accepted: not stored, and no longer listed`,
  );
}

export const filterOfFlags = ({ operation, exchange, ...days }: FilterFlags): RejectFilter => ({
  operations: operation === undefined ? undefined : parseDataSets([operation]),
  exchanges: exchange,
  ...parseOpenRange(days),
});

function whyText({ problems }: Pick<OpenReject, 'problems'>): string {
  return problems.map(({ path, message }) => (path === '' ? message : `${path} ${message}`)).join('; ');
}

/** Whether a reject or a finding is open. */
export function stateText(
  {
    resolvedAt,
    acceptedAt,
    acceptedBy,
  }: {
    readonly resolvedAt: string | null;
    readonly acceptedAt: string | null;
    readonly acceptedBy: string | null;
  },
  timeZone: string,
): string {
  if (resolvedAt !== null) return `resolved at ${momentText(resolvedAt, timeZone)}`;
  return acceptedAt === null ? 'open' : `accepted by ${acceptedBy} at ${momentText(acceptedAt, timeZone)}`;
}

function detailText(reject: RejectDetail, timeZone: string): string {
  const { id, position, runId, windowId, file } = reject;
  const source = file === null ? 'response' : 'file';
  const [first, last] = [reject.firstSeenAt, reject.lastSeenAt].map((iso) => momentText(iso, timeZone));
  return [
    `reject ${id}: ${pairTitle(reject)} ${rangeText(reject)}`,
    `record ${position} of ${file ?? 'the response'}`,
    `first seen at ${first}, last at ${last} (${timeZone})`,
    `by run ${runId}, window ${windowId}; ${stateText(reject, timeZone)}`,
    reject.responseId === null ? `its ${source} is not kept` : `its ${source} is kept (${reject.responseId})`,
    '',
    ...reject.problems.map(({ path, message }) => `  ${path === '' ? 'record' : path}: ${message}`),
    '',
  ].join('\n');
}
