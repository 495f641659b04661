import type pg from 'pg';
import type { ClientBase } from 'pg';
import type { Database } from './database.ts';
import { readOnly } from './read-only.ts';

/** From here on a statement ends with a sentence that helps. */
const SLOW_MS = 5_000;

/** The plan itself is found within this time, or nothing is said. */
const PLAN_MS = 10_000;

/** A table of fewer rows is read in less than a second. */
const LARGE_ROWS = 500_000;

/** An index serves a condition that fewer of the rows match. */
const FEW = 0.01;

/** With more work_mem than this, a few statements at once use up the memory of a server. */
const MOST_WORK_MB = 1_024;

/** A node of what EXPLAIN (FORMAT JSON) shows. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly Schema?: string;
  readonly 'Relation Name'?: string;
  readonly Alias?: string;
  readonly Filter?: string;
  readonly 'Index Cond'?: string;
  readonly 'Plan Rows': number;
  readonly 'Plan Width': number;
  readonly Plans?: readonly PlanNode[];
}

/** A table that is read, or the partition of one. */
interface Read {
  readonly relation: string;
  /** The table itself, for a partition its parent. */
  readonly table: string;
  /** The column that decides the partition, and how many there are; null for a table without them. */
  readonly day: string | null;
  readonly partitions: number;
  readonly rows: number;
  /** The first columns of its indexes. */
  readonly indexed: readonly string[];
}

/** A node that reads a table, and what is known of this table. */
type Scan = Read & { readonly node: PlanNode };

/**
 * What would make a slow statement faster, as far as its plan shows it: the statement is not run again.
 *
 * @param ms how long it took.
 * @returns a sentence; null if it was fast, or is none that has a plan.
 */
export async function slowStatementHelp(
  db: Database,
  text: string,
  ms: number,
  signal: AbortSignal,
): Promise<string | null> {
  if (ms < SLOW_MS) return null;
  return readOnly(db, { timeoutMs: PLAN_MS, signal }, async (client) => {
    const plan = await planOf(client, text);
    const scans = await scansOf(client, plan);
    return (
      hiddenDay(scans) ??
      (await missingIndex(client, scans)) ??
      (await spilledSort(client, plan)) ??
      everyPartition(scans) ??
      (await explainIt(client, text))
    );
  }).catch(() => null);
}

async function planOf(client: ClientBase, text: string): Promise<PlanNode> {
  // Only a single statement has an extended query.
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>({
    text: `explain (verbose, format json) ${text}`,
    queryMode: 'extended',
  } as pg.QueryConfig);
  const [found] = rows;
  if (found === undefined) throw new Error('EXPLAIN returned no plan');
  return found['QUERY PLAN'][0].Plan;
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

const nameOf = (node: PlanNode): string => `${node.Schema}.${node['Relation Name']}`;

/** The tables that a plan reads, those with the most rows first. */
async function scansOf(client: ClientBase, plan: PlanNode): Promise<Scan[]> {
  const nodes = nodesOf(plan).filter((node) => node['Relation Name'] !== undefined);
  const { rows } = await client.query<Read>(
    `select n.nspname || '.' || c.relname as relation, tn.nspname || '.' || t.relname as table,
       (select a.attname from pg_partitioned_table p join pg_attribute a on a.attrelid = t.oid and a.attnum = p.partattrs[0]
         where p.partrelid = t.oid) as day,
       (select count(*)::int from pg_inherits where inhparent = t.oid) as partitions, greatest(c.reltuples, 0)::float8 as rows,
       array(select a.attname::text from pg_index x join pg_attribute a on a.attrelid = c.oid and a.attnum = x.indkey[0]
         where x.indrelid = c.oid and x.indisvalid) as indexed
       from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_inherits i on i.inhrelid = c.oid
       join pg_class t on t.oid = coalesce(i.inhparent, c.oid) join pg_namespace tn on tn.oid = t.relnamespace
      where n.nspname || '.' || c.relname = any ($1)`,
    [nodes.map(nameOf)],
  );
  const sizes = new Map<string, number>();
  for (const { table, rows: size } of rows) sizes.set(table, (sizes.get(table) ?? 0) + size);
  return nodes
    .flatMap((node) =>
      rows.filter(({ relation }) => relation === nameOf(node)).map((read) => ({ ...read, node })),
    )
    .sort((a, b) => (sizes.get(b.table) ?? 0) - (sizes.get(a.table) ?? 0));
}

/** The scans of each large table. */
function byTable(
  scans: readonly Scan[],
): { readonly table: string; readonly rows: number; readonly own: Scan[] }[] {
  return [...new Set(scans.map(({ table }) => table))]
    .map((table) => {
      const own = scans.filter((scan) => scan.table === table);
      const relations = new Map(own.map(({ relation, rows }) => [relation, rows]));
      return { table, own, rows: [...relations.values()].reduce((sum, one) => sum + one, 0) };
    })
    .filter(({ rows }) => rows >= LARGE_ROWS);
}

const readsEveryPartition = (own: readonly Scan[]): boolean =>
  (own[0]?.partitions ?? 0) > 1 && new Set(own.map(({ relation }) => relation)).size === own[0]?.partitions;

/** How a plan shows that a column itself is compared. */
const COMPARISONS = ['(? <', '(? >', '(? =', '(? IS', '< ?)', '> ?)', '= ?)'];

/** A condition on the day that partitions cannot be left out by, because the day is part of an expression. */
function hiddenDay(scans: readonly Scan[]): string | null {
  for (const { table, own } of byTable(scans)) {
    const isHidden = ({ node, day }: Scan) => {
      const column = `${node.Alias}.${day}`;
      const filter = node.Filter ?? '';
      const isCompared = COMPARISONS.some((one) => filter.includes(one.replace('?', column)));
      return filter.includes(column) && !isCompared && node['Index Cond'] === undefined;
    };
    const day = own[0]?.day;
    if (day != null && readsEveryPartition(own) && own.every(isHidden))
      return `all ${own[0]?.partitions} parts of ${table} are read, because the condition on ${day} is on an expression of it: compare ${day} itself, as in ${day} >= '2025-01-01' and ${day} < '2026-01-01'`;
  }
  return null;
}

/** A condition that few rows match, on a column that no index begins with. */
async function missingIndex(client: ClientBase, scans: readonly Scan[]): Promise<string | null> {
  for (const { table, own, rows } of byTable(scans)) {
    const [largest] = own
      .filter(({ node }) => node['Node Type'] === 'Seq Scan')
      .sort((a, b) => b.rows - a.rows);
    const { Filter = '', Alias = '' } = largest?.node ?? {};
    if (largest === undefined || / OR /.test(Filter)) continue;
    const equal =
      /\((\w+)\.(\w+) = (?:'(?:[^']|'')*'(?:::[\w ]+)?|\d+(?:::[\w ]+)?|ANY \('\{[^']*\}'::[\w ]+\[\]\))\)/g;
    for (const [condition, alias, column = ''] of Filter.matchAll(equal)) {
      if (alias !== Alias || largest.indexed.includes(column)) continue;
      const matching = await planOf(client, `select from ${largest.relation} ${Alias} where ${condition}`);
      const [scan] = nodesOf(matching).filter((node) => node['Relation Name'] !== undefined);
      // A scan in parallel shows the rows of one process.
      const estimate = Math.max(matching['Plan Rows'], scan?.['Plan Rows'] ?? 0);
      if (estimate > largest.rows * FEW) continue;
      return `${Math.round(rows).toLocaleString('en')} rows of ${table} are read to find few by ${column}, which no index begins with: create index on ${table} (${column})`;
    }
  }
  return null;
}

