import { today } from '../../core/clock.ts';
import { requesterName } from '../../core/environment.ts';
import { isPipelineError } from '../../core/errors.ts';
import { limitHeapGrowth } from '../../core/heap-growth.ts';
import { groupBy } from '../../core/iterables.ts';
import { inParallel } from '../../core/waits.ts';
import { IMPORTED_BEFORE } from '../../core/wording.ts';
import { dayOfName } from '../../extract/files/formats.ts';
import type { UnknownFile } from '../../extract/files/read-exchange-file.ts';
import type { FilePart } from '../../extract/files/read-file.ts';
import { MOST_BYTES, newUnpackLimit } from '../../extract/files/unpack.ts';
import { readTickers, type Tickers } from '../../load/stored-values.ts';
import { keepSessionLock, trySessionLock } from '../../postgres/session-lock.ts';
import { transaction } from '../../postgres/transaction.ts';
import { readStateNumber } from '../../state/loads/state-numbers.ts';
import { readImportedFiles } from '../../state/runs/outcomes.ts';
import { type Progress, type RunReport, reportRun } from '../../state/runs/reports.ts';
import { abandonRun, insertRun, listRunningRuns, reserveRunId, setRunRange } from '../../state/runs/runs.ts';
import type { Context } from '../context.ts';
import { syncTradingDays } from '../responses/sync-sessions.ts';
import { closeRun } from '../runs/finish.ts';
import { createOrderedStore, findFiles, hashFile, type ImportFile } from './files.ts';
import { type FileReport, importParts, notLoaded, readParts } from './import-sessions.ts';

/** The report of an import: its run and the result for each file. */
export interface ImportReport extends Omit<RunReport, 'failures'> {
  /** Failed windows, and files that could not be read and so have no window. */
  readonly failures: readonly (RunReport['failures'][number] | ReturnType<typeof failureOfFile>)[];
  /** Sorted by name, without the files that were not reached. */
  readonly files: readonly FileReport[];
  /** How many files were not reached before a signal or a cancellation. */
  readonly left: number;
}

export interface ImportOptions {
  readonly paths: readonly string[];
  /** The folder from which relative paths start; by default that of the process. */
  readonly cwd?: string;
  /** True if files are imported again that were imported completely before. */
  readonly force: boolean;
  /** True if a file of unknown form is a failure, although others were imported. */
  readonly strict?: boolean;
  /** Stops the import between two files. */
  readonly signal?: AbortSignal;
  /** Called when the run has its number, and after each file; `total` and `ended` count files. */
  readonly onProgress?: (runId: number, progress: Progress) => void;
}

/**
 * Imports files of the exchanges: reads each, and stores its parts like responses of the source. A file that
 * cannot be read is reported, and the others are imported.
 *
 * @throws PipelineError `usage` if a path cannot be read; `database_unreachable` if Postgres stays unreachable.
 */
export async function importFiles(context: Context, options: ImportOptions): Promise<ImportReport> {
  const { signal, cwd = process.cwd() } = options;
  const width = context.config.EOD_CONCURRENCY;
  // 258 MB instead of 312 without a limit; 110 % takes an eighth more of the processor (bench/README.md).
  limitHeapGrowth(130);
  const paths = await findFiles(options.paths, cwd);
  const requested = { paths: options.paths, force: options.force };
  const runId = await reserveRunId(context.db.drizzle);
  // The lock is taken before the run is written, so that no other process takes the run for an abandoned one.
  const lock = await keepSessionLock(context.db, lockName(runId), (db) =>
    writeRun({ ...context, db }, runId, requested),
  );
  const tally = createTally(runId, paths.length, options);
  let stopped: string | null = 'stopped by an error; import the same files again to go on';
  try {
    const files: ImportFile[] = [];
    await inParallel(paths, { width, signal }, async (file, at) => {
      const hashed = await hashFile(file, signal);
      if (hashed !== null) files[at] = hashed;
    });
    const unimported = await selectNewFiles(context, files.filter(Boolean), options.force, tally);
    const round = { runId, tally, width, signal };
    const withoutTickers = await importInRounds(context, unimported, { ...round, tickers: null });
    if (withoutTickers.length > 0) {
      const tickers = await readTickers(context.db.pool);
      await importInRounds(context, withoutTickers, { ...round, tickers });
    }
    stopped = tally.left() > 0 ? 'stopped before its end; import the same files again to go on' : null;
  } finally {
    const bad = tally.bad();
    await closeImport(context, runId, lock, {
      bad: bad.map(({ file, error }) => `${file}: ${error}`),
      stopped,
    });
  }
  await syncTradingDays(context);
  const report = await reportRun(context, runId);
  tally.end(report.state);
  const unread = tally.bad().filter(({ sessions }) => sessions.length === 0);
  return {
    ...report,
    // With the loads of what follows from the rows: corporate events.
    states: { ...report.states, after: (await readStateNumber(context.db.drizzle, null)).stateNumber },
    failures: [...report.failures, ...unread.map(failureOfFile)],
    files: tally.files(),
    left: tally.left(),
  };
}

