import { sha256 } from '../../core/sha256.ts';
import { tables } from '../../operations/registry.ts';
import type { TableDefinition } from '../../operations/table.ts';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';
import { readStateNumber } from '../state/loads/state-numbers.ts';
import { quote } from './merge/merge-sql.ts';

/** Between the values of a row; twice where a value has it, so that no value can pass for two. */
const SEPARATOR = 'chr(31)';
const escaped = (text: string) => `replace(${text}, ${SEPARATOR}, repeat(${SEPARATOR}, 2))`;

/** Postgres functions take at most 100 arguments. */
const MOST_ARGUMENTS = 90;

/**
 * The hash of a row's values, as SQL: of its columns by name, without those that are null, so that a column that is added
 * later changes no digest. 10.5 and 10.50 are the same number.
 */
function rowHash({ fields }: TableDefinition, row: string): string {
  const values = [...fields]
    .sort((a, b) => (a.column < b.column ? -1 : 1))
    .map(({ column, kind }) => {
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

/** The digest of some texts, in an order. */
const digestOfTexts = (text: string, order: string) =>
  `encode(sha256(convert_to(coalesce(string_agg(${text}, '' order by ${order}), ''), 'UTF8')), 'hex')`;

/** The digest of any number of hashes: in groups, because a text of Postgres has at most a gigabyte. */
const digestInGroups = (hashes: string, group: string) =>
  `select ${digestOfTexts('digest', 'part')} as digest from (
     select ${group} as part, ${digestOfTexts('hash', 'hash')} as digest from (${hashes}) hashes group by 1) groups`;

/**
 * SQL of the digest of the values of some rows of a table, whichever loads wrote them and when; NO_ROWS if there are none.
 * It reads nothing but these rows, so it gives the same for a copy of them in another database. The texts of times depend
 * on the settings `timezone` and `datestyle`.
 *
 * @param rows SQL of a relation with the columns of the table.
 */
export const contentSql = (table: TableDefinition, rows: string): string =>
  digestInGroups(`select ${rowHash(table, 't')} as hash from ${rows} t`, 'left(hash, 3)');

const NO_ROWS = sha256('');

/**
 * The digest of the values of all tables in a state, whichever loads wrote them and when: a database that is
 * filled from the same responses has the same.
 */
export async function contentDigest(db: Database, stateNumber: number | null): Promise<string> {
  return transaction(db, async (tx) => {
    // Of one moment, and with texts of dates and times that do not depend on the settings of role and database.
    await tx.client.query(
      "set transaction isolation level repeatable read; set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local statement_timeout = 0",
    );
    const { stateNumber: now } = await readStateNumber(tx, null);
    const parts: string[] = [];
    for (const table of [...tables].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const rows =
        stateNumber === null || stateNumber === now
          ? `market.${quote(table.name)}`
          : `market_history.${quote(`${table.name}_at`)}(${stateNumber})`;
      const { rows: found } = await tx.client.query<{ digest: string }>(contentSql(table, rows));
      // An empty table is left out, because a table that is added later has no rows at first.
      if (found[0]?.digest !== NO_ROWS) parts.push(`${table.name} ${found[0]?.digest}`);
    }
    return sha256(parts.join('\n'));
  });
}
