import type { Commands } from '../cli.ts';
import { examples } from '../options.ts';

export const commands: Commands = {
  demo(command, cli) {
    command
      .option('--keep', 'keep Postgres and the sandbox up afterwards, until Ctrl-C')
      .addHelpText('after', examples('eod demo', 'eod demo --keep'))
      .action(async (flags: { readonly keep?: boolean }) => {
        const { demo } = await import('../run-demo.ts');
        await demo(cli, flags.keep === true);
      });
  },
};
