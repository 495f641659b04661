import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { MOST_BYTES } from '../../../src/extract/files/unpack.ts';
import { hashFile } from '../../../src/jobs/import/files.ts';
import {
  fixture,
  importInto,
  linesOf,
  NSE_UDIFF,
  newFile,
  openStore,
  test,
} from '../../support/import-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { zip } from '../../support/zip.ts';

/** What became of the files, by their names. */
const outcomes = (files: Awaited<ReturnType<typeof importInto>>['files']) =>
  Object.fromEntries(files.map(({ file, state, error }) => [basename(file), error ?? state]));

describe('bad files fail alone, and are named with the reason', () => {
  test('pipes, devices and folders with the name of a file', async ({ context }) => {
    const folder = temporaryFolder();
    copyFileSync(NSE_UDIFF, join(folder, 'good.csv'));
    symlinkSync(join(folder, 'good.csv'), join(folder, 'same.csv'));
    symlinkSync('/dev/zero', join(folder, 'zero.csv'));
    execFileSync('mkfifo', [join(folder, 'pipe.csv')]);
    mkdirSync(join(folder, 'below'));
    symlinkSync(join(folder, 'below'), join(folder, 'folder.csv'));
    const { files, state } = await importInto(context, [folder, join(folder, 'pipe.csv'), '/dev/zero']);
    expect(outcomes(files)).toEqual({
      'good.csv': 'loaded',
      'same.csv': `the same content as ${join(folder, 'good.csv')}`,
      zero: 'is not a regular file; only regular files are read',
      'zero.csv': 'is a link that leads out of the folder that was named; name what it leads to as well',
      'pipe.csv': 'is not a regular file; only regular files are read',
      'folder.csv': 'is not a regular file; only regular files are read',
    });
    expect(state).toBe('failed');
  });

  test('rows on one line that cannot be distinguished leave the trading day missing until a whole file is imported', async ({
    context,
  }) => {
    const [header, ...rows] = [
      'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN',
      ...Array.from({ length: 40 }, (_, at) => `S${10 + at}`).map(
        (symbol) => `${symbol},EQ,41,42,40,40,40,40,1000,41000,29-AUG-2025,7,INE144J01027`,
      ),
    ];
    const states = async (...lines: string[]) => {
      const { files } = await importInto(context, [newFile('cm.csv', [header as string, ...lines])]);
      const { rows: coverage } = await context.db.pool.query<{ state: string }>(
        `select (select count(*) from market.bhavcopy_cm) || ' ' || state || coalesce(' ' || diagnostic, '') as state
           from etl.coverage where operation = 'GetBhavCopyCM' and day = '2025-08-29'`,
      );
      return [files[0]?.state, coverage[0]?.state];
    };
    expect(await states(`${rows[0]}${rows[1]}`, ...rows.slice(2))).toEqual([
      'loaded',
      expect.stringMatching(/^38 failed a line has the cells of several rows/),
    ]);
    expect(await states(...rows)).toEqual(['loaded', '40 loaded']);
  });

  test('a file whose last cell is cut is loaded with a warning, and one that lacks the last end of a line without', async ({
    context,
  }) => {
    const lines = linesOf(fixture('files/sec_bhavdata_full_14112024.csv'));
    const whole = lines.filter((line) => /SYMBOL|\.\d\d\s*$/.test(line)).join('\n');
    const path = join(temporaryFolder(), 'sec_bhavdata_full_14112024.csv');
    for (const [text, expected] of [
      [whole, []],
      [`${whole.slice(0, -1)}\n`, []],
      [
        whole.slice(0, -1),
        [
          expect.stringMatching(
            /^sec_bhavdata_full_14112024.csv of 2024-11-14: its last line may be cut: it ends in "\d+\.\d", .*download it again$/,
          ),
        ],
      ],
      [whole.slice(0, -3), [expect.stringContaining('its last line may be cut')]],
      [whole.replace(/[^,]*$/, ' -'), []],
    ] as const) {
      writeFileSync(path, text);
      const { files, warnings } = await importInto(context, [path], { force: true });
      expect(files[0]?.state).toBe('loaded');
      expect(
        warnings.map(({ warning }) => warning).filter((warning) => warning.includes('last line')),
      ).toEqual(expected);
    }
  });

  test('a file of deals whose name does not say which kind: the reason says how to name it', async ({
    context,
  }) => {
    const lines = [
      'Date,Symbol,Security Name,Client Name,Buy/Sell,Quantity Traded,Trade Price / Wght. Avg. Price',
      '12-MAR-2025,INFY,Infosys Limited,SOMEBODY,BUY,1000,1500.00',
    ];
    const importAs = async (name: string) =>
      outcomes((await importInto(context, [newFile(name, lines)])).files);
    expect(await importAs('deals.csv')).toEqual({
      'deals.csv': 'has the columns of several formats; put "bulk" or "block" into its name',
    });
    expect(await importAs('deals-block.csv')).toEqual({ 'deals-block.csv': 'loaded' });
  });

  test('a line, a file and archives of more bytes than are read', async ({ context }) => {
    const folder = temporaryFolder();
    copyFileSync(NSE_UDIFF, join(folder, 'good.csv'));
    const commas = Buffer.alloc(16_000_000, ',');
    writeFileSync(join(folder, 'commas.zip'), zip([{ name: 'commas.csv', text: commas }]));
    writeFileSync(join(folder, 'lines.csv.gz'), gzipSync(Buffer.alloc(3_000_000, '\n')));
    const says = { unpacked: MOST_BYTES + 1 };
    writeFileSync(join(folder, 'large.zip'), zip([{ name: 'x.csv', text: 'x', says }]));
    writeFileSync(join(folder, 'sparse.csv'), '');
    truncateSync(join(folder, 'sparse.csv'), MOST_BYTES + 1);
    const { files } = await importInto(context, [folder]);
    expect(outcomes(files)).toEqual({
      'good.csv': 'loaded',
      'commas.zip': 'commas.csv in it: line 1 has 16000000 bytes; at most 1000000 of a line are read',
      'lines.csv.gz': 'has 3000000 lines; at most 2000000 are read',
      'large.zip': 'the zip archive unpacks to more than may be read, at x.csv',
      'sparse.csv': `has ${MOST_BYTES + 1} bytes; at most ${MOST_BYTES} of a file are read`,
    });
  });

  test('files that take more than their share of what all may take at once are read one by one', async () => {
    const context = await openStore(undefined, { EOD_CONCURRENCY: '64' });
    const folder = temporaryFolder();
    const padded = (day: string) => {
      const header = 'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,NOTE\n';
      const row = `,EQ,1,1,1,1,1,1,1,1,${day},${' '.repeat(900_000)}x\n`;
      return header + Array.from({ length: 12 }, (_, at) => `S${at}${row}`).join('');
    };
    for (const day of ['04-JAN-2021', '05-JAN-2021']) {
      const text = padded(day);
      expect(text.length).toBeGreaterThan(MOST_BYTES / 64);
      writeFileSync(join(folder, `${day}.zip`), zip([{ name: 'x.csv', text }]));
    }
    copyFileSync(NSE_UDIFF, join(folder, 'good.csv'));
    const { files, state } = await importInto(context, [folder]);
    expect(state).toBe('completed');
    expect(files.map(({ rows }) => rows)).toEqual([12, 12, 100]);
  });
});

