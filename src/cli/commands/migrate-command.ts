import { Option } from 'commander';
import type { ReadersAfter } from '../../load/state/readers.ts';
import { type Cli, type Commands, type JsonFlag, loadSettings, logStderr, print, printJson } from '../cli.ts';
import { examples, jsonOption, repeatableOption } from '../options.ts';

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

export const commands: Commands = {
  migrate(command, cli) {
    command
      .addOption(
        repeatableOption(
          '--reader <role>',
          'let this Postgres role read all tables, including future ones; may be given several times',
        ),
      )
      .addOption(noReaderOption())
      .addOption(jsonOption())
      .addHelpText(
        'after',
        examples('eod migrate', 'eod migrate --reader analyst', 'eod migrate --no-reader analyst'),
      )
      .action((flags: MigrateFlags) => migrate(cli, flags));
  },
};

/** `--no-reader` is a flag of its own: Commander would take it for the negation of `--reader`. */
function noReaderOption(): Option {
  const option = new Option(
    '--no-reader [role]',
    'revoke the right of this role, or of all roles, to read the tables',
  );
  option.negate = false;
  return option;
}

async function migrate(cli: Cli, flags: MigrateFlags): Promise<void> {
  const config = await loadSettings(cli);
  const { explainMissingRight, migrateDatabase, schemaState } = await import(
    '../../load/database/migrate.ts'
  );
  const { openLog, openStore } = await import('../open-context.ts');
  const db = await openStore(cli, config, openLog(cli, config), 'short');
  const { changeReaders } = await import('../../load/state/readers.ts');
  let before: keyof typeof BEFORE;
  let after: ReadersAfter | undefined;
  try {
    before = await schemaState(db);
    await migrateDatabase(db, config);
    if (config.REDIS_URL === undefined) {
      const { prepareQueueTables } = await import('../../jobs/worker/queue.ts');
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
