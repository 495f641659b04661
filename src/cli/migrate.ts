import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { createLog } from '../core/log.ts';
import { migrateDatabase, schemaState } from '../load/database/migrate.ts';
import { type Cli, examples } from './command.ts';
import { openStore } from './context.ts';
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
      const db = await openStore(cli.life, config, createLog(config), 'short');
      const before = await schemaState(db);
      await db.withRetry((once) => migrateDatabase(once, config));
      print(BEFORE[before]);
    });
}
