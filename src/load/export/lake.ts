import { createHash } from 'node:crypto';
import { constants, createReadStream, realpathSync } from 'node:fs';
import { access, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { messageOf, PipelineError, throwIfStopped, usageError } from '../../core/errors.ts';
import { sha256 } from '../../core/sha256.ts';
import type { Database } from '../database/database.ts';
import { type ReadLimits, readOnly } from '../database/read-only.ts';
import { LOADS } from '../state/loads/loads.ts';
import { copied } from './export-table.ts';
import {
  ADJUSTED,
  ALL,
  allRelations,
  changedPartitions,
  contentOfPartitions,
  isKnownFromLoads,
  type NameFactors,
  NO_DAY,
  type PartitionBy,
  partitionsOf,
  partitionsOfNames,
  readNameFactors,
  rowsOfPartitions,
} from './lake-changes.ts';
import {
  deleteReplaced,
  isWhole,
  type LakeFile,
  type LakeTable,
  MANIFEST,
  type Manifest,
  NAMES_FOLDER,
  newName,
  readIfWhole,
  readManifest,
  writeWhole,
} from './lake-manifest.ts';
import { type DecimalNeed, MOST_DIGITS, measureColumns, parquetColumn, writeParquet } from './parquet.ts';
import { checkNamesFiles, columnList, findRelation, orderSql, type Relation, shortName } from './relation.ts';

interface LakeRequest {
  readonly folder: string;
  /** Tables and views; null: all of `market`. */
  readonly tables: readonly string[] | null;
  /** As the lake is partitioned; undefined: as it is, a new one by month. */
  readonly by: PartitionBy | undefined;
  /** Numerics as DOUBLE. */
  readonly doubles: boolean;
}

/** What an export did to one table of a lake. */
interface LakeTableResult {
  readonly table: string;
  readonly rows: number;
  readonly files: number;
  /** How many files it wrote, with how many rows, and how many are not part of the lake any more. */
  readonly written: number;
  readonly writtenRows: number;
  readonly replaced: number;
}

export interface LakeResult {
  readonly lake: string;
  readonly manifest: string;
  readonly state: number;
  /** The state of the lake before; null for a new one. */
  readonly stateBefore: number | null;
  readonly isChanged: boolean;
  readonly tables: readonly LakeTableResult[];
  readonly notices: readonly string[];
}

/** DECIMALs of a lake have one of these precisions, so that a new day with a longer number seldom changes a column's type. */
const PRECISIONS = [18, MOST_DIGITS];

/**
 * Brings a folder of Parquet files up to the current state: files of partitions that changed are written first, then
 * the manifest, which lists the files of the lake, is replaced; files that it no longer lists are deleted an hour later.
 * All of it is of one snapshot, and whatever moment it ends at, the manifest lists complete files of one state.
 *
 * @throws PipelineError `usage` if the folder has another partitioning.
 */
export function writeLake(
  db: Database,
  request: LakeRequest,
  limits: ReadLimits,
  onBytes: (bytes: number) => void,
): Promise<LakeResult> {
  return readOnly(db, limits, async (client) => {
    await client.query("set local timezone to 'UTC'; set local datestyle to 'ISO, YMD'");
    const { all, unusable } = await allRelations(client);
    const relations: Relation[] = [];
    for (const name of request.tables ?? all) {
      const relation = await findRelation(client, name);
      checkNamesFiles(
        `${relation.schema}.${relation.name}`,
        'give it another one, or a view of another name',
      );
      if (!relations.some((one) => shortName(one) === shortName(relation))) relations.push(relation);
    }
    const lake = await usableFolder(request.folder);
    const { rows: locks } = await client.query<{ is_free: boolean }>(
      'select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as is_free',
      [`eod:lake:${lake}`],
    );
    if (locks[0]?.is_free !== true)
      throw new PipelineError(`another export is writing to ${lake}; wait until it has ended`, {
        kind: 'database_locked',
      });
    const found = readManifest(lake);
    if (found !== null && request.by !== undefined && request.by !== found.partition)
      throw usageError(
        `${lake} is partitioned by ${found.partition}; export to another folder to change that`,
      );
    const { state, load } = await currentState(client);
    const notices = request.tables === null ? unusable.map(leftOut) : [];
    const before = found === null || (await isOfDatabase(client, found)) ? found : null;
    if (before === null && found !== null)
      notices.push(
        `this database does not have state ${found.state} of the lake, so all of its files are written anew`,
      );
    // First, so that a full disk has room again.
    if (found !== null) await deleteReplaced(lake, found, found);
    const by = request.by ?? found?.partition ?? 'month';
    const writing: Writing = { client, lake, by, state, request, before, notices, limits, onBytes };
    const tables: LakeTable[] = [];
    const files: LakeFile[] = [];
    const results: LakeTableResult[] = [];
    for (const relation of relations) {
      const one = await writeTable(writing, relation).catch((error: unknown) => {
        if (error instanceof Error && !(error instanceof PipelineError))
          error.message = `${shortName(relation)}: ${error.message}`;
        throw error;
      });
      tables.push(one.table);
      for (const file of one.files) files.push(file);
      results.push(one.result);
    }
    // Tables that were not requested stay as they are, unless they are another database's, or dropped by now.
    const isDropped = (table: string) => request.tables === null && !table.includes('.');
    const isKept = ({ table }: { readonly table: string }) =>
      !tables.some((one) => one.table === table) && !isDropped(table);
    const listed = {
      tables: [...(before?.tables.filter(isKept) ?? []), ...tables],
      files: [...(before?.files.filter(isKept) ?? []), ...files],
    };
    for (const { table } of found?.tables ?? [])
      if (!listed.tables.some((one) => one.table === table)) {
        const gone = found?.files.filter((one) => one.table === table).length ?? 0;
        results.push({ table, rows: 0, files: 0, written: 0, writtenRows: 0, replaced: gone });
      }
    // A signal alone ends only a statement that is under way.
    throwIfStopped(limits.signal);
    const replaced = await deleteReplaced(lake, found, listed);
    const manifest: Manifest = { format: 1, state, load, partition: by, ...listed, replaced };
    if (JSON.stringify(manifest) !== JSON.stringify(found))
      await writeWhole(join(lake, MANIFEST), `${JSON.stringify(manifest, null, 1)}\n`);
    return {
      lake,
      manifest: join(lake, MANIFEST),
      state,
      stateBefore: found?.state ?? null,
      isChanged: results.some(({ written, replaced }) => written + replaced > 0),
      tables: results,
      notices,
    };
  });
}

/** Makes the folder of a lake unless there is one. @throws PipelineError `usage` */
async function usableFolder(folder: string): Promise<string> {
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
    return realpathSync(folder);
  } catch (error) {
    const isFile = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw usageError(
      `${folder} ${isFile ? 'is a file, not a folder' : `cannot be written to: ${messageOf(error)}`}`,
    );
  }
}

