import type { Commands, JsonFlag } from '../cli.ts';
import { examples, jsonOption } from '../options.ts';

export const commands: Commands = {
  demo(command, cli) {
    command
      .option('--keep', 'afterwards, keep Postgres and the sandbox running until Ctrl-C')
      .addOption(jsonOption())
      .addHelpText('after', examples('eod demo', 'eod demo --keep', 'eod --demo status'))
      .action(async (flags: JsonFlag & { readonly keep?: boolean }) => {
        const { demo } = await import('../run-demo.ts');
        await demo(cli, { keep: flags.keep === true, json: flags.json === true });
      });
  },
};
