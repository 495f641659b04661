import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { replaceSettingsFile } from '../../core/environment.ts';
import { messageOf, usageError } from '../../core/errors.ts';
import { PACKAGE } from '../../core/package-folders.ts';
import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { flag } from '../options.ts';

/** A `.env` with every setting as a comment: its meaning and its default. */
const TEMPLATE = join(PACKAGE, '.env.example');

export default defineCommand({
  path: 'init',
  group: 'Set up',
  summary:
    'Write a .env file that has every setting as a comment. Then set the address of the source, the key and the database in it.',
  args: { file: { description: 'the file to write', default: '.env' } },
  options: { force: flag('replace the file if it exists') },
  examples: ['eod init', 'eod init --force', 'eod init /etc/eod/.env'],
  run(cli, { file: name, force, json }) {
    const file = resolve(cli.cwd, name);
    const hasReplaced = write(file, readFileSync(TEMPLATE, 'utf8'), force);
    if (json) return printJson(cli, { file, hasReplaced });
    const isRead = file === resolve(cli.cwd, '.env');
    print(
      cli,
      `${hasReplaced ? 'replaced' : 'wrote'} ${file}, which only you can read. It has every setting as a comment with its default

Uncomment and set in it:
  EOD_BASE_URL    the address of the data service
  EOD_ACCESS_KEY  your key for it
  DATABASE_URL    your Postgres; without it, eod runs a private one (eod config)
  REDIS_URL       Redis for the queue; without it, the queue is in Postgres

Environment variables take precedence over the file.${isRead ? '' : ` eod reads .env in the folder it is started in: start it in the folder of ${file}, or export its settings in the shell.`}
Then:
  eod migrate     creates the tables, if you set DATABASE_URL
  eod doctor      checks that all needed is there, and what your key may do
  eod nightly     loads the last trading day; "eod up" does so every night`,
    );
  },
});

/** Writes the file for its owner alone. @returns whether it replaced a file. */
function write(file: string, text: string, force: boolean): boolean {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
    return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw usageError(`${file} cannot be written: ${messageOf(error)}`);
    if (!force) throw usageError(`${file} exists already, and may hold your key; --force replaces it`);
  }
  try {
    replaceSettingsFile(file, text, 0o600);
    return true;
  } catch (error) {
    throw usageError(`${file} cannot be written: ${messageOf(error)}`);
  }
}
