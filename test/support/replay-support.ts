import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { request } from 'undici';
import { expect } from 'vitest';
import type { RecordCounts } from '../../src/core/record-counts.ts';
import type { Context } from '../../src/jobs/context.ts';
import { updateDerived } from '../../src/jobs/events/update-derived.ts';
import { planReplay } from '../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../src/jobs/replay/work-replay.ts';
import { buildFoldSettings } from '../../src/jobs/responses/store-response.ts';
import { syncTradingDays } from '../../src/jobs/responses/sync-sessions.ts';
import { acceptWithdrawal } from '../../src/load/accept-withdrawal.ts';
import { namesFilling, operationNamed, tables } from '../../src/operations/registry.ts';
import { type RunReport, reportRun } from '../../src/state/runs/reports.ts';
import { listWithheldWithdrawals } from '../../src/state/withdrawals.ts';
import { newRun } from '../load/support.ts';
import { openWindow, readAndStore } from './as-worker.ts';
import { closeAfterFile } from './closing.ts';
import { copyResponses } from './copy-responses.ts';
import { startServer } from './http-server.ts';
import { openStore } from './import-support.ts';
import { positionOf } from './position.ts';

/** A record of a response, as sent. */
export type SourceRecord = Record<string, unknown>;

export interface Meddler {
  readonly url: string;
  /** What becomes of the records of each response from now on. */
  meddle: (records: SourceRecord[]) => void;
}

/** A source that passes another one's responses on, with changes; closed after the file. */
export async function startMeddler(sourceUrl: string): Promise<Meddler> {
  const url = await startServer((incoming, outgoing) => {
    request(`${sourceUrl}${incoming.url ?? ''}`)
      .then(async ({ statusCode, body }) => {
        const sent = (await body.json()) as { Value: SourceRecord[] } | SourceRecord;
        const response = Array.isArray(sent.Value) ? (sent as { Value: SourceRecord[] }) : { Value: [sent] };
        meddler.meddle(response.Value);
        outgoing.writeHead(statusCode, { 'content-type': 'application/json' }).end(JSON.stringify(response));
      })
      .catch((error: Error) => outgoing.destroy(error));
  }, closeAfterFile);
  const meddler: Meddler = {
    url,
    meddle: () => undefined,
  };
  return meddler;
}

/** Plans a replay and works on it to its end. */
export async function replay(
  pipeline: Context,
  filter: Parameters<typeof planReplay>[1],
  options?: Parameters<typeof planReplay>[2],
): Promise<RunReport> {
  const runId = await planReplay(pipeline, filter, options);
  if (runId === null) throw new Error('there is nothing to replay');
  await workReplay(pipeline, runId, new AbortController().signal);
  return reportRun(pipeline, runId);
}

/** Deletes the rows and the history of what kept responses fill. */
export async function emptyTables({ db }: Pick<Context, 'db'>): Promise<void> {
  const { rows } = await db.pool.query<{ operation: string }>(
    'select distinct operation from etl.responses where hash is not null',
  );
  const filled = tables.filter((table) =>
    namesFilling([table]).some((name) => rows.some(({ operation }) => operation === name)),
  );
  const names = filled.flatMap(({ name }) => [`market.${name}`, `market_history.${name}`]);
  await db.pool.query(`truncate ${names.join(', ')}`);
}

/** Empties what kept responses fill, and fills it from them. */
export async function replayAnew(pipeline: Context): Promise<RunReport> {
  await emptyTables(pipeline);
  return replay(pipeline, {});
}

/** The best compression would take seconds for many bodies. */
const QUICKLY = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };

/**
 * What a fix of the reading code comes to: from now on the kept bodies read as if this change had
 * been made to their records.
 */
export async function fixReading(
  { db }: Pick<Context, 'db'>,
  fix: (records: SourceRecord[]) => void,
): Promise<void> {
  const result = await db.pool.query<{ hash: string; body: Buffer }>(
    'select hash, body from etl.response_bodies',
  );
  for (const { hash, body } of result.rows) {
    const text = brotliDecompressSync(body).toString();
    // Files that were imported are kept as well.
    if (!text.startsWith('{')) continue;
    const response = JSON.parse(text) as { Value: SourceRecord[] };
    fix(response.Value);
    await db.pool.query('update etl.response_bodies set body = $2 where hash = $1', [
      hash,
      brotliCompressSync(JSON.stringify(response), QUICKLY),
    ]);
  }
}

/** Every row of a table with all but the moments and numbers of its loads. */
export async function rowsOf(
  { db }: Pick<Context, 'db'>,
  schema: 'market' | 'market_history',
): Promise<Record<string, string[]>> {
  const contents: Record<string, string[]> = {};
  for (const table of tables) {
    const columns = [...table.fields.map((field) => `"${field.column}"`), 'revision'];
    if (schema === 'market_history') columns.push('withdrawn');
    const result = await db.pool.query<{ row: string }>(
      `select row(${columns.join(', ')})::text as row from ${schema}."${table.name}" order by 1`,
    );
    contents[table.name] = result.rows.map(({ row }) => row);
  }
  return contents;
}

