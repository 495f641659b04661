import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PoolClient } from 'pg';
import * as z from 'zod';
import { messageOf, PipelineError, throwIfStopped, usageError } from '../core/errors.ts';
import type { Database } from '../postgres/database.ts';
import { type ReadLimits, readOnly } from '../postgres/read-only.ts';
import { trySessionLock } from '../postgres/session-lock.ts';
import { LOADS } from '../state/loads/loads.ts';
import { type Format, lackingEvents, planWriter, replaceFile } from './export-table.ts';
import { changedPartitions, type PartitionBy, rowsOfPartitions } from './partitions.ts';
import { checkNamesFiles, chosenRows, findRelation, orderSql, type Relation, shortName } from './relation.ts';

const MANIFEST = '_manifest.json';

const manifestSchema = z.object({
  /** `market.bhavcopy_cm as parquet, by month`. */
  form: z.string(),
  /** Names and types of the columns, which all files have. */
  columns: z.string(),
  /** The state of which the files have the rows; null while the first export is under way. */
  state: z.number().nullable(),
  /** Distinguishes the load of that state from that of another database with the same number. */
  load: z.string(),
  files: z.array(
    z.object({
      partition: z.string(),
      rows: z.number(),
      bytes: z.number(),
      /** Of the rows of a view; null where the loads tell what has changed. */
      fingerprint: z.string().nullable(),
    }),
  ),
});

type Manifest = z.infer<typeof manifestSchema>;

interface PartitionRequest {
  readonly tables: readonly string[];
  /** Has a folder for each of them. */
  readonly folder: string;
  readonly format: Format;
  readonly by: PartitionBy;
  /** Numerics as DOUBLE in Parquet. */
  readonly doubles: boolean;
  /** Called with the name of each temporary file before it is written. */
  readonly onPartial: (file: string) => void;
}

/**
 * Brings a folder for each table or view up to date, all from one snapshot: a file for each year or month, of which those are
 * written whose rows have changed since the manifest of the folder. Files and manifests are replaced as a whole. Files that
 * are about to be replaced are not in the manifest meanwhile, so that the next export completes one that was killed.
 *
 * @throws PipelineError `usage` if a folder has something else, before anything is written.
 */
export async function exportPartitions(db: Database, request: PartitionRequest, limits: ReadLimits) {
  const { folder } = request;
  // Before the snapshot and the manifests are read, and on a connection that ends with the process.
  const lock = await trySessionLock(db, `eod:export:${await realpath(folder)}`);
  if (lock === null)
    throw new PipelineError(`another export is writing to ${folder}; wait until it has ended`, {
      kind: 'database_locked',
    });
  const exported = readOnly(db, limits, async (client) => {
    // Timestamps in UTC, whatever the server's time zone is.
    await client.query("set local timezone to 'UTC'");
    const now = await readLoad(client, null);
    const targets: Target[] = [];
    for (const name of new Set(request.tables)) {
      const relation = await findRelation(client, name);
      targets.push({ relation, ...(await findFolder(client, relation, request)) });
    }
    const tables: Awaited<ReturnType<typeof updateFolder>>[] = [];
    for (const target of targets) {
      await mkdir(target.folder, { recursive: true });
      tables.push(await updateFolder(client, target, { ...request, ...now }, limits.signal));
    }
    return { state: now.state, tables };
  });
  return exported.finally(() => lock.release());
}

/** The load that made a state, or the current one; empty if this database has no such state. */
async function readLoad(client: PoolClient, state: number | null) {
  const { rows } = await client.query<{ state: number; load: string }>(
    `select s.state::int as state, concat_ws(' ', l.id, l.operation, l.exchange, extract(epoch from l.committed_at)) as load
       from coalesce($1::bigint, market.state()) s(state) left join ${LOADS} l on l.state = s.state`,
    [state],
  );
  return rows[0] ?? { state: 0, load: '' };
}

