import { usageError } from '../../core/errors.ts';
import { problemsText } from '../../core/wording.ts';
import { pairTitle } from '../../operations/registry.ts';
import type { OpenReject, RejectFilter, readReject } from '../../state/rejects.ts';
import { type Cli, print, printJson, printRecord } from '../cli.ts';
import { defineCommand, type OptionValues } from '../define-command.ts';
import { exchangeOption, limit, numberInList, onlyDays, text } from '../options.ts';
import { type Column, momentText, plural, rangeText, table } from '../output.ts';
import { parseDataSet, parseScope } from '../parse-request.ts';
import { dataSetColumns, settlementText } from '../shared-texts.ts';

const COLUMNS: readonly Column<OpenReject>[] = [
  { head: 'reject', cell: (reject) => reject.id },
  ...dataSetColumns<OpenReject>(),
  { head: 'days', cell: (reject) => rangeText(reject) },
  { head: 'position', cell: (reject) => reject.position },
  { head: 'why', cell: ({ problems }) => problemsText(problems) },
];

/** A rejected record with everything that is known about it. */
export type RejectDetail = NonNullable<Awaited<ReturnType<typeof readReject>>>;

/** Which rejects are meant. */
export const rejectFilterOptions = {
  operation: text('<list>', 'only rejects of these operations'),
  exchange: exchangeOption,
  ...onlyDays('days'),
};

/** The rejects that options mean. @throws PipelineError `usage` */
export const readRejectFilter = ({
  operation,
  exchange,
  ...days
}: OptionValues<typeof rejectFilterOptions>): RejectFilter =>
  parseScope({ operations: operation === undefined ? [] : [operation], exchange, ...days }, parseDataSet);

export default defineCommand({
  path: 'rejects',
  group: 'Repair',
  summary:
    'List the records that were rejected and are not resolved yet; show one of them, or try them all again.',
  args: { id: numberInList('reject', 'number of a reject, to show the record as the source sent it') },
  options: { ...rejectFilterOptions, limit: limit(50) },
  json: 'a list of rejects',
  examples: ['eod rejects', 'eod rejects 17', 'eod rejects retry'],
  async run(cli, { id, limit, json, ...values }) {
    if (id !== undefined) return showReject(cli, id, json);
    const { listOpenRejectIds, openRejects } = await import('../../state/rejects.ts');
    const { openContext } = await import('../open-context.ts');
    const filter = readRejectFilter(values);
    const { drizzle } = (await openContext(cli)).db;
    const rejects = await openRejects(drizzle, filter, limit);
    if (json) return printJson(cli, rejects);
    if (rejects.length === 0) return print(cli, 'no open rejects');
    const all = (await listOpenRejectIds(drizzle, filter)).length;
    const more =
      all > rejects.length
        ? `\n\nthe newest ${rejects.length} of ${plural(all, 'reject')}; --limit shows more`
        : '';
    print(cli, `${table(COLUMNS, rejects)}${more}`);
  },
});

async function showReject(cli: Cli, id: number, json: boolean): Promise<void> {
  const { readReject } = await import('../../state/rejects.ts');
  const { openContext } = await import('../open-context.ts');
  const { db, config } = await openContext(cli);
  const reject = await readReject(db.drizzle, id);
  if (reject === null) throw usageError(`there is no reject ${id} ("eod rejects" lists the open ones)`);
  if (json) return printJson(cli, reject);
  print(cli, detailText(reject, config.EOD_TIMEZONE));
  printRecord(cli, reject.record);
}

function detailText(reject: RejectDetail, timeZone: string): string {
  const { id, position, runId, windowId, file } = reject;
  const source = file === null ? 'response' : 'file';
  const [first, last] = [reject.firstSeenAt, reject.lastSeenAt].map((iso) => momentText(iso, timeZone));
  return [
    `reject ${id}: ${pairTitle(reject)} ${rangeText(reject)}`,
    `record ${position} of ${file ?? 'the response'}`,
    `first seen at ${first}, last at ${last} (${timeZone})`,
    `by run ${runId}, window ${windowId}; ${settlementText(reject, timeZone)}`,
    reject.responseId === null ? `its ${source} is not kept` : `its ${source} is kept (${reject.responseId})`,
    '',
    ...reject.problems.map(({ path, message }) => `  ${path === '' ? 'record' : path}: ${message}`),
    '',
  ].join('\n');
}