/**
 * Everything in the database that a write would change, but for what a replay says of itself: each row with its
 * place and the transaction that wrote it. What is noted at the end of each run about derived rows is left out, too.
 */
export async function physicalRows(context: Context): Promise<unknown[]> {
  const { db } = context;
  // Due since the loads before, and done by whatever ends next.
  await syncTradingDays(context);
  await updateDerived(context);
  const result = await db.pool.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname in ('etl', 'market', 'market_history') and c.relkind in ('r', 'p')
        and c.relname not in ('runs', 'windows', 'derived') order by 1`,
  );
  const rows = result.rows.map(
    ({ name }) => `select '${name}' as table_name, ctid::text, xmin::text, md5(t::text) from ${name} t`,
  );
  return (await db.pool.query(`${rows.join(' union all ')} order by 1, 2`)).rows;
}

/** The day of what these tests load. */
export const DAY = '2025-08-29';

/** Bhav copy records of the day as the source sends them. */
export const records = (from: number, to: number, changes: SourceRecord = {}): SourceRecord[] =>
  Array.from({ length: to - from }, (_, at) => ({
    TradDt: '08-29-2025',
    Src: 'NSE',
    Symbol: `S${String(from + at).padStart(3, '0')}`,
    SctySrs: 'EQ',
    ClosePrice: 100 + at,
    SavedAt: '08-29-2025 21:02:14',
    ...changes,
  }));

/** An entry, and the response to it. */
interface RequestWithResponse {
  readonly operation: string;
  readonly exchange?: string;
  readonly from: string;
  readonly to?: string;
  readonly instruments?: readonly string[];
  readonly params?: Readonly<Record<string, string>>;
  readonly variant?: string;
  readonly sent: readonly SourceRecord[];
  /** What the response has beside its records. */
  readonly more?: SourceRecord;
  /** The body, if it is not JSON of these. */
  readonly csv?: string;
  /** The time of the call, and how many microseconds later than others of that moment. */
  readonly calledAt: number;
  readonly microseconds: number;
  readonly count?: 'accept';
  /** The day of the call, if not that of `calledAt`. */
  readonly calledOn?: string;
}

/** Loads a response to any request as the worker does. */
export async function requestAndLoad(context: Context, entry: RequestWithResponse) {
  const { exchange = 'NSE', from, to = from, instruments = [], params = {}, variant = '', calledAt } = entry;
  const { pool } = context.db;
  const runId = await newRun(context.db);
  const response = {
    operation: operationNamed(entry.operation),
    exchange,
    from,
    to,
    instruments,
    params,
    variant,
    filtered: false,
    position: positionOf(calledAt, entry.microseconds),
    calledAt,
    calledOn: entry.calledOn ?? new Date(calledAt).toISOString().slice(0, 10),
    body: Buffer.from(entry.csv ?? JSON.stringify({ Value: entry.sent, ...entry.more })),
    count: entry.count,
  };
  const id = await openWindow(context, runId, response);
  const kept = await readAndStore(context, runId, id, response);
  const stored = await pool.query('select suspicious, warnings from etl.windows where id = $1', [id]);
  return { id, counts: kept?.counts ?? null, ...stored.rows[0] } as {
    id: number;
    counts: RecordCounts | null;
    suspicious: string | null;
    warnings: string[];
  };
}

/**
 * Fetches a bhav copy at this minute of the evening: it can be loaded at any time afterwards. Responses to different
 * requests of the same moment differ by microseconds.
 */
export function fetched(minute: number, sent: readonly SourceRecord[], microseconds?: number) {
  return (
    context: Context,
    settings: { readonly instruments?: readonly string[]; readonly day?: string; readonly to?: string } = {},
  ) => {
    const { instruments = [], day = DAY, to = day } = settings;
    return requestAndLoad(context, {
      operation: 'GetBhavCopyCM',
      from: day,
      to,
      instruments,
      sent,
      calledAt: Date.UTC(2025, 7, 29, 16, minute),
      calledOn: DAY,
      microseconds: microseconds ?? Number(day.slice(-2)) + instruments.length * 100,
    });
  };
}

/** Accepts the withdrawal that was withheld last. */
export async function acceptRefused(context: Context): Promise<void> {
  const [withheld] = await listWithheldWithdrawals(context.db.drizzle, 1, 0);
  await acceptWithdrawal(context.db, withheld?.id ?? 0, { by: 'me', ...buildFoldSettings(context) });
}

export const ALWAYS = { from: '1990-01-01', to: '2100-01-01' };

/** The rows of a statement. */
export const all = async (context: Context, query: string) => (await context.db.pool.query(query)).rows;

/** The symbols that are listed. */
export const live = async (context: Context) =>
  (await all(context, 'select symbol from market.bhavcopy_cm order by 1')).map(({ symbol }) => symbol);

/** A database that took over all kept responses and files of another one, and replayed them. */
export async function replayedElsewhere(original: Context): Promise<Context> {
  const empty = await openStore();
  await copyResponses(original.db, empty.db);
  const report = await replay(empty, {});
  expect(report).toMatchObject({ kind: 'replay', state: 'completed', requests: 0 });
  return empty;
}
