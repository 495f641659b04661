import { expect } from 'vitest';
import type { RunReport } from '../../src/state/runs/reports.ts';
import { runCli, runJson } from '../support/cli.ts';
import { openStore } from '../support/import-support.ts';
import { fetched, records } from '../support/replay-support.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const DAY = '2025-08-29';

test('a withdrawal that was withheld is listed with its rows, and done when somebody accepts it', async ({
  url,
}) => {
  const context = await openStore(url);
  const options = { cwd: temporaryFolder(), env: { DATABASE_URL: url } };
  expect((await runCli(['withdrawals'], options)).stdout).toBe('no withdrawal is withheld\n');
  expect((await runCli(['issues'], options)).stdout).toBe(
    'nothing is loaded yet, so nothing needs a person\n',
  );

  await fetched(1, records(0, 20))(context);
  await fetched(2, records(8, 20))(context);
  const listed = await runCli(['withdrawals'], options);
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  expect(listed.stdout).toMatch(/bhavcopy_cm +NSE +2025-08-29 +8 +12 +20\n +EQ S000; EQ S001; EQ S002/);
  const { json } = await runJson<{ id: number; runId: number; rows: object[] }[]>(['withdrawals'], options);
  expect(json).toMatchObject([{ unlistedRows: 8, remainingRows: 12, maxRows: 20, state: 'withheld' }]);
  expect(json[0]?.rows).toHaveLength(3);

  const [id, runId] = [String(json[0]?.id), json[0]?.runId];
  expect((await runCli(['issues'], options)).stdout).toContain(
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
  expect((await runCli(['issues', '--exchange', 'BSE'], options)).stdout).toContain(
    'no issue matches; there is 1 other\n',
  );
  expect((await runCli(['status'], options)).stdout).toMatch(/\n1 issue needs a person: eod issues\n$/);
  const shown = await runCli(['withdrawals', id], options);
  expect(shown.stdout).toMatch(
    /^withdrawal \d+: market.bhavcopy_cm NSE 2025-08-29\n8 rows not listed any more, 12 would be left, of at most 20\n/,
  );
  expect(shown.stdout.match(/^ {2}EQ S00\d$/gm)).toHaveLength(8);
  const { json: withdrawal } = await runJson<{ id: number; rows: object[] }>(['withdrawals', id], options);
  expect([withdrawal.id, withdrawal.rows.length]).toEqual([Number(id), 8]);
  const accepted = await runCli(['withdrawals', 'accept', id], options);
  expect(accepted).toMatchObject({
    code: 0,
    stdout: `market.bhavcopy_cm NSE ${DAY}: 8 rows withdrawn, 12 left\n`,
  });
  expect((await runCli(['issues'], options)).stdout).toMatch(/^nothing needs a person/m);
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
