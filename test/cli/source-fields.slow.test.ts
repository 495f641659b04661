import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli, runJson } from '../support/cli.ts';
import { testDatabase } from '../support/database.ts';
import { startServer } from '../support/http-server.ts';
import { query } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { declaration } from '../support/voting.ts';
import { startWebhook } from '../support/webhook.ts';

const DECLARATION = declaration({
  table: 'voting',
  fields: `text('venue', 'venue', 'Where it was.'),
    // more`,
}).replace(", { unit: 'votes', required: true }", '');

type Sent = Readonly<Record<string, unknown>>;

const DAY = '2025-02-27';
const record = (symbol: string, others: Sent): Sent => ({
  MeetingDate: '02-27-2025',
  Symbol: symbol,
  ...others,
});

/** A folder with the declaration, enabled in a database, and a source that sends what a test gives it. */
async function openSource() {
  const cwd = temporaryFolder();
  const folder = join(cwd, 'operations');
  mkdirSync(folder);
  writeFileSync(join(folder, 'GetVoting.mjs'), DECLARATION);
  const { url } = await testDatabase();
  const webhook = await startWebhook();
  let records: readonly Sent[] = [];
  const base = await startServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ Value: records }));
  });
  const options = {
    cwd,
    env: {
      DATABASE_URL: url,
      EOD_BASE_URL: base,
      EOD_ACCESS_KEY: 'kiwi',
      EOD_ALERT_WEBHOOK: webhook.url,
      EOD_OPERATIONS_DIR: 'operations',
    },
  };
  expect((await runCli(['operations', 'enable', 'GetVoting'], options)).code).toBe(0);
  return {
    url,
    options,
    /** A run that is given these records; returns the alerts that it raises about fields. */
    async run(...covered: readonly Sent[]): Promise<unknown[]> {
      records = covered;
      const before = webhook.heard.length;
      await runCli(['backfill', 'GetVoting', '--from', DAY, '--to', DAY, '--force'], options);
      const alerts = webhook.heard.slice(before).filter(({ kind }) => kind === 'schema_changed');
      return alerts.flatMap(({ facts }) => facts.changes as unknown[]);
    },
  };
}

test('a new field is reported once, drafted from kept responses, declared, and filled by a replay', async () => {
  const { url, options, run } = await openSource();
  const [tcs, infy] = [
    record('TCS', { VotesFor: 1, Venue: 'Mumbai' }),
    record('INFY', { VotesFor: 2, Venue: '' }),
  ];
  expect(await run(tcs, infy)).toEqual([]);
  const more = [
    { ...tcs, ForPct: 99.5 },
    { ...infy, ForPct: null },
  ];
  expect(await run(...more)).toEqual([
    {
      operation: 'GetVoting',
      exchange: 'BSE',
      field: 'ForPct',
      change: 'new',
      example: '99.5',
      at: expect.any(String),
    },
  ]);
  // Byte for byte the same, so that it is not read; then with other values.
  expect(await run(...more)).toEqual([]);
  expect(await run({ ...tcs, ForPct: 98 }, infy)).toEqual([]);

  const fields = `select field, type, share_null::float8 as nulls, example, mapped_column as mapped, first_seen_at < last_seen_at as again
                    from etl.source_fields order by field`;
  expect(await query(url, fields)).toEqual([
    { field: 'ForPct', type: 'number', nulls: 0.5, example: '99.5', mapped: null, again: true },
    {
      field: 'MeetingDate',
      type: 'text',
      nulls: 0,
      example: '02-27-2025',
      mapped: 'voting.meeting_date',
      again: true,
    },
    { field: 'Symbol', type: 'text', nulls: 0, example: 'TCS', mapped: 'voting.symbol', again: true },
    { field: 'Venue', type: 'text', nulls: 0.5, example: 'Mumbai', mapped: 'voting.venue', again: true },
    { field: 'VotesFor', type: 'number', nulls: 0, example: '1', mapped: 'voting.votes_for', again: true },
  ]);

  const drafted = await runCli(['operations', 'draft', 'getvoting'], options);
  expect(drafted).toMatchObject({
    code: 0,
    stdout: "numeric('ForPct', 'for_percent', 'ForPct as sent.'), // guessed: numbers\n",
    stderr: expect.stringContaining('eod replay GetVoting'),
  });
  // In another folder, because a process imports a file once.
  options.env.EOD_OPERATIONS_DIR = 'with-the-field';
  mkdirSync(join(options.cwd, 'with-the-field'));
  writeFileSync(
    join(options.cwd, 'with-the-field/GetVoting.mjs'),
    DECLARATION.replace('// more', drafted.stdout.trim()),
  );
  expect((await runCli(['migrate'], options)).code).toBe(0);
  await runJson(['replay', 'GetVoting'], options);
  expect(await query(url, 'select symbol, for_percent::float8 as pct from market.voting order by 1')).toEqual(
    [
      { symbol: 'INFY', pct: null },
      { symbol: 'TCS', pct: 98 },
    ],
  );
  const mapped = `select mapped_column from etl.source_fields where field = 'ForPct'`;
  expect(await query(url, mapped)).toEqual([{ mapped_column: 'voting.for_percent' }]);
  expect((await runCli(['operations', 'draft', 'GetVoting'], options)).stderr).toContain(
    'a column reads every field',
  );
  expect(await run({ ...tcs, ForPct: 97 }, infy)).toEqual([]);
}, 60_000);

test('a field that vanished is reported once, one of another type is not; neither replay nor rebuild changes what is known', async () => {
  const { url, options, run } = await openSource();
  const sent = (votes: unknown, others: Sent = {}) => record('TCS', { VotesFor: votes, ...others });
  for (let votes = 1; votes <= 3; votes++)
    expect(await run(sent(votes, { Venue: 'Pune', Seat: votes }))).toEqual([]);
  expect(await run(sent('4', { Seat: 'A4' }))).toEqual([]);
  // A response without records, and a null, say nothing.
  expect(await run()).toEqual([]);
  expect(await run(sent(null, { Seat: 'A5' }))).toEqual([]);
  expect(await run(sent(6, { Seat: 6 }))).toMatchObject([
    { field: 'Venue', change: 'vanished', example: 'Pune' },
  ]);
  expect(await run(sent('many', { Seat: 'A7' }))).toEqual([]);

  const known = async () => [
    await query(url, 'select * from etl.response_layouts order by 1, 2, 3'),
    await query(url, 'select * from etl.source_fields order by 1, 2, 3'),
  ];
  const before = await known();
  await runJson(['replay', 'GetVoting', '--rebuild', '--yes'], options);
  expect(await known()).toEqual(before);
  // As in a copy of the responses, of which nothing was observed yet.
  await query(url, 'update etl.responses set layout = null, field_counts = null');
  await query(url, 'delete from etl.response_layouts');
  await runJson(['replay', 'GetVoting', '--rebuild', '--yes'], options);
  expect(await known()).toEqual(before);
}, 60_000);
