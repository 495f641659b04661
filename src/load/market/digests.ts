import { sql } from 'drizzle-orm';
import { sha256 } from '../../core/sha256.ts';
import { tablesFilledBy } from '../../operations/operation.ts';
import { dataSets, namesFilling, tables } from '../../operations/registry.ts';
import { LOAD_AUDIT, type TableDefinition } from '../../operations/table.ts';
import type { Database } from '../database/database.ts';
import { type Transaction, transaction } from '../database/transaction.ts';
import { LOADS } from '../state/loads/loads.ts';
import {
  canWriteDigests,
  type DigestedLoad,
  readChain,
  readDigests,
  readRebuilds,
  versionAt,
  writeDigest,
} from '../state/loads/versions.ts';
import { quote } from './merge/merge-sql.ts';

// Each version of the tables has a digest: a chain over the loads up to it, of which each adds the rows that it wrote
// and withdrew. Rows keep their values when they become history, so the digest of an old load can be computed again
// from what is stored, and a row that somebody changed shows in the load that wrote it.

/** How many loads are worked on in one transaction. */
const AT_ONCE = 50;

/** Between the values of a row; twice where a value has it, so that no value can pass for two. */
const SEPARATOR = 'chr(31)';
const escaped = (text: string) => `replace(${text}, ${SEPARATOR}, repeat(${SEPARATOR}, 2))`;

/** Postgres functions take at most 100 arguments. */
const MOST_ARGUMENTS = 90;

/**
 * The hash of a row, as SQL: of its columns by name, without those that are null, so that a column that is added later
 * changes no digest. 10.5 and 10.50 are the same number.
 *
 * @param audit whether the columns that say when and by which load it was written are included.
 */
function rowHash({ fields }: TableDefinition, row: string, audit: boolean): string {
  const columns = new Map<string, string>(fields.map(({ column, kind }) => [column, kind]));
  if (audit) for (const column of Object.keys(LOAD_AUDIT)) columns.set(column, '');
  const values = [...columns]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([column, kind]) => {
      const value = `${row}.${quote(column)}`;
      if (kind === 'text') return `'${column}=' || ${escaped(value)}`;
      return `'${column}=' || ${kind === 'numeric' ? `trim_scale(${value})` : value}::text`;
    });
  const parts: string[] = [];
  for (let at = 0; at < values.length; at += MOST_ARGUMENTS) {
    parts.push(`concat_ws(${SEPARATOR}, ${values.slice(at, at + MOST_ARGUMENTS).join(', ')})`);
  }
  return `encode(sha256(convert_to(concat_ws(${SEPARATOR}, ${parts.join(', ')}), 'UTF8')), 'hex')`;
}

/**
 * The digest of the rows of a table that a load ($1) wrote, and of those that it replaced or withdrew; $2: exchange, $3
 * and $4: its days. Of the load of a rebuild: of all rows of its days, and their history, up to its version ($1).
 */
function rowsSql(table: TableDefinition, isRebuilt: boolean): string {
  const { name, dateColumn } = table;
  const [live, history] = [`market.${quote(name)}`, `market_history.${quote(name)}`];
  const where = `t.exchange = $2 and ${
    dateColumn === null
      ? '$3::date is not null and $4::date is not null'
      : `t.${quote(dateColumn)} between $3 and $4`
  }`;
  const written = rowHash(table, 't', true);
  const of = (column: string) =>
    isRebuilt ? `(select l.state from ${LOADS} l where l.id = t.${column}) <= $1` : `t.${column} = $1`;
  const ending = `concat_ws(' ', t.withdrawn, t.replaced_by_load_id, t.valid_from, t.valid_to, ${written})`;
  const hashes = `select ${written} as hash from ${live} t where ${of('load_id')} and ${where}
      union all select ${written} from ${history} t where ${of('load_id')} and ${where}
      union all select ${ending} from ${history} t where ${of('replaced_by_load_id')} and ${where}`;
  return isRebuilt
    ? digestInGroups(hashes, 'right(hash, 3)')
    : `select ${digestOfTexts('hash', 'hash')} as digest from (${hashes}) rows`;
}

/** The digest of some texts, in an order. */
const digestOfTexts = (text: string, order: string) =>
  `encode(sha256(convert_to(coalesce(string_agg(${text}, '' order by ${order}), ''), 'UTF8')), 'hex')`;

/** The digest of any number of hashes: in groups, because a text of Postgres has at most a gigabyte. */
const digestInGroups = (hashes: string, group: string) =>
  `select ${digestOfTexts('digest', 'part')} as digest from (
     select ${group} as part, ${digestOfTexts('hash', 'hash')} as digest from (${hashes}) hashes group by 1) groups`;

/** The tables that loads of an operation may have changed, in the order of their names. */
const tablesOf = (operation: string): TableDefinition[] =>
  dataSets
    .filter(({ name }) => name === operation)
    .flatMap(tablesFilledBy)
    .sort((a, b) => (a.name < b.name ? -1 : 1));

