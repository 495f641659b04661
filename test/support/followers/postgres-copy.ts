import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { TableDefinition } from '../../../src/declaration/table.ts';
import { tables } from '../../../src/operations/registry.ts';
import { closeAfterFile } from '../closing.ts';
import { emptyDatabase } from '../database.ts';

const PAGE = fileURLToPath(new URL('../../../docs/history.md', import.meta.url));
const [, SECTION = ''] = readFileSync(PAGE, 'utf8').split('## A copy that follows\n');
/** The statements of the page, in their order. */
const [CREATE, READ, DELETE, INSERT, DIGEST] = [...SECTION.matchAll(/```sql\n([\s\S]*?);\n```/g)].map(
  ([, sql]) => sql as string,
) as [string, string, string, string, string];

const keyOf = (row: string, key: readonly string[]) => key.map((column) => `${row}${column}`).join(', ');
const BHAVCOPY_KEY = ['exchange', 'symbol', 'series', 'trade_date'];

/** A statement of the page, about another table. */
function about({ name, key }: TableDefinition, statement: string): string {
  let text = statement;
  for (const row of ['', 't.', 'r.'])
    text = text.replace(`(${keyOf(row, BHAVCOPY_KEY)})`, `(${keyOf(row, key)})`);
  return text.replaceAll('bhavcopy_cm', name);
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  closeAfterFile(() => client.end());
  await client.query("set timezone = 'UTC'; set datestyle = 'ISO, YMD'");
  return client;
}

/** So many rows are sent at once. */
const AT_ONCE = 2_000;

/** A database with a plain copy of each table, which follows the first one by changes alone, as docs/history.md says. */
export interface PostgresCopy {
  /** Waits until everything up to the newest state of the first database is applied. */
  caughtUp(): Promise<void>;
  /** By table, the digest that the page shows, of the copy and of the first database. */
  digests(): Promise<Record<string, readonly [copy: string | null, first: string | null]>>;
  readonly client: pg.Client;
  /** How often each change was applied. */
  readonly applied: Map<string, number>;
}

export async function openPostgresCopy(firstUrl: string): Promise<PostgresCopy> {
  const [first, listener] = [await connect(firstUrl), await connect(firstUrl)];
  const client = await connect((await emptyDatabase()).url);
  await client.query('create table followed (name text primary key, state bigint not null)');
  for (const table of tables) {
    const { rows } = await first.query<{ format: string }>(about(table, CREATE));
    await client.query(rows[0]?.format ?? '');
    await client.query('insert into followed values ($1, 0)', [table.name]);
  }
  const applied = new Map<string, number>();

  const followTable = async (table: TableDefinition, to: number): Promise<void> => {
    const result = await client.query<{ state: string }>('select state from followed where name = $1', [
      table.name,
    ]);
    const from = Number(result.rows[0]?.state);
    if (from >= to) return;
    await client.query('begin');
    const { rows } = await first.query<{ change: string; row: string }>({
      name: `read ${table.name}`,
      text: about(table, READ),
      values: [from, to],
    });
    for (const { change } of rows) applied.set(change, (applied.get(change) ?? 0) + 1);
    for (let at = 0; at < rows.length; at += AT_ONCE) {
      const some = rows.slice(at, at + AT_ONCE);
      const changed = some.map(({ row }) => row);
      await client.query(about(table, DELETE), [changed]);
      await client.query(about(table, INSERT), [changed, some.map(({ change }) => change)]);
    }
    await client.query('update followed set state = $2 where name = $1', [table.name, to]);
    await client.query('commit');
  };

  const newest = async () => {
    const { rows } = await first.query<{ state: string }>('select market.state() as state');
    return Number(rows[0]?.state);
  };
  /** The tables of which a commit was reported, until they are followed. */
  const changedTables = new Set<string>();
  let following = Promise.resolve();
  let failed: unknown;
  const followTold = async () => {
    while (changedTables.size > 0) {
      const names = [...changedTables];
      changedTables.clear();
      const to = await newest();
      for (const table of tables) if (names.includes(table.name)) await followTable(table, to);
    }
  };
  listener.on('notification', ({ payload = '' }) => {
    const { tables: changed } = JSON.parse(payload) as { tables: { table: string }[] };
    for (const { table } of changed) changedTables.add(table);
    following = following.then(followTold).catch((error) => {
      failed ??= error;
    });
  });
  await listener.query('listen eod');

  return {
    client,
    applied,
    async caughtUp() {
      // Notifications of what was committed before this statement arrive before its result.
      await listener.query('select');
      await following;
      if (failed !== undefined) throw failed;
    },
    async digests() {
      const all = (schema: string) =>
        tables
          .map((table) => {
            const digest = about(table, DIGEST).replace('from ', `from ${schema}`);
            return `select '${table.name}' as name, (${digest}) as digest`;
          })
          .join(' union all ');
      const of = async (database: pg.Client, schema = '') =>
        (await database.query<{ name: string; digest: string | null }>(all(schema))).rows;
      const originals = new Map((await of(first, 'market.')).map(({ name, digest }) => [name, digest]));
      return Object.fromEntries(
        (await of(client)).map(({ name, digest }) => [name, [digest, originals.get(name) ?? null] as const]),
      );
    },
  };
}
