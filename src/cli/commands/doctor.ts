import { usageError } from '../../core/errors.ts';
import { versionText } from '../../core/version.ts';
import { type Cli, EXIT, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { alertAddress } from '../doctor/alert-check.ts';
import type { Check } from '../doctor/check.ts';
import { examine } from '../doctor/index.ts';
import { examineOperations } from '../doctor/source-operations.ts';
import { type Column, plural, table } from '../output.ts';

const COLUMNS: readonly Column<Check>[] = [
  { head: 'state', cell: ({ state }) => state },
  { head: 'check', cell: ({ name }) => name },
  { head: 'found', cell: (check) => check.found },
];

interface Flags extends JsonFlag {
  readonly offline?: boolean;
  readonly source?: boolean;
  readonly save?: string;
  readonly alert?: boolean;
}

export async function doctor(cli: Cli, flags: Flags): Promise<void> {
  if (flags.source === true) return examineOperations(cli, flags);
  if (flags.save !== undefined) throw usageError('--save keeps what --source requests: give both');
  const config = await loadSettings(cli);
  const checks = await examine(cli, config, {
    isOffline: flags.offline === true,
    alertAddress: flags.alert === true ? alertAddress(config) : null,
  });
  cli.life.signal.throwIfAborted();
  const inState = (state: Check['state']) => checks.filter((check) => check.state === state).length;
  const bad = inState('failed');
  if (bad > 0) cli.exitCode = EXIT.failed;
  if (flags.json === true) {
    const platform = `${process.platform}-${process.arch}`;
    const facts = { version: versionText(), node: process.version, platform };
    return printJson(cli, { isOk: bad === 0, checks, ...facts });
  }
  // What is skipped follows from what is not ok, or from an option.
  const isWhole = cli.verbosity === 'everything';
  const shown = isWhole ? checks : checks.filter(({ state }) => state !== 'ok' && state !== 'skipped');
  if (shown.length > 0) print(cli, `${table(COLUMNS, shown)}\n`);
  const remedies = checks.flatMap(({ name, remedy }) => (remedy === null ? [] : [`  ${name}: ${remedy}`]));
  if (remedies.length > 0) print(cli, `What to do:\n${remedies.join('\n')}\n`);
  const listed = isWhole ? '' : ' ("eod -v doctor" lists them)';
  const verdict = bad === 0 ? 'Nothing failed.' : `${plural(bad, 'check')} failed.`;
  print(cli, `${inState('ok')} of ${plural(checks.length, 'check')} are ok${listed}. ${verdict}`);
}
