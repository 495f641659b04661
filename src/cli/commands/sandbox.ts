import { type Command, Option } from 'commander';
import type { SandboxFlag } from '../../sandbox/flags.ts';
import { type Cli, type Commands, loadSettings, logStderr, print } from '../cli.ts';
import { examples } from '../options.ts';

/** A fixed port, so that EOD_BASE_URL can stay the same. */
const PORT = '8090';

type Flags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export const commands: Commands = {
  async sandbox(command, cli) {
    const { sandboxFlags } = await import('../../sandbox/flags.ts');
    for (const flag of sandboxFlags) command.addOption(optionOf(flag));
    command
      .addHelpText(
        'after',
        examples(
          `eod sandbox --port ${PORT}`,
          'eod sandbox --data bhavcopies/ --casing camel --delay 50',
          'eod sandbox --contrary --shapes sample',
          "eod sandbox --fault status=503,every=7 --fault 'diagnostic=Calls per hour are limited.,first=1'",
        ),
      )
      .action((flags: Flags) => serveSandbox(cli, givenFlags(command, flags)));
  },
};

function optionOf({ flag, description, default: fallback, repeatable }: SandboxFlag): Option {
  const option = new Option(flag, description);
  if (repeatable === true) option.argParser((value, before: string[] = []) => [...before, value]);
  if (option.long === '--port') option.default(PORT);
  else if (fallback !== undefined) option.default(fallback);
  return option;
}

/** The flags that somebody has set; the others must not take back what `--contrary` sets. */
function givenFlags(command: Command, flags: Flags): Flags {
  const isGiven = (name: string) => command.getOptionValueSource(name) !== 'default' || name === 'port';
  return Object.fromEntries(Object.entries(flags).filter(([name]) => isGiven(name)));
}

async function serveSandbox(cli: Cli, flags: Flags): Promise<void> {
  const { openCalendar } = await import('../open-context.ts');
  const { EXAMPLE_KEY, sandboxOptionsFromFlags, startSandbox } = await import('../../sandbox/index.ts');
  const options = sandboxOptionsFromFlags(flags);
  const config = await loadSettings(cli);
  const calendar = openCalendar(cli, config);
  const server = await cli.life.open(
    () => startSandbox({ calendar, operationsDir: config.EOD_OPERATIONS_DIR, ...options }),
    (opened) => opened.close(),
  );
  for (const { problem } of server.broken) logStderr(cli, `eod: ${problem}`);
  print(cli, `sandbox listening on ${server.url}`);
  print(cli, `export EOD_BASE_URL=${server.url}`);
  print(cli, `export EOD_ACCESS_KEY=${options.accessKey ?? EXAMPLE_KEY}`);
  await cli.life.stopped;
}
