import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Check } from '../../src/cli/doctor/check.ts';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { runCli, runJson, startCli } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { isSlowLayer } from '../support/layer.ts';
import { query } from '../support/query.ts';
import { openSandbox } from '../support/sandbox.ts';
import { execute } from '../support/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { declaration } from '../support/voting.ts';

let folders = 0;

/** A folder with one declaration; a changed one is in another, because a process imports a file once. */
function folderWith(text: string, file = 'GetVoting.mjs'): string {
  folders += 1;
  const folder = join(cwd, `operations-${folders}`);
  mkdirSync(folder);
  writeFileSync(join(folder, file), text);
  return folder;
}

const cwd = temporaryFolder();
const DAYS = ['--from', '2025-02-24', '--to', '2025-02-28'];
let url: string;
let sandbox: Sandbox;
let folder: string;

const optionsFor = (operations: string, database = url) => ({
  cwd,
  env: {
    DATABASE_URL: database,
    EOD_OPERATIONS_DIR: operations,
    EOD_BASE_URL: sandbox.url,
    EOD_ACCESS_KEY: 'kiwi',
    EOD_CONCURRENCY: '1',
  },
});

/** The check of operations; the others are there as well. */
async function doctorIn(operations: string): Promise<readonly Check[]> {
  const { json } = await runJson<{ readonly checks: readonly Check[] }>(['doctor'], optionsFor(operations));
  expect(json.checks.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['migrations', 'queue', 'night']),
  );
  return json.checks.filter(({ name }) => name === 'operations');
}

beforeAll(async () => {
  url = (await testDatabase()).url;
  folder = folderWith(declaration());
  sandbox = await openSandbox({ operationsDir: folder });
});

