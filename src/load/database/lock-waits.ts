import pg from 'pg';
import type { Logger } from '../../core/log.ts';

/** A session of eod that waits for a lock, and who holds it. */
interface LockWait {
  readonly pid: number;
  /** `held by pid 4711 (psql, user ana, 10.0.0.7), in its transaction since …, its last statement began …`. */
  readonly heldBy: string;
}

/** The holder of a lock is looked up after this share of the lock timeout, while the wait still lasts. */
const LOOK_UP_AFTER = 1 / 3;

/** A role that is not a superuser sees only pid, user and application of other users' sessions; the rest is null. */
const WAITS = `
  select l.pid, string_agg(distinct format('pid %s (%s)%s%s', h.pid,
           concat_ws(', ', nullif(h.application_name, ''), 'user ' || h.usename, h.client_addr::text),
           ', in its transaction since ' || to_char(h.xact_start, 'YYYY-MM-DD HH24:MI:SSOF'),
           ', its last statement began ' || to_char(h.query_start, 'YYYY-MM-DD HH24:MI:SSOF')), '; ') as held_by
    from pg_locks l join pg_stat_activity w on w.pid = l.pid
   cross join lateral unnest(pg_blocking_pids(l.pid)) as blocking (pid)
    join pg_stat_activity h on h.pid = blocking.pid
   where not l.granted and w.datname = current_database() and w.application_name like 'eod%'
     and l.waitstart <= clock_timestamp() - make_interval(secs => $1)
   group by l.pid`;

/** Sessions of eod in this database that have waited for a lock for at least this long. */
async function longLockWaits(client: pg.Client, milliseconds: number): Promise<LockWait[]> {
  const found = await client.query<{ pid: number; held_by: string }>(WAITS, [milliseconds / 1_000]);
  return found.rows.map(({ pid, held_by }) => ({ pid, heldBy: `held by ${held_by}` }));
}

/** The part of a pg connection that its types leave out: it emits an error before the client handles it. */
interface Connection {
  prependListener(event: 'errorMessage', listener: (error: { code?: string; message: string }) => void): void;
}

/**
 * Adds to the error of a lock timeout who holds the lock. Postgres cannot say that once the wait has ended, so it is
 * looked up while connections of the pool have been in use for long; on a separate connection, because all of the
 * pool's may be waiting.
 *
 * @returns a function that stops this.
 */
export function nameLockHolders(pool: pg.Pool, url: string, lockTimeoutMs: number, log?: Logger): () => void {
  const heldBy = new Map<number, string>();
  const inUseSince = new Map<pg.ClientBase, number>();
  // The types of pg leave out the process behind a connection.
  const pidOf = (client: pg.ClientBase) => (client as unknown as { processID: number }).processID;
  pool.on('connect', (client) => {
    const { connection } = client as unknown as { connection: Connection };
    connection.prependListener('errorMessage', (error) => {
      if (error.code !== '55P03') return;
      error.message += `: ${heldBy.get(pidOf(client)) ?? 'who holds the lock is not known'}`;
    });
  });
  pool.on('acquire', (client) => inUseSince.set(client, Date.now()));
  pool.on('release', (_error, client) => {
    inUseSince.delete(client);
    heldBy.delete(pidOf(client));
  });
  pool.on('remove', (client) => inUseSince.delete(client));

  const afterMs = lockTimeoutMs * LOOK_UP_AFTER;
  let looking = false;
  async function look(): Promise<void> {
    const long = [...inUseSince.values()].some((since) => Date.now() - since >= afterMs);
    if (!long || looking) return;
    looking = true;
    const client = new pg.Client({ connectionString: url, application_name: 'eod locks' });
    client.on('error', () => undefined);
    try {
      await client.connect();
      for (const wait of await longLockWaits(client, afterMs)) {
        if (heldBy.get(wait.pid) === wait.heldBy) continue;
        heldBy.set(wait.pid, wait.heldBy);
        log?.warn(wait, 'waits for a lock');
      }
    } catch (error) {
      log?.debug({ err: error }, 'could not look up who holds a lock');
    } finally {
      looking = false;
      await client.end().catch(() => undefined);
    }
  }
  const timer = setInterval(() => void look(), afterMs);
  timer.unref();
  return () => clearInterval(timer);
}
