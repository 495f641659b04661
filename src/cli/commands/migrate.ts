import { type Cli, type Commands, loadSettings, print } from '../cli.ts';
import { examples } from '../options.ts';

const BEFORE = {
  missing: 'created the tables',
  behind: 'brought the tables up to date',
  current: 'the tables were up to date already',
} as const;

export const commands: Commands = {
  migrate(command, cli) {
    command.addHelpText('after', examples('eod migrate')).action(() => migrate(cli));
  },
};

async function migrate(cli: Cli): Promise<void> {
  const config = await loadSettings(cli);
  const { createLog } = await import('../../core/log.ts');
  const { migrateDatabase, schemaState } = await import('../../load/database/migrate.ts');
  const { openStore } = await import('../open-context.ts');
  const db = await openStore(cli, config, createLog(config, cli.stderr), 'short');
  const before = await schemaState(db);
  await migrateDatabase(db, config);
  print(cli, BEFORE[before]);
}
