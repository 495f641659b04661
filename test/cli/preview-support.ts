import type { Sandbox } from '../../src/sandbox/index.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { FOLDER_DAY } from './bhav-folder.ts';

export const cwd = temporaryFolder();

export const RANGE = ['--from', FOLDER_DAY, '--to', FOLDER_DAY];

export const ARGS = ['backfill', 'GetBhavCopyCM', ...RANGE];

export const settings = (databaseUrl: string, source: Sandbox) => ({
  cwd,
  env: { DATABASE_URL: databaseUrl, EOD_BASE_URL: source.url, EOD_ACCESS_KEY: 'kiwi', EOD_CONCURRENCY: '1' },
});

/** What a preview writes too: its own run, and what its calls show about the key, the hour, the time and the source. */
export const ABOUT_CALLS = [
  'etl.runs',
  'etl.windows',
  'etl.call_budget',
  'etl.clock',
  'etl.access_keys',
  'etl.workers',
  'etl.database_identity',
];

/** Every table of both schemas to the byte, but for these. */
export async function contents(url: string): Promise<Record<string, string>> {
  const all = await query<{ name: string }>(
    url,
    `select format('%s.%s', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname in ('etl', 'market', 'market_history') and c.relkind in ('r', 'p') order by 1`,
  );
  const names = all.map(({ name }) => name).filter((name) => !ABOUT_CALLS.includes(name));
  const found: Record<string, string> = {};
  for (const name of names) {
    const [row] = await query<{ rows: string }>(
      url,
      `select count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as rows from ${name} t`,
    );
    found[name] = row?.rows ?? '';
  }
  return found;
}