interface Writing {
  readonly client: PoolClient;
  readonly lake: string;
  readonly by: PartitionBy;
  readonly state: number;
  readonly request: LakeRequest;
  readonly before: Manifest | null;
  readonly notices: string[];
  readonly limits: ReadLimits;
  readonly onBytes: (bytes: number) => void;
}

const leftOut = (name: string) => `market."${name}" is left out: its name cannot be that of a folder`;

async function currentState(client: PoolClient): Promise<{ state: number; load: string }> {
  const { rows } = await client.query<{ state: number; load: string | null }>(
    `select s.state::int as state, (select ${LOAD_TEXT} from ${LOADS} l where l.state = s.state) as load from market.state() s(state)`,
  );
  return { state: rows[0]?.state ?? 0, load: rows[0]?.load ?? '' };
}

/** Distinguishes the load of a state from one of another database. */
const LOAD_TEXT = "concat_ws(' ', l.id, l.operation, l.exchange, extract(epoch from l.committed_at))";

async function isOfDatabase(client: PoolClient, { state, load }: Manifest): Promise<boolean> {
  if (state === 0) return true;
  const { rows } = await client.query(`select from ${LOADS} l where l.state = $1 and ${LOAD_TEXT} = $2`, [
    state,
    load,
  ]);
  return rows.length > 0;
}

