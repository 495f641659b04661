import type { Command } from 'commander';
import { EXAMPLE_KEY, sandboxOptionsFromFlags, startSandbox } from '../../sandbox/index.ts';
import { type Cli, loadSettings, print } from '../cli.ts';
import { openCalendar } from '../open-context.ts';

type Flags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** The flags that somebody has set; the others must not take back what `--contrary` sets. */
function givenFlags(command: Command, flags: Flags): Flags {
  const isGiven = (name: string) => command.getOptionValueSource(name) !== 'default' || name === 'port';
  return Object.fromEntries(Object.entries(flags).filter(([name]) => isGiven(name)));
}

export async function serveSandbox(cli: Cli, flags: Flags, command: Command): Promise<void> {
  const options = sandboxOptionsFromFlags(givenFlags(command, flags));
  const config = await loadSettings(cli);
  const calendar = openCalendar(cli, config);
  const server = await cli.life.open(() => startSandbox({ calendar, splits: true, ...options }));
  print(cli, `sandbox listening on ${server.url}`);
  print(cli, `export EOD_BASE_URL=${server.url}`);
  print(cli, `export EOD_ACCESS_KEY=${options.accessKey ?? EXAMPLE_KEY}`);
  await cli.life.stopped;
}
