import { expect, test } from 'vitest';
import { openPool } from '../load/support.ts';
import { runCli, runJson } from '../support/cli.ts';
import { copyResponses } from '../support/copy-responses.ts';
import { testDatabase } from '../support/database.ts';
import { filledCopy } from '../support/filled-database.ts';
import { query, withClient } from '../support/query.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const cwd = temporaryFolder();
const { url } = await filledCopy();
const options = { cwd, env: { DATABASE_URL: url } };

interface Found {
  readonly isIntact: boolean;
  readonly isAsNoted: boolean;
  readonly digest: string;
  readonly checked: number;
  readonly replaced: number;
  readonly differences: readonly { readonly load: number; readonly operation: string }[];
  readonly strayRows: readonly unknown[];
}

const verify = async (...flags: string[]) => {
  const { stdout, code } = await runCli(['verify', '--json', ...flags], options);
  return { code, found: JSON.parse(stdout) as Found };
};
const state = async (...flags: string[]) =>
  (await runJson<{ state: number; digest: string; content: string }>(['state', ...flags], options)).json;

test('the digest of a state is the same whenever it is computed, and verify finds all as it was', async () => {
  const { state: newest, digest } = await state('--digest');
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  const { code, found } = await verify('--state', String(newest), '--digest', digest);
  expect({ code, ...found }).toMatchObject({
    code: 0,
    isIntact: true,
    isAsNoted: true,
    digest,
    replaced: 0,
    strayRows: [],
  });
  expect(found.checked).toBe(newest);
  const other = await runCli(['verify', '--state', String(newest), '--digest', 'f'.repeat(64)], options);
  expect(other.code).toBe(1);
  expect(other.stdout).toContain(`the digest of state ${newest} is another than the one given`);
});

const tampered: readonly (readonly [what: string, change: string, undo: string])[] = [
  [
    'a byte of a row',
    "update market.bhavcopy_cm set traded_quantity = traded_quantity + 1 where symbol = 'TCS' and exchange = 'NSE'",
    "update market.bhavcopy_cm set traded_quantity = traded_quantity - 1 where symbol = 'TCS' and exchange = 'NSE'",
  ],
  [
    'a byte of history',
    "update market_history.bhavcopy_cm set instrument_full_name = instrument_full_name || '!' where symbol = 'TCS'",
    "update market_history.bhavcopy_cm set instrument_full_name = rtrim(instrument_full_name, '!') where symbol = 'TCS'",
  ],
  [
    'who withdrew a row',
    "update market_history.bhavcopy_cm set withdrawn = false where symbol = 'GAIL'",
    "update market_history.bhavcopy_cm set withdrawn = true where symbol = 'GAIL'",
  ],
  [
    'which load replaced a row',
    "update market_history.bhavcopy_cm set replaced_by_load_id = load_id where symbol = 'TCS' and revision = 2",
    "update market_history.bhavcopy_cm h set replaced_by_load_id = t.load_id from market.bhavcopy_cm t where h.symbol = 'TCS' and h.revision = 2 and t.symbol = 'TCS' and t.exchange = h.exchange and t.series = h.series",
  ],
  [
    'when a row was replaced',
    "update market_history.bhavcopy_cm set valid_to = valid_to + interval '1 microsecond' where symbol = 'TCS'",
    "update market_history.bhavcopy_cm set valid_to = valid_to - interval '1 microsecond' where symbol = 'TCS'",
  ],
  [
    'a row of etl.loads',
    "update etl.loads set committed_at = committed_at + interval '1 microsecond' where state = 3",
    "update etl.loads set committed_at = committed_at - interval '1 microsecond' where state = 3",
  ],
  [
    'a value that hides in the text before it',
    "create table public.kept as select * from market.bhavcopy_cm where exchange = 'NSE' and session_id is not null and settlement_price is not null; update market.bhavcopy_cm set session_id = session_id || chr(31) || 'settlement_price=' || trim_scale(settlement_price)::text, settlement_price = null where exchange = 'NSE' and session_id is not null and settlement_price is not null",
    'delete from market.bhavcopy_cm t using public.kept k where t.exchange = k.exchange and t.symbol = k.symbol and t.series = k.series and t.trade_date = k.trade_date; insert into market.bhavcopy_cm select * from public.kept; drop table public.kept',
  ],
  [
    'a row deleted',
    "create table public.kept as select * from market.bhavcopy_cm where symbol = 'TCS'; delete from market.bhavcopy_cm where symbol = 'TCS'",
    'insert into market.bhavcopy_cm select * from public.kept; drop table public.kept',
  ],
  [
    'a row inserted',
    'insert into market.bhavcopy_cm select (r).* from (select jsonb_populate_record(t, \'{"symbol": "INVENTED"}\') as r from market.bhavcopy_cm t where symbol = \'TCS\' limit 1) x',
    "delete from market.bhavcopy_cm where symbol = 'INVENTED'",
  ],
  [
    'a noted digest',
    "update etl.loads set rows_digest = md5('x') where state = 2",
    'update etl.loads set rows_digest = null, chain_digest = null where state >= 2',
  ],
];

test.each(tampered)('%s that is changed is found, with its load', async (what, change, undo) => {
  const before = await state('--digest');
  await query(url, change);
  const { code, found } = await verify();
  expect(code).toBe(1);
  expect(found.isIntact).toBe(false);
  const of = found.differences.map(({ operation }) => operation);
  expect(of.length).toBeGreaterThan(0);
  if (what !== 'a noted digest') expect(of[0]).toBe('GetBhavCopyCM');
  await query(url, undo);
  expect((await verify('--state', String(before.state), '--digest', before.digest)).found.isIntact).toBe(
    true,
  );
});