/** Writes the partitions of a table that changed. */
async function writeTable(writing: Writing, relation: Relation) {
  const { client, state, request, before, notices } = writing;
  const name = shortName(relation);
  const known = before?.tables.find(({ table }) => table === name);
  const listed = before?.files.filter(({ table }) => table === name) ?? [];
  // A file that somebody has deleted or cut is written again.
  const old = listed.filter((one) => isWhole(writing.lake, one));
  const missing = listed.filter((one) => !old.includes(one));
  for (const { file } of missing) notices.push(`${file} is missing or damaged, and is written again`);
  const names = await namesOf(writing, relation, known);
  // Its files may hold other columns, so none of them can stay.
  const isSame =
    known !== undefined &&
    known.isDouble === request.doubles &&
    JSON.stringify(known.columns.map(({ name, type }) => ({ name, type }))) ===
      JSON.stringify(relation.columns);
  const since = isSame ? known.state : undefined;
  let wanted = await wantedPartitions(writing, relation, { old, since, names });
  for (const { partition, rows, fingerprint } of missing)
    if (rows > 0 && !wanted.has(partition)) wanted.set(partition, fingerprint);
  const measured = await measureColumns(
    client,
    relation.columns,
    rowsOfPartitions(relation, [...wanted.keys()]),
    request.doubles,
  );
  const knownColumns = isSame ? known.columns : [];
  const columns = relation.columns.map((column) => {
    const one = knownColumns.find((other) => other.name === column.name)?.decimal;
    const decimal = joinNeeds(one, measured.decimals.get(column.name));
    return { ...column, ...(decimal !== undefined && { decimal }) };
  });
  const layoutOf = (all: LakeTable['columns']) =>
    all.map((one) => parquetColumn(one, one.decimal, request.doubles, PRECISIONS));
  const typesOf = (all: LakeTable['columns']) => JSON.stringify(layoutOf(all).map(({ element }) => element));
  let kept = isSame ? old : [];
  if (isSame && typesOf(columns) !== typesOf(known.columns)) {
    // A longer number than before: all files of a table have the same types.
    kept = [];
    wanted = await wantedPartitions(writing, relation, { old, since: undefined, names });
  }
  for (const notice of measured.notices) notices.push(`${name}: ${notice}`);
  kept = kept.filter(({ partition }) => !wanted.has(partition));
  const written: LakeFile[] = [];
  const layout = layoutOf(columns);
  for (const [partition, fingerprint] of wanted) {
    const file = await writeFile(writing, relation, { name, partition, layout });
    if (file.rows > 0 || partition === ALL) written.push({ ...file, state, fingerprint });
    else await rm(join(writing.lake, file.file));
  }
  // A table without rows has one file, which shows its columns, until there are others: it is in no folder of a month.
  if (written.length > 0) kept = kept.filter(({ rows }) => rows > 0);
  if (written.length + kept.length === 0)
    written.push({
      ...(await writeFile(writing, relation, { name, partition: ALL, layout, isEmpty: true })),
      state,
      fingerprint: null,
    });
  const files = [...kept, ...written].sort((a, b) => (a.partition < b.partition ? -1 : 1));
  const rows = files.reduce((sum, one) => sum + one.rows, 0);
  const table: LakeTable = {
    table: name,
    state,
    rows,
    columns,
    isDouble: request.doubles,
    digest: sha256(files.map((one) => `${one.partition} ${one.sha256}`).join('\n')),
    namesFile: names === null ? null : names.file,
  };
  const result: LakeTableResult = {
    table: name,
    rows,
    files: files.length,
    written: written.length,
    writtenRows: written.reduce((sum, one) => sum + one.rows, 0),
    replaced: listed.filter(({ file }) => !files.some((one) => one.file === file)).length,
  };
  return { table, files, result };
}

/** How many digits hold the values of both. */
function joinNeeds(a: DecimalNeed | undefined, b: DecimalNeed | undefined): DecimalNeed | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  if (a === null || b === null) return null;
  const both = { scale: Math.max(a.scale, b.scale), integers: Math.max(a.integers, b.integers) };
  return both.scale + both.integers > MOST_DIGITS ? null : both;
}

interface Names {
  readonly before: NameFactors | null;
  readonly now: NameFactors;
  readonly file: string;
}

/** What prices of each name are adjusted by, before and now, for the view that needs it. */
async function namesOf(
  { client, lake, state }: Writing,
  relation: Relation,
  known: LakeTable | undefined,
): Promise<Names | null> {
  if (relation.schema !== 'market' || relation.name !== ADJUSTED.view) return null;
  const now = await readNameFactors(client);
  const path = known?.namesFile ?? null;
  const before = path === null ? null : readIfWhole(join(lake, path));
  if (path !== null && JSON.stringify(before) === JSON.stringify(now)) return { before, now, file: path };
  const file = `${NAMES_FOLDER}/${newName(state, 'json')}`;
  await mkdir(join(lake, NAMES_FOLDER), { recursive: true });
  await writeWhole(join(lake, file), JSON.stringify(now));
  return { before, now, file };
}

