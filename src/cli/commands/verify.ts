import { systemClock } from '../../core/clock.ts';
import { verifyRows } from '../../jobs/replay/verify-rows.ts';
import { tables } from '../../operations/registry.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, logNote, print, printJson } from '../cli.ts';
import { openContext } from '../open-context.ts';
import { parseOpenRange, type RangeFlags } from '../options.ts';
import { firstLines, plural } from '../output.ts';
import { parseDataSets } from '../parse-request.ts';

interface Flags extends RangeFlags, JsonFlag {
  readonly exchange?: readonly string[];
}

/** How often the progress is printed. */
const PROGRESS_EVERY_MS = 10_000;

export async function verify(cli: Cli, names: readonly string[], flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const filter = {
    operations: names.length === 0 ? undefined : parseDataSets(names),
    exchanges: flags.exchange,
    ...parseOpenRange(flags, { config, clock: systemClock }),
  };
  const context = await openContext(cli, { config, wait: 'short' });
  let printed = performance.now();
  const verified = await verifyRows(context, filter, cli.life.signal, ({ parts, of }) => {
    if (performance.now() - printed < PROGRESS_EVERY_MS) return;
    printed = performance.now();
    logNote(cli, `${parts} of ${plural(of, 'part')} verified`);
  });
  if (flags.json === true) printJson(cli, verified);
  else print(cli, verificationText(verified));
  cli.exitCode = cli.life.cutShort() ?? (verified.isEqual === true ? EXIT.done : EXIT.failed);
}

const PROBLEMS = {
  differs: 'has other values than the kept responses',
  missing: 'is missing',
  unexpected: 'is in no kept response, or was withdrawn by one',
};

export function verificationText(verified: Awaited<ReturnType<typeof verifyRows>>): string {
  const { isEqual, parts, of, continueFrom, differing, differences } = verified;
  const verdict =
    isEqual === null
      ? 'nothing differs so far'
      : isEqual
        ? 'all rows are what the kept responses say'
        : `${plural(differing, 'row')} ${differing === 1 ? 'differs' : 'differ'}`;
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
    `${parts} of ${plural(of, 'part')} verified: ${verdict}`,
    ...(continueFrom === null ? [] : [`interrupted: eod verify --from ${continueFrom} continues`]),
  ].join('\n');
}
