import { usageError } from '../../core/errors.ts';
import type { listWithheldWithdrawals } from '../../state/withdrawals.ts';
import { type Cli, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { limit, numberInList } from '../options.ts';
import { type Column, count, momentText, plural, table } from '../output.ts';
import { dataSetColumns } from '../shared-texts.ts';

type Withheld = Awaited<ReturnType<typeof listWithheldWithdrawals>>[number];

/** How many rows of each are shown as examples. */
const SAMPLES = 3;

const COLUMNS: readonly Column<Withheld>[] = [
  { head: 'withdrawal', cell: (withdrawal) => withdrawal.id },
  ...dataSetColumns<Withheld>(),
  { head: 'day', cell: (withdrawal) => withdrawal.day ?? '' },
  { head: 'not listed', cell: (withdrawal) => withdrawal.unlistedRows },
  { head: 'would be left', cell: (withdrawal) => withdrawal.remainingRows },
  { head: 'most', cell: (withdrawal) => withdrawal.maxRows },
  { head: 'for example', cell: (withdrawal) => withdrawal.rows.map(sampleText).join('; ') },
];

/** The key of a row without what other columns of the table show. */
function sampleText(row: Withheld['rows'][number]): string {
  return Object.entries(row)
    .filter(([column, value]) => column !== 'exchange' && !column.endsWith('_date') && value)
    .map(([, value]) => value)
    .join(' ');
}

export const noSuchWithdrawal = (id: number) =>
  usageError(`no withdrawal ${id} is withheld ("eod withdrawals" lists them)`);

export default defineCommand({
  path: 'withdrawals',
  group: 'Repair',
  summary: 'List withheld withdrawals: too many rows that the source no longer lists; accept them.',
  args: { id: numberInList('withdrawal', 'number of a withdrawal, to show all its rows') },
  options: { limit: limit(50) },
  examples: ['eod withdrawals', 'eod withdrawals 4', 'eod withdrawals accept 4'],
  async run(cli, { id, limit, json }) {
    if (id !== undefined) return showWithdrawal(cli, id, json);
    const { listWithheldWithdrawals } = await import('../../state/withdrawals.ts');
    const { openContext } = await import('../open-context.ts');
    const { db } = await openContext(cli);
    const withheld = await listWithheldWithdrawals(db.drizzle, limit, SAMPLES);
    if (json) return printJson(cli, withheld);
    print(cli, withheld.length === 0 ? 'no withdrawal is withheld' : table(COLUMNS, withheld));
  },
});

async function showWithdrawal(cli: Cli, id: number, json: boolean): Promise<void> {
  const { readWithheld } = await import('../../state/withdrawals.ts');
  const { openContext } = await import('../open-context.ts');
  const { db, config } = await openContext(cli);
  const withdrawal = await readWithheld(db.drizzle, id);
  if (withdrawal === null) throw noSuchWithdrawal(id);
  if (json) return printJson(cli, withdrawal);
  const { table: name, exchange, day, reason, runId, windowId, notedAt } = withdrawal;
  const { unlistedRows, remainingRows, maxRows } = withdrawal;
  print(
    cli,
    [
      `withdrawal ${id}: ${[`market.${name}`, exchange, day].filter(Boolean).join(' ')}`,
      `${plural(unlistedRows, 'row')} not listed any more, ${count(remainingRows)} would be left, of at most ${count(maxRows)}`,
      ...(reason === null ? [] : [reason]),
      `by run ${runId}, window ${windowId}; noted at ${momentText(notedAt, config.EOD_TIMEZONE)} (${config.EOD_TIMEZONE})`,
      '',
      ...withdrawal.rows.map((row) => `  ${sampleText(row)}`),
    ].join('\n'),
  );
}
