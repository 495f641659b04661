import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getTableName, is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import { describe, expect, test } from 'vitest';
import * as instruments from '../../src/state/schema/instrument-tables.ts';
import * as knowledge from '../../src/state/schema/knowledge.ts';
import * as loadResults from '../../src/state/schema/load-results.ts';
import * as source from '../../src/state/schema/source-tables.ts';
import * as work from '../../src/state/schema/work.ts';
import { WINDOW_TRANSITIONS } from '../../src/state/windows/transitions.ts';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** The folders whose files speak SQL, besides migrate.ts. No other may name a table: see layers.test.ts. */
const FOLDERS = ['postgres', 'state', 'load', 'quality', 'export'];

/** The module that owns each table of the schema etl: a file or a folder of src. */
const OWNERS: Readonly<Record<string, string>> = {
  alerts: 'state/alerts.ts',
  alias_owners: 'load/observed-aliases/',
  call_budget: 'state/source/',
  checked_days: 'state/findings.ts',
  clock: 'state/position-sql.ts',
  coverage: 'state/coverage/',
  database_identity: 'state/database-identity.ts',
  derived: 'state/derived.ts',
  event_decisions: 'state/events/',
  event_sessions: 'load/price-tables.ts',
  expectations: 'state/coverage/',
  findings: 'state/findings.ts',
  hit_bands: 'load/price-tables.ts',
  loads: 'state/loads/',
  migrations: 'migrate.ts',
  observed_aliases: 'load/observed-aliases/',
  rejected_records: 'state/rejects.ts',
  repeatable_migrations: 'migrate.ts',
  responses: 'state/responses/',
  response_bodies: 'state/responses/',
  price_factors: 'load/price-tables.ts',
  runs: 'state/runs/',
  sessions: 'state/sessions.ts',
  source_state: 'state/source/',
  windows: 'state/windows/',
  withdrawals: 'state/withdrawals.ts',
  workers: 'state/workers.ts',
};

/** The claim of a window, its call and its position are one statement. */
const CLAIM = 'state/windows/claim-statement.ts';
const WRITTEN_BY_CLAIM = ['call_budget', 'clock', 'source_state'];

const schema: Readonly<Record<string, unknown>> = {
  ...instruments,
  ...knowledge,
  ...loadResults,
  ...source,
  ...work,
};

/** The names in the code under which tables are declared. */
const declared = new Map(
  Object.entries(schema).flatMap(([name, value]) =>
    is(value, PgTable) ? [[name, getTableName(value)] as const] : [],
  ),
);

const codeOf = (file: string) =>
  readFileSync(join(SRC, file), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '');

/** Tables that code writes: by statements of drizzle, and by SQL that names a declaration or a constant of the name. */
function tablesWritten(code: string, constants: ReadonlyMap<string, string>): string[] {
  const statement = /\.(?:insert|update|delete)\(\s*(\w+)\s*\)/g;
  const text = /(?:insert\s+into|update|delete\s+from|merge\s+into|truncate|lock\s+table)\s+\$\{(\w+)\}/gi;
  return [...code.matchAll(statement), ...code.matchAll(text)].flatMap(([, name = '']) => {
    const table = declared.get(name) ?? constants.get(name);
    return table === undefined ? [] : [table];
  });
}

/** Tables whose names stand in the code. */
function tablesNamed(code: string): string[] {
  return [...code.matchAll(/\betl\."?(\w+)/g)]
    .map(([, name]) => name as string)
    .filter((name) => name in OWNERS);
}

describe('a table of the schema etl', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(sep).join('/'))
    .filter((file) => file === 'migrate.ts' || FOLDERS.some((folder) => file.startsWith(`${folder}/`)))
    .filter((file) => file.endsWith('.ts') && !file.startsWith('state/schema/'));
  /** Constants that hold the name of a table, for SQL that is text. */
  const constants = new Map(
    files.flatMap((file) =>
      [...codeOf(file).matchAll(/const (\w+) = 'etl\.(\w+)'/g)].map(
        ([, constant = '', table = '']) => [constant, table] as const,
      ),
    ),
  );
  const strangers = (tablesOf: (code: string) => string[]) =>
    files.flatMap((file) =>
      tablesOf(codeOf(file))
        .filter((table) => !file.startsWith(OWNERS[table] as string))
        .map((table) => `${file}: etl.${table}`),
    );

  test('has an owner that is there', () => {
    expect(Object.keys(OWNERS)).toEqual(expect.arrayContaining([...declared.values()]));
    for (const owner of Object.values(OWNERS)) {
      expect(files.some((file) => file.startsWith(owner))).toBe(true);
    }
  });

  test('is named in SQL by its owner alone', () => {
    expect(strangers(tablesNamed)).toEqual([]);
  });

  test('is written by its owner alone', () => {
    const claimed = WRITTEN_BY_CLAIM.map((table) => `${CLAIM}: etl.${table}`);
    expect([...new Set(strangers((code) => tablesWritten(code, constants)))].sort()).toEqual(claimed);
  });

  test('sets the state of a window or run by a transition alone', () => {
    const bypass = /\.update\((?:windows|runs)\)\s*\.set\(\{[^}]*\bstate\b|\bset state = '/;
    expect(bypass.test("db.update(windows).set({ error, state: 'failed' })")).toBe(true);
    // `finishRun` leaves it to SQL which of the typed states of `finish` it is; the claim is SQL as a whole.
    expect(files.filter((file) => bypass.test(codeOf(file))).sort()).toEqual(['state/runs/runs.ts', CLAIM]);
    expect(codeOf(CLAIM).match(/\bset state = '\w+'/g)).toEqual(
      WINDOW_TRANSITIONS.claim.to.map((state) => `set state = '${state}'`),
    );
  });

  test('is declared for the SQL of src/state: few others know the declarations', () => {
    const others = files.filter(
      (file) => !file.startsWith('state/') && codeOf(file).includes('state/schema/'),
    );
    // Which files of SQL were applied is noted where they are applied; comments are written together; what is
    // derived follows from tables of market.
    expect(others.toSorted()).toEqual([
      'load/observed-aliases/observed-aliases.ts',
      'load/price-tables.ts',
      'load/schema/comments-and-functions.ts',
      'migrate.ts',
    ]);
  });

  test('is found where it is named or written', () => {
    expect(tablesNamed('select from etl.runs r join etl."windows"')).toEqual(['runs', 'windows']);
    expect(tablesWritten('await db\n.update(windows).set', constants)).toEqual(['windows']);
    expect(tablesWritten(`insert into \${responseBodies} (hash)`, constants)).toEqual(['response_bodies']);
    expect(tablesWritten(`delete from \${LOADS} where`, constants)).toEqual(['loads']);
    expect(tablesWritten(`select from \${windows} w`, constants)).toEqual([]);
  });
});
