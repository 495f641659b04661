import type { ClientBase } from 'pg';
import { EXCHANGES } from '../../../operations/operation.ts';
import { tables } from '../../../operations/registry.ts';
import type { TableDefinition } from '../../../operations/table.ts';
import { identify, type ObservedAlias } from './identity.ts';
import { type ObservedAliasSql, observedAliasSql, SYMBOL_LENGTH } from './observed-aliases-sql.ts';

/** Rows a load wrote, all within these days. */
export interface Written {
  readonly table: TableDefinition;
  readonly exchange: string;
  readonly loadId: number;
  readonly from: string;
  readonly to: string;
  /** Were rows changed or withdrawn, beside new ones? */
  readonly replaced: boolean;
}

/** The names by which a row of `etl.observed_aliases` is connected with others. */
interface Names {
  readonly symbol: string;
  readonly isin: string;
  readonly scrip_code: string;
}

/** For more symbols than this it is quicker to read all observed aliases of the exchange. */
const MANY_SYMBOLS = 500;

/**
 * Updates `etl.observed_aliases`, and with it `market.instruments`, after a load has written rows. To be
 * called late in the load's transaction, because from here on loads of the same exchange wait for one another.
 */
export async function updateObservedAliases(client: ClientBase, written: readonly Written[]): Promise<void> {
  const naming = written.filter(({ table }) => table.names.length > 0);
  for (const exchange of [...new Set(naming.map((one) => one.exchange))].sort()) {
    if (await fillExchange(client, exchange)) continue;
    const changed: Names[] = [];
    for (const { table, loadId, from, to, replaced } of naming.filter((one) => one.exchange === exchange)) {
      const asked = [exchange, loadId, ...(table.dateColumn === null ? [] : [from, to])];
      for (const sql of observedAliasSql(table)) {
        if (replaced) changed.push(...(await redateUnconfirmed(client, sql, asked)));
        changed.push(...(await client.query<Names>(sql.observe, asked)).rows);
      }
    }
    if (changed.length > 0) await identifyAll(client, exchange, await familyOf(client, exchange, changed));
  }
}

/** Corrects the days of observed aliases that changed rows no longer confirm, and answers with those. */
async function redateUnconfirmed(
  client: ClientBase,
  sql: ObservedAliasSql,
  asked: readonly (string | number)[],
): Promise<Names[]> {
  const found = await client.query<Names & { readonly id: string }>(sql.selectUnconfirmed, [...asked]);
  if (found.rows.length === 0) return [];
  const ids = found.rows.map((row) => row.id);
  const symbols = [...new Set(found.rows.map((row) => row.symbol))];
  const identified = symbols.every((symbol) => symbol !== '' && symbol.length < SYMBOL_LENGTH);
  await client.query(
    identified ? sql.redate : sql.redateByAllRows,
    identified ? [asked[0], ids, symbols] : [asked[0], ids],
  );
  return found.rows;
}

/** Fills `etl.observed_aliases` where rows were loaded before it existed. To be called inside a transaction. */
export async function fillObservedAliases(client: ClientBase): Promise<void> {
  for (const exchange of EXCHANGES) await fillExchange(client, exchange);
}

/**
 * Waits for other loads of the exchange. Where it has no observed aliases yet, reads all its rows: a
 * migration does that, or a load that comes before it.
 *
 * @returns whether they were read now.
 */
async function fillExchange(client: ClientBase, exchange: string): Promise<boolean> {
  await client.query("select pg_advisory_xact_lock(hashtextextended('eod|instruments|' || $1, 0))", [
    exchange,
  ]);
  const known = await client.query('select from etl.observed_aliases where exchange = $1 limit 1', [
    exchange,
  ]);
  if (known.rowCount !== 0) return false;
  for (const table of tables) {
    for (const { observeAll } of observedAliasSql(table)) await client.query(observeAll, [exchange]);
  }
  await identifyAll(client, exchange, await allOf(client, exchange));
  return true;
}

interface Stored extends Names {
  readonly id: string;
  readonly series: string;
  readonly link: string;
  readonly first_seen: string;
  readonly instrument_id: string | null;
  readonly precedence: number;
}

const COLUMNS = `id, symbol, series, isin, scrip_code, link, to_char(first_seen, 'YYYY-MM-DD') as first_seen, instrument_id, precedence`;

async function allOf(client: ClientBase, exchange: string): Promise<Stored[]> {
  const found = await client.query<Stored>(
    `select ${COLUMNS} from etl.observed_aliases where exchange = $1`,
    [exchange],
  );
  return found.rows;
}

/** All observed aliases connected with these names, directly or by others: by symbol, ISIN or (BSE) scrip code. */
async function familyOf(client: ClientBase, exchange: string, names: readonly Names[]): Promise<Stored[]> {
  const symbols = new Set<string>();
  const isins = new Set<string>();
  const codes = new Set<string>();
  const add = ({ symbol, isin, scrip_code }: Names) => {
    if (symbol !== '') symbols.add(symbol);
    if (isin !== '') isins.add(isin);
    if (exchange === 'BSE' && scrip_code !== '0') codes.add(scrip_code);
  };
  for (const name of names) add(name);
  for (;;) {
    if (symbols.size > MANY_SYMBOLS) return allOf(client, exchange);
    const before = symbols.size + isins.size + codes.size;
    const found = await client.query<Stored>(
      `select ${COLUMNS} from etl.observed_aliases where exchange = $1
         and (symbol = any($2) or (isin <> '' and isin = any($3)) or (scrip_code > 0 and scrip_code = any($4)))`,
      [exchange, [...symbols], [...isins], [...codes]],
    );
    for (const row of found.rows) add(row);
    if (symbols.size + isins.size + codes.size === before) return found.rows;
  }
}

/** Identifies the instrument of each observed alias and writes those that differ from what is stored. */
async function identifyAll(client: ClientBase, exchange: string, family: readonly Stored[]): Promise<void> {
  const identities = identify(family.map((row) => observedAliasOf(exchange, row)));
  const changed = family
    .map((row, at) => ({ row, identity: identities[at] as (typeof identities)[number] }))
    .filter(
      ({ row, identity }) =>
        row.instrument_id !== identity.instrumentId || row.precedence !== identity.precedence,
    );
  if (changed.length === 0) return;
  await client.query(
    `update etl.observed_aliases s set instrument_id = n.instrument_id, precedence = n.precedence
       from unnest($1::bigint[], $2::text[], $3::smallint[]) as n(id, instrument_id, precedence) where s.id = n.id`,
    [
      changed.map(({ row }) => row.id),
      changed.map(({ identity }) => identity.instrumentId),
      changed.map(({ identity }) => identity.precedence),
    ],
  );
}

function observedAliasOf(exchange: string, row: Stored): ObservedAlias {
  const { symbol, series, isin, link } = row;
  return {
    exchange,
    symbol,
    series,
    isin,
    link,
    scripCode: Number(row.scrip_code),
    firstSeen: row.first_seen,
  };
}
