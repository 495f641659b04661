import { print, printJson } from '../cli.ts';
import { defineCommand } from '../define-command.ts';
import { loadSettings } from '../load-settings.ts';

/** What was done, by the state of the tables before. */
const DONE_TEXTS = {
  missing: 'created the tables',
  behind: 'brought the tables up to date',
  current: 'the tables were up to date already',
} as const;

export default defineCommand({
  path: 'migrate',
  group: 'Set up',
  summary: 'Create the tables, or bring them up to this version. Safe to run again.',
  examples: ['eod migrate', 'eod migrate --json'],
  async run(cli, { json }) {
    const { prepareQueueTables } = await import('../../jobs/queue/queue.ts');
    const { explainMissingRight, migrateDatabase, schemaState } = await import('../../migrate.ts');
    const { openLog, openStore } = await import('../open-store.ts');
    const config = await loadSettings(cli);
    const db = await openStore(cli, config, openLog(cli, config), 'short');
    let before: keyof typeof DONE_TEXTS;
    try {
      before = await schemaState(db);
      await migrateDatabase(db, config);
      if (config.REDIS_URL === undefined) {
        await prepareQueueTables({ db, config });
      }
    } catch (error) {
      throw await explainMissingRight(db, error, 'migrate');
    }
    if (json) return printJson(cli, { before, hasMigrated: before !== 'current' });
    print(cli, DONE_TEXTS[before]);
  },
});