describe('an operation that a user declares', () => {
  test('is unknown to the database until it is enabled', async () => {
    const refused = await runCli(['backfill', 'GetVoting', ...DAYS], optionsFor(folder));
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(
      'GetVoting is not enabled ("eod operations enable" creates its tables, as does "eod import" with a file of it)',
    );
  });

  test('is enabled: table, history, functions and comments are there', async () => {
    const { json } = await runJson<unknown[]>(['operations', 'enable', 'getvoting'], optionsFor(folder));
    expect(json).toMatchObject([
      { name: 'GetVoting', isEnabled: true, isUnchanged: false, tables: ['market.voting_results'] },
    ]);
    const again = await runCli(['operations', 'enable', 'GetVoting'], optionsFor(folder));
    expect(again.stdout).toContain('GetVoting: was enabled already');
    const [found] = await query<{ table: string; column: string; history: number }>(
      url,
      `select obj_description('market.voting_results'::regclass) as table,
              col_description('market.voting_results'::regclass, 4) as column,
              (select count(*)::int from market_history.voting_results) as history`,
    );
    expect(found).toEqual({
      table: 'Results of votes.',
      column: 'Votes for it. Unit: votes. Source field: votesFor.',
      history: 0,
    });
  });

  test('is loaded, is complete, and has states', async () => {
    const { json: report } = await runJson<RunReport>(['backfill', 'GetVoting', ...DAYS], optionsFor(folder));
    expect(report).toMatchObject({ state: 'completed', rejected: 0 });
    expect(report.inserted).toBeGreaterThan(10);
    const [rows] = await query<{ now: number; before: number; changes: number; complete: number }>(
      url,
      `select (select count(*)::int from market_history.voting_results_at(market.state())) as now,
              (select count(*)::int from market_history.voting_results_at(market.state() - 1)) as before,
              (select count(*)::int from market_history.voting_results_changes(0, market.state()) where change = 'insert') as changes,
              (select count(*)::int from etl.completeness where operation = 'GetVoting' and state = 'complete') as complete`,
    );
    expect(rows).toEqual({ now: report.inserted, before: 0, changes: report.inserted, complete: 4 });
    const again = await runJson<RunReport>(['backfill', 'GetVoting', ...DAYS, '--force'], optionsFor(folder));
    expect(again.json).toMatchObject({ inserted: 0, updated: 0, unchanged: report.inserted });
  });

  test('a new field is a new column, which a replay fills', async () => {
    const wider = folderWith(
      declaration({
        fields: "text('resolution', 'resolution', 'What was voted on.', { orElse: ['symbol'] }),",
      }),
    );
    const behind = await runCli(['status'], optionsFor(wider));
    expect(behind).toMatchObject({ code: 2 });
    expect(behind.stderr).toContain(
      'the declaration of market.voting_results has columns that the table lacks',
    );
    await runJson(['operations', 'enable', 'GetVoting'], optionsFor(wider));
    await runJson(['replay', 'GetVoting'], optionsFor(wider));
    const [found] = await query<{ filled: number; all: number }>(
      url,
      'select count(resolution)::int as filled, count(*)::int as all from market.voting_results',
    );
    expect(found?.filled).toBeGreaterThan(0);
    expect(found?.filled).toBe(found?.all);
  });

  test.each([
    ['a key', { key: ", 'votes_for'" }, 'market.voting_results has the key exchange, meeting_date, symbol'],
    [
      'a type',
      { kind: 'numeric' },
      'market.voting_results.votes_for is bigint, and the declaration says numeric',
    ],
  ])('%s that changes is refused, and nothing changes', async (_, changed, message) => {
    const other = folderWith(declaration(changed));
    const refused = await runCli(['operations', 'enable', 'GetVoting'], optionsFor(other));
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(message);
    expect(refused.stderr).toContain('give the table another name');
    const { json } = await runJson<{ name: string }[]>(['operations'], optionsFor(folder));
    expect(json.map(({ name }) => name)).toContain('GetVoting');
  });

  test('is disabled: it is requested no longer, and its rows stay', async () => {
    await runJson(['operations', 'disable', 'GetVoting'], optionsFor(folder));
    const refused = await runCli(['backfill', 'GetVoting', ...DAYS], optionsFor(folder));
    expect(refused.stderr).toContain('GetVoting is not enabled');
    const { json } = await runJson<{ operation: string }[]>(['schedules'], optionsFor(folder));
    expect(json.map(({ operation }) => operation)).not.toContain('GetVoting');
    const [rows] = await query<{ count: number }>(url, 'select count(*)::int from market.voting_results');
    expect(rows?.count).toBeGreaterThan(10);
    await runJson(['operations', 'enable', 'GetVoting'], optionsFor(folder));
  });

  test('whose file is missing is left out, and said', async () => {
    const empty = join(cwd, 'nothing-here');
    const { stderr, code } = await runCli(['status'], optionsFor(empty));
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toContain('no file declares these operations');
  });

  test('whose file is broken is left out, and said', async () => {
    const broken = folderWith('export default {');
    // Its output is not a terminal: a warning is a sentence there too, unless JSON is set.
    const { stderr, code } = await runCli(['status'], optionsFor(broken));
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toMatch(/^eod: warning: this operation is left out: GetVoting \(problem=/);
    const env = { ...optionsFor(broken).env, EOD_LOG_FORMAT: 'json' };
    expect((await runCli(['status'], { cwd, env })).stderr).toMatch(/^\{"level":"warn",/);
  });

  test.each([
    [
      'whose file is missing',
      () => join(cwd, 'nothing-here'),
      /no file declares GetVoting/,
      /GetVoting\.mjs back/,
    ],
    [
      'whose file is broken',
      () => folderWith('export default {'),
      /GetVoting is left out: /,
      /correct its file/,
    ],
    [
      'that has a further column',
      () => folderWith(declaration({ fields: "text('seen', 'seen', 'Seen.')," })),
      /market\.voting_results lacks columns/,
      /run "eod migrate"/,
    ],
    [
      'that has another key',
      () => folderWith(declaration({ key: ", 'votes_for'" })),
      /has the key exchange, meeting_date, symbol/,
      /give the table another name/,
    ],
    [
      'that has another type',
      () => folderWith(declaration({ kind: 'numeric' })),
      /votes_for is bigint/,
      /give the table another name/,
    ],
  ])('%s is found by doctor, which goes on', async (_, changed, found, remedy) => {
    expect(await doctorIn(changed())).toEqual([
      {
        name: 'operations',
        state: 'failed',
        found: expect.stringMatching(found),
        remedy: expect.stringMatching(remedy),
      },
    ]);
  });

  test('whose file is good beside a broken one that is not enabled: doctor names that, too', async () => {
    const both = folderWith(
      declaration({ fields: "text('resolution', 'resolution', 'What was voted on.')," }),
    );
    writeFileSync(join(both, 'GetOther.mjs'), 'export default {');
    expect(await doctorIn(both)).toEqual([
      {
        name: 'operations',
        state: 'warning',
        found: expect.stringMatching(
          /^GetOther, which is not enabled, cannot be: .*GetOther\.mjs: it cannot be imported/,
        ),
        remedy: 'correct its file, or move it out of EOD_OPERATIONS_DIR',
      },
    ]);
  });

  test('whose tables are missing is found by doctor, and mended by eod migrate', async () => {
    // As the table has become by now.
    const now = folderWith(
      declaration({ fields: "text('resolution', 'resolution', 'What was voted on.')," }),
    );
    for (const lost of [
      'drop table market_history.voting_results cascade; alter table market.voting_results drop column votes_for cascade',
      'drop table market.voting_results cascade',
    ]) {
      await execute(url, lost);
      expect(await doctorIn(now)).toMatchObject([
        { state: 'failed', found: expect.stringContaining('market.voting_results lacks columns or tables') },
      ]);
      const { code, stderr } = await runCli(['migrate'], optionsFor(now));
      expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.any(String) });
      expect(await doctorIn(now)).toMatchObject([{ state: 'ok' }]);
    }
  });
});

