import { brotliDecompressSync } from 'node:zlib';
import type pg from 'pg';
import type { Row, TableDefinition } from '../../../src/declaration/table.ts';
import { readCsvFile } from '../../../src/extract/files/read-file.ts';
import { readResponse } from '../../../src/extract/index.ts';
import { operationNamed, operations } from '../../../src/operations/registry.ts';
import { withClient } from '../query.ts';

const TIME_ZONE = 'Asia/Kolkata';

interface KeptResponse {
  readonly operation: string;
  readonly exchange: string;
  readonly from: string;
  readonly to: string;
  readonly instruments: string[];
  readonly params: Record<string, string>;
  readonly filtered: boolean;
  readonly calledOn: string;
  readonly contentType: string | null;
  readonly body: Buffer;
}

/** Kept responses that were loaded, in the order in which they were fetched. */
const KEPT_RESPONSES = `
  select r.operation, r.exchange, r.from_date::text as "from", r.to_date::text as "to", r.instruments, r.params, r.is_filtered as "filtered",
    r.called_on::text as "calledOn", r.content_type as "contentType", b.body
    from etl.responses r join etl.response_bodies b using (hash)
   where exists (select from etl.loads l where l.position = r.position)
   order by r.position`;

/** What a response says of its tables, and whether it lists all rows it is about. */
function read(kept: KeptResponse): {
  batches: readonly { table: TableDefinition; rows: readonly Row[] }[];
  whole: boolean;
} {
  const body = brotliDecompressSync(kept.body);
  if (kept.params.file !== undefined) {
    const tradingDays = readCsvFile(kept.params.file, body, TIME_ZONE);
    const tradingDay = tradingDays.find((day) => day.exchange === kept.exchange && day.day === kept.from);
    const [shape] = operationNamed(kept.operation).shapes;
    return {
      batches: [
        { table: shape.table, rows: tradingDay?.rows ?? [] },
        ...(tradingDay?.also ? [tradingDay.also] : []),
      ],
      whole: tradingDay?.complete ?? false,
    };
  }
  const raw = { body, contentType: kept.contentType, bytes: 0 };
  const response = readResponse(operationNamed(kept.operation), kept, raw, {
    accessKey: '',
    timeZone: TIME_ZONE,
  });
  return {
    batches: response.batches,
    whole: kept.instruments.length === 0 && !kept.filtered && response.rejects.length === 0,
  };
}

interface KnownRow {
  row: Row;
  live: boolean;
}

/**
 * Applies all kept responses in the order in which they were fetched, by means of its own, and says where the tables
 * differ from what comes out. The source of the suite never withdraws a row, so none of its responses may.
 */
export async function checkFold(url: string): Promise<string[]> {
  return withClient(url, async (client) => {
    const problems: string[] = [];
    // Not those that are computed from others.
    const tables = operations.flatMap(({ shapes }) => shapes.map(({ table }) => table));
    const known = new Map(tables.map((table) => [table, new Map<string, KnownRow>()]));
    for (const kept of (await client.query<KeptResponse>(KEPT_RESPONSES)).rows) {
      const { batches, whole } = read(kept);
      for (const { table, rows } of batches)
        apply(known.get(table) ?? new Map(), table, rows, { kept, whole });
    }
    for (const [table, rows] of known) problems.push(...(await compare(client, table, [...rows.values()])));
    return problems;
  });
}

function apply(
  known: Map<string, KnownRow>,
  table: TableDefinition,
  rows: readonly Row[],
  { kept, whole }: { readonly kept: KeptResponse; readonly whole: boolean },
): void {
  const listed = new Set<string>();
  for (const row of rows) {
    const key = JSON.stringify(table.key.map((column) => row[column]));
    listed.add(key);
    const before = known.get(key);
    const [was, saved] = [before?.row.source_saved_at ?? null, row.source_saved_at ?? null];
    if (before !== undefined && was !== null && saved !== null && saved < was) before.live = true;
    else known.set(key, { row: { ...row, source_saved_at: saved ?? was }, live: true });
  }
  const { dateColumn } = table;
  const shape = operationNamed(kept.operation).shapes.find((shape) => shape.table === table);
  if (!whole || shape === undefined || shape.fullSet === 'none') return;
  for (const [key, knownRow] of known) {
    const day = dateColumn === null ? null : String(knownRow.row[dateColumn]);
    const isRequested = shape.fullSet === 'exchange' || (day !== null && kept.from <= day && day <= kept.to);
    if (knownRow.row.exchange === kept.exchange && isRequested && !listed.has(key)) knownRow.live = false;
  }
}

/** The rows as Postgres reads them, so that one value has one form. */
async function compare(
  client: pg.Client,
  table: TableDefinition,
  rows: readonly KnownRow[],
): Promise<string[]> {
  const columns = table.fields
    .filter(({ column }) => column !== 'source_received_at')
    .map(({ column }) => `"${column}"`);
  const list = columns.join(', ');
  await client.query('drop table if exists pg_temp.folded');
  await client.query(`create temp table folded as select ${list} from market."${table.name}" with no data`);
  const live = rows.flatMap(({ row, live: isLive }) => (isLive ? [row] : []));
  for (let at = 0; at < live.length; at += 5_000) {
    await client.query(
      `insert into folded select ${list} from jsonb_populate_recordset(null::market."${table.name}", $1::jsonb)`,
      [JSON.stringify(live.slice(at, at + 5_000))],
    );
  }
  const differing = async (left: string, right: string) =>
    (await client.query(`select ${list} from ${left} except all select ${list} from ${right}`)).rows;
  const missing = await differing('folded', `market."${table.name}"`);
  const extra = await differing(`market."${table.name}"`, 'folded');
  if (missing.length + extra.length === 0) return [];
  const sample = JSON.stringify([...missing.slice(0, 2), ...extra.slice(0, 2)]).slice(0, 1_000);
  return [
    `market.${table.name} differs from the fold of the kept responses: ${missing.length} rows missing, ${extra.length} too many: ${sample}`,
  ];
}
