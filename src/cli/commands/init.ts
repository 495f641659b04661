import { chmodSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf, usageError } from '../../core/errors.ts';
import { type Cli, type Commands, type JsonFlag, print, printJson } from '../cli.ts';
import { examples, jsonOption } from '../options.ts';

/** Every setting, with its meaning and its default, as comments. */
const TEMPLATE = new URL('../../../.env.example', import.meta.url);

interface InitFlags extends JsonFlag {
  readonly force?: boolean;
}

export const commands: Commands = {
  init(command, cli) {
    command
      .argument('[file]', 'where to write it', '.env')
      .option('--force', 'replace the file where there is one')
      .addOption(jsonOption())
      .addHelpText('after', examples('eod init', 'eod init --force', 'eod init /etc/eod/.env'))
      .action((file: string, flags: InitFlags) => writeSettings(cli, file, flags));
  },
};

function writeSettings(cli: Cli, name: string, { force = false, json = false }: InitFlags): void {
  const file = resolve(cli.cwd, name);
  const replaced = write(file, readFileSync(TEMPLATE, 'utf8'), force);
  if (json) {
    printJson(cli, { file, replaced });
    return;
  }
  const isRead = file === resolve(cli.cwd, '.env');
  print(
    cli,
    `${replaced ? 'replaced' : 'wrote'} ${file}, which only you can read: every setting, as a comment that shows its default

Uncomment and set in it:
  EOD_BASE_URL    address of the data service
  EOD_ACCESS_KEY  your key for it
  DATABASE_URL    your Postgres; without it a private one is made in .eod/
  REDIS_URL       the queue, where workers run on several machines; else leave it

What the shell sets wins over the file.${isRead ? '' : ` eod reads the file .env of the folder it is started in: start it in that of ${file}, or let the shell set what is in it.`}
Then:
  eod doctor      is everything there?
  eod migrate     creates the tables in a DATABASE_URL of your own
  eod nightly     loads the last session; "eod up" does so every night`,
  );
}

/** Writes the file for its owner alone. @returns whether it has replaced one. */
function write(file: string, text: string, force: boolean): boolean {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
    return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw usageError(`${file} cannot be written: ${messageOf(error)}`);
    if (!force) throw usageError(`${file} is there already, and may hold your key: --force replaces it`);
  }
  // Put in place as a whole, so that nobody meets half a file.
  const draft = `${file}.new`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    chmodSync(draft, 0o600);
    renameSync(draft, file);
    return true;
  } catch (error) {
    rmSync(draft, { force: true });
    throw usageError(`${file} cannot be written: ${messageOf(error)}`);
  }
}
