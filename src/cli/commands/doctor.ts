import { usageError } from '../../core/errors.ts';
import { versionText } from '../../core/version.ts';
import { EXIT, print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import type { Check } from '../doctor/check.ts';
import { loadSettings } from '../load-settings.ts';
import { flag, text } from '../options.ts';
import { memberColumns, plural, table } from '../output.ts';

const COLUMNS = memberColumns<Check>('state', 'name', 'found');

export default defineCommand({
  path: 'doctor',
  group: 'Set up',
  summary:
    'Check what eod needs: Node, settings, database, queue, source, clock, quota, disk; name a remedy for each problem.',
  options: {
    offline: flag('make no call to the source; without it, one call is made and counted'),
    alert: flag('also post a test alert to EOD_ALERT_WEBHOOK'),
    source: flag(
      'instead, request each operation once about its last due day, and show what is read; each call is counted',
      'offline',
      'alert',
    ),
    save: text('<dir>', 'with --source: keep the bodies of the responses, without the key, in this folder'),
  },
  examples: ['eod doctor', 'eod doctor --json --offline', 'eod doctor --source --save responses/'],
  async run(cli, { offline, alert, source, save, json }) {
    const { examine } = await import('../doctor/index.ts');
    const { examineOperations } = await import('../doctor/source-operations.ts');
    if (source) return examineOperations(cli, { save, json });
    if (save !== undefined) throw usageError('--save keeps what --source requests: give both');
    const config = await loadSettings(cli);
    const alertAddress = alert ? config.EOD_ALERT_WEBHOOK : null;
    if (alertAddress === undefined)
      throw usageError('--alert: set EOD_ALERT_WEBHOOK to the address that alerts are posted to');
    const checks = await examine(cli, config, { isOffline: offline, alertAddress });
    cli.life.signal.throwIfAborted();
    const inState = (state: Check['state']) => checks.filter((check) => check.state === state).length;
    const failures = inState('failed');
    if (failures > 0) cli.exitCode = EXIT.failed;
    if (json) {
      const platform = `${process.platform}-${process.arch}`;
      const facts = { version: versionText(), node: process.version, platform };
      return printJson(cli, { isOk: failures === 0, checks, ...facts });
    }
    // What is skipped follows from what is not ok, or from an option.
    const isWhole = cli.verbosity === 'everything';
    const shown = isWhole ? checks : checks.filter(({ state }) => state !== 'ok' && state !== 'skipped');
    if (shown.length > 0) print(cli, `${table(COLUMNS, shown)}\n`);
    const remedies = checks.flatMap(({ name, remedy }) => (remedy === null ? [] : [`  ${name}: ${remedy}`]));
    if (remedies.length > 0) print(cli, `What to do:\n${remedies.join('\n')}\n`);
    const listed = isWhole ? '' : ' ("eod -v doctor" lists them)';
    const verdict = failures === 0 ? 'Nothing failed.' : `${plural(failures, 'check')} failed.`;
    print(cli, `${inState('ok')} of ${plural(checks.length, 'check')} are ok${listed}. ${verdict}`);
  },
});
