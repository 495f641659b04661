import type { ClientBase } from 'pg';

/** A record that did not pass, in the order of the answer. */
export interface RejectEntry {
  readonly position: number;
  readonly record: unknown;
  readonly problems: readonly { readonly path: string; readonly message: string }[];
}

export interface RejectOwner {
  readonly runId: number;
  readonly windowId: number;
  readonly operation: string;
  readonly exchange: string;
  readonly rejects: readonly RejectEntry[];
}

/** One statement carries at most about this many characters of records. */
const PORTION = 4 * 1024 * 1024;

/** Keeps every refused record with its problems, inside the window's transaction. */
export async function writeRejects(client: ClientBase, owner: RejectOwner): Promise<void> {
  let portion: string[] = [];
  let size = 0;
  const flush = async () => {
    if (portion.length === 0) return;
    await client.query(
      `insert into etl.rejects (run_id, window_id, operation, exchange, position, record, problems)
       select $1, $2, $3, $4, r.position, r.record, r.problems
         from jsonb_to_recordset($5::jsonb) as r(position integer, record jsonb, problems jsonb)`,
      [owner.runId, owner.windowId, owner.operation, owner.exchange, `[${portion.join(',')}]`],
    );
    portion = [];
    size = 0;
  };
  for (const reject of owner.rejects) {
    const text = JSON.stringify({
      position: reject.position,
      record: reject.record ?? null,
      problems: reject.problems,
    });
    portion.push(text);
    size += text.length;
    if (size >= PORTION) await flush();
  }
  await flush();
}
