import { type Cli, type Commands, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { exampleDays, examples, jsonOption, parseMoment } from '../options.ts';
import { momentText } from '../output.ts';

interface Flags extends JsonFlag {
  readonly at?: string;
}

export const commands: Commands = {
  state(command, cli) {
    const { to } = exampleDays();
    command
      .option('--at <time>', 'the state at that time: a day, or a time with its zone')
      .addOption(jsonOption())
      .addHelpText('after', examples('eod state', `eod state --at ${to}T21:00:00+05:30 --json`))
      .action((flags: Flags) => showState(cli, flags));
  },
};

async function showState(cli: Cli, flags: Flags): Promise<void> {
  const config = await loadSettings(cli);
  const at = flags.at === undefined ? null : parseMoment('--at', flags.at, { config });
  const { openContext } = await import('../open-context.ts');
  const { versionAt } = await import('../../load/state/loads/versions.ts');
  const { db } = await openContext(cli, { config });
  const { version, committedAt } = await versionAt(db.drizzle, at);
  if (flags.json === true) return printJson(cli, { state: version, committedAt });
  if (committedAt === null) return print(cli, 'database state 0: nothing has been loaded yet');
  const when = momentText(committedAt, config.EOD_TIMEZONE);
  print(
    cli,
    `database state ${version}, since ${when} (${config.EOD_TIMEZONE})\nmarket.<table>_at(${version}) shows it`,
  );
}