test.runIf(isSlowLayer)(
  'a function that fails is named with its file, and all that does not need it is loaded',
  async () => {
    const day = '2025-09-11';
    const path = folderWith(declaration());
    /** A good declaration, but for a function that fails for days of this September. */
    const add = (name: string, before: string, after: string) => {
      const text = declaration({ name, table: name.toLowerCase() }).replace(before, `${before} ${after}`);
      writeFileSync(join(path, `${name}.mjs`), text);
    };
    const failing = (parameters: string, text: string) =>
      `(${parameters}) => { if (${text}.includes('09-')) throw new Error('no luck'); return null; }`;
    add(
      'GetComputed',
      "'Votes for it.', {",
      `compute: ${failing('get', "get('meetingDate')").replace('null', '1')},`,
    );
    add('GetContradicted', 'dated: true,', `contradiction: ${failing('row', 'row.meeting_date')},`);
    add('GetDated', "dates: 'range',", `datedWhen: () => { throw new Error('no luck'); },`);
    const once = declaration({ name: 'GetOnce', table: 'once' })
      .replace("dates: 'range'", "dates: 'none'")
      .replace("'days' }", "'none' }")
      .replace(/windows: .*,/, "windows: { per: 'once', requests: (day) => (day > '2025-09' ? 5 : [{}]) },");
    writeFileSync(join(path, 'GetOnce.mjs'), once);
    const failed = {
      GetComputed: 'compute of getcomputed.votes_for',
      GetContradicted: 'shapes[0].contradiction',
      GetDated: 'request.datedWhen',
    };
    const named = Object.entries(failed).map(
      ([name, what]) => `${what} of ${name} fails (no luck), see ${join(path, name)}.mjs`,
    );
    named.push(
      `windows.requests of GetOnce returns 5: use a function that returns [{ type: 'A' }], or leave it out, see ${join(path, 'GetOnce')}.mjs`,
    );
    const { url: database } = await testDatabase();
    const source = await openSandbox({ operationsDir: path, instrumentsPerExchange: 3 });
    const { env } = optionsFor(path, database);
    const options = {
      cwd,
      env: { ...env, EOD_BASE_URL: source.url, EOD_INSTRUMENT_LIMIT: '1', EOD_EXCHANGES: 'BSE' },
    };
    await runCli(['migrate'], options);
    await runJson(['operations', 'enable', 'GetVoting', 'GetOnce', ...Object.keys(failed)], options);
    for (const command of [
      ['nightly', '--date', day],
      ['backfill', '--all', '--from', day, '--to', day],
    ]) {
      const { code, json } = await runJson<RunReport>(command, options);
      expect({ code, state: json.state }).toEqual({ code: 1, state: 'failed' });
      const reasons = [...json.failures.map(({ error }) => error), ...json.skips.map(({ reason }) => reason)];
      for (const text of named) expect(reasons.join('\n')).toContain(text);
      expect(json.failures.map(({ operation }) => operation)).toEqual(['GetComputed', 'GetContradicted']);
    }
    // Their responses are kept, so that they need not be requested again once the functions are corrected.
    const rejects = await query<{ operation: string; kept: boolean }>(
      database,
      `select distinct r.operation, a.hash is not null as kept from etl.rejects r join etl.responses a using (window_id) order by 1`,
    );
    expect(rejects).toEqual([
      { operation: 'GetComputed', kept: true },
      { operation: 'GetContradicted', kept: true },
    ]);
    const [stored] = await query<{ votes: number }>(
      database,
      'select count(*)::int as votes from market.voting_results',
    );
    expect(stored?.votes).toBeGreaterThan(0);

    const doctor = await runJson<{ readonly checks: readonly Check[] }>(['doctor', '--offline'], options);
    expect(doctor.code).toBe(1);
    expect(doctor.json.checks.filter(({ state }) => state === 'failed')).toMatchObject([
      {
        name: 'night',
        found: ['GetDated', 'GetOnce']
          .map((name, at) => `${name}: its declaration cannot be planned: ${named[2 + at]}`)
          .join('; '),
        remedy: expect.stringContaining('eod operations disable GetDated GetOnce'),
      },
    ]);

    // A run of it alone fails too, and says why.
    const alone = await runJson<RunReport>(['backfill', 'GetDated', '--from', day, '--to', day], options);
    expect(alone).toMatchObject({
      code: 1,
      json: { state: 'failed', error: expect.stringContaining(named[2] ?? '') },
    });
  },
);

