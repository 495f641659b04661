import { expect } from 'vitest';
import type { RunReport } from '../../src/load/state/runs/reports.ts';
import { bhavcopy, bhavRow, loadBhav, newRun, openPool } from '../load/support.ts';
import { runCli, runJson } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const DAY = '2025-08-29';

test('what was not believed is listed with rows, and withdrawn when somebody accepts it', async ({ url }) => {
  const store = openPool(url);
  const options = { cwd: temporaryFolder(), env: { DATABASE_URL: url } };
  expect((await runCli(['withdrawals'], options)).stdout).toBe('no withdrawal is withheld\n');
  expect((await runCli(['issues'], options)).stdout).toBe(
    'nothing is loaded yet, so nothing needs a person\n',
  );

  const rows = Array.from({ length: 20 }, (_, at) => bhavRow({ symbol: `S${at + 10}` }));
  const fullSets = [{ table: bhavcopy, exchange: 'NSE', days: { from: DAY, to: DAY }, mayBeEmpty: false }];
  const runId = await newRun(store);
  await loadBhav(store, rows, { fullSets });
  await loadBhav(store, rows.slice(8), { fullSets, runId });
  const listed = await runCli(['withdrawals'], options);
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  expect(listed.stdout).toMatch(/bhavcopy_cm +NSE +2025-08-29 +8 +12 +20\n +EQ S10; EQ S11; EQ S12/);
  const { json } = await runJson<{ id: number; rows: object[] }[]>(['withdrawals'], options);
  expect(json).toMatchObject([{ runId, unlistedRows: 8, remainingRows: 12, maxRows: 20, state: 'withheld' }]);
  expect(json[0]?.rows).toHaveLength(3);

  const id = String(json[0]?.id);
  expect((await runCli(['issues'], options)).stdout).toBe(
    [
      `withheld withdrawal of 8 rows: Prices, bhavcopy_cm NSE ${DAY}`,
      '    8 of 20 rows of market.bhavcopy_cm were not listed any more; more than may',
      '      be withdrawn (EOD_MAX_WITHDRAW_SHARE), so none was',
      `    eod withdrawals accept ${id}`,
      '',
      '1 issue: 1 withheld withdrawal\n',
    ].join('\n'),
  );
  expect((await runJson<object[]>(['issues', '--exchange', 'NSE'], options)).json).toMatchObject([
    {
      kind: 'withdrawal',
      subject: 'bhavcopy_cm',
      id,
      effect: 8,
      priority: 1,
      command: `eod withdrawals accept ${id}`,
    },
  ]);
  expect((await runCli(['issues', '--exchange', 'BSE'], options)).stdout).toBe(
    'no issue matches; there is 1 other\n',
  );
  expect((await runCli(['status'], options)).stdout).toMatch(/\n1 issue needs a person: eod issues\n$/);
  const shown = await runCli(['withdrawals', id], options);
  expect(shown.stdout).toMatch(
    /^withdrawal \d+: market.bhavcopy_cm NSE 2025-08-29\n8 rows not listed any more, 12 would be left, of at most 20\n/,
  );
  expect(shown.stdout.match(/^ {2}EQ S1\d$/gm)).toHaveLength(8);
  const { json: one } = await runJson<{ id: number; rows: object[] }>(['withdrawals', id], options);
  expect([one.id, one.rows.length]).toEqual([Number(id), 8]);
  const accepted = await runCli(['withdrawals', 'accept', id], options);
  expect(accepted).toMatchObject({
    code: 0,
    stdout: `market.bhavcopy_cm NSE ${DAY}: 8 rows withdrawn, 12 left\n`,
  });
  expect((await runCli(['issues'], options)).stdout).toMatch(/^nothing needs a person/);
  expect((await runCli(['status'], options)).stdout).not.toContain('eod issues');
  const report = (await runJson<RunReport>(['runs', String(runId)], options)).json;
  expect(report.withdrawals).toMatchObject([{ day: DAY, state: 'accepted', unlistedRows: 8 }]);
  expect((await runCli(['runs', String(runId)], options)).stdout).toMatch(
    /^withdrawn: Prices, bhavcopy_cm NSE 2025-08-29: 8 rows not listed any more, 12\s+left$/m,
  );
  const again = await runCli(['withdrawals', 'accept', id], options);
  expect(await runCli(['withdrawals', id], options)).toMatchObject({ code: 2, stderr: again.stderr });
  expect(again).toMatchObject({
    code: 2,
    stderr: `eod: no withdrawal ${id} is withheld ("eod withdrawals" lists them)\n`,
  });
});
