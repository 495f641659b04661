import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, inject } from 'vitest';
import { emptyDatabase } from './database.ts';
import { execute } from './template.ts';

const ROLES = ['owner', 'worker', 'reader'] as const;
export type Role = (typeof ROLES)[number];

/** The statements of docs/security.md, by their first lines: `-- administrator, …`, `-- owner: what a reader may do`. */
export function documentedSql(heading: string): string {
  const page = readFileSync(new URL('../../docs/security.md', import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, sql]) => sql as string);
  const block = blocks.find((sql) => sql.startsWith(`-- ${heading}`));
  if (block === undefined) throw new Error(`docs/security.md has no SQL that begins with "-- ${heading}"`);
  return block;
}

/** What a reader may do, for a role of this name. */
export const readerSql = (role: string): string =>
  documentedSql('owner: what a reader may do').replaceAll('eod_reader', role);

/** A database as an administrator prepares it, and addresses to log in as each role. Roles are of the whole server. */
export async function prepareRoles() {
  const { url } = await emptyDatabase();
  const prefix = `r${randomBytes(4).toString('hex')}_`;
  const withNames = (sql: string) => sql.replaceAll(/eod_(?=owner|worker|reader)/g, prefix);
  await execute(url, withNames(documentedSql('administrator')));
  const urls = {} as Record<Role, string>;
  for (const role of ROLES) {
    await execute(url, `alter role ${prefix}${role} password 'kiwi'`);
    const login = new URL(url);
    login.username = `${prefix}${role}`;
    login.password = 'kiwi';
    urls[role] = login.href;
  }
  afterAll(async () => {
    for (const role of ROLES)
      await execute(
        inject('databaseAdminUrl'),
        `drop owned by ${prefix}${role}; drop role ${prefix}${role}`,
      ).catch(() => undefined);
  });
  return {
    url,
    urls,
    /** The owner runs what docs/security.md says. */
    grant: (heading: string) => execute(urls.owner, withNames(documentedSql(heading))),
  };
}

export const nameOf = (url: string): string => decodeURIComponent(new URL(url).username);
