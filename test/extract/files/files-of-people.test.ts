import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PipelineError } from '../../../src/core/errors.ts';
import { dayInName as dayIn } from '../../../src/extract/files/formats.ts';
import { readExchangeFile } from '../../../src/extract/files/read-exchange-file.ts';
import type { FilePart } from '../../../src/extract/files/read-file.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { zip } from '../../support/zip.ts';

// Files as people have them: saved by other programs, renamed, downloaded twice.

const ZONE = 'Asia/Kolkata';
const RUNS = { seed: 41, numRuns: 60 };

const read = (name: string, text: string) => readExchangeFile(name, Buffer.from(text), ZONE);
const zipOf = (files: Readonly<Record<string, string>>) =>
  zip(Object.entries(files).map(([name, text]) => ({ name, text })));
const rowsOf = (part: FilePart | undefined) => [...(part?.rows ?? [])];
/** With numbers as text: what is parsed has some as text, and what is scanned as numbers. */
const textsOf = (part: FilePart | undefined) =>
  rowsOf(part).map((row) => Object.values(row).map((value) => `${value}`));
const problemOf = (name: string, text: string) =>
  read(name, text).then(
    () => 'none',
    (error: Error) => error.message,
  );

const CM = 'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,TOTALTRADES,ISIN';
const EQ =
  'SC_CODE,SC_NAME,SC_GROUP,SC_TYPE,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,NO_TRADES,NO_OF_SHRS,NET_TURNOV,TDCLOINDI';
const EQ_ROWS = [
  '500002,ABB LTD.    ,A ,Q,1377.00,1390.00,1367.70,1374.60,1390.00,1376.30,644,4345,5980155.00,',
  '500003,AEGIS LOGIS ,A ,Q,281.95,293.95,281.95,291.45,291.45,282.10,1066,12717,3675760.00,',
  '500008,AMAR RAJA BA,A ,Q,845.50,855.00,834.00,836.45,834.00,845.40,1139,18707,15791023.00,',
  '500009,A.SARABHAI  ,X ,Q,27.75,27.75,25.50,26.60,26.60,26.75,537,196273,5209399.00,',
];

describe('numbers that a spreadsheet has shortened', () => {
  const row = (quantity: string, turnover: string) =>
    `ACC,EQ,1,1,1,1,1,1,${quantity},${turnover},04-JAN-2021,1,INE1`;
  const fileOf = (...rows: string[]) => [CM, row('7', '7'), ...rows, ''].join('\n');

  test('are refused where digits are lost, and read where none is', async () => {
    await forAllAsync(
      [fc.integer({ min: 1, max: 2_000_000_000 }), fc.nat(10), fc.boolean(), fc.boolean()],
      async (number, decimals, isCapital, isQuantity) => {
        const short = number.toExponential(decimals);
        const text = isCapital ? short.toUpperCase().replace(/\+(\d)$/, '+0$1') : short;
        const value = `${Number(short)}`;
        const file = fileOf(isQuantity ? row(text, value) : row(value, text));
        const isLost = isCapital && decimals < Number(/\d+$/.exec(short)?.[0]);
        if (isLost) {
          const column = isQuantity ? 'TOTTRDQTY' : 'TOTTRDVAL';
          expect(await problemOf('x.csv', file)).toBe(
            `has "${text}" in ${column} on line 3: a spreadsheet has shortened this number, and its last digits are lost; download the file again`,
          );
        } else if (isQuantity) {
          const [part] = await read('x.csv', file);
          expect(Number(rowsOf(part)[1]?.traded_quantity)).toBe(Number(value));
        } else {
          const [part] = await read('x.csv', file);
          expect(Number(rowsOf(part)[1]?.turnover)).toBe(Number(value));
        }
      },
    );
  });

  test('are none in names, in R and pandas, and in JSON', async () => {
    for (const text of [
      row('1e+05', '100000'),
      row('100000', '1e+05'),
      row('100000', '100000').replace('ACC', '1E+05'),
    ]) {
      expect(await problemOf('x.csv', fileOf(text)), text).toBe('none');
    }
    const pledge = {
      comName: 'A',
      broadcastDt: '01-Jan-2025 10:00:00',
      numSharesPledged: '1.03E+07',
      totIssuedShares: '1',
    };
    expect(await problemOf('x.json', JSON.stringify([pledge]))).not.toContain('spreadsheet');
    const quoted = fileOf(row('"1.03E+07"', '7')).replaceAll('\n', '\r\n');
    expect(await problemOf('x.csv', quoted)).toContain('has "1.03E+07" in TOTTRDQTY on line 3:');
  });
});

