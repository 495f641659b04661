import { exampleDays, systemClock } from '../../core/clock.ts';
import type { verifyRows } from '../../jobs/replay/verify-rows.ts';
import { tables } from '../../operations/registry.ts';
import { EXIT, logNote, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';
import { exchangeOption, onlyDays, several } from '../options.ts';
import { firstLines, plural } from '../output.ts';
import { parseDataSet, parseScope } from '../parse-request.ts';

/** How often the progress is printed. */
const PROGRESS_EVERY_MS = 10_000;

const { from, to } = exampleDays();

export default defineCommand({
  path: 'verify',
  group: 'Repair',
  summary:
    'Check that the rows are what the kept responses say: read these again in their order, and list the rows that differ. Writes nothing.',
  args: { operations: several('operations, or data sets of imported files, to verify (default: all)') },
  options: { ...onlyDays('responses about days'), exchange: exchangeOption },
  examples: ['eod verify', `eod verify GetBhavCopyCM --from ${from} --to ${to}`],
  async run(cli, values) {
    const { verifyRows } = await import('../../jobs/replay/verify-rows.ts');
    const { openContext } = await import('../open-context.ts');
    const config = await loadSettings(cli);
    const filter = parseScope(values, parseDataSet, { config, clock: systemClock });
    const context = await openContext(cli, { config, wait: 'short' });
    let printed = performance.now();
    const verified = await verifyRows(context, filter, cli.life.signal, ({ parts, of: total }) => {
      if (performance.now() - printed < PROGRESS_EVERY_MS) return;
      printed = performance.now();
      logNote(cli, `${parts} of ${plural(total, 'part')} verified`);
    });
    if (values.json) printJson(cli, verified);
    else print(cli, verificationText(verified));
    cli.exitCode = cli.life.cutShort() ?? (verified.isEqual === true ? EXIT.done : EXIT.failed);
  },
});

const PROBLEMS = {
  differs: 'has other values than the kept responses',
  missing: 'is missing',
  unexpected: 'is in no kept response, or was withdrawn by one',
};

type Verification = Awaited<ReturnType<typeof verifyRows>>;

function verificationText(verified: Verification): string {
  const { parts, of: total, continueFrom, differing, differences } = verified;
  return [
    ...firstLines(differences, ({ table, key, problem, loadId }) => {
      const columns = tables.find(({ name }) => name === table)?.key ?? [];
      const values = columns.map((column) => key[column] ?? '').join(' ');
      return `market.${table}: ${values} ${PROBLEMS[problem]} (load ${loadId})`;
    }),
    ...(differing > 0
      ? [
          'eod replay writes what the kept responses say; after a change of the code that reads them, these are the rows that it would change',
        ]
      : []),
    `${parts} of ${plural(total, 'part')} verified: ${verdictText(verified)}`,
    ...(continueFrom === null ? [] : [`interrupted: eod verify --from ${continueFrom} continues`]),
  ].join('\n');
}

function verdictText({ isEqual, differing }: Verification): string {
  if (isEqual === null) return 'nothing differs so far';
  if (isEqual) return 'all rows are what the kept responses say';
  return `${plural(differing, 'row')} ${differing === 1 ? 'differs' : 'differ'}`;
}
