import { prepareQueueTables } from '../../jobs/queue/queue.ts';
import { explainMissingRight, migrateDatabase, schemaState } from '../../load/migrate.ts';
import { changeReaders } from '../../load/state/readers.ts';
import { type Cli, type JsonFlag, loadSettings, logStderr, print, printJson } from '../cli.ts';
import { openLog, openStore } from '../open-context.ts';

const BEFORE = {
  missing: 'created the tables',
  behind: 'brought the tables up to date',
  current: 'the tables were up to date already',
} as const;

interface MigrateFlags extends JsonFlag {
  readonly reader?: readonly string[];
  /** True for all of them. */
  readonly noReader?: string | true;
}

export async function migrate(cli: Cli, flags: MigrateFlags): Promise<void> {
  const config = await loadSettings(cli);
  const db = await openStore(cli, config, openLog(cli, config), 'short');
  let before: keyof typeof BEFORE;
  let after: Awaited<ReturnType<typeof changeReaders>> | undefined;
  try {
    before = await schemaState(db);
    await migrateDatabase(db, config);
    if (config.REDIS_URL === undefined) {
      await prepareQueueTables({ db, config });
    }
    const { reader: add = [], noReader } = flags;
    const remove = noReader === true ? 'all' : noReader === undefined ? [] : [noReader];
    if (add.length > 0 || noReader !== undefined) after = await changeReaders(db, { add, remove });
  } catch (error) {
    throw await explainMissingRight(db, error, 'migrate');
  }
  for (const { role, problem, statements } of after?.left ?? []) {
    logStderr(cli, `eod: the role ${role} ${problem}: ${statements}`);
  }
  const readers = after === undefined ? {} : { readers: after.readers };
  if (flags.json === true) return printJson(cli, { before, hasMigrated: before !== 'current', ...readers });
  print(cli, BEFORE[before]);
  if (after !== undefined) print(cli, `readers: ${after.readers.join(', ') || 'none'}`);
}
