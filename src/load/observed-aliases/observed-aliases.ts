import { eq, sql } from 'drizzle-orm';
import type { DayRange } from '../../core/days.ts';
import { EXCHANGES } from '../../core/exchanges.ts';
import type { TableDefinition } from '../../declaration/table.ts';
import { tables } from '../../operations/registry.ts';
import type { Database } from '../../postgres/database.ts';
import { type Transaction, transaction } from '../../postgres/transaction.ts';
import { ALL_DAYS, type ChangedDays, forgetEventsDigest, widenDays } from '../../state/derived.ts';
import { aliasOwners, observedAliases } from '../../state/schema/instrument-tables.ts';
import { identify } from './identity.ts';
import { hasDaysOfRows, observeStatement } from './observed-alias-sql.ts';

/** Tables whose rows name instruments. */
export const NAMING_TABLES = tables.filter(({ names }) => names.length > 0);

/**
 * Brings `etl.observed_aliases`, and with it `market.instruments`, up to date with the rows of the changed days. Others
 * read the names of an exchange as they were before until all of them are up to date.
 */
export async function updateObservedAliases(database: Database, changedDays: ChangedDays): Promise<void> {
  for (const exchange of EXCHANGES) {
    const changed = NAMING_TABLES.map((table) => ({ table, ranges: changedDays(table, exchange) }));
    if (changed.every(({ ranges }) => ranges.length === 0)) continue;
    await transaction(database, async (tx) => {
      // The planner takes nearly every row for a name of its own, and would sort them all on disk.
      await tx.execute(sql`set local enable_sort = off`);
      let hasChanged = false;
      for (const { table, ranges } of changed) {
        for (const range of hasDaysOfRows(table) ? ranges : ranges.slice(0, 1)) {
          hasChanged = (await observe(tx, table, exchange, range)) || hasChanged;
        }
      }
      if (hasChanged) await identifyAll(tx, exchange);
    });
  }
}

/** Where the first or last row with a name has gone, the next one is most often within so many days. */
const CLOSE_DAYS = 31;

/**
 * Brings the names of one table's rows up to date. A name whose first or last day was in the range, and that no row of
 * the range has any more, is looked for in a wider range, and at last in all rows.
 *
 * @returns whether instruments may have to be identified anew.
 */
async function observe(
  tx: Transaction,
  table: TableDefinition,
  exchange: string,
  range: DayRange,
): Promise<boolean> {
  const text = observeStatement(table);
  let hasChanged = false;
  for (const { from, to } of hasDaysOfRows(table)
    ? [range, widenDays(range, CLOSE_DAYS), ALL_DAYS]
    : [ALL_DAYS]) {
    const { rows } = await tx.client.query<{ changed: boolean; lost: boolean }>(text, [exchange, from, to]);
    hasChanged ||= rows[0]?.changed === true;
    if (rows[0]?.lost !== true) break;
  }
  return hasChanged;
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
  const changed = stored.flatMap((alias, at) => {
    const identity = identities[at];
    return identity?.instrumentId === alias.instrumentId && identity.precedence === alias.precedence
      ? []
      : [{ id: alias.id, instrument_id: identity?.instrumentId, precedence: identity?.precedence }];
  });
  await writeIdentities(tx, changed);
  await updateAliasOwners(tx, exchange);
  await forgetEventsDigest(tx);
}

/** The values are looked up by the id, in objects, and not joined: see `stored` in the statements. */
async function writeIdentities(
  tx: Transaction,
  changed: readonly { id: number; instrument_id: string | undefined; precedence: number | undefined }[],
): Promise<void> {
  if (changed.length === 0) return;
  const valuesById = (name: 'instrument_id' | 'precedence') =>
    JSON.stringify(Object.fromEntries(changed.map((alias) => [alias.id, alias[name]])));
  await tx.execute(sql`
    update ${observedAliases} o
       set instrument_id = ${valuesById('instrument_id')}::jsonb ->> o.id::text,
           precedence = (${valuesById('precedence')}::jsonb ->> o.id::text)::smallint
     where o.id = any(${sql.param(changed.map(({ id }) => id))}::bigint[])`);
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