test('hashing a file ends with the signal', async () => {
  const path = join(temporaryFolder(), 'x.csv');
  writeFileSync(path, Buffer.alloc(64 * 1024 * 1024));
  const abort = new AbortController();
  abort.abort();
  expect(await hashFile({ path, absolutePath: path }, abort.signal)).toBeNull();
  expect(await hashFile({ path, absolutePath: path }, undefined)).toMatchObject({ error: null });
});

describe('files of unknown form', () => {
  const folderOfForms = (good: boolean) => {
    const folder = temporaryFolder();
    if (good) copyFileSync(NSE_UDIFF, join(folder, 'good.csv'));
    writeFileSync(join(folder, 'funds.csv'), 'Date,Symbol,Client Name\n08-SEP-2021,AAA,A\n');
    writeFileSync(join(folder, 'funds2.csv'), 'Date,Symbol,Client Name\n09-SEP-2021,BBB,B\n');
    const day = '2025-08-29';
    const currency = `TradDt,Sgmt,Src,TckrSymb,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd\n${day},CD,NSE,USDINR,XX,1,1,1,1,1,1,1,1,1\n`;
    writeFileSync(join(folder, 'currency.csv'), currency);
    return folder;
  };

  test('are listed, and the import of the others is completed', async ({ context }) => {
    const folder = folderOfForms(true);
    const report = await importInto(context, [folder]);
    expect(report).toMatchObject({ state: 'completed', error: null, failures: [] });
    expect(report.files.map(({ file, state, form }) => [basename(file), state, form])).toEqual([
      ['currency.csv', 'unknown', 'segment CD'],
      ['funds.csv', 'unknown', 'Date,Symbol,Client Name'],
      ['funds2.csv', 'unknown', 'Date,Symbol,Client Name'],
      ['good.csv', 'loaded', null],
    ]);
    // They are no news the next time, and a failure if they must not be there.
    expect((await importInto(context, [folder])).state).toBe('completed');
    const strict = await importInto(context, [folder], { strict: true });
    expect([strict.state, strict.failures.length]).toEqual(['failed', 3]);
  });

  test('are a failure if they are called like files that are read, whatever is in them', async ({
    context,
  }) => {
    const folder = temporaryFolder();
    copyFileSync(NSE_UDIFF, join(folder, basename(NSE_UDIFF)));
    const names = [
      'BhavCopy_NSE_CM_0_0_0_20250901_F_0000.csv',
      'Copy of sec_bhavdata_full_02092025.csv',
      'cm05JUL2024bhav (1).csv',
      'EQ070421.CSV',
      '01APR2022.csv',
      'bulk.csv',
      'CF-CA-equities-01-01-2021-to-31-12-2021.csv',
    ];
    const others = [
      'weekly.csv',
      'full_29AUG2025.csv',
      'bulk carriers.csv',
      'BhavCopy_NSE_CD_0_0_0_20250901_F_0000.csv',
    ];
    const texts = [
      '{"error":"Resource not found"}',
      'Please try again later.',
      'Date,Symbol,Client Name\n1,A,A\n',
    ];
    for (const text of texts) {
      for (const [at, name] of [...names, ...others].entries())
        writeFileSync(join(folder, name), `${text}${' '.repeat(at)}`);
      const zipped = zip([{ name: 'x.csv', text: `\n${text}` }]);
      writeFileSync(join(folder, 'BhavCopy_NSE_CM_0_0_0_20250902_F_0000.csv.zip'), zipped);
      const { state, files } = await importInto(context, [folder]);
      expect(state).toBe('failed');
      const namesOf = (wanted: string) =>
        files.flatMap((file) => (file.state === wanted ? [basename(file.file)] : [])).sort();
      expect(namesOf('failed')).toEqual([...names, 'BhavCopy_NSE_CM_0_0_0_20250902_F_0000.csv.zip'].sort());
      expect(namesOf('unknown')).toEqual([...others].sort());
      for (const { error } of files.filter((file) => file.state === 'failed'))
        expect(error).toMatch(/, though its name is that of a file that is read$/);
    }
  });

  test('are a failure if there is no other', async ({ context }) => {
    const report = await importInto(context, [folderOfForms(false)]);
    expect([report.state, report.failures.length]).toEqual(['failed', 3]);
  });

  test('in an archive leave the others of it to be read', async ({ context }) => {
    const folder = folderOfForms(false);
    const path = join(folder, 'all.zip');
    const currency = 'TradDt,Sgmt,Src,TckrSymb\n2025-08-29,CD,NSE,USDINR\n';
    const good = {
      name: 'cm.csv',
      text: 'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP\nACC,EQ,1,1,1,1,1,1,1,1,04-JAN-2021\n',
    };
    writeFileSync(
      path,
      zip([
        { name: 'currency.csv', text: currency },
        { name: 'more.zip', text: zip([{ name: 'funds.csv', text: 'Date,Symbol\n1,AAA\n' }, good]) },
        { name: 'readme.txt', text: 'no data' },
      ]),
    );
    const report = await importInto(context, [path]);
    expect(report).toMatchObject({ state: 'completed', failures: [], files: [{ state: 'loaded', rows: 1 }] });
    expect(report.files[0]?.leftOut).toEqual([
      { file: `${path}/currency.csv`, form: 'segment CD' },
      { file: `${path}/more.zip/funds.csv`, form: 'Date,Symbol' },
    ]);
    const strict = await importInto(context, [path], { strict: true, force: true });
    expect(strict).toMatchObject({ state: 'failed', files: [{ state: 'loaded' }] });
    expect(strict.failures.map(({ error }) => error)).toEqual([
      `${path}/currency.csv: has an unknown form: "segment CD"`,
      `${path}/more.zip/funds.csv: has an unknown form: "Date,Symbol"`,
    ]);
  });
});
