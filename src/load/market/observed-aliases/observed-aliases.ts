import { eq, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { addDays, isDay } from '../../../core/days.ts';
import { EXCHANGES } from '../../../core/exchanges.ts';
import { dataSetsFilling, namesFilling, tables } from '../../../operations/registry.ts';
import type { Database } from '../../database/database.ts';
import { lockUntilCommit, type Transaction, transaction } from '../../database/transaction.ts';
import { loadsAfter } from '../../state/loads/loads.ts';
import { versionAt } from '../../state/loads/versions.ts';
import { aliasOwners, aliasProgress, observedAliases } from '../../state/schema/instrument-tables.ts';
import { identify } from './identity.ts';
import { observedAliasSql } from './observed-alias-sql.ts';

/** How many loads' names are added in one transaction. */
const LOADS_AT_ONCE = 500;

/** Of how many years: the transaction locks the partitions of each, and their indexes. */
const YEARS_AT_ONCE = 8;

/** Why the names of an exchange could not be brought up to date. */
interface NamesFailure {
  readonly exchange: string;
  readonly error: unknown;
  /** The run of the first load whose names are missing; null where there is none. */
  readonly runId: number | null;
}

/**
 * Brings `etl.observed_aliases`, and with it `market.instruments`, up to date with all loads committed so far. Each
 * load has a version, and versions are in the order of the commits, so it is enough to store the one that was reached per
 * exchange. Called before a run ends, and from time to time.
 *
 * @returns the exchanges that could not be brought up to date; others are. The next call tries these again.
 */
export async function updateObservedAliases(database: Database): Promise<NamesFailure[]> {
  const failures: NamesFailure[] = [];
  for (const exchange of EXCHANGES) {
    let next: { readonly runId: number } | undefined;
    try {
      for (let more = true, limit = LOADS_AT_ONCE; more; ) {
        // Checked without the lock first, because nearly always there is nothing to do.
        const reached = await readProgress(database.drizzle, exchange);
        [next] = await loadsAfter(database.drizzle, groupOf(exchange), reached ?? 0, 1);
        if (reached !== null && next === undefined) break;
        try {
          more = await transaction(database, (tx) => addLoads(tx, exchange, limit));
        } catch (error) {
          if (limit === 1) throw error;
          // One by one, so that those before the one that fails are brought in, and it is known which one that is.
          limit = 1;
        }
      }
    } catch (error) {
      failures.push({ exchange, error, runId: next?.runId ?? null });
    }
  }
  return failures;
}

/** Operations that fill tables whose rows name instruments. */
const naming = namesFilling(tables.filter(({ names }) => names.length > 0));

const groupOf = (exchange: string) => ({ operations: naming, exchange });

/**
 * Adds the names of the next loads of an exchange. If one of them withdrew or renamed a row on the first or last day of a
 * name, all names of the exchange are read again.
 *
 * @returns whether there may be more loads.
 */
async function addLoads(tx: Transaction, exchange: string, limit: number): Promise<boolean> {
  if (await fillExchange(tx, exchange)) return false;
  const next = await loadsAfter(tx, groupOf(exchange), (await readProgress(tx, exchange)) ?? 0, limit);
  const loads = ofFewYears(next);
  const last = loads.at(-1);
  if (last === undefined) return false;
  // The planner takes nearly every row for a name of its own, and would sort them all on disk.
  await tx.execute(sql`set local enable_sort = off`);
  let changed = false;
  for (const table of tables) {
    const filling = dataSetsFilling([table]);
    const own = loads.filter(({ operation }) => filling.some(({ name }) => name === operation));
    if (own.length === 0) continue;
    const days = table.dateColumn === null ? [] : nearbyDays(own);
    const values = [exchange, own.map(({ id }) => id), ...days.flat()];
    for (const statements of observedAliasSql(table)) {
      if (await isTrue(tx, statements.areOutdated(days.length), values)) {
        await readAllNames(tx, exchange);
        return false;
      }
      changed = (await isTrue(tx, statements.observe(days.length), values)) || changed;
    }
  }
  if (changed) await identifyAll(tx, exchange);
  await writeProgress(tx, exchange, last.version, changed);
  return loads.length < next.length || next.length === limit;
}

/** The one value that a statement returns. */
async function isTrue({ client }: Transaction, statement: string, values: readonly unknown[]) {
  const { rows } = await client.query<[boolean]>({ text: statement, values: [...values], rowMode: 'array' });
  return rows[0]?.[0] === true;
}

/** The first of these loads that together changed rows of no more than `YEARS_AT_ONCE` years, but at least one. */
function ofFewYears<Load extends { readonly from: string; readonly to: string }>(
  loads: readonly Load[],
): readonly Load[] {
  const years = new Set<number>();
  const beyond = loads.findIndex(({ from, to }) => {
    if (!isDay(from) || !isDay(to)) return false;
    for (let year = Number(from.slice(0, 4)); year <= Number(to.slice(0, 4)); year += 1) years.add(year);
    return years.size > YEARS_AT_ONCE;
  });
  return beyond === -1 ? loads : loads.slice(0, Math.max(beyond, 1));
}

/** Days that are at most so many days apart are read together. */
const NEARBY_DAYS = 14;

/** The first and last days of the ranges that loads changed, so that no years are read that lie between two of them. */
function nearbyDays(
  loads: readonly { readonly from: string; readonly to: string }[],
): [from: string, to: string][] {
  const ranges: [from: string, to: string][] = [];
  for (const { from, to } of loads.toSorted((a, b) => (a.from < b.from ? -1 : 1))) {
    const last = ranges.at(-1);
    // A load that also fills a table without days has changed all days, `-infinity` to `infinity`.
    const reach = last && (isDay(last[1]) ? addDays(last[1], NEARBY_DAYS) : last[1]);
    if (last === undefined || reach === undefined || from > reach) ranges.push([from, to]);
    else if (to > last[1]) last[1] = to;
  }
  return ranges;
}

async function readProgress(db: NodePgDatabase, exchange: string): Promise<number | null> {
  const [found] = await db
    .select({ version: aliasProgress.state })
    .from(aliasProgress)
    .where(eq(aliasProgress.exchange, exchange));
  return found?.version ?? null;
}

async function writeProgress(
  tx: Transaction,
  exchange: string,
  version: number,
  ownersChanged: boolean,
): Promise<void> {
  const set = ownersChanged ? { state: version, owners_state: version } : { state: version };
  await tx
    .insert(aliasProgress)
    .values({ exchange, ...set })
    .onConflictDoUpdate({ target: aliasProgress.exchange, set });
  await tx.execute(sql`select etl.keep_event_sessions(${exchange})`);
}

/**
 * Has all names of an exchange read again by the process that updates them next; until then they stay as they are. For
 * loads after which rows carry the numbers of other loads. Waits for processes that bring in names, which might store
 * their progress afterwards otherwise.
 */
export async function rereadNames(tx: Transaction, exchange: string): Promise<void> {
  await lockNames(tx, exchange);
  await tx.delete(aliasProgress).where(eq(aliasProgress.exchange, exchange));
}

const lockNames = (tx: Transaction, exchange: string) => lockUntilCommit(tx, `eod:instruments:${exchange}`);

/** Fills `etl.observed_aliases`, and what depends on it, for exchanges that it has no progress of. */
export async function fillObservedAliases(tx: Transaction): Promise<void> {
  // All of them first: a process that holds one waits for the table of all exchanges that the first of them locks.
  for (const exchange of EXCHANGES) await lockNames(tx, exchange);
  for (const exchange of EXCHANGES) {
    await fillExchange(tx, exchange);
  }
}

/**
 * Takes the lock for changes of the exchange's names. If none were ever added, as in a migration, or all are to be read
 * again, reads all of its rows.
 *
 * @returns whether all rows were read.
 */
async function fillExchange(tx: Transaction, exchange: string): Promise<boolean> {
  await lockNames(tx, exchange);
  if ((await readProgress(tx, exchange)) !== null) return false;
  await readAllNames(tx, exchange);
  return true;
}

async function readAllNames(tx: Transaction, exchange: string): Promise<void> {
  // Read before the rows, so that what is loaded meanwhile is added again.
  const { version } = await versionAt(tx, null);
  await tx.delete(observedAliases).where(eq(observedAliases.exchange, exchange));
  for (const table of tables) {
    for (const { observeAll } of observedAliasSql(table)) await tx.client.query(observeAll, [exchange]);
  }
  await identifyAll(tx, exchange);
  await writeProgress(tx, exchange, version, true);
}

/** Identifies the instrument of each observed alias of an exchange, and writes what differs from what is stored. */
async function identifyAll(tx: Transaction, exchange: string): Promise<void> {
  const stored = await tx
    .select({
      id: observedAliases.id,
      exchange: observedAliases.exchange,
      symbol: observedAliases.symbol,
      series: observedAliases.series,
      isin: observedAliases.isin,
      link: observedAliases.link,
      scripCode: observedAliases.scrip_code,
      firstSeen: observedAliases.first_seen,
      instrumentId: observedAliases.instrument_id,
      precedence: observedAliases.precedence,
    })
    .from(observedAliases)
    .where(eq(observedAliases.exchange, exchange));
  const identities = identify(stored);
  const changed = stored.flatMap((one, at) => {
    const identity = identities[at];
    return identity?.instrumentId === one.instrumentId && identity.precedence === one.precedence
      ? []
      : [{ id: one.id, instrument_id: identity?.instrumentId, precedence: identity?.precedence }];
  });
  await writeIdentities(tx, changed);
  await updateAliasOwners(tx, exchange);
}

/** The values are looked up by the id, in objects, and not joined: see `stored` in the statements. */
async function writeIdentities(
  tx: Transaction,
  changed: readonly { id: number; instrument_id: string | undefined; precedence: number | undefined }[],
): Promise<void> {
  if (changed.length === 0) return;
  const valueIn = (name: 'instrument_id' | 'precedence') => {
    const values = JSON.stringify(Object.fromEntries(changed.map((one) => [one.id, one[name]])));
    return sql`(${values}::jsonb ->> ${observedAliases.id}::text)::${sql.raw(observedAliases[name].getSQLType())}`;
  };
  const ids = sql.param(changed.map(({ id }) => id));
  await tx
    .update(observedAliases)
    .set({ instrument_id: valueIn('instrument_id'), precedence: valueIn('precedence') })
    .where(sql`${observedAliases.id} = any(${ids}::bigint[])`);
}

/** For more rows than this Postgres needs statistics. */
const MANY_ROWS = 500;

/** Updates `etl.alias_owners` of an exchange. Written as SQL, because it reads a view of `market`, and drizzle has no materialized CTEs. */
async function updateAliasOwners(tx: Transaction, exchange: string): Promise<void> {
  const { rowCount } = await tx.execute(sql`
    with now as materialized (
      select a.exchange, a.kind, a.alias as symbol, a.series, a.valid_from, a.valid_to, a.instrument_id,
             coalesce(second.share_id, a.instrument_id) as share_id
        from market.instrument_aliases a left join lateral (
          select case when a.exchange = 'NSE' then left(a.instrument_id, -length('/' || a.series))
                      else (select s.instrument_id from ${observedAliases} s
                             where s.exchange = o.exchange and s.isin = o.isin and s.isin <> '' and s.precedence < 2
                             order by s.first_seen, s.instrument_id limit 1) end as share_id
            from ${observedAliases} o
           where o.exchange = a.exchange and o.symbol = a.alias and o.series = a.series
             and o.instrument_id = a.instrument_id and o.precedence = 2
           order by o.last_seen desc, o.isin desc limit 1) as second on a.kind = 'series'
       where a.exchange = ${exchange} and a.kind in ('series', 'symbol')
         -- Where a name passes to several instruments on one day, it is the last one's; the ranges of the others are
         -- empty and begin on the same day.
         and a.valid_from < a.valid_to
    ), gone as (
      delete from ${aliasOwners} o using (
        select kind, symbol, series, valid_from from ${aliasOwners} where exchange = ${exchange}
        except select kind, symbol, series, valid_from from now) as n
       where o.exchange = ${exchange} and (o.kind, o.symbol, o.series, o.valid_from) = (n.kind, n.symbol, n.series, n.valid_from)
    )
    insert into ${aliasOwners} as o (exchange, kind, symbol, series, valid_from, valid_to, instrument_id, share_id)
    select * from now
        on conflict (exchange, kind, symbol, series, valid_from) do update
       set valid_to = excluded.valid_to, instrument_id = excluded.instrument_id, share_id = excluded.share_id
     where (o.valid_to, o.instrument_id, o.share_id) is distinct from (excluded.valid_to, excluded.instrument_id, excluded.share_id)`);
  // Without statistics Postgres takes the table to be small, and queries right after the first import would join it row
  // by row.
  if ((rowCount ?? 0) > MANY_ROWS) await tx.execute(sql`analyze ${aliasOwners}`);
}
