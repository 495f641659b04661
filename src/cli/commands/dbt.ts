import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf, usageError } from '../../core/errors.ts';
import { dbtSources } from '../../load/market/schema/dbt-sources.ts';
import { type Cli, print, writeOut } from '../cli.ts';
import { openReadable } from '../open-context.ts';

export async function dbt(cli: Cli, { out }: { readonly out?: string }): Promise<void> {
  const { config, db } = await openReadable(cli, 'tables');
  const text = `# Written by "eod dbt"; write it again after an update, which may add tables and columns.\n${yaml(await dbtSources(db.pool, config))}`;
  if (out === undefined) return void (await writeOut(cli, text));
  const file = resolve(cli.cwd, out);
  await writeFile(file, text).catch((error) => {
    throw usageError(`--out: ${file} cannot be written: ${messageOf(error)}`);
  });
  print(cli, file);
}

/** Writes a document as YAML. Strings are written as in JSON, which YAML reads the same. */
function yaml(value: unknown, indent = ''): string {
  if (Array.isArray(value)) {
    return value.map((item) => `${indent}- ${yaml(item, `${indent}  `).trimStart()}`).join('');
  }
  if (typeof value !== 'object' || value === null) return `${indent}${JSON.stringify(value)}\n`;
  return Object.entries(value)
    .map(([key, item]) => {
      const isNested = typeof item === 'object' && item !== null;
      return isNested
        ? `${indent}${key}:\n${yaml(item, `${indent}  `)}`
        : `${indent}${key}: ${JSON.stringify(item)}\n`;
    })
    .join('');
}
