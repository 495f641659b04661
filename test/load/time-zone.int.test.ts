import pg from 'pg';
import { expect, test } from 'vitest';
import { timeZoneProblem } from '../../src/load/database/time-zone.ts';
import { runCli, runJson } from '../support/cli.ts';
import { closeAfterFile } from '../support/closing.ts';
import { testDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { url } = await testDatabase();
const pool = new pg.Pool({ connectionString: url, max: 1 });
closeAfterFile(() => pool.end());
const cwd = temporaryFolder();
const NOW = Date.parse('2026-03-01T12:00:00Z');

const ABBREVIATIONS = ['IST', 'EST', 'CET', 'MET', 'EET', 'WET', 'BST', 'CST', 'PST', 'AST', 'MST', 'HST'];
const NAMES = [
  ...Intl.supportedValuesOf('timeZone').filter((_, at) => at % 9 === 0),
  ...ABBREVIATIONS,
  ...[
    'Asia/Kolkata',
    'asia/kolkata',
    'Asia/Calcutta',
    'Israel',
    'EST5EDT',
    'UTC',
    'GMT',
    'Japan',
    'Etc/GMT-5',
  ],
];

/** The wall-clock time of a zone as Node prints it. */
const inNode = (zone: string, iso: string) =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' }).format(
    Date.parse(iso),
  );

test('a name is allowed if it is in pg_timezone_names and means the same in winter and in summer', async () => {
  const moments = ['2025-07-15T06:00:00Z', '2026-01-15T06:00:00Z'];
  const { rows: known } = await pool.query('select lower(name) as name from pg_timezone_names');
  const names = new Set(known.map(({ name }) => name));
  let allowed = 0;
  for (const zone of NAMES) {
    const isSame = async (iso: string) => {
      const { rows } = await pool.query('select ($2::timestamptz at time zone $1)::text as wall', [
        zone,
        iso,
      ]);
      return rows[0].wall === inNode(zone, iso);
    };
    const isGood =
      names.has(zone.toLowerCase()) && (await isSame(moments[0] ?? '')) && (await isSame(moments[1] ?? ''));
    const problem = await timeZoneProblem(pool, zone, NOW);
    // A rule that has changed between two releases of the zones may differ on other days of the year.
    if (problem === null) expect([zone, isGood]).toEqual([zone, true]);
    else if (isGood) expect([zone, problem.found]).toEqual([zone, expect.stringMatching(/ on \d{4}-/)]);
    allowed += problem === null ? 1 : 0;
  }
  expect(allowed).toBeGreaterThan(NAMES.length * 0.7);
});

test.each([
  ['IST', 'means another time to Postgres: UTC+02:00 on 2026-03-01, but UTC+05:30 to this program'],
  ['CET', 'means another time to Postgres: UTC+01:00 on 2025-10-25, but UTC+02:00 to this program'],
])('EOD_TIMEZONE=%s is refused with what it means to both', async (zone, found) => {
  expect(await timeZoneProblem(pool, zone, NOW)).toEqual({
    found: `EOD_TIMEZONE=${zone} ${found}`,
    remedy: 'set a full name such as Asia/Kolkata',
  });
});

test('an abbreviation that a server is set to read as Node does is refused as well', async () => {
  const client = new pg.Pool({ connectionString: url, max: 1, options: '-c timezone_abbreviations=India' });
  closeAfterFile(() => client.end());
  const { rows } = await client.query(`select ('2026-03-01Z'::timestamptz at time zone 'IST')::text as wall`);
  expect(rows).toEqual([{ wall: '2026-03-01 05:30:00' }]);
  expect(await timeZoneProblem(client, 'IST', NOW)).toMatchObject({
    found: expect.stringContaining('EOD_TIMEZONE=IST is an abbreviation'),
  });
});

test('every command that opens the database refuses it, and doctor names it', async () => {
  const env = { DATABASE_URL: url, EOD_TIMEZONE: 'IST' };
  for (const args of [['status'], ['query', 'select 1'], ['migrate'], ['schedules']]) {
    const { code, stderr } = await runCli(args, { cwd, env });
    expect([args[0], code, stderr]).toEqual([
      args[0],
      2,
      expect.stringContaining('EOD_TIMEZONE=IST means another time to Postgres: UTC+02:00'),
    ]);
  }
  const { json } = await runJson<{ checks: { name: string; state: string; remedy: string | null }[] }>(
    ['doctor', '--offline'],
    { cwd, env },
  );
  expect(json.checks.find(({ name }) => name === 'time zone')).toMatchObject({
    state: 'failed',
    remedy: 'set a full name such as Asia/Kolkata',
  });
});
