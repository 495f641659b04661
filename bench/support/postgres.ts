import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migrateDatabase } from '../../src/migrate.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { startEmbeddedPostgres } from '../../src/postgres/embedded/index.ts';
import { type ProcessorTimes, processorTimeBetween, processorTimes } from './processor.ts';

export interface BenchServer {
  readonly url: string;
  /** A folder for scratch files; goes with the server. */
  readonly folder: string;
  stop(): Promise<void>;
}

/** The private Postgres with its settings as shipped (it waits for the disk), in a folder of its own. */
export async function startBenchServer(): Promise<BenchServer> {
  const folder = mkdtempSync(join(tmpdir(), 'eod-bench-'));
  // Started by root, the server runs as somebody else, who must be able to get in.
  chmodSync(folder, 0o755);
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres') });
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const abandon = () => {
    server.abandon();
    remove();
  };
  process.once('exit', abandon);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  return {
    // The tools that are compared add parameters of their own to it.
    url: server.url.replace(/\?.*$/, ''),
    folder,
    async stop() {
      process.off('exit', abandon);
      await server.stop();
      remove();
    },
  };
}

/** Another database of the same server, made anew: empty, or a copy of one that nobody is connected to. */
export async function freshDatabase(adminUrl: string, name: string, template = 'template1'): Promise<string> {
  await withClient(adminUrl, async (client) => {
    await client.query(`drop database if exists ${name} with (force)`);
    await client.query(`create database ${name} template ${template} strategy file_copy`);
  });
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}

const MIGRATED = 'bench_migrated';

let migrated: Promise<unknown> | undefined;

/** A database with the tables of the pipeline, which are made once for the server. */
export async function migratedDatabase(adminUrl: string, name: string): Promise<string> {
  migrated ??= makeMigrated(adminUrl);
  await migrated;
  return freshDatabase(adminUrl, name, MIGRATED);
}

async function makeMigrated(adminUrl: string): Promise<void> {
  const database = openDatabase({ url: await freshDatabase(adminUrl, MIGRATED), connections: 2 });
  await migrateDatabase(database);
  await database.close();
}

export async function dropDatabase(adminUrl: string, name: string): Promise<void> {
  await withClient(adminUrl, (client) => client.query(`drop database if exists ${name} with (force)`));
}

export async function withClient<Result>(
  url: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Runs `work` after a checkpoint and says how long it took, how much WAL the server wrote and who used the processors meanwhile. */
export async function measured<Result>(
  url: string,
  work: () => Promise<Result>,
): Promise<{
  readonly result: Result;
  readonly seconds: number;
  readonly walBytes: number;
  readonly processor: ProcessorTimes | null;
}> {
  return withClient(url, async (client) => {
    await client.query('checkpoint');
    const before = await client.query<{ lsn: string }>('select pg_current_wal_insert_lsn() as lsn');
    const times = await processorTimes(client);
    const start = performance.now();
    const result = await work();
    const seconds = (performance.now() - start) / 1000;
    const processor = processorTimeBetween(times, await processorTimes(client));
    const wal = await client.query<{ bytes: string }>(
      'select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1) as bytes',
      [before.rows[0]?.lsn],
    );
    return { result, seconds, walBytes: Number(wal.rows[0]?.bytes), processor };
  });
}

/** A query's plan as it was carried out, below a name. */
export async function explainAnalyze(
  client: pg.Client,
  name: string,
  sql: string,
  values: readonly unknown[],
): Promise<string> {
  const plan = await client.query<{ 'QUERY PLAN': string }>(`explain (analyze, buffers) ${sql}`, [...values]);
  return [name, ...plan.rows.map((row) => row['QUERY PLAN'])].join('\n');
}