describe('turnover that is not in rupees', () => {
  // The first rows of a file that an R package saved: turnover in lakhs under the name of the column in rupees.
  const LAKHS = [
    '"","SYMBOL","SERIES","OPEN","HIGH","LOW","CLOSE","LAST","PREVCLOSE","TOTTRDQTY","TOTTRDVAL","TIMESTAMP","TOTALTRADES","ISIN","X"',
    '"1","1018GS2026","GS",106.5,106.55,106.5,106.55,106.55,106.54,1008,1.07,"01-Feb-2026",5,"",""',
    '"2","20MICRONS","EQ",174.83,178.02,171,172.55,171.65,175.28,57259,100.02,"01-Feb-2026",2278,"",""',
    '"4","360ONE","EQ",1134.3,1135.1,1025.1,1101.8,1117,1134.3,1075542,11873.68,"01-Feb-2026",30782,"",""',
    '"8","563GS2026","GS",103,103,101.2,101.2,101.2,101.47,3,0,"01-Feb-2026",3,"",""',
    '',
  ].join('\n');

  test('is an error that names the factor', async () => {
    expect(await problemOf('01022026.csv', LAKHS)).toBe(
      'has a turnover that is not in rupees: divided by the quantity it is 1/100,000 of the prices in 3 of 3 rows with a trade, so it seems to be in lakhs of rupees',
    );
    const rupees = LAKHS.replaceAll(/(?<=,)(1\.07|100\.02|11873\.68)(?=,)/g, (lakhs) => `${lakhs}e5`);
    expect(rowsOf((await read('x.csv', rupees))[0])).toHaveLength(4);
  });

  test.each([
    ['a row of a share', 'ACC,EQ,100,102,98,100,100,100,1000,1.00,04-JAN-2021,9,INE1', 1],
    [
      'a row with two decimals of lakhs',
      '1018GS2026,GS,106.5,106.55,106.5,106.55,106.55,106.54,1008,1.07,04-JAN-2021,5,',
      1,
    ],
  ])('is proved by %s alone', async (_, row, rows) => {
    expect(await problemOf('x.csv', `${CM}\n${row}\n`)).toBe(
      `has a turnover that is not in rupees: divided by the quantity it is 1/100,000 of the prices in ${rows} of 1 row with a trade, so it seems to be in lakhs of rupees`,
    );
  });

  test.each([
    ['of another factor', 'ACC,EQ,100,102,98,100,100,100,1000,4.00,04-JAN-2021,9,INE1'],
    [
      'too large, as of a bond in percent of its face value',
      'ACC,EQ,100,102,98,100,100,100,10,100000,04-JAN-2021,9,INE1',
    ],
    ['in rupees', 'ACC,EQ,100,102,98,100,100,100,1000,100000,04-JAN-2021,9,INE1'],
  ])('is not proved by a row %s', async (_, row) => {
    expect(await problemOf('x.csv', `${CM}\n${row}\n`)).toBe('none');
  });

  test('is found in the history of one share, which has a row of each trading day', async () => {
    const history = (unit: number) => [
      CM,
      ...['01', '02', '03', '06'].map(
        (day) => `ACC,EQ,100,102,98,100,100,100,1000,${100_000 / unit},${day}-MAR-2023,9,INE1`,
      ),
      '',
    ];
    expect(await problemOf('x.csv', history(1e5).join('\n'))).toContain(
      '1/100,000 of the prices in 4 of 4 rows',
    );
    expect(await read('x.csv', history(1).join('\n'))).toHaveLength(4);
  });

  test('is found for any prices and units, and never where the unit is rupees', async () => {
    const trade = fc.record({
      low: fc.double({ min: 0.05, max: 90_000, noNaN: true }),
      spread: fc.double({ min: 1, max: 1.2, noNaN: true }),
      quantity: fc.integer({ min: 1, max: 50_000_000 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(trade, { minLength: 1, maxLength: 250 }),
        fc.constantFrom(0, 3, 5, 6, 7),
        async (trades, power) => {
          const rows = trades.map(({ low, spread, quantity }, at) => {
            const high = low * spread;
            const turnover = ((low + high) / 2) * quantity * 10 ** -power;
            return `S${at},EQ,${low},${high},${low},${high},${high},${low},${quantity},${turnover},04-JAN-2021,1,INE`;
          });
          const problem = await problemOf('x.csv', `${[CM, ...rows].join('\n')}\n`);
          if (power === 0) expect(problem).toBe('none');
          else expect(problem).toContain(`1/${(10 ** power).toLocaleString('en')} of the prices`);
        },
      ),
      RUNS,
    );
  });

  test('a few rows that differ are errors of their own', async () => {
    const rows = EQ_ROWS.map((row, at) => (at === 0 ? row.replace('5980155.00', '59.80') : row));
    expect((await read('EQ070421.CSV', `${[EQ, ...rows].join('\n')}\n`))[0]?.rows).toHaveLength(4);
  });
});

test('the full bhav copy of NSE in title case has the same rows', async () => {
  const path = fileURLToPath(new URL('../../fixtures/files/sec_bhavdata_full_14112024.csv', import.meta.url));
  const text = readFileSync(path, 'utf8');
  const [published] = await read('x.csv', text);
  const header =
    'Symbol,Series,Date,Prev_Close,Open_Price,High_Price,Low_Price,Last_Price,Close_Price,Avg_Price, TTL_TRD_QNTY, TURNOVER_LACS, NO_OF_TRADES, DELIV_QTY, DELIV_PER';
  const [renamed] = await read('x.csv', text.replace(/^.*/, header));
  expect(rowsOf(renamed)).toEqual(rowsOf(published));
  expect([...(renamed?.also?.rows ?? [])]).toEqual([...(published?.also?.rows ?? [])]);
});

test('spaces inside the quotes of a header do not matter', async () => {
  const header = '"SYMBOL ","SERIES ","PURPOSE ","EX-DATE "';
  const [part] = await read('CF-CA.csv', `${header}\n"TCS","EQ","Bonus 1:1","31-May-2012"\n`);
  expect(rowsOf(part)[0]).toMatchObject({ symbol: 'TCS', ex_date: '2012-05-31' });
});

const dayInName = (name: string) => dayIn(name, { files: ['EQ_ISINCODE_DDMMYY.CSV', 'EQDDMMYY.CSV'] });

test('the day of an old BSE file is found in whatever a browser or a person makes of its name', async () => {
  const text = `${[EQ, ...EQ_ROWS].join('\n')}\n`;
  for (const name of [
    'EQ070421 (1).CSV',
    'Copy of EQ070421.CSV',
    'EQ070421 - Copy.csv',
    'bse_eq070421_csv.csv',
  ]) {
    expect((await read(name, text))[0]).toMatchObject({ day: '2021-04-07', rows: { length: 4 } });
  }
  const [zipped] = await readExchangeFile('a.zip', zipOf({ 'Copy of EQ070421.CSV': text }), ZONE);
  expect(zipped?.day).toBe('2021-04-07');
  // A public collection has 461 of them.
  expect((await read('bse/01APR2022.csv', text))[0]).toMatchObject({ day: '2022-04-01', exchange: 'BSE' });
  await expect(read('bse/list of 01APR2022.csv', text)).rejects.toThrow('has no date');
  const around = fc.stringMatching(/^[ ()_.-]{0,8}$/);
  fc.assert(
    fc.property(around, around, fc.constantFrom('', '_CSV'), (before, after, mark) => {
      expect(dayInName(`2020/01/02/x${before === '' ? ' ' : before}EQ070421${mark}${after}.csv`)).toBe(
        '2021-04-07',
      );
    }),
    RUNS,
  );
  for (const name of [
    'EQ07042021.CSV',
    'SEQ070421.CSV',
    'EQ070421x.CSV',
    'EQ070421 to EQ090421.CSV',
    'eq.csv',
  ]) {
    expect(dayInName(name), name).toBeNull();
  }
});

test('a T+0 line of BSE is called by its ticker, which the files of those years cut only where it is longer', async () => {
  const header =
    'ISIN,TckrSymb,FinInstrmId,FinInstrmNm,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TradDt,TtlNbOfTxsExctd,FftyTwWkHgh';
  const row = (ticker: string, code: number) =>
    `INE062A01020,${ticker},${code},STATE BANK OF INDIA,A ,791.00,791.00,791.00,793.85,791.00,782.15,10,7910.00,23-SEP-2024,1,`;
  const [part] = await read(
    'x.csv',
    `${[header, row('SBIN', 500112), row('SBIN#', 100112)].join('\r\n')}\r\n`,
  );
  expect(rowsOf(part).map(({ symbol, exchange_instrument_id: code }) => [symbol, code])).toEqual([
    ['500112', 500112],
    ['SBIN#', 100112],
  ]);
});

describe('two rows on one line', () => {
  const files = {
    EQ: [EQ, ...EQ_ROWS],
    CM: [
      `${CM},`,
      ...['20MICRONS', 'ACC', 'M&M', 'TCS'].map(
        (symbol, at) => `${symbol},EQ,41.8,41.85,40.5,40.9,40.85,40.95,1000,41000.5,06-JAN-2021,${at},INE1,`,
      ),
    ],
    UDIFF: [
      'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty,Rmks,Rsvd1',
      ...['A', 'B', 'C', 'D'].map(
        (symbol, at) =>
          `2025-08-29,2025-08-29,CM,BSE,STK,${at},INE1,${symbol},A,10,11,9,10,10,10,5,50.5,2,F1,1,,`,
      ),
    ],
  };

  test.each(Object.entries(files))(
    '%s: are both read, wherever the end of a line is missing',
    async (_, lines) => {
      const whole = (await read('EQ070421.CSV', `${lines.join('\n')}\n`))[0];
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom('\n', '\r\n'),
          fc.subarray([1, 3]),
          fc.constantFrom('', ','),
          async (end, joined, comma) => {
            const text = lines.map((line, at) => `${line}${joined.includes(at) ? comma : end}`).join('');
            const [part] = await read('EQ070421.CSV', text);
            expect(part?.rejects).toEqual([]);
            expect(textsOf(part)).toEqual(textsOf(whole));
            expect(part?.complete).toBe(whole?.complete);
          },
        ),
        { seed: 5, numRuns: 20 },
      );
    },
  );

  test('three rows on one line are read; a row on the line of the header is an error', async () => {
    const [first, second, third, last] = EQ_ROWS as [string, string, string, string];
    const [part] = await read('EQ070421.CSV', [EQ, first + second + third, last, ''].join('\n'));
    expect([part?.rows.length, part?.rejects.length]).toEqual([4, 0]);
    expect(await problemOf('EQ070421.CSV', [EQ + first, second, third, ''].join('\n'))).toMatch(
      /has a row on the line of its header/,
    );
  });

  test('a line that is not two rows is a reject', async () => {
    const [first, second, ...others] = EQ_ROWS as [string, string, ...string[]];
    const text = [EQ, first + second.replace('500003', 'AEGIS'), ...others, ''].join('\n');
    const [part] = await read('EQ070421.CSV', text);
    expect([part?.rows.length, part?.rejects.length]).toEqual([2, 1]);
    expect([part?.joined, part?.complete]).toEqual([1, false]);
  });

  const FULL =
    'SYMBOL, SERIES, DATE1, PREV_CLOSE, OPEN_PRICE, HIGH_PRICE, LOW_PRICE, LAST_PRICE, CLOSE_PRICE, AVG_PRICE, TTL_TRD_QNTY, TURNOVER_LACS, NO_OF_TRADES, DELIV_QTY, DELIV_PER';
  // The last cell of a row has become one with the first of the next row.
  test.each([
    ['CM', CM, (symbol: string) => `${symbol},EQ,41,41,40,40,40,40,1000,41000.5,06-JAN-2021,7,INE144J01027`],
    [
      'full',
      FULL,
      (symbol: string) =>
        `${symbol}, EQ, 06-Jan-2021, 41, 41, 41, 40, 40, 40, 40, 1000, 0.41, 10, 500, 50.00`,
    ],
    [
      'UDIFF',
      files.UDIFF[0]?.slice(0, -',Rmks,Rsvd1'.length) ?? '',
      (symbol: string) =>
        `2021-01-06,2021-01-06,CM,BSE,STK,1,INE1,${symbol},A,10,11,9,10,10,10,5,50.5,2,F1,1`,
    ],
  ])(
    '%s: without a comma between them, of which nobody knows where one ends, leave the trading day incomplete',
    async (_, header, row) => {
      const lines = [header, `${row('20MICRONS')}${row('ACC')}`, row('TCS'), ''];
      const [part] = await read('x.csv', lines.join('\n'));
      expect(rowsOf(part).map(({ symbol }) => symbol)).toEqual(['TCS']);
      expect([part?.rejects.length, part?.joined, part?.complete]).toEqual([1, 1, false]);
    },
  );

  test('a name with commas is one row', async () => {
    const text = [EQ, ...EQ_ROWS.map((row, at) => (at === 1 ? row.replace('AEGIS', 'A,E,G') : row)), ''].join(
      '\n',
    );
    const [part] = await read('EQ070421.CSV', text);
    expect([part?.rejects.length, part?.joined]).toEqual([1, 0]);
  });
});