test.each([
  ['not withdrawn', "withdrawn = false, trade_date = '1999-01-04'"],
  ['withdrawn by the load that wrote it', "withdrawn = true, trade_date = '1999-01-04'"],
  [
    'of an operation that does not fill the table',
    "load_id = (select min(id) from etl.loads where operation = 'GetCircuitBreakers')",
  ],
])('history of no state is found if it is %s', async (_, change) => {
  await query(
    url,
    `create table public.forged as select * from market_history.bhavcopy_cm where withdrawn limit 1;
     update public.forged set replaced_by_load_id = load_id, revision = 99;
     update public.forged set ${change};
     update public.forged set replaced_by_load_id = load_id;
     insert into market_history.bhavcopy_cm select * from public.forged`,
  );
  const { code, found } = await verify();
  expect({ code, ...found }).toMatchObject({ code: 1, strayRows: [{ table: 'market_history.bhavcopy_cm' }] });
  await query(url, 'delete from market_history.bhavcopy_cm where revision = 99; drop table public.forged');
  expect((await verify()).code).toBe(0);
});

test('a row that no load wrote is found', async () => {
  await query(
    url,
    "insert into market.circuit_breakers select exchange, '1999-01-04', scrip_id, series, band, symbol, scrip_name, source_received_at, source_saved_at, first_loaded_at, last_changed_at, revision, run_id, load_id from market.circuit_breakers limit 1",
  );
  const { code, stdout } = await runCli(['verify'], options);
  expect(code).toBe(1);
  expect(stdout).toContain('market.circuit_breakers: 1 row of no load, or of a day that it did not change');
  await query(url, "delete from market.circuit_breakers where trade_date = '1999-01-04'");
});

test('a replica, which stores nothing, has the same digest, also of loads that were not digested yet', async () => {
  const { digest } = await state('--digest');
  const name = new URL(url).pathname.slice(1);
  await query(url, 'update etl.loads set rows_digest = null, chain_digest = null where state > 2');
  await query(url, `alter database ${name} set default_transaction_read_only = on`);
  expect((await state('--digest')).digest).toBe(digest);
  const { code, found } = await verify();
  expect({ code, ...found }).toMatchObject({ code: 0, isIntact: true, digest });
  await withClient(url, async (client) => {
    await client.query('set default_transaction_read_only = off');
    await client.query(`alter database ${name} set default_transaction_read_only = off`);
  });
  expect((await state('--digest')).digest).toBe(digest);
});

test('a rebuild from the kept responses in another database has the same content', async () => {
  const { content } = await state('--content');
  const other = (await testDatabase()).url;
  await copyResponses(openPool(url), openPool(other));
  await runJson(['replay'], { cwd, env: { DATABASE_URL: other } });
  const { json } = await runJson<{ content: string }>(['state', '--content'], {
    cwd,
    env: { DATABASE_URL: other },
  });
  expect(json.content).toBe(content);
  // Each row belongs to the load of its response, so the copy can be followed from its beginning, and verified.
  const sides = (await query(
    other,
    'select (select count(*) from market.bhavcopy_cm)::int as stored, (select count(*) from market_history.bhavcopy_cm_changes(0, market.state()))::int as changes',
  )) as readonly { readonly stored: number; readonly changes: number }[];
  expect(sides).toEqual([{ stored: 200, changes: 200 }]);
  const verified = await runCli(['verify'], { cwd, env: { DATABASE_URL: other } });
  expect(verified).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/all\s+rows are as they were loaded/),
  });
  await query(other, "update market.bhavcopy_cm set close_price = 1 where symbol = 'TCS'");
  const changed = await runJson<{ content: string }>(['state', '--content'], {
    cwd,
    env: { DATABASE_URL: other },
  });
  expect(changed.json.content).not.toBe(content);
});

test('after a rebuild the chain still holds, and every row is covered by the load of the rebuild', async () => {
  const before = await state('--digest');
  await query(url, "update market.bhavcopy_cm set close_price = 1 where symbol = 'TCS'");
  await runJson(['replay', 'GetBhavCopyCM', '--rebuild', '--yes'], options);
  const { code, found } = await verify('--state', String(before.state), '--digest', before.digest);
  expect({ code, ...found }).toMatchObject({ code: 0, isIntact: true, differences: [], strayRows: [] });
  const now = await verify();
  expect({ code: now.code, isIntact: now.found.isIntact }).toEqual({ code: 0, isIntact: true });
  expect(now.found.replaced).toBeGreaterThan(0);
  const table =
    "market.bhavcopy_cm set instrument_full_name = instrument_full_name || '!' where symbol = 'TCS'";
  await query(url, `update ${table}`);
  const tampered = await verify();
  expect(tampered.code).toBe(1);
  expect(tampered.found.differences.map(({ operation }) => operation)).toContain('GetBhavCopyCM');
});

test.each([
  [['--digest', 'abc'], '--digest takes the 64 digits'],
  [['--digest', 'f'.repeat(64)], '--digest: name its state with --state'],
  [['--state', '99999'], 'there is no state 99999'],
])('eod verify %j is a mistake', async (flags, message) => {
  const { code, stderr } = await runCli(['verify', ...flags], options);
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
});