/** A file without a window, in the shape of a failed window. */
function failureOfFile({ file, error }: FileReport) {
  return {
    windowId: null,
    operation: null,
    exchange: null,
    from: null,
    to: null,
    instruments: [],
    variant: '',
    state: 'failed',
    error: `${file}: ${error}`,
  };
}

type Tally = ReturnType<typeof createTally>;

/** Collects the results of the files so far, and reports the progress. */
function createTally(runId: number, total: number, { onProgress, strict }: ImportOptions) {
  const files: FileReport[] = [];
  let fetched = 0;
  let state: Progress['state'] = 'running';
  const inOrder = () => files.sort((a, b) => (a.file < b.file ? -1 : 1));
  const notify = () =>
    onProgress?.(runId, {
      kind: 'import',
      state,
      total,
      ended: files.length,
      requests: 0,
      fetched,
      isDeferred: false,
    });
  notify();
  return {
    add(report: FileReport) {
      files.push(report);
      fetched += report.rows;
      notify();
    },
    files: inOrder,
    /** The files for which the import fails: those of unknown form only if it is strict, or if no file is known. */
    bad() {
      const allowed = strict !== true && files.some(({ state }) => state === 'loaded' || state === 'skipped');
      return inOrder().flatMap((file) => {
        const failed = file.state === 'failed' || (file.state === 'unknown' && !allowed) ? [file] : [];
        if (allowed) return failed;
        const unknown = file.leftOut.map(({ file, form }) =>
          notLoaded(file, 'unknown', `has an unknown form: "${form}"`, form),
        );
        return [...failed, ...unknown];
      });
    },
    left: () => total - files.length,
    /** Reports the progress a last time: the run is in this state. */
    end(ended: Progress['state']) {
      state = ended;
      notify();
    },
  };
}

/**
 * Leaves out and reports files that cannot be read, were imported before, or have the same content as another.
 *
 * Where only the name says the day, one content under two days is a wrong name somewhere: a day without trading loses,
 * and between trading days nothing decides.
 */
async function selectNewFiles(
  { db, calendar }: Context,
  files: readonly ImportFile[],
  force: boolean,
  tally: Tally,
): Promise<ImportFile[]> {
  const before = force ? new Map<string, string[]>() : await readImportedFiles(db.drizzle);
  const paths = groupBy(files, ({ hash }) => hash);
  const here = new Map<string, string>();
  const isOpen = (fileDay: NonNullable<ReturnType<typeof dayOfName>>) =>
    calendar.listed.isTradingDay(fileDay.exchange, fileDay.day);
  return files.flatMap((file) => {
    const { path, hash, error } = file;
    const leaveOut = (why: string) => {
      tally.add(notLoaded(path, hash === null ? 'failed' : 'skipped', why));
      return [];
    };
    if (hash === null) return leaveOut(error ?? 'cannot be read');
    const fileDay = dayOfName(path);
    const isSame = (other: string) => dayOfName(other)?.day === fileDay?.day;
    const imported = before.get(hash) ?? [];
    if (imported.some(isSame)) return leaveOut(IMPORTED_BEFORE);
    const first = here.get(`${hash} ${fileDay?.day}`);
    if (first !== undefined) return leaveOut(`the same content as ${first}`);
    const others = [...imported, ...(paths.get(hash) ?? []).map((importedFile) => importedFile.path)].flatMap(
      (other) => {
        const its = dayOfName(other);
        return fileDay === null || its === null || its.day === fileDay.day ? [] : [{ ...its, path: other }];
      },
    );
    const open = others.find(isOpen);
    if (fileDay !== null && open !== undefined && !isOpen(fileDay)) {
      return leaveOut(`the same content as ${open.path}, and ${fileDay.day} is no trading day`);
    }
    here.set(`${hash} ${fileDay?.day}`, path);
    // A day without trading is left out, too, unless it was imported before.
    const other =
      open ??
      others.find((otherFile) => imported.includes(otherFile.path) || (fileDay !== null && !isOpen(fileDay)));
    if (fileDay === null || other === undefined) return [file];
    const warning = `${path} and ${other.path} have the same content, but ${fileDay.day} and ${other.day} in their names: one of them is wrong`;
    return [{ ...file, warning }];
  });
}

interface Round {
  readonly runId: number;
  readonly tally: Tally;
  readonly width: number;
  readonly signal: AbortSignal | undefined;
  /** Null: postpone files whose rows have no tickers, because the other files may have them. */
  readonly tickers: Tickers | null;
}

