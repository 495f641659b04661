import type { ClientBase } from 'pg';
import { operationNamed } from '../../operations/registry.ts';
import type { RejectEntry } from './rejects.ts';

/** A load as far as older rejects are concerned. */
export interface SettlingLoad {
  readonly windowId: number;
  readonly operation: string;
  readonly rejects: readonly RejectEntry[];
  readonly rereads?: readonly number[];
  readonly outcome: { readonly state: 'loaded' | 'empty' | 'failed' };
}

/**
 * Ends open rejects this load makes out of date, inside its transaction.
 *
 * A newer answer that loads and covers the question of an older one speaks in its place: the older
 * one's open rejects are resolved, and what is still refused stands in the newer one's own. Where
 * the very same records are read once more (`rereads`), those that pass now are resolved and those
 * that do not stay open under their number, with today's problems.
 *
 * @returns the rejects that are to be written anew.
 */
export async function settleRejects(client: ClientBase, load: SettlingLoad): Promise<readonly RejectEntry[]> {
  if (load.outcome.state === 'loaded') await resolveOutdated(client, load);
  return reread(client, load);
}

async function resolveOutdated(
  client: ClientBase,
  { windowId, operation, rereads }: SettlingLoad,
): Promise<void> {
  const dated = operationNamed(operation).windows.per !== 'once';
  await client.query(
    `update etl.rejects set resolved_at = clock_timestamp() where id in (
       select r.id from etl.windows w
         join etl.rejects r on r.operation = w.operation and r.exchange = w.exchange and r.resolved_at is null
         join etl.windows o on o.id = r.window_id
        where w.id = $1 and not w.narrowed and o.id <> w.id and o.id <> all($2::bigint[]) and o.part = w.part
          and (w.instruments = '{}' or (o.instruments <> '{}' and o.instruments <@ w.instruments))
          and (not $3 or (o.from_date >= w.from_date and o.to_date <= w.to_date))
          and ${loadedAt('o', 'r.rejected_at')} <= ${loadedAt('w', 'clock_timestamp()')}
        order by r.id for update of r)`,
    [windowId, rereads ?? [], dated],
  );
}

/** When the answer of a window was first loaded: of a replay's window that is long ago. */
function loadedAt(window: string, otherwise: string): string {
  return `coalesce((select k.loaded_at from etl.responses k
            where k.id = coalesce(${window}.response_id,
              (select min(own.id) from etl.responses own where own.window_id = ${window}.id))), ${otherwise})`;
}

async function reread(
  client: ClientBase,
  { rereads = [], rejects, outcome }: SettlingLoad,
): Promise<readonly RejectEntry[]> {
  if (rereads.length === 0) return rejects;
  const open = await client.query<{ id: string; position: number }>(
    `select id, position from etl.rejects where window_id = any($1) and resolved_at is null
      order by id for update`,
    [rereads],
  );
  const still = new Map(rejects.map((reject) => [reject.position, reject]));
  // Of a window that failed nothing was stored: records that pass now are not settled either.
  const passed = outcome.state === 'failed' ? [] : open.rows.filter((row) => !still.has(row.position));
  await client.query('update etl.rejects set resolved_at = clock_timestamp() where id = any($1)', [
    passed.map((row) => row.id),
  ]);
  const kept = open.rows.filter((row) => still.has(row.position));
  await client.query(
    `update etl.rejects r set problems = n.problems
       from jsonb_to_recordset($1::jsonb) as n(id bigint, problems jsonb) where r.id = n.id and r.problems <> n.problems`,
    [JSON.stringify(kept.map((row) => ({ id: row.id, problems: still.get(row.position)?.problems })))],
  );
  const known = new Set(kept.map((row) => row.position));
  return rejects.filter((reject) => !known.has(reject.position));
}
