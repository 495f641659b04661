import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { runCli, runJson } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { test } from './support.ts';

const LIST = `exchange,symbol,ex_date,kind,ratio,note
NSE,ABC,2024-01-03,split,5:1,From Rs 10 To Rs 2
NSE,ABC,2024-02-05,demerger,,Demerger
BSE,XYZ,2024-02-06,dividend,2.50,
`;

test('events are listed, filtered and decided', async ({ url }) => {
  const cwd = temporaryFolder();
  const options = { cwd, env: { DATABASE_URL: url } };
  expect((await runCli(['events'], options)).stdout).toContain(
    'no corporate event matches; "eod import" loads',
  );

  writeFileSync(join(cwd, 'mine.csv'), LIST);
  const imported = await runCli(['import', join(cwd, 'mine.csv')], options);
  expect(imported).toMatchObject({ code: 0 });
  expect((await runCli(['events'], options)).stdout).toBe(
    [
      'BSE:XYZ:2024-02-06:dividend:2.5  Rs 2.5  applied',
      '    dividend 2.50',
      'NSE:ABC:2024-02-05:demerger  needs_review',
      '    Demerger',
      '    its list states no ratio to adjust prices by',
      'NSE:ABC:2024-01-03:split  5 shares for 1, prices × 0.2  applied',
      '    From Rs 10 To Rs 2',
      '',
      '3 events\n',
    ].join('\n'),
  );
  const only = async (...args: string[]) =>
    (await runJson<{ id: string }[]>(['events', ...args], options)).json.map(({ id }) => id);
  expect(await only('--status', 'needs_review')).toEqual(['NSE:ABC:2024-02-05:demerger']);
  expect(await only('--kind', 'split,dividend', '--exchange', 'NSE')).toEqual(['NSE:ABC:2024-01-03:split']);
  expect(await only('--symbol', 'xyz')).toEqual(['BSE:XYZ:2024-02-06:dividend:2.5']);
  expect(await runCli(['events', '500325'], options)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      '"500325" is digits only, which is a scrip code and not a symbol; market.instruments has',
    ),
  });
  expect(await only('--from', '2024-01-04', '--to', '2024-02-05')).toEqual(['NSE:ABC:2024-02-05:demerger']);

  const id = 'NSE:ABC:2024-02-05:demerger';
  const set = (...args: string[]) => runCli(['events', 'set', ...args], options);
  expect((await set(id, '--factor', '4:5')).stdout).toMatch(
    /5 shares for 4, prices × 0.8 +applied\n.*\n +decided by /,
  );
  expect((await runJson(['events', 'set', id, '--ignore'], options)).json).toMatchObject({
    id,
    status: 'ignored',
    ratio: null,
  });
  expect((await set(id, '--reset')).stdout).toContain(`${id}  needs_review`);

  const ignore = (...args: string[]) => runCli(['events', 'ignore', '--below', '5', ...args], options);
  expect((await ignore('--dry-run')).stdout.replaceAll(/\s+/g, ' ')).toBe(
    'would ignore 0; 1 left for review: of 1 that is not known ',
  );
  expect((await runJson(['events', 'ignore', '--below', '5%', '--yes'], options)).json).toEqual({
    below: 5,
    isDryRun: false,
    ignored: [],
    large: 0,
    unknown: 1,
  });

  expect(await set(id, '--reset')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('nothing was decided about'),
  });
  expect(await set(id)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('give one of --factor, --ignore and --reset'),
  });
  expect(await set(id, '--factor', '0:5')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('not two whole numbers above 0'),
  });
  expect(await set('NSE:ABC:2024-02-05:demerge', '--ignore')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      'there is no event "NSE:ABC:2024-02-05:demerge" ("eod events" lists them)',
    ),
  });
  expect(await runCli(['events', '--status', 'needs'], options)).toMatchObject({ code: 2 });
});
