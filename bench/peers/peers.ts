// What people use to load rows by a key into Postgres, each set up as its own documentation recommends.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Kind } from '../../src/declaration/fields.ts';
import type { Command } from './command.ts';
import { fields, KEY, type RowFiles, sqlType } from './rows.ts';

/** Where install.sh puts them. */
const INSTALLED = fileURLToPath(new URL('../../.eod/peers/', import.meta.url));
const TABLE = 'peers.bhavcopy_cm';
/** Rows enough to tell the speed of those that take minutes for a million. */
const SLOW = 200_000;

export interface Job {
  /** A database with the empty table, or the table as the first load left it. */
  readonly url: string;
  readonly files: RowFiles;
  /** A folder that stays from the first load to the second. */
  readonly folder: string;
}

export interface Peer {
  readonly name: string;
  /** It takes so long that it gets at most this many rows. */
  readonly atMost?: number;
  /** What the second load does where it is no upsert. */
  readonly reload?: string;
  /** Its version and that of what it stands on. @throws Error when it is not installed. */
  version(): string;
  command(job: Job): Command;
}

const run = (program: string, ...args: string[]) =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();

const pythonVersions = (environment: string, packages: readonly string[]) =>
  run(
    join(INSTALLED, environment, 'bin', 'python'),
    '-c',
    `from importlib.metadata import version
print(", ".join(f"{name} {version(name)}" for name in ${JSON.stringify(packages)}))`,
  );

const nodeVersions = (...packages: string[]) =>
  packages
    .map((name) => {
      const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
      return `${name} ${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`;
    })
    .join(', ');

const nodeProgram = (file: string, { url, files, folder }: Job): Command => ({
  program: process.execPath,
  args: [
    '--import',
    import.meta.resolve('tsx'),
    fileURLToPath(new URL(file, import.meta.url)),
    url,
    files.jsonLines,
  ],
  folder,
});

const unnest: Peer = {
  name: 'unnest',
  version: () => nodeVersions('pg'),
  command: (job) => nodeProgram('unnest.ts', job),
};

const drizzle: Peer = {
  name: 'drizzle',
  atMost: SLOW,
  version: () => nodeVersions('drizzle-orm', 'pg'),
  command: (job) => nodeProgram('drizzle.ts', job),
};

const dlt: Peer = {
  name: 'dlt',
  version: () => pythonVersions('dlt', ['dlt', 'pyarrow', 'adbc-driver-postgresql']),
  command: ({ url, files, folder }) => ({
    program: join(INSTALLED, 'dlt', 'bin', 'python'),
    args: [
      fileURLToPath(new URL('dlt_load.py', import.meta.url)),
      url,
      files.jsonLines,
      JSON.stringify(Object.fromEntries(fields.map((field) => [field.column, sqlType(field)]))),
      join(folder, 'state'),
    ],
    env: {
      RUNTIME__DLTHUB_TELEMETRY: 'false',
      RUNTIME__LOG_LEVEL: 'ERROR',
      // "Optimizing dlt", section "Parallelism": files of this size are normalized and loaded side by side, in as
      // many processes as there are cores; loading has 20 threads unless set otherwise.
      DATA_WRITER__FILE_MAX_ITEMS: '100000',
      NORMALIZE__WORKERS: String(availableParallelism()),
    },
    folder,
  }),
};

const targetPostgres: Peer = {
  name: 'target-postgres',
  atMost: SLOW,
  version: () => pythonVersions('target-postgres', ['meltanolabs-target-postgres', 'singer-sdk', 'psycopg']),
  command({ url, files, folder }) {
    const config = join(folder, 'config.json');
    // Meltano Hub, "target-postgres (meltanolabs variant)", "Settings": COPY is "usually faster than INSERT
    // statements"; records are compared with their JSON schema unless set not to.
    writeFileSync(
      config,
      JSON.stringify({
        sqlalchemy_url: url.replace(/^postgres:/, 'postgresql+psycopg:'),
        default_target_schema: 'peers',
        load_method: 'upsert',
        use_copy: true,
        batch_size_rows: 50_000,
        validate_records: false,
        add_record_metadata: false,
        activate_version: false,
      }),
    );
    return {
      program: join(INSTALLED, 'target-postgres', 'bin', 'target-postgres'),
      args: ['--config', config],
      input: files.singer,
      folder,
    };
  },
};

const SLING_TYPES: Partial<Record<Kind, string>> = {
  int8: 'bigint',
  numeric: 'decimal',
  date: 'date',
  datetime: 'timestampz',
};
const SLING = join(INSTALLED, 'sling', 'bin', 'sling-program');

const sling: Peer = {
  name: 'sling',
  version: () => `sling ${run(SLING, '--version').replace(/^Version: /, '')}`,
  command({ url, files, folder }) {
    const replication = join(folder, 'replication.yaml');
    // "Database to Database, Incremental", section "Full Data Upsert": mode incremental with a primary key and no
    // update key. "File to Database": the folder as one stream, its keys made columns, with types declared beforehand.
    writeFileSync(
      replication,
      JSON.stringify({
        source: 'LOCAL',
        target: 'PEERS',
        defaults: {
          mode: 'incremental',
          primary_key: KEY,
          object: TABLE,
          source_options: { format: 'jsonlines', flatten: true },
          columns: Object.fromEntries(
            fields.map(({ column, kind }) => [column, SLING_TYPES[kind] ?? 'string']),
          ),
        },
        streams: { [`file://${files.jsonLines}/`]: {} },
      }),
    );
    return {
      program: SLING,
      args: ['run', '--replication', replication],
      env: {
        PEERS: `${url}?sslmode=disable`,
        SLING_DISABLE_TELEMETRY: 'TRUE',
        SLING_HOME_DIR: join(folder, 'home'),
      },
      folder,
    };
  },
};

const pgloader: Peer = {
  name: 'pgloader',
  reload: 'truncates and loads again',
  version: () => run('pgloader', '--version').split('\n').slice(0, 1).join().replaceAll('"', ''),
  command({ url, files, folder }) {
    const script = join(folder, 'rows.load');
    const columns = fields.map(({ column }) => column).join(', ');
    // "Loading CSV data": truncate and drop indexes are what it has for a table that holds rows; "Batch behaviour
    // options": workers and concurrency. It reads no JSON.
    writeFileSync(
      script,
      `load csv
  from '${files.csv}' (${columns})
  into ${url.replace(/^postgres:/, 'postgresql:')}
  target table ${TABLE} (${columns})
  with truncate, drop indexes, fields terminated by ',', workers = 4, concurrency = 2, batch rows = 25000;
`,
    );
    const home = join(folder, 'home');
    mkdirSync(home, { recursive: true });
    return { program: 'pgloader', args: ['--on-error-stop', '--root-dir', home, script], folder };
  },
};

export const peers: readonly Peer[] = [unnest, drizzle, dlt, targetPostgres, sling, pgloader];
