import { type Command, Option } from 'commander';
import { loadCalendar } from '../calendar/index.ts';
import { loadConfig } from '../core/config.ts';
import { type SandboxFlag, sandboxFlags, sandboxOptionsFromFlags, startSandbox } from '../sandbox/index.ts';
import { type Cli, examples } from './command.ts';
import { print } from './output.ts';

/** Always the same, so that settings can name it. */
const PORT = '8090';

type Flags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export function sandboxCommand(program: Command, cli: Cli): Command {
  const command = program
    .command('sandbox')
    .description('Start a simulated data service, to try things without a key. Runs until Ctrl-C.');
  for (const flag of sandboxFlags) command.addOption(optionOf(flag));
  return command
    .addHelpText(
      'after',
      examples(
        `eod sandbox --port ${PORT}`,
        'eod sandbox --data bhavcopies/ --casing camel --delay 50',
        "eod sandbox --fault status=503,every=7 --fault 'diagnostic=Calls per hour are limited.,first=1'",
      ),
    )
    .action((flags: Flags) => sandbox(cli, flags));
}

function optionOf({ flag, description, default: fallback, repeatable }: SandboxFlag): Option {
  const option = new Option(flag, description);
  if (repeatable === true) option.argParser((value, before: string[] = []) => [...before, value]);
  if (option.long === '--port') option.default(PORT);
  else if (fallback !== undefined) option.default(fallback);
  return option;
}

async function sandbox(cli: Cli, flags: Flags): Promise<void> {
  const options = sandboxOptionsFromFlags(flags);
  const calendar = loadCalendar({ file: loadConfig().EOD_CALENDAR_FILE });
  const server = await cli.life.open(
    () => startSandbox({ calendar, ...options }),
    (opened) => opened.close(),
  );
  print(`sandbox listening on ${server.url}`);
  print(`export EOD_BASE_URL=${server.url}`);
  print(`export EOD_ACCESS_KEY=${options.accessKey ?? 'sandbox'}`);
  await cli.life.stopped;
}