describe('a file that cannot be used', () => {
  test.each([
    [
      'of the table of another',
      declaration({ table: 'bhavcopy_cm' }),
      'its table bhavcopy_cm is one of GetBhavCopyCM: give it another name',
    ],
    [
      'of a view',
      declaration({ table: 'band_hits' }),
      'shapes[0].table.name is "band_hits", which is a view of the schema market: give the table another name',
    ],
    [
      'of the table of a file',
      declaration({ table: 'symbol_changes' }),
      'its table symbol_changes is one of ',
    ],
    [
      'with another name',
      declaration({ name: 'GetVotes' }),
      'it declares GetVotes: name the file GetVotes.mjs',
    ],
    ['that is no module', 'export default {', 'it cannot be imported'],
    ['that throws', 'const a = {};\nexport default a.b.c;', 'it cannot be imported (line 2): Cannot read'],
    ['without a default export', 'export const nothing = 1;', 'defineOperation'],
    ['of a promise', 'export default Promise.resolve({});', 'its default export is a promise'],
  ])('%s', async (_, text, message) => {
    const wrong = folderWith(text);
    const refused = await runCli(['operations', 'enable', 'GetVoting'], optionsFor(wrong));
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('GetVoting.mjs');
    expect(refused.stderr).toContain(message);
  });

  test.each<[string, (path: string) => void, string]>([
    ['that is a folder', (path) => mkdirSync(path), 'it is not a file'],
    [
      'that is a dangling link',
      (path) => symlinkSync(`${path}.old`, path),
      'it is a link to a file that does not exist',
    ],
  ])('%s', async (_, make, message) => {
    const wrong = temporaryFolder();
    make(join(wrong, 'GetVoting.mjs'));
    const refused = await runCli(['operations', 'enable', 'GetVoting'], optionsFor(wrong));
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
  });

  test('of a default is never good', async () => {
    const wrong = folderWith(declaration({ name: 'GetBhavCopyCM' }), 'GetBhavCopyCM.mjs');
    const checked = await runCli(
      ['operations', 'check', join(wrong, 'GetBhavCopyCM.mjs')],
      optionsFor(wrong),
    );
    expect(checked).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/GetBhavCopyCM\s+comes with eod and cannot be declared again/),
    });
  });

  test('of an operation of which there is another file', async () => {
    const two = folderWith(declaration({}));
    writeFileSync(join(two, 'GetVoting.js'), declaration({}));
    const refused = await runCli(['operations', 'enable', 'GetVoting'], optionsFor(two));
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('GetVoting.js and GetVoting.mjs declare the same operation'),
    });
  });

  test('in place of one of the catalogue is said wherever operations are read, and makes no table', async () => {
    const wrong = folderWith('export default {', 'GetMei.mjs');
    const problem = `${join(wrong, 'GetMei.mjs')}: it cannot be imported`;
    const listed = await runCli(['operations', 'list', '--available'], optionsFor(wrong));
    expect({ code: listed.code, stderr: listed.stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(problem),
    });
    const refused = await runCli(['operations', 'enable', 'GetMei'], optionsFor(wrong));
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(problem) });
    const made = `select to_regclass('market.macro_sectors') as found, to_regclass('market_history.macro_sectors') as past`;
    expect(await query(url, made)).toEqual([{ found: null, past: null }]);

    const responding = startCli(['sandbox', '--port', '0'], optionsFor(wrong));
    await responding.output(/sandbox listening/);
    expect(responding.stderr()).toContain(problem);
  });

  test('a default cannot be enabled or disabled', async () => {
    const refused = await runCli(['operations', 'disable', 'GetBhavCopyCM'], optionsFor(folder));
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.stderr).toContain('GetBhavCopyCM comes with eod: it is never disabled');
  });
});