/** A sort that is expected to go through files. */
async function spilledSort(client: ClientBase, plan: PlanNode): Promise<string | null> {
  const { rows } = await client.query<{ mb: number; role: string }>(
    "select pg_size_bytes(current_setting('work_mem')) / 1e6::float8 as mb, quote_ident(current_user) as role",
  );
  const { mb = 0, role = '' } = rows[0] ?? {};
  const needed = largestSort(plan) / 1e6;
  // As large in memory as twice the values, at most.
  const wanted = 2 ** Math.ceil(Math.log2(needed * 2));
  if (needed <= mb || wanted > MOST_WORK_MB) return null;
  return `it sorts ${Math.round(needed)} MB by its plan, which with a work_mem of ${Math.round(mb)} MB goes through files: alter role ${role} set work_mem = '${wanted}MB'`;
}

/** The bytes of the largest sort; one below a limit keeps only the first rows. */
function largestSort(node: PlanNode): number {
  if (node['Node Type'] === 'Limit') return 0;
  const own = node['Node Type'] === 'Sort' ? node['Plan Rows'] * node['Plan Width'] : 0;
  return (node.Plans ?? []).map(largestSort).reduce((most, one) => Math.max(most, one), own);
}

/** A table whose partitions are all read, without any condition on what decides them. */
function everyPartition(scans: readonly Scan[]): string | null {
  for (const { table, own } of byTable(scans)) {
    const day = own[0]?.day;
    if (day == null || !readsEveryPartition(own)) continue;
    // An index leaves out most rows of each part.
    if (own.some(({ node }) => node['Node Type'] !== 'Seq Scan' || node.Filter?.includes(`.${day}`)))
      continue;
    return `all ${own[0]?.partitions} parts of ${table} are read: a condition on ${day} leaves out those of other years`;
  }
  return null;
}

/** How to see what takes the time. */
async function explainIt(client: ClientBase, text: string): Promise<string> {
  const { rows } = await client.query<{ view: string }>(
    `select n.nspname || '.' || c.relname as view from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'v' and $1 ~* ('\\m' || n.nspname || '\\.' || c.relname || '\\M') order by position(c.relname in $1) limit 1`,
    [text],
  );
  const [found] = rows;
  const view =
    found === undefined ? '' : `; select pg_get_viewdef('${found.view}', true) shows what the view reads`;
  return `its plan shows no single reason: explain (analyze, buffers), written before the statement, shows which step takes the time${view}`;
}
