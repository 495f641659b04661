import { inject } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { bhavFolder, FOLDER_DAY } from './bhav-folder.ts';
import { bhavSource } from './bhav-source.ts';
import { runJson } from './cli.ts';
import { cloneOf, type TestDatabase } from './database.ts';
import { query, withClient } from './query.ts';
import { sharedName, templateName, withDatabase } from './template.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The days of the other operations in the filled database. */
export const OTHER_DAYS = { from: '2025-02-24', to: '2025-02-28' };

/**
 * The address of a database that all suites of a run share, which therefore only read it: Postgres refuses what writes.
 * The first suite that needs it fills it. Runs 1 to 4 load the bhav copies of `FOLDER_DAY`, their correction (GAIL and
 * ABAN are withdrawn, NEWCO is new, TCS has another price), nothing, and the day as it was first; run 5 loads the
 * `OTHER_DAYS` of three operations, and run 6 is open.
 */
export async function filledDatabase(): Promise<string> {
  await ensureFilled();
  return withDatabase(inject('databaseAdminUrl'), sharedName(originalName()));
}

/** A clone of it, for a suite that changes what is there: as quick as an empty database. */
export async function filledCopy(): Promise<TestDatabase> {
  await ensureFilled();
  return cloneOf(originalName());
}

/** Nobody is ever connected to this one: it could not be cloned then. */
const originalName = () => inject('filledDatabase');

let ensured: Promise<void> | undefined;

function ensureFilled(): Promise<void> {
  ensured ??= withClient(inject('databaseAdminUrl'), async (client) => {
    const original = originalName();
    // The suites of other processes wait.
    await client.query('select pg_advisory_lock(hashtext($1))', [original]);
    const { rows } = await client.query('select from pg_database where datname = $1', [original]);
    if (rows.length === 1) return;
    const draft = `${original}_draft`;
    const shared = sharedName(original);
    await client.query(`create database ${draft} template ${templateName()} strategy file_copy`);
    await fill(withDatabase(inject('databaseAdminUrl'), draft));
    await client.query(`create database ${shared} template ${draft} strategy file_copy`);
    await client.query(`alter database ${shared} set default_transaction_read_only = on`);
    await client.query(`alter database ${draft} rename to ${original}`);
  });
  return ensured;
}

async function fill(url: string): Promise<void> {
  const cwd = temporaryFolder();
  const first = await startSandbox(bhavSource(bhavFolder()));
  const corrected = await startSandbox(
    bhavSource(bhavFolder({ without: ['GAIL', 'ABAN'], close: { TCS: '3333.3' }, added: ['NEWCO'] })),
  );
  const load = async (source: Sandbox, { from, to }: typeof OTHER_DAYS, ...args: string[]) => {
    const env = { DATABASE_URL: url, EOD_BASE_URL: source.url, EOD_ACCESS_KEY: 'kiwi', EOD_CONCURRENCY: '1' };
    const { code, json } = await runJson<RunReport>(['backfill', ...args, '--from', from, '--to', to], {
      cwd,
      env,
    });
    if (code !== 0) throw new Error(`the filled database could not be loaded: ${JSON.stringify(json)}`);
  };
  const day = { from: FOLDER_DAY, to: FOLDER_DAY };
  await load(first, day, 'GetBhavCopyCM');
  await load(corrected, day, 'GetBhavCopyCM', '--force');
  await load(corrected, day, 'GetBhavCopyCM');
  await load(first, day, 'GetBhavCopyCM', '--force');
  await load(
    first,
    OTHER_DAYS,
    'GetCircuitBreakers',
    'GetCorporateActionsCategories',
    'GetTop5GainersLosers',
  );
  await Promise.all([first.close(), corrected.close()]);
  await query(
    url,
    `insert into etl.runs (kind, requested_by, request, from_date, to_date)
     values ('backfill', 'test', '{}', '${FOLDER_DAY}', '${FOLDER_DAY}')`,
  );
}
