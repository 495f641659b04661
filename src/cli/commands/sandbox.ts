import { quoteForShell } from '../../core/wording.ts';
import { EXAMPLE_KEY, sandboxOptionsFromFlags, startSandbox } from '../../sandbox/index.ts';
import { type Cli, loadSettings, print } from '../cli.ts';
import { openCalendar } from '../open-context.ts';

type Flags = Readonly<Record<string, string | readonly string[] | undefined>>;

export async function serveSandbox(cli: Cli, flags: Flags): Promise<void> {
  const options = sandboxOptionsFromFlags(flags);
  const config = await loadSettings(cli);
  const calendar = openCalendar(cli, config);
  const server = await cli.life.open(() => startSandbox({ calendar, splits: true, ...options }));
  print(cli, `sandbox listening on ${server.url}`);
  print(cli, `export EOD_BASE_URL=${server.url}`);
  print(cli, `export EOD_ACCESS_KEY=${quoteForShell(options.accessKey ?? EXAMPLE_KEY)}`);
  await cli.life.stopped;
}
