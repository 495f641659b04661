import { prepareQueueTables } from '../../jobs/queue/queue.ts';
import { explainMissingRight, migrateDatabase, schemaState } from '../../migrate.ts';
import { type Cli, type JsonFlag, loadSettings, print, printJson } from '../cli.ts';
import { openLog, openStore } from '../open-context.ts';

const BEFORE = {
  missing: 'created the tables',
  behind: 'brought the tables up to date',
  current: 'the tables were up to date already',
} as const;

export async function migrate(cli: Cli, { json }: JsonFlag): Promise<void> {
  const config = await loadSettings(cli);
  const db = await openStore(cli, config, openLog(cli, config), 'short');
  let before: keyof typeof BEFORE;
  try {
    before = await schemaState(db);
    await migrateDatabase(db, config);
    if (config.REDIS_URL === undefined) {
      await prepareQueueTables({ db, config });
    }
  } catch (error) {
    throw await explainMissingRight(db, error, 'migrate');
  }
  if (json === true) return printJson(cli, { before, hasMigrated: before !== 'current' });
  print(cli, BEFORE[before]);
}