describe('a refusal names the true reason', () => {
  const row = 'ACC,EQ,1,1,1,1,1,1,1,1,04-JAN-2021,1,INE1';
  const text = `${CM}\n${row}\n`;
  const title = '""Category wise turnover as on Aug 19,2022"",,,\nClient Type,Long,Short\n';

  test.each([
    ['semicolons', text.replaceAll(',', ';'), /separates its cells by semicolons, not by commas/],
    [
      'semicolons, and a line that says so',
      `sep=;\n${text.replaceAll(',', ';')}`,
      /separates its cells by semicolons/,
    ],
    ['tabs, and quoted', text.replace(/[A-Z]+/, '"$&"').replaceAll(',', '\t'), /separates its cells by tabs/],
    ['no header', `${row}\n${row}\n`, /a known format; it has no header, the first line is a row$/],
    ['a title', `Bhavcopy of 4 January 2021\n\n${text}`, /has a line before its header; delete/],
    [
      'a quote in a quoted cell',
      `${CM}\n${row}\n"7.5" PIPES",EQ,1\n`,
      /broken CSV \(line 3 has a quote inside a quoted cell/,
    ],
    ['a quote that never ends', `${CM}\n${row}\n"ACC,EQ,1\n`, /line 3 has a quote that is never closed/],
    [
      'a quote that never ends, far from the end',
      `${CM}\n${row}\n\n"ACC,EQ,1\n${`${row}\n`.repeat(50)}`,
      /line 4 has a quote that is never closed/,
    ],
    [
      'a quote that never ends, in a large file',
      `${CM}\n${row}\n"ACC,EQ,1\n${`${row}\n`.repeat(30_000)}`,
      /line 3 has a quote that is not closed within 1000000 bytes/,
    ],
    ['a title in doubled quotes', title, /is not a file of a known format; it has no header$/],
  ])('%s', async (_, content, reason) => {
    expect(await problemOf('x.csv', content)).toMatch(reason);
  });

  test('quotes nothing of a file of unknown form but a line that looks like a header, and 80 characters of it', async () => {
    const secret = fc.stringMatching(/^[A-Za-z]{3}[0-9][A-Za-z0-9+/]{12}$/);
    const content = fc.oneof(
      fc
        .tuple(fc.constantFrom('KEY=', '', '{"password": "', '[{', '<'), secret)
        .map((parts) => parts.join('')),
      fc.array(secret, { minLength: 2, maxLength: 4 }).map((cells) => cells.join()),
      secret.map((secret) => `Name,Account of ${'x'.repeat(80)},${secret}`),
      secret.map((secret) => `[{"Name":1,"${secret}":2}]`),
    );
    await forAllAsync([content, content], async (first, second) => {
      for (const text of [`${first}\n${second}\n`, first]) {
        const { message, unknownForm = '' } = await read('x.csv', text).then(
          () => new PipelineError('', { kind: 'unreadable' }),
          (error: PipelineError) => error,
        );
        expect(message).not.toBe('');
        for (const shown of [message, unknownForm]) {
          for (const quoted of text.match(/[A-Za-z]{3}[0-9][A-Za-z0-9+/]{12}/g) ?? [])
            expect(shown).not.toContain(quoted.slice(0, 8));
        }
      }
    });
    await expect(read('x.csv', 'Sr No,52 WEEK HIGH,Trade Price / Wght. Avg.\nx\n')).rejects.toMatchObject({
      unknownForm: 'Sr No,52 WEEK HIGH,Trade Price / Wght. Avg.',
    });
  });

  test('files without a header have one form, which says so', async () => {
    for (const symbol of ['ACC', 'TCS']) {
      const problem = read('x.csv', `${row.replace('ACC', symbol)}\n`);
      await expect(problem).rejects.toMatchObject({ unknownForm: 'no header, the first line is a row' });
    }
  });

  test('archives that are documents', async () => {
    const problem = (entries: Record<string, string>) =>
      readExchangeFile('cm04JAN2021bhav.csv', zipOf(entries), ZONE).catch((error: Error) => error.message);
    expect(
      await problem({ '[Content_Types].xml': '', 'xl/workbook.xml': '', 'xl/worksheets/sheet1.xml': '' }),
    ).toBe('is an Excel, Word or OpenDocument file, which is not read; save it as CSV');
    expect(await problem({ mimetype: '', 'content.xml': '' })).toMatch(/OpenDocument/);
    expect(await problem({ 'read me.txt': '', 'b.pdf': '' })).toBe(
      'the zip archive contains no .csv or .dat file: it has read me.txt and others',
    );
  });
});
