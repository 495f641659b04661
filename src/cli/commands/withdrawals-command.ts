import { usageError } from '../../core/errors.ts';
import { readHeldBack, withdrawalsHeldBack } from '../../load/state/withdrawals.ts';
import { type Cli, type JsonFlag, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { type Column, count, momentText, plural, table } from '../output.ts';
import { dataSetColumns } from '../run-output.ts';

type HeldBack = Awaited<ReturnType<typeof withdrawalsHeldBack>>[number];

interface Flags extends JsonFlag {
  readonly limit: number;
}

/** How many rows of each are shown as examples. */
const SAMPLES = 3;

const COLUMNS: readonly Column<HeldBack>[] = [
  { head: 'withdrawal', cell: (one) => one.id },
  ...dataSetColumns<HeldBack>(),
  { head: 'day', cell: (one) => one.day ?? '' },
  { head: 'not listed', cell: (one) => one.gone },
  { head: 'would be left', cell: (one) => one.left },
  { head: 'most', cell: (one) => one.most },
  { head: 'for example', cell: (one) => one.rows.map(sampleText).join('; ') },
];

/** The key of a row without what other columns of the table show. */
function sampleText(row: HeldBack['rows'][number]): string {
  return Object.entries(row)
    .filter(([column, value]) => column !== 'exchange' && !column.endsWith('_date') && value)
    .map(([, value]) => value)
    .join(' ');
}

export const notFound = (id: number) =>
  usageError(`no withdrawal ${id} is waiting for a decision ("eod withdrawals" lists them)`);

export async function showWithdrawal(cli: Cli, id: number, flags: JsonFlag): Promise<void> {
  const { db, config } = await openContext(cli);
  const found = await readHeldBack(db.drizzle, id);
  if (found === null) throw notFound(id);
  if (flags.json === true) return printJson(cli, found);
  const { table: name, exchange, day, gone, left, most, reason, runId, windowId } = found;
  print(
    cli,
    [
      `withdrawal ${id}: ${[`market.${name}`, exchange, day].filter(Boolean).join(' ')}`,
      `${plural(gone, 'row')} not listed any more, ${count(left)} would be left, of at most ${count(most)}`,
      ...(reason === null ? [] : [reason]),
      `by run ${runId}, window ${windowId}; noted at ${momentText(found.notedAt, config.EOD_TIMEZONE)} (${config.EOD_TIMEZONE})`,
      '',
      ...found.rows.map((row) => `  ${sampleText(row)}`),
    ].join('\n'),
  );
}

export async function listWithdrawals(cli: Cli, flags: Flags): Promise<void> {
  const { db } = await openContext(cli);
  const heldBack = await withdrawalsHeldBack(db.drizzle, flags.limit, SAMPLES);
  if (flags.json === true) return printJson(cli, heldBack);
  print(cli, heldBack.length === 0 ? 'no withdrawal is waiting for a decision' : table(COLUMNS, heldBack));
}