/**
 * Imports files several at a time, and then, one after the other, those that need more than their share of the memory
 * that all of them may take.
 *
 * @returns the files that were postponed because they have no tickers, in order.
 */
async function importInRounds(
  context: Context,
  files: readonly ImportFile[],
  round: Round,
): Promise<ImportFile[]> {
  const { postponed, large } = await importAll(context, files, round);
  const alone = await importAll(context, large, { ...round, width: 1 });
  const all = new Set([...postponed, ...alone.postponed]);
  return files.filter((file) => all.has(file));
}

/**
 * At most so many bytes of files are read at the same time; a larger file is read alone. Measured: the process took 3.8 GB
 * for four files of 120 MB that were read together, and 1.2 GB for one of 145 MB.
 */
const MOST_AT_ONCE = MOST_BYTES / 4;

/** @returns `postponed`: files whose rows have no tickers; `large`: files that need more than their share of memory. */
async function importAll(
  context: Context,
  files: readonly ImportFile[],
  { runId, tally, width, signal, tickers }: Round,
): Promise<{ readonly postponed: readonly ImportFile[]; readonly large: readonly ImportFile[] }> {
  const postponed: ImportFile[] = [];
  const large: ImportFile[] = [];
  let cancelled = false;
  const storeInOrder = createOrderedStore<FilePart>();
  await inParallel(files, { width, signal }, async (file) => {
    if (cancelled) return;
    const limit = newUnpackLimit(width === 1 ? MOST_BYTES : Math.floor(MOST_AT_ONCE / width));
    const leftOut: UnknownFile[] = [];
    try {
      await storeInOrder(
        () => readParts(context, file, limit, leftOut),
        async (parts) => {
          if (tickers === null && parts.some((part) => part.withoutTickers)) {
            postponed.push(file);
            return;
          }
          if (parts.length === 0) {
            tally.add({ ...notLoaded(file.path, 'skipped', 'has no line that is stored'), leftOut });
            return;
          }
          const outcome = await importParts(context, runId, file, parts, tickers ?? new Map());
          if (outcome.cancelled) cancelled = true;
          else tally.add({ ...outcome.report, leftOut });
        },
      );
    } catch (error) {
      if (!isPipelineError(error, 'unreadable')) throw error;
      const { message, unknownForm } = error;
      if (limit.isExceeded === true && width > 1) large.push(file);
      else if (unknownForm === undefined) tally.add(notLoaded(file.path, 'failed', message));
      else tally.add(notLoaded(file.path, 'unknown', message, unknownForm));
    }
  });
  return { postponed, large };
}

/** The process of an import holds this lock, so that others notice when it is gone. */
const lockName = (runId: number) => `eod:import:${runId}`;

/** Ends abandoned imports, and writes the run of an import with a number from `reserveRunId`. Safe to repeat. */
async function writeRun(
  context: Context,
  runId: number,
  requested: { readonly paths: readonly string[]; readonly force: boolean },
): Promise<void> {
  await endAbandonedImports(context);
  const day = today(context.clock, context.config.EOD_TIMEZONE);
  await insertRun(context.db.drizzle, {
    id: runId,
    kind: 'import',
    requestedBy: requesterName(),
    request: { kind: 'import', targets: [], instruments: [], options: {}, live: false, ...requested },
    from: day,
    to: day,
  });
}

async function endAbandonedImports(context: Context): Promise<void> {
  for (const id of await listRunningRuns(context.db.drizzle, 'import')) {
    const lock = await trySessionLock(context.db, lockName(id));
    if (lock === null) continue;
    await cancelImport(context, id, 'its process ended before it did').finally(() => lock.release());
  }
}

/** The error of the run names at most this many bad files. */
const MAX_NAMED = 20;

/** Ends the run: as cancelled if files were not reached, as failed if a file was bad. */
async function closeImport(
  context: Context,
  runId: number,
  lock: Awaited<ReturnType<typeof keepSessionLock>>,
  end: { readonly bad: readonly string[]; readonly stopped: string | null },
): Promise<void> {
  const { db } = context;
  try {
    await setRunRange(db.drizzle, runId);
    if (end.stopped !== null) return await cancelImport(context, runId, end.stopped);
    const more = end.bad.length > MAX_NAMED ? ` and ${end.bad.length - MAX_NAMED} more` : '';
    const bad = `${end.bad.length === 1 ? 'a file was' : `${end.bad.length} files were`} not imported: ${end.bad.slice(0, MAX_NAMED).join('; ')}${more}`;
    await closeRun(context, runId, end.bad.length === 0 ? null : { state: 'failed', error: bad });
  } finally {
    await lock.release();
  }
}

async function cancelImport(context: Context, runId: number, why: string): Promise<void> {
  const ended = await transaction(context.db, (tx) => abandonRun(tx, runId, why));
  if (ended !== null) context.log.info({ runId, state: ended.state }, 'run has ended');
}
