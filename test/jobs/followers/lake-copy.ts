import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import type { Pool } from 'pg';
import type { Manifest } from '../../../src/load/export/lake-manifest.ts';

type Column = Manifest['tables'][number]['columns'][number];

const NONE = 'none';
/** A double has 15 digits; the reader of Parquet makes doubles of decimals. */
const numberText = (value: unknown) => Number(value).toPrecision(12);

function textOf(value: unknown, type: string): string {
  if (value === null || value === undefined) return NONE;
  if (type === 'numeric') return numberText(value);
  if (value instanceof Date) return value.toISOString().slice(0, type === 'date' ? 10 : undefined);
  return String(value);
}

const digestOf = (lines: readonly string[]) =>
  `${lines.length} ${createHash('sha256')
    .update([...lines].sort().join('\n'))
    .digest('hex')}`;

/** Digests of the rows of each table of a lake, read from the files that its manifest lists, and of Postgres now. */
export async function digestsOfLake(folder: string, pool: Pool): Promise<Record<string, [string, string]>> {
  const { tables, files } = JSON.parse(readFileSync(join(folder, '_manifest.json'), 'utf8')) as Manifest;
  const digests: Record<string, [string, string]> = {};
  for (const { table, columns } of tables) {
    const lines: string[] = [];
    for (const { file } of files.filter((one) => one.table === table)) {
      const rows = await parquetReadObjects({ file: await asyncBufferFromFile(join(folder, file)) });
      for (const row of rows) lines.push(columns.map(({ name, type }) => textOf(row[name], type)).join('|'));
    }
    digests[table] = [digestOf(lines), digestOf(await linesOfPostgres(pool, table, columns))];
  }
  return digests;
}

async function linesOfPostgres(pool: Pool, table: string, columns: readonly Column[]): Promise<string[]> {
  const list = columns.map(({ name, type }) =>
    type === 'timestamp with time zone'
      ? `to_char("${name}" at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
      : `"${name}"::text`,
  );
  const { rows } = await pool.query<(string | null)[]>({
    text: `select ${list.join(', ')} from market."${table}"`,
    rowMode: 'array',
  });
  return rows.map((row) =>
    row
      .map((value, at) =>
        textOf(columns[at]?.type === 'boolean' ? value === 'true' : value, columns[at]?.type ?? ''),
      )
      .join('|'),
  );
}