/**
 * The partitions to write, each with the fingerprint of its rows where one is kept.
 *
 * @param about.since the state after which changes are looked for; undefined: every partition.
 */
async function wantedPartitions(
  { client, by }: Writing,
  relation: Relation,
  about: {
    readonly old: readonly LakeFile[];
    readonly since: number | undefined;
    readonly names: Names | null;
  },
): Promise<Map<string, string | null>> {
  const { old, since, names } = about;
  const plain = (partitions: readonly string[]) => new Map(partitions.map((one) => [one, null] as const));
  const every = async () => plain(await partitionsOf(client, relation, by));
  if (names !== null) {
    if (since === undefined || names.before === null) return every();
    const sessions = await changedPartitions(client, await findRelation(client, ADJUSTED.of), by, since);
    const named = await partitionsOfNames(client, by, names.before, names.now);
    if (sessions === null || named === null) return every();
    return plain([...new Set([...sessions, ...named])]);
  }
  if (isKnownFromLoads(relation)) {
    const changed = since === undefined ? null : await changedPartitions(client, relation, by, since);
    return changed === null ? every() : plain(changed);
  }
  const content = await contentOfPartitions(client, relation, by);
  const fingerprintOf = new Map(old.map((one) => [one.partition, one.fingerprint]));
  const isOther = (partition: string, fingerprint: string) =>
    since === undefined || fingerprintOf.get(partition) !== fingerprint;
  const wanted = new Map<string, string | null>(
    content.flatMap(({ partition, fingerprint }) =>
      isOther(partition, fingerprint) ? [[partition, fingerprint] as const] : [],
    ),
  );
  // What has no rows any more is written as nothing, unless it is the file of a table without rows.
  const isThere = new Set(content.map(({ partition }) => partition));
  for (const { partition, rows } of old) if (!isThere.has(partition) && rows > 0) wanted.set(partition, null);
  return wanted;
}

/** How readers of folders write that a value is null. */
const NO_VALUE = '__HIVE_DEFAULT_PARTITION__';

/**
 * `year=2026/month=3`, so that readers can leave out folders; a table with such a column has `2026-03`. Without the
 * zero, which would make a text of it for some readers.
 */
function folderOf(relation: Relation, by: PartitionBy, partition: string): string {
  const has = relation.columns.some(({ name }) => /^(year|month)$/i.test(name));
  if (partition === ALL || relation.dayColumn === null) return '';
  if (has) return partition;
  const [year, month] =
    partition === NO_DAY ? [NO_VALUE, by === 'month' ? NO_VALUE : undefined] : partition.split('-');
  return `year=${year}${month === undefined ? '' : `/month=${Number(month) || month}`}`;
}

async function writeFile(
  { client, lake, by, state, limits, onBytes }: Writing,
  relation: Relation,
  about: {
    readonly name: string;
    readonly partition: string;
    readonly layout: readonly ReturnType<typeof parquetColumn>[];
    readonly isEmpty?: boolean;
  },
): Promise<Omit<LakeFile, 'state' | 'fingerprint'>> {
  throwIfStopped(limits.signal);
  const { name, partition, layout, isEmpty = false } = about;
  const folder = [name, folderOf(relation, by, partition)].filter((part) => part !== '').join('/');
  const file = `${folder}/${newName(state, 'parquet')}`;
  await mkdir(join(lake, folder), { recursive: true });
  const partial = join(lake, `${file}.part`);
  const rows = `${rowsOfPartitions(relation, isEmpty ? [] : [partition])}${orderSql(relation)}`;
  const handle = await open(partial, 'w');
  let count: number;
  let bytes: number;
  try {
    const { chunks, rowCount } = copied(
      client,
      `copy (select ${columnList(relation)} ${rows}) to stdout`,
      onBytes,
    );
    await writeParquet(handle, layout, chunks);
    count = rowCount();
    await handle.sync();
    bytes = (await handle.stat()).size;
  } catch (error) {
    await rm(partial, { force: true });
    // What the disk refuses says nothing of the file.
    const isOfFile = error instanceof Error && 'syscall' in error && !('path' in error);
    throw isOfFile ? Object.assign(error, { path: partial }) : error;
  } finally {
    await handle.close();
  }
  const hash = createHash('sha256');
  await pipeline(createReadStream(partial), hash);
  await rename(partial, join(lake, file));
  return { table: name, partition, file, rows: count, bytes, sha256: hash.digest('hex') };
}
