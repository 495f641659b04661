import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect } from 'vitest';
import { fixture, importInto, openStore, query, test } from '../../support/import-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const EQ = readFileSync(fixture('files/EQ070421.CSV'), 'utf8');
const BANDS = readFileSync(fixture('lists/bh011220.csv'), 'utf8');

function folderOf(names: readonly string[], text: string): string {
  const folder = temporaryFolder();
  for (const name of names) writeFileSync(join(folder, name), text);
  return folder;
}

/** Imports files, and says what came of each, without their folder. */
async function outcomesOf(context: Awaited<ReturnType<typeof openStore>>, paths: readonly string[]) {
  const { files, warnings, state } = await importInto(context, paths);
  const short = (text: string | null) => (text ?? '').replaceAll(/\S*\//g, '');
  return {
    state,
    files: files.map((file) => [basename(file.file), file.state, short(file.error)]),
    warnings: warnings.map(({ warning }) => short(warning)),
  };
}

const days = (context: Awaited<ReturnType<typeof openStore>>, table = 'bhavcopy_cm') =>
  query(
    context,
    `select trade_date::text as day, count(*)::int as rows from market.${table} group by 1 order by 1`,
  );

describe('one content under the names of two days', () => {
  test('of trading days is loaded for both with a warning, and skipped the next time', async ({
    context,
  }) => {
    const folder = folderOf(['EQ060421.CSV', 'EQ070421.CSV', 'Copy of EQ070421.CSV'], EQ);
    expect(await outcomesOf(context, [folder])).toEqual({
      state: 'completed',
      files: [
        ['Copy of EQ070421.CSV', 'loaded', ''],
        ['EQ060421.CSV', 'loaded', ''],
        ['EQ070421.CSV', 'skipped', 'the same content as Copy of EQ070421.CSV'],
      ],
      warnings: expect.arrayContaining([
        'EQ060421.CSV and Copy of EQ070421.CSV have the same content, but 2021-04-06 and 2021-04-07 in their names: one of them is wrong',
      ]),
    });
    expect(await days(context)).toEqual([
      { day: '2021-04-06', rows: 60 },
      { day: '2021-04-07', rows: 60 },
    ]);
    const again = await outcomesOf(context, [folder]);
    expect(new Set(again.files.map(([, ...outcome]) => outcome.join()))).toEqual(
      new Set(['skipped,imported before']),
    );
  });

  test.for([[['EQ040421.CSV', 'EQ070421.CSV']], [['EQ070421.CSV', 'EQ100421.CSV']]] as const)(
    'of which one is no trading day is loaded for the other: %j',
    async ([names]) => {
      const [context, apart] = await Promise.all([openStore(), openStore()]);
      const closed = names.find((name) => name !== 'EQ070421.CSV') ?? '';
      const folder = folderOf(names, EQ);
      const left = [
        closed,
        'skipped',
        expect.stringMatching(/^the same content as EQ070421.CSV, and 2021-04-\d\d is no trading day$/),
      ];
      // A second import of both says the same of the file that was left out.
      for (const state of ['loaded', 'skipped']) {
        const { files, warnings } = await outcomesOf(context, [folder]);
        expect(files).toContainEqual(left);
        expect(files).toContainEqual(['EQ070421.CSV', state, state === 'loaded' ? '' : 'imported before']);
        expect(warnings).toEqual([]);
      }
      for (const name of ['EQ070421.CSV', closed]) await outcomesOf(apart, [join(folder, name)]);
      for (const store of [context, apart])
        expect(await days(store)).toEqual([{ day: '2021-04-07', rows: 60 }]);
    },
  );

  test('of which none lists a row is loaded for both without a warning', async ({ context }) => {
    const [header = ''] = BANDS.split('\n');
    const folder = folderOf(['bh011220.csv', 'bh021220.csv'], `${header}\n`);
    expect(await outcomesOf(context, [folder])).toMatchObject({
      files: [
        ['bh011220.csv', 'loaded', ''],
        ['bh021220.csv', 'loaded', ''],
      ],
      warnings: [],
    });
  });

  test('of which the day without trading was imported before is loaded with a warning', async ({
    context,
  }) => {
    const folder = folderOf(['EQ040421.CSV', 'EQ070421.CSV'], EQ);
    await outcomesOf(context, [join(folder, 'EQ040421.CSV')]);
    expect(await outcomesOf(context, [folder])).toMatchObject({
      files: [
        ['EQ040421.CSV', 'skipped', 'imported before'],
        ['EQ070421.CSV', 'loaded', ''],
      ],
      warnings: [
        expect.stringMatching(
          /^EQ070421.CSV and EQ040421.CSV have the same content, but 2021-04-07 and 2021-04-04/,
        ),
      ],
    });
  });
});

test('a file of a day without trading is loaded with a warning, whatever its format', async ({ context }) => {
  const paths = [
    join(folderOf(['bh051220.csv'], BANDS), 'bh051220.csv'),
    join(folderOf(['EQ040421.CSV'], EQ), 'EQ040421.CSV'),
  ];
  expect(await outcomesOf(context, paths)).toMatchObject({
    state: 'completed',
    warnings: [
      'EQ040421.CSV: 2021-04-04 is no trading day of BSE in the calendar',
      'bh051220.csv: 2020-12-05 is no trading day of NSE in the calendar',
    ],
  });
  expect(await days(context, 'circuit_breakers')).toMatchObject([{ day: '2020-12-05' }]);
});