/** The folder of a table or view, and its manifest if it has one. */
async function findFolder(client: PoolClient, relation: Relation, request: PartitionRequest) {
  const table = `${relation.schema}.${relation.name}`;
  checkNamesFiles(shortName(relation), 'export a view of another name');
  if (relation.dayColumn === null)
    throw usageError(`${table} has no column of days to partition by: export it to one file`);
  const folder = join(request.folder, shortName(relation));
  const decimals = request.doubles ? '' : ' with decimals';
  const form = `${table} as ${request.format}${decimals}, by ${request.by}`;
  const path = join(folder, MANIFEST);
  if (!existsSync(path)) {
    if (existsSync(folder) && (!statSync(folder).isDirectory() || readdirSync(folder).length > 0))
      throw usageError(`${folder} is not a folder that an export has made: export to another one`);
    return { folder, form, before: null };
  }
  const remedy = 'export to another folder, or delete this one';
  let before: Manifest;
  try {
    before = manifestSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const isOfFile = error instanceof Error && 'syscall' in error;
    throw usageError(
      `${path} ${isOfFile ? messageOf(error) : 'is not a manifest of this version'}: ${remedy}`,
    );
  }
  if (before.form !== form) throw usageError(`${folder} has ${before.form}, not ${form}: ${remedy}`);
  if (before.state !== null && (await readLoad(client, before.state)).load !== before.load)
    throw usageError(`${folder} has state ${before.state} of another database: ${remedy}`);
  return { folder, form, before };
}

type Target = Awaited<ReturnType<typeof findFolder>> & { readonly relation: Relation };

async function updateFolder(
  client: PoolClient,
  { relation, folder, form, before }: Target,
  request: PartitionRequest & Awaited<ReturnType<typeof readLoad>>,
  signal: ReadLimits['signal'],
) {
  const { format, by, doubles, onPartial, state, load } = request;
  const nameFile = ({ partition }: { readonly partition: string }) => `${partition}.${format}`;
  const plan = (rows: string) => planWriter(client, relation, { format, doubles, rows });
  // Decimals are as wide in every file as the widest of all rows.
  const decimals = doubles ? null : await plan(chosenRows(relation, {}));
  const { columns } = decimals ?? (await plan(rowsOfPartitions(relation, [])));
  const known = before !== null && before.columns === columns ? before : null;
  const isWhole = (file: Manifest['files'][number]) =>
    statSync(join(folder, nameFile(file)), { throwIfNoEntry: false })?.size === file.bytes;
  const listed = known?.files ?? [];
  const wanted = await changedPartitions(client, relation, by, known?.state ?? null, listed);
  for (const file of listed)
    if (!isWhole(file) && !wanted.has(file.partition)) wanted.set(file.partition, file.fingerprint);
  const writeManifest = (manifest: Manifest) =>
    replaceFile(join(folder, MANIFEST), onPartial, (handle) =>
      handle.writeFile(`${JSON.stringify(manifest, null, 1)}\n`),
    );
  // Until the end it has the state of before, after which loads tell what has changed, and no view's file that is replaced.
  const unreplaced = listed.filter(
    ({ partition, fingerprint }) => fingerprint === null || !wanted.has(partition),
  );
  const { state: stateBefore = null, load: loadBefore = '' } = known ?? {};
  await writeManifest({ form, columns, state: stateBefore, load: loadBefore, files: unreplaced });
  const files = unreplaced.filter(({ partition }) => !wanted.has(partition));
  const write = decimals ?? (await plan(rowsOfPartitions(relation, [...wanted.keys()])));
  const written: { file: string; rows: number; bytes: number }[] = [];
  for (const [partition, fingerprint] of [...wanted].sort(([a], [b]) => (a < b ? -1 : 1))) {
    throwIfStopped(signal);
    const file = nameFile({ partition });
    const statement = `${rowsOfPartitions(relation, [partition])}${orderSql(relation)}`;
    const [rows, bytes] = await replaceFile(join(folder, file), onPartial, (handle) =>
      write.file(handle, statement),
    );
    if (rows === 0) continue;
    files.push({ partition, rows, bytes, fingerprint });
    written.push({ file, rows, bytes });
  }
  files.sort((a, b) => (a.partition < b.partition ? -1 : 1));
  const names = new Set([MANIFEST, ...files.map(nameFile)]);
  // Of partitions that have no rows any more, and of exports that were killed.
  const removed = readdirSync(folder).filter((name) => OURS.test(name) && !names.has(name));
  for (const name of removed) await rm(join(folder, name));
  await writeManifest({ form, columns, state, load, files });
  const notices = [...write.notices, ...(await lackingEvents(client, relation, {}))];
  const rows = files.reduce((sum, file) => sum + file.rows, 0);
  return {
    table: `${relation.schema}.${relation.name}`,
    folder,
    rows,
    files: files.length,
    written,
    removed,
    notices,
  };
}

/** The names of files of partitions, also of those that are being written. */
const OURS = /^\.?(_manifest\.json|(\d{4,}(-\d\d)?|none)\.[a-z]+)(\.\d+\.part)?$/;
