import { Argument, type Command } from 'commander';
import { packageVersion } from '../../core/version.ts';
import type { Cli, Commands } from '../cli.ts';
import { SHELLS, type Shell } from '../completion/scripts.ts';
import { examples } from '../options.ts';

export const commands: Commands = {
  completion(command, cli, load) {
    command
      .addArgument(new Argument('<shell>', 'the shell to complete commands in').choices(SHELLS))
      .addHelpText(
        'after',
        examples(
          'eod completion bash > ~/.local/share/bash-completion/completions/eod',
          'eod completion zsh > $fpath[1]/_eod',
          'eod completion fish > ~/.config/fish/completions/eod.fish',
        ),
      )
      .action((shell: Shell) => printScript(cli, shell, { program: command.parent ?? command, load }));
  },
};

interface Program {
  readonly program: Command;
  readonly load: (command: Command) => Promise<void>;
}

async function printScript(cli: Cli, shell: Shell, { program, load }: Program): Promise<void> {
  const { describeProgram } = await import('../completion/model.ts');
  const { completionScript } = await import('../completion/scripts.ts');
  cli.stdout.write(completionScript(shell, await describeProgram(program, load), packageVersion()));
}