const tablesChangedBy = ({ operation, rebuilt }: Pick<DigestedLoad, 'operation' | 'rebuilt'>) =>
  rebuilt === null ? tablesOf(operation) : tables.filter(({ name }) => rebuilt.includes(name));

/** Makes texts of dates and times independent of the settings of role and database. */
async function fixTexts({ client }: Transaction): Promise<void> {
  await client.query(
    "set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local statement_timeout = 0",
  );
}

/** Shows the tables as they are now until the transaction ends, whatever is loaded or rebuilt meanwhile. */
async function atOneMoment(tx: Transaction): Promise<void> {
  await tx.client.query('set transaction isolation level repeatable read');
  await fixTexts(tx);
}

/** The digest of the rows of a load. */
async function digestOf(tx: Transaction, load: DigestedLoad): Promise<string> {
  const { loadId, version, exchange, from, to, rebuilt } = load;
  const parts: string[] = [];
  for (const table of from === null ? [] : tablesChangedBy(load)) {
    const values = [rebuilt === null ? loadId : version, exchange, from, to];
    const { rows } = await tx.client.query<{ digest: string }>(rowsSql(table, rebuilt !== null), values);
    parts.push(`${table.name} ${rows[0]?.digest}`);
  }
  return sha256(parts.join('\n'));
}

const chainOf = (before: string, load: DigestedLoad, rows: string) =>
  sha256(
    [before, load.version, load.operation, load.exchange, load.facts, load.rebuilt?.join() ?? '', rows].join(
      ' ',
    ),
  );

/**
 * Computes the digests that are missing, up to a version, and stores them. A replica and a role that may only read
 * store none.
 *
 * @param signal ends it early; what is done stays.
 * @returns the digest of all versions up to that one; null if there is no load, or it ended early.
 */
