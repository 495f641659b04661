import pg from 'pg';
import { type EodOptions, type EodResult, runEod } from '../support/eod.ts';

/** Asks one thing of a database. */
export async function query<Row extends object>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

/** Runs a command that prints JSON; fails with its stderr when it prints anything else. */
export async function runJson<Answer>(
  args: readonly string[],
  options: EodOptions,
): Promise<EodResult & { json: Answer }> {
  const result = await runEod([...args, '--json'], options);
  try {
    return { ...result, json: JSON.parse(result.stdout) as Answer };
  } catch {
    throw new Error(`eod ${args.join(' ')} did not print JSON:\n${result.stdout}\n${result.stderr}`);
  }
}
