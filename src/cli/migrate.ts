import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { createLog } from '../core/log.ts';
import { migrateDatabase, schemaState } from '../load/database/migrate.ts';
import { patiently } from '../load/database/retry.ts';
import { arrivalOf, openStore, patienceOf } from './app.ts';
import { type Cli, examples } from './command.ts';
import { print } from './output.ts';

const BEFORE = {
  missing: 'created the tables',
  behind: 'brought the tables up to date',
  current: 'the tables were up to date already',
} as const;

export function migrateCommand(program: Command, cli: Cli): Command {
  return program
    .command('migrate')
    .description('Create the tables, or bring them up to this version. Safe to run again.')
    .addHelpText('after', examples('eod migrate'))
    .action(async () => {
      const config = loadConfig();
      const patience = patienceOf(cli.life, config);
      const db = await openStore(cli.life, config, createLog(config), arrivalOf(cli.life, config));
      const before = await patiently(patience, () => schemaState(db));
      await patiently(patience, () => migrateDatabase(db, config));
      print(BEFORE[before]);
    });
}