export async function digestUpTo(
  db: Database,
  version: number,
  signal?: AbortSignal,
): Promise<string | null> {
  const canStore = await canWriteDigests(db.drizzle);
  let [after, chain, isDone] = [0, '', false];
  while (!isDone) {
    if (signal?.aborted === true) return null;
    await transaction(db, async (tx) => {
      await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended('eod:digests', 0))`);
      await fixTexts(tx);
      const missing = await readDigests(tx, { after, upTo: version, limit: AT_ONCE, isMissing: true });
      if (missing[0] !== undefined) chain = (await readChain(tx, missing[0].version - 1)) ?? chain;
      for (const load of missing) {
        const rows = await digestOf(tx, load);
        chain = chainOf(chain, load, rows);
        if (canStore) await writeDigest(tx, { loadId: load.loadId, rows, chain });
      }
      after = missing.at(-1)?.version ?? after;
      isDone = missing.length < AT_ONCE;
    });
  }
  return (await readChain(db.drizzle, version)) ?? (chain === '' ? null : chain);
}

/** What is wrong with a version. */
interface Difference extends Pick<DigestedLoad, 'operation' | 'exchange' | 'from' | 'to'> {
  readonly state: number;
  readonly load: number;
  readonly problem: string;
}

export interface Verification {
  /** Null if it was interrupted before anything was found that differs. */
  readonly isIntact: boolean | null;
  readonly state: number;
  readonly digest: string | null;
  /** A later state if rebuilds until that one replaced rows of the loads: their digests cover these rows. */
  readonly checkedTo: number;
  /** Loads whose rows were digested again. */
  readonly checked: number;
  /** Loads whose rows a later rebuild covers, all of their days and tables: of themselves only the chain was checked. */
  readonly replaced: number;
  readonly differences: readonly Difference[];
  /** Rows of no load, or of days that their load did not change. */
  readonly strayRows: readonly { readonly table: string; readonly rows: number }[];
}

type Rebuild = Awaited<ReturnType<typeof readRebuilds>>[number];

/** The tables of a load, and those of them that a later rebuild may have changed on days of the load. */
function comparedWith(rebuilds: readonly Rebuild[], load: DigestedLoad) {
  const { version, exchange, from, to } = load;
  const names = from === null || to === null ? [] : tablesChangedBy(load).map(({ name }) => name);
  const later = rebuilds.filter((one) => one.version > version && one.exchange === exchange);
  const some = (meets: (rebuild: Rebuild) => boolean) => (name: string) =>
    later.some((one) => one.rebuilt?.includes(name) === true && meets(one));
  return {
    /** Whether rebuilds contain all days, instruments and tables of the load: then their digests cover all of its rows. */
    isCovered:
      names.length > 0 &&
      names.every(some((one) => one.isWhole && isUpTo(one.from, from ?? '') && isUpTo(to ?? '', one.to))),
    /** True if a rebuild may have changed some of its rows. */
    isTouched: names.some(some((one) => isUpTo(one.from, to ?? '') && isUpTo(from ?? '', one.to))),
  };
}

/** True if a day, which may be infinite, is not after another one. */
const isUpTo = (one: string, other: string) => one === '-infinity' || other === 'infinity' || one <= other;

/** At most so many differences are listed. */
const MOST_DIFFERENCES = 100;

/**
 * Computes again, from the stored rows and their history, the digest of each load up to a version, and up to the last
 * rebuild, which may have replaced rows of these loads; compares them with those that are stored.
 */
export async function verify(db: Database, version: number, signal: AbortSignal): Promise<Verification> {
  const checkedTo = Math.max(version, (await readRebuilds(db.drizzle)).at(-1)?.version ?? 0);
  const digest = await digestUpTo(db, version, signal);
  if (checkedTo > version) await digestUpTo(db, checkedTo, signal);
  const differences: Difference[] = [];
  let [checked, replaced, chain, after] = [0, 0, '', 0];
  while (!signal.aborted && differences.length < MOST_DIFFERENCES) {
    const loads = await readDigests(db.drizzle, { after, upTo: checkedTo, limit: AT_ONCE, isMissing: false });
    if (loads.length === 0) break;
    await transaction(db, async (tx) => {
      await atOneMoment(tx);
      const rebuilds = await readRebuilds(tx);
      for (const load of loads) {
        if (signal.aborted) return;
        const { isCovered, isTouched } = comparedWith(rebuilds, load);
        const rows = isCovered ? load.rowsDigest : await digestOf(tx, load);
        if (isCovered) replaced += 1;
        else checked += 1;
        chain = chainOf(chain, load, load.rowsDigest ?? rows ?? '');
        // Without a stored digest, on a replica, there is nothing to compare it with.
        if (load.chainDigest === null) continue;
        const problem =
          rows !== load.rowsDigest
            ? isTouched
              ? 'a rebuild that did not end well has replaced some of its rows, so the others cannot be checked'
              : 'its rows are not those that it wrote'
            : chain !== load.chainDigest
              ? 'its digest does not follow from the one before'
              : null;
        chain = load.chainDigest;
        if (problem === null) continue;
        const { loadId, operation, exchange, from, to } = load;
        differences.push({ state: load.version, load: loadId, operation, exchange, from, to, problem });
      }
    });
    after = loads.at(-1)?.version ?? checkedTo;
  }
  const strayRows = await findStrayRows(db, signal);
  const isDifferent = differences.length > 0 || strayRows.length > 0;
  return {
    isIntact: isDifferent ? false : signal.aborted ? null : true,
    state: version,
    digest,
    checkedTo,
    checked,
    replaced,
    differences,
    strayRows,
  };
}

/**
 * Rows that no digest covers: of a load that is not there, of another exchange, of an operation that does not fill the
 * table, or of a day that the load did not change.
 */
async function findStrayRows(db: Database, signal: AbortSignal): Promise<{ table: string; rows: number }[]> {
  const found: { table: string; rows: number }[] = [];
  await transaction(db, async (tx) => {
    await fixTexts(tx);
    for (const table of tables) {
      const { name, dateColumn } = table;
      for (const schema of ['market', 'market_history']) {
        if (signal.aborted) return;
        const isOutside =
          dateColumn === null
            ? 'false'
            : `t.${quote(dateColumn)} not between l.changed_from and l.changed_to`;
        const { rows } = await tx.client.query<{ rows: number }>(
          `select count(*)::int as rows from ${schema}.${quote(name)} t left join ${LOADS} l on l.id = t.load_id
            where l.id is null or l.exchange <> t.exchange or l.operation <> all ($1)
               or l.changed_from is null or ${isOutside}`,
          [namesFilling([table])],
        );
        const strays = rows[0]?.rows ?? 0;
        if (strays > 0) found.push({ table: `${schema}.${name}`, rows: strays });
      }
    }
  });
  return found;
}

/**
 * SQL of the digest of the values of some rows of a table, whichever loads wrote them and when; NO_ROWS if there are none.
 * It reads nothing but these rows, so it gives the same for a copy of them in another database. The texts of times depend
 * on the settings `timezone` and `datestyle`.
 *
 * @param rows SQL of a relation with the columns of the table.
 */
export const contentSql = (table: TableDefinition, rows: string): string =>
  digestInGroups(`select ${rowHash(table, 't', false)} as hash from ${rows} t`, 'left(hash, 3)');

const NO_ROWS = sha256('');

/**
 * The digest of the values of all tables in a version, whichever loads wrote them and when: a rebuild from the
 * responses has the same.
 */
export async function contentDigest(db: Database, version: number | null): Promise<string> {
  return transaction(db, async (tx) => {
    await atOneMoment(tx);
    const { version: now } = await versionAt(tx, null);
    const parts: string[] = [];
    for (const table of [...tables].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const rows =
        version === null || version === now
          ? `market.${quote(table.name)}`
          : `market_history.${quote(`${table.name}_at`)}(${version})`;
      const { rows: found } = await tx.client.query<{ digest: string }>(contentSql(table, rows));
      // An empty table is left out, because a table that is added later has no rows at first.
      if (found[0]?.digest !== NO_ROWS) parts.push(`${table.name} ${found[0]?.digest}`);
    }
    return sha256(parts.join('\n'));
  });
}
