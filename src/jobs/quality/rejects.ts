import type { Pool } from 'pg';
import { usageError } from '../../core/errors.ts';

/** A refused record as a list shows it. */
export interface OpenReject {
  readonly id: number;
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
  /** Place in the answer or file, from 0. */
  readonly position: number;
  readonly problems: readonly { readonly path: string; readonly message: string }[];
  readonly runId: number;
  readonly windowId: number;
  readonly rejectedAt: string;
}

/** One refused record with all that is known of it. */
export interface RejectDetail extends OpenReject {
  readonly record: unknown;
  readonly instruments: readonly string[];
  readonly params: Readonly<Record<string, string>>;
  readonly resolvedAt: string | null;
  /** Number of the kept answer it stands in, or null when that is not kept. */
  readonly responseId: number | null;
  /** The imported file it stands in, or null where it is of an answer. */
  readonly file: string | null;
}

export interface RejectFilter {
  readonly operations?: readonly string[] | undefined;
  readonly exchanges?: readonly string[] | undefined;
}

const COLUMNS = `j.id::int, j.operation, j.exchange, to_char(w.from_date, 'YYYY-MM-DD') as "from",
  to_char(w.to_date, 'YYYY-MM-DD') as "to", j.position, j.problems, j.run_id::int as "runId",
  j.window_id::int as "windowId", to_json(j.rejected_at)#>>'{}' as "rejectedAt"`;

const OPEN = `from etl.rejects j join etl.windows w on w.id = j.window_id where j.resolved_at is null
  and ($1::text[] is null or j.operation = any($1)) and ($2::text[] is null or j.exchange = any($2))`;

/** Rejects nobody has settled, the newest first. */
export async function openRejects(pool: Pool, filter: RejectFilter, limit: number): Promise<OpenReject[]> {
  const found = await pool.query<OpenReject>(`select ${COLUMNS} ${OPEN} order by j.id desc limit $3`, [
    ...[filter.operations ?? null, filter.exchanges ?? null],
    limit,
  ]);
  return found.rows;
}

/** Numbers of all open rejects. */
export async function openRejectIds(pool: Pool, filter: RejectFilter): Promise<number[]> {
  const found = await pool.query<{ id: number }>(`select j.id::int ${OPEN} order by j.id`, [
    filter.operations ?? null,
    filter.exchanges ?? null,
  ]);
  return found.rows.map((row) => row.id);
}

/** @throws PipelineError `usage` when there is no such reject. */
export async function rejectDetail(pool: Pool, id: number): Promise<RejectDetail> {
  const found = await pool.query<RejectDetail>(
    `select ${COLUMNS}, j.record, w.instruments, w.params, w.source_file as file, to_json(j.resolved_at)#>>'{}' as "resolvedAt",
       (select k.id::int from etl.responses k where k.id = w.response_id or k.window_id = w.id limit 1) as "responseId"
     from etl.rejects j join etl.windows w on w.id = j.window_id where j.id = $1`,
    [id],
  );
  const reject = found.rows[0];
  if (reject === undefined) throw usageError(`there is no reject ${id} ("eod rejects" lists the open ones)`);
  return reject;
}

/** Which of these rejects are open still. */
export async function stillOpen(pool: Pool, ids: readonly number[]): Promise<number[]> {
  const found = await pool.query<{ id: number }>(
    'select id::int from etl.rejects where id = any($1) and resolved_at is null order by id',
    [ids],
  );
  return found.rows.map((row) => row.id);
}

/** Rejects of an imported file that is not kept: only importing it again can settle them. */
export interface UnkeptFile {
  readonly file: string;
  readonly rejects: number;
}

/** The files among those of these rejects that cannot be read again from what is kept, by name. */
export async function unkeptFiles(pool: Pool, ids: readonly number[]): Promise<UnkeptFile[]> {
  const found = await pool.query<UnkeptFile>(
    `select w.source_file as file, count(*)::int as rejects from etl.rejects j join etl.windows w on w.id = j.window_id
      where j.id = any($1) and w.source_file is not null
        and not exists (select from etl.responses k where k.window_id = w.id or k.id = w.response_id)
      group by 1 order by 1`,
    [ids],
  );
  return found.rows;
}
