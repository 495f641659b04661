import { type Cli, type Commands, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { examples, jsonOption } from '../options.ts';

const BEFORE = {
  missing: 'created the tables',
  behind: 'brought the tables up to date',
  current: 'the tables were up to date already',
} as const;

export const commands: Commands = {
  migrate(command, cli) {
    command
      .addOption(jsonOption())
      .addHelpText('after', examples('eod migrate'))
      .action((flags: JsonFlag) => migrate(cli, flags));
  },
};

async function migrate(cli: Cli, flags: JsonFlag): Promise<void> {
  const config = await loadSettings(cli);
  const { createLog } = await import('../../core/log.ts');
  const { explainMissingRight, migrateDatabase, schemaState } = await import(
    '../../load/database/migrate.ts'
  );
  const { openStore } = await import('../open-context.ts');
  const db = await openStore(cli, config, createLog(config, cli.stderr), 'short');
  let before: keyof typeof BEFORE;
  try {
    before = await schemaState(db);
    await migrateDatabase(db, config);
    if (config.REDIS_URL === undefined) {
      const { prepareQueueTables } = await import('../../jobs/worker/queue.ts');
      await prepareQueueTables({ db, config });
    }
  } catch (error) {
    throw await explainMissingRight(db, error, 'migrate');
  }
  if (flags.json === true) printJson(cli, { before, migrated: before !== 'current' });
  else print(cli, BEFORE[before]);
}
