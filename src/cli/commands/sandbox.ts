import { quoteForShell } from '../../core/wording.ts';
import { EXAMPLE_KEY, optionName, sandboxFlags, sandboxOptionsFromFlags } from '../../sandbox/behaviour.ts';
import { loadSettings, print } from '../cli.ts';
import { defineCommand, type OptionType } from '../define-command.ts';
import { repeatable, text } from '../options.ts';

/** A fixed port, so that EOD_BASE_URL can stay the same. */
const SANDBOX_PORT = '8090';

type SandboxOption = OptionType<string | readonly string[] | undefined>;

/** Its flags are declared with what they do, and read there. */
const options: Readonly<Record<string, SandboxOption>> = Object.fromEntries(
  sandboxFlags.map(({ flag, description, fallback, repeatable: isRepeatable }) => {
    const [key, placeholder = ''] = [optionName(flag), flag.split(' ')[1]];
    const shown = key === 'port' ? SANDBOX_PORT : fallback;
    const isShown = typeof shown === 'string' || typeof shown === 'number';
    const option =
      isRepeatable === true ? repeatable(placeholder, description) : text(placeholder, description);
    return [key, isShown ? { ...option, missing: `${shown}` } : option];
  }),
);

export default defineCommand({
  path: 'sandbox',
  group: 'Set up',
  summary: 'Start a simulated data service, to try things without a key. Runs until Ctrl-C.',
  options,
  json: false,
  examples: [
    'eod sandbox --port 8090',
    'eod sandbox --casing camel --calls-per-hour 900 --delay 50',
    "eod sandbox --fault status=503,every=7 --fault 'diagnostic=Calls per hour are limited.,first=1'",
  ],
  async run(cli, values) {
    const { startSandbox } = await import('../../sandbox/index.ts');
    const { openCalendar } = await import('../open-context.ts');
    const settings = sandboxOptionsFromFlags(values);
    const config = await loadSettings(cli);
    const calendar = openCalendar(cli, config);
    const server = await cli.life.open(() => startSandbox({ calendar, splits: true, ...settings }));
    print(cli, `sandbox listening on ${server.url}`);
    print(cli, `export EOD_BASE_URL=${server.url}`);
    print(cli, `export EOD_ACCESS_KEY=${quoteForShell(settings.accessKey ?? EXAMPLE_KEY)}`);
    await cli.life.stopped;
  },
});
