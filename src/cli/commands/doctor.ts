import { usageError } from '../../core/errors.ts';
import { versionText } from '../../core/version.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import type { Check } from '../doctor/check.ts';
import { examine } from '../doctor/index.ts';
import { examineOperations } from '../doctor/source-operations.ts';
import { type Column, plural, table } from '../output.ts';

const COLUMNS: readonly Column<Check>[] = [
  { head: 'state', cell: ({ state }) => state },
  { head: 'check', cell: ({ name }) => name },
  { head: 'found', cell: ({ found }) => found },
];

interface Flags extends JsonFlag {
  readonly offline?: boolean;
  readonly source?: boolean;
  readonly save?: string;
}

export async function doctor(cli: Cli, flags: Flags): Promise<void> {
  if (flags.source === true) return examineOperations(cli, flags);
  if (flags.save !== undefined) throw usageError('--save keeps what --source requests: give both');
  const config = await loadSettings(cli);
  const { checks, key } = await examine(cli, config, flags.offline === true);
  cli.life.signal.throwIfAborted();
  const inState = (state: Check['state']) => checks.filter((check) => check.state === state).length;
  const bad = inState('failed');
  if (bad > 0) cli.exitCode = EXIT.failed;
  if (flags.json === true) {
    const { version: node, platform, arch } = process;
    return printJson(cli, {
      isOk: bad === 0,
      checks,
      key,
      version: versionText(),
      node,
      platform: `${platform}-${arch}`,
    });
  }
  const isShort = cli.verbosity !== 'everything';
  // What is skipped follows from what is not ok, or from an option.
  const shown = isShort ? checks.filter(({ state }) => state !== 'ok' && state !== 'skipped') : checks;
  if (shown.length > 0) print(cli, `${table(COLUMNS, shown)}\n`);
  const remedies = checks.flatMap(({ name, remedy }) => (remedy === null ? [] : [`  ${name}: ${remedy}`]));
  if (remedies.length > 0) print(cli, `What to do:\n${remedies.join('\n')}\n`);
  const [good, left] = [inState('ok'), inState('skipped')];
  const skipped = left === 0 ? '' : `, ${left} ${left === 1 ? 'was' : 'were'} skipped`;
  const listed = isShort && good + left > 0 ? ' ("eod -v doctor" lists them)' : '';
  print(
    cli,
    `${good} of ${plural(checks.length, 'check')} ${good === 1 ? 'is' : 'are'} ok${skipped}${listed}. ${bad === 0 ? 'Nothing failed.' : `${plural(bad, 'check')} failed.`}`,
  );
}
