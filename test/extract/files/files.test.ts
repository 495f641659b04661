import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { readExchangeFile } from '../../../src/extract/files/read-exchange-file.ts';
import type { FilePart } from '../../../src/extract/files/read-file.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { UDIFF_COLUMNS } from '../../../src/operations/tables/udiff.ts';

const FIXTURES = fileURLToPath(new URL('../../fixtures/', import.meta.url));
const ZONE = 'Asia/Kolkata';

const fixture = (path: string) => readFileSync(join(FIXTURES, path));
const readFixture = (path: string) => readExchangeFile(path, fixture(path), ZONE);
const read = (name: string, text: string) => readExchangeFile(name, Buffer.from(text), ZONE);

/** Its rows as objects. */
const rowsOf = (part: FilePart | undefined) => [...(part?.rows ?? [])];

/** Each trading day as a line. */
const facts = (parts: readonly FilePart[]) =>
  parts.map(
    ({ format, exchange, day, rows, rejects, complete }) =>
      `${format} ${exchange} ${day}: ${rows.length} rows, ${rejects.length} rejects${complete ? ', complete' : ''}`,
  );

/** Columns of bhav copies that UDiFF files have. */
const inFiles = operationNamed('GetBhavCopyCM').shapes[0].table.fields.flatMap((field) =>
  field.from === 'response' && Object.values(UDIFF_COLUMNS).includes(field.source) ? [field.column] : [],
);

describe('formats', () => {
  test('UDiFF files have every field but one, and name their exchange and day', async () => {
    const nse = await readFixture('bhavcopy/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv');
    expect(facts(nse)).toEqual(['udiff NSE 2025-08-29: 100 rows, 0 rejects, complete']);
    const bse = await readFixture('bhavcopy/BhavCopy_BSE_CM_0_0_0_20250909_F_0000.CSV');
    expect(facts(bse)).toEqual(['udiff BSE 2025-09-09: 100 rows, 0 rejects, complete']);
    expect(bse[0]?.unknown).toContain('instrument_name');
    expect(inFiles).toHaveLength(Object.keys(UDIFF_COLUMNS).length);
    expect(bse[0]?.unknown.filter((column) => inFiles.includes(column))).toEqual([]);
  });

  test('the older NSE files: trailing comma, named months, LAST = 0, one ISIN on two series', async () => {
    const parts = await readFixture('files/cm01OCT2019bhav.csv.zip');
    expect(facts(parts)).toEqual(['nse-bhav NSE 2019-10-01: 43 rows, 0 rejects']);
    expect(rowsOf(parts[0]).some((row) => row.last_price === '0.0')).toBe(true);
    expect(parts[0]?.unknown).toContain('settlement_price');
    expect(parts[0]?.unknown).not.toContain('isin');
    const isins = rowsOf((await readFixture('files/cm09OCT2019bhav.csv.zip'))[0]).map((row) => row.isin);
    expect(isins.length - new Set(isins).size).toBe(1);
  });

  test('the oldest NSE files lack trades and ISIN, which are unknown and not null', async () => {
    const [part] = await read(
      'cm03JAN2005bhav.csv',
      'SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP,\nACC,EQ,340.25,344,338,341.5,341,339,120,40980.5,03-JAN-2005,\n',
    );
    expect(rowsOf(part)[0]).toMatchObject({
      symbol: 'ACC',
      trade_date: '2005-01-03',
      isin: null,
      turnover: '40980.5',
    });
    expect(part?.unknown).toEqual(expect.arrayContaining(['isin', 'trade_count']));
  });

  test('the full bhav copy: lakhs become rupees to the digit, and the rows name the day', async () => {
    const parts = await readFixture('files/sec_bhavdata_full_15112024.csv');
    expect(facts(parts)).toEqual(['nse-full NSE 2024-11-14: 50 rows, 0 rejects']);
    expect(parts[0]?.rounded).toEqual({ turnover: 1_000 });
    const [part] = await read(
      'any.csv',
      'SYMBOL, SERIES, DATE1, PREV_CLOSE, OPEN_PRICE, HIGH_PRICE, LOW_PRICE, LAST_PRICE, CLOSE_PRICE, AVG_PRICE, TTL_TRD_QNTY, TURNOVER_LACS, NO_OF_TRADES, DELIV_QTY, DELIV_PER\nM&M, EQ, 21-Oct-2024, 306.45, 308.50, 321.00, 293.00, -, 312.75, 309.99, 189350, 12345678901234567.89, 2379, -, -\n',
    );
    expect(rowsOf(part)[0]).toMatchObject({
      symbol: 'M&M',
      trade_date: '2024-10-21',
      last_price: null,
      traded_quantity: 189350,
      turnover: '12345678901234567.89e5',
    });
    expect([...(part?.also?.rows ?? [])]).toMatchObject([
      { symbol: 'M&M', traded_quantity: 189350, delivered_quantity: null, delivered_percent: null },
    ]);
    expect(parts[0]?.also?.table.name).toBe('deliveries');
    expect(parts[0]?.also?.rows).toHaveLength(50);
  });

  test('delivery positions: no header names the series; old files have several settlements', async () => {
    const title = 'Security Wise Delivery Position - Compulsory Rolling Settlement';
    const names =
      'Record Type,Sr No,Name of Security,Quantity Traded,Deliverable Quantity(gross across client level),% of Deliverable Quantity to Traded Quantity';
    const old = (rows: number, last = '') =>
      `${title}\r\n10,MTO,01072011,216583452,000000${rows}\r\nTrade Date <01-JUL-2011>,Settlement Type <D>,Settlement No <2011070>,Settlement Date <05-JUL-2011>\r\n${names}\r\n20,1,1000E14,GC,10,10,100.00\r\nTrade Date <01-JUL-2011>,Settlement Type <N>,Settlement No <2011128>,Settlement Date <05-JUL-2011>\r\n20,1,M&M,EQ,12394,4683,37.78\r\n20,2,BEML,EQ,15,-,-\r\n${last}`;
    const [part] = await read('old.csv', old(3));
    expect(facts(part === undefined ? [] : [part])).toEqual([
      'nse-deliveries NSE 2011-07-01: 3 rows, 0 rejects',
    ]);
    expect(part).toMatchObject({ dataSet: 'Deliveries', also: null, warnings: [] });
    const values = { exchange: 'NSE', trade_date: '2011-07-01' };
    expect(part?.rows).toMatchObject([
      { ...values, symbol: '1000E14', series: 'GC', traded_quantity: 10, delivered_percent: '100.00' },
      { ...values, symbol: 'M&M', series: 'EQ', traded_quantity: 12394, delivered_quantity: 4683 },
      { ...values, symbol: 'BEML', series: 'EQ', delivered_quantity: null, delivered_percent: null },
    ]);
    // Records are missing although each line is whole; a line that is not; the last line is cut.
    expect((await read('MTO.DAT', old(5)))[0]?.warnings).toEqual([
      'MTO.DAT of 2011-07-01: its header counts 5 records, but it has 3',
    ]);
    const odd = await read('MTO.DAT', old(5, '20,3,ACC,9,8\r\n20,4,ABB,EQ,1,1,100.00\r\n'));
    expect(odd[0]?.rejects.map(({ problems }) => problems[0]?.path)).toEqual(['DELIVERABLE_QUANTITY']);
    await expect(read('MTO.DAT', old(4, '20,3,ACC,E'))).rejects.toThrow('breaks off inside its last row');
    await expect(read('MTO.DAT', `${title}\n10,MTO,01072011,1,0000001\n`)).rejects.toThrow(
      'contains no rows',
    );
  });

  test('the older BSE files: padding is removed, the day is in the name, the code stands for the ticker', async () => {
    const [part] = await readExchangeFile('in/EQ070421.CSV', fixture('files/EQ070421.CSV'), ZONE);
    expect(facts(part === undefined ? [] : [part])).toEqual([
      'bse-equity BSE 2021-04-07: 60 rows, 0 rejects',
    ]);
    expect(rowsOf(part)[0]).toMatchObject({
      symbol: '500002',
      exchange_instrument_id: 500002,
      series: 'A',
      instrument_full_name: 'ABB LTD.',
      close_price: '1374.60',
      turnover: '5980155.00',
      isin: null,
    });
    expect(part?.withoutTickers).toBe(true);
    expect(part?.unknown).toEqual(expect.arrayContaining(['isin', 'instrument_full_name']));
  });

  test('the BSE files with ISIN name their day in a column', async () => {
    const [part] = await read(
      'EQ_ISINCODE_040123.CSV',
      'SC_CODE,SC_NAME,SC_GROUP,SC_TYPE,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,NO_TRADES,NO_OF_SHRS,NET_TURNOV,TDCLOINDI,ISIN_CODE,TRADING_DATE,FILLER2,FILLER3\n500002,ABB LTD.    ,A ,Q,2700.00,2700.00,2673.25,2688.30,2687.65,2681.00,751,4344,11669853.00,,INE117A01022,03-Jan-23,,\n',
    );
    expect(rowsOf(part)[0]).toMatchObject({ isin: 'INE117A01022', trade_date: '2023-01-03' });
  });

  test('the BSE files of 2022 to 2024: tickers are cut and not unique, so the code stands for them', async () => {
    const columns =
      'ISIN,SCRIP ID,SCRIP_CODE,SC_NAME,SC_GROUP,OPEN PRICE,HIGH PRICE,LOW PRICE,CLOSING PRICE,LAST,PREVIOUS CLOSE PRICE,NO_OF_SHRS,NET_TURNOV,TRADING_DATE,NO_TRADES,SC_TYPE,TDCLOINDI,Settlement Price';
    const udiff =
      'ISIN,TckrSymb,FinInstrmId,FinInstrmNm,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TradDt,TtlNbOfTxsExctd,FinInstrmTp,OffclCorpActnEvtId,SttlmPric,FftyTwWkHgh';
    const rows = (day: string) =>
      `INF109KC15I8,ICICIBANK,542730,ICICIBANKN,B,43.00,43.50,43.00,43.15,43.20,43.01,1200.00,51780.00,${day},21.00,Q,,43.15\nINF109KC1E35,ICICIBANK,542758,ICICIBANKP,B,217.00,218.00,216.10,217.40,217.40,216.90,900.00,195660.00,${day},11.00,Q,,217.40\n`;
    const files = {
      '2022-12-30': `${columns}\n${rows('30-Dec-22')}`,
      '2023-01-02': `${udiff}\n${rows('02-Jan-23').replaceAll(/(?=\n)/g, ',50')}`,
    };
    for (const [day, text] of Object.entries(files)) {
      const parts = await read('BSE_EQ_BHAVCOPY_1.CSV', text);
      expect(facts(parts)).toEqual([`bse-equity BSE ${day}: 2 rows, 0 rejects`]);
      expect(rowsOf(parts[0])).toMatchObject([
        {
          symbol: '542730',
          exchange_instrument_id: 542730,
          isin: 'INF109KC15I8',
          series: 'B',
          open_price: '43.00',
          high_price: '43.50',
          low_price: '43.00',
          close_price: '43.15',
          last_price: '43.20',
          previous_close_price: '43.01',
          settlement_price: '43.15',
          traded_quantity: 1200,
          trade_count: 21,
          turnover: '51780.00',
        },
        { symbol: '542758', close_price: '217.40' },
      ]);
      expect(parts[0]).toMatchObject({ withoutTickers: true, complete: false });
      expect(parts[0]?.unknown).toContain('instrument_full_name');
    }
  });

  test('days without the name of the month begin with the day, in files of every kind', async () => {
    const files: Readonly<Record<string, (day: string) => string>> = {
      trade_date: (day) =>
        `SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,TOTTRDQTY,TOTTRDVAL,TIMESTAMP\nACC,EQ,1,1,1,1,1,1,1,1,${day}\n`,
      business_date: (day) =>
        `TradDt,BizDt,Sgmt,Src,TckrSymb,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd\n${day},${day},CM,NSE,ACC,EQ,1,1,1,1,1,1,1,1,1\n`,
      ex_date: (day) => `SYMBOL,SERIES,PURPOSE,EX-DATE,RECORD DATE\nACC,EQ,Bonus 1:1,${day},${day}\n`,
    };
    const days = ['02-01-2015', '2-1-2015', '02-Jan-2015', '2-JAN-15', '02 Jan 2015', '2015-01-02'];
    for (const [column, text] of Object.entries(files)) {
      for (const day of days)
        expect(rowsOf((await read('x.csv', text(day)))[0])[0]?.[column]).toBe('2015-01-02');
    }
    const [file] = await read('x.csv', 'exchange,symbol,ex_date,kind,ratio\nNSE,ACC,02-01-2015,bonus,1:1\n');
    expect(rowsOf(file)[0]?.ex_date).toBe('2015-01-02');
    // In the exchanges' lists slashes mean the same; elsewhere they are from a program that may write the month first.
    const daily =
      'SERIES,SYMBOL,SECURITY,RECORD_DT,BC_STRT_DT,BC_END_DT,EX_DT,ND_STRT_DT,ND_END_DT,PURPOSE\n';
    const [list] = await read('x.csv', `${daily}EQ,ACC,ACC Ltd, , , ,02/01/2015, , ,BONUS 1:1\n`);
    expect(rowsOf(list)[0]?.ex_date).toBe('2015-01-02');
    const eventList = 'exchange,symbol,ex_date,kind,ratio\nNSE,ACC,02/01/2015,bonus,1:1\n';
    for (const text of [eventList, files.trade_date?.('2/1/2015') ?? '']) {
      await expect(read('x.csv', text)).rejects.toThrow('is not a date');
    }
  });

  test('a list may end with U+001A, and write the names of months in full', async () => {
    const [part] = await read(
      'CF-CA.csv',
      'SYMBOL,SERIES,PURPOSE,EX-DATE\nTCS,EQ,Bonus 1:1,31-January-2012\n\u001A',
    );
    expect(rowsOf(part)[0]).toMatchObject({ symbol: 'TCS', ex_date: '2012-01-31' });
    await expect(
      read('CF-CA.csv', 'SYMBOL,SERIES,PURPOSE,EX-DATE\nTCS,EQ,Bonus 1:1,31-Januar-2012\n'),
    ).rejects.toThrow('is not a date');
  });

  test('exports of NSE before 2020 name the company and the book closure differently', async () => {
    const [part] = await read(
      'CF-CA.csv',
      '"Symbol","Company","Industry","Series","Face Value(Rs.)","Purpose","Ex-Date","Record Date","BC Start Date","BC End Date","No Delivery Start Date","No Delivery End Date"\n"TCS","Tata Consultancy","-","EQ","1","DIVIDEND RS.8 PER SHARE","31-May-2012","-","02-Jun-2012","09-Jun-2012","-","-"\n',
    );
    expect(rowsOf(part)[0]).toMatchObject({
      company_name: 'Tata Consultancy',
      face_value: '1',
      ex_date: '2012-05-31',
      book_closure_from: '2012-06-02',
      book_closure_to: '2012-06-09',
    });
  });

  test('changed symbols tell the name of the company, with a header and without', async () => {
    const changes = async (text: string) => {
      const [part] = await read('symbolchange.csv', text);
      const { format, rejects } = part as FilePart;
      expect([format, rejects]).toEqual(['symbol-changes', []]);
      return rowsOf(part).map((row) => [row.company_name, row.old_symbol, row.new_symbol, row.changed_on]);
    };
    const lines = [
      'Uno, Minda Ltd,MINDAIND,UNOMINDA,14-JUL-2022',
      'Bharat 7.5" Pipes,A&B,AB,1-Sep-15',
      'Old Mills,OLD,OLDER,1-JAN-99',
    ];
    const expected = [
      ['Uno, Minda Ltd', 'MINDAIND', 'UNOMINDA', '2022-07-14'],
      ['Bharat 7.5" Pipes', 'A&B', 'AB', '2015-09-01'],
      ['Old Mills', 'OLD', 'OLDER', '1999-01-01'],
    ];
    const columns = 'SM_KEY_SYMBOL, SM_NEW_SYMBOL,SM_APPLICABLE_FROM';
    expect(await changes(`${lines.join('\n')}\n`)).toEqual(expected);
    expect(await changes(`${lines.join(',\r')}, `)).toEqual(expected);
    expect(await changes('"Uno, Minda Ltd","MINDAIND","UNOMINDA","2022-07-14"\n')).toEqual(
      expected.slice(0, 1),
    );
    expect(await changes('Uno, Minda Ltd,MINDAIND,UNOMINDA,14-07-2022\n')).toEqual(expected.slice(0, 1));
    for (const header of [`SM_NAME,${columns}`, `SYMB_COMPANY_NAME, ${columns}`]) {
      expect(await changes(`${header}\r\n${lines.join('\r\n')}\r\n`)).toEqual(expected);
    }
    for (const day of ['14-JUL-22', '14/07/2022', '14-JULY-2022'])
      expect(await changes(`SM_NAME,${columns}\n"Uno, Minda Ltd",MINDAIND,UNOMINDA,${day}\n`)).toEqual(
        expected.slice(0, 1),
      );
    expect(await changes(`SM_NAME,${columns}\n"Old ""Q"" Mills",OLD,OLDER,1-JAN-99\n`)).toEqual([
      ['Old "Q" Mills', 'OLD', 'OLDER', '1999-01-01'],
    ]);
  });

  test('a line of changed symbols with a comma too many that could stand anywhere is rejected', async () => {
    const parts = await read(
      'symbolchange.csv',
      'SM_NAME,SM_KEY_SYMBOL,SM_NEW_SYMBOL,SM_APPLICABLE_FROM\nUno,A,B,14-JUL-2022\nDue,C,D E,F,14-JUL-2022,\n',
    );
    expect(facts(parts)).toEqual(['symbol-changes NSE 2022-07-14: 1 rows, 1 rejects']);
  });
});

const UDIFF =
  'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty,Rmks';
const udiffRow = (
  symbol: string,
  { day = '2025-08-29', exchange = 'NSE', segment = 'CM', close = '10' } = {},
) => `${day},${day},${segment},${exchange},STK,1,INE1,${symbol},EQ,10,11,9,${close},10,10,5,50.5,2,F1,1,`;
const udiff = (...rows: string[]) => `${[UDIFF, ...rows].join('\n')}\n`;

describe('rows', () => {
  test('one file may hold several trading days and exchanges; it is complete only for an exchange with one trading day', async () => {
    const parts = await read(
      'x.csv',
      udiff(
        udiffRow('A'),
        udiffRow('B'),
        udiffRow('C', { day: '2025-08-28' }),
        udiffRow('D', { exchange: 'BSE' }),
      ),
    );
    expect(facts(parts)).toEqual([
      'udiff NSE 2025-08-29: 2 rows, 0 rejects',
      'udiff NSE 2025-08-28: 1 rows, 0 rejects',
      'udiff BSE 2025-08-29: 1 rows, 0 rejects, complete',
    ]);
  });

  test('a wrong row is rejected under the column name of the file, and the others are read', async () => {
    const [part] = await read('x.csv', udiff(udiffRow('A'), udiffRow('B', { close: 'ten' }), udiffRow(' ')));
    expect(part?.rows).toHaveLength(1);
    expect(part?.rejects.map(({ position, problems }) => [position, problems[0]?.path])).toEqual([
      [1, 'ClsPric'],
      [2, 'TckrSymb'],
    ]);
  });

  test('a row that breaks off in the middle of a file is rejected', async () => {
    const [part] = await read(
      'x.csv',
      udiff(udiffRow('A'), '2025-08-29,2025-08-29,CM,NSE,STK,1,INE1,B,EQ,10', udiffRow('C')),
    );
    expect(part?.rejects.map(({ problems }) => problems)).toEqual([
      [{ path: 'HghPric', message: 'is missing: the row breaks off' }],
    ]);
  });

  test('names in an old code page are read', async () => {
    const text =
      'SC_CODE,SC_NAME,SC_GROUP,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,NO_TRADES,NO_OF_SHRS,NET_TURNOV\n1,CAF\xc9,A,1,1,1,1,1,1,1,1,1\n';
    const [part] = await readExchangeFile('EQ010110.CSV', Buffer.from(text, 'latin1'), ZONE);
    expect(rowsOf(part)[0]?.instrument_full_name).toBe('CAFÉ');
  });
});

describe('bad files are refused as a whole', () => {
  test.each([
    [
      'cut mid-row',
      'x.csv',
      udiff(udiffRow('A')) + udiffRow('B').slice(0, 40),
      /breaks off inside its last row/,
    ],
    ['empty', 'x.csv', '', /contains no rows/],
    ['a web page', 'x.csv', '<!DOCTYPE html><html>Not found</html>', /is a web page/],
    [
      'JSON',
      'x.csv',
      '[{"symbol":"TCS","exDate":"09-Jun-2022"}]',
      /is JSON of no known format; its records have symbol,exDate/,
    ],
    ['JSON without records', 'x.json', '{"error":"no data"}', /is JSON without a list of records/],
    ['broken JSON', 'x.json', '[{"symbol"', /is not a JSON document/],
    ['a header alone', 'x.csv', `${UDIFF}\n`, /contains no rows/],
    [
      'another format',
      'x.csv',
      'Sr No,Security,High/Low\n1,ABC,H\n',
      /not a file of a known format.*Sr No,Security/,
    ],
    ['a column short', 'x.csv', udiff(udiffRow('A')).replace('ClsPric', 'Price'), /the header lacks ClsPric/],
    [
      'currencies',
      'x.csv',
      udiff(udiffRow('A', { segment: 'CD' })),
      /of the segment CD; known are CM and FO/,
    ],
    ['another exchange', 'x.csv', udiff(udiffRow('A', { exchange: 'MSE' })), /rows of MSE/],
    ['no row that reads', 'x.csv', udiff(udiffRow('A', { close: '?' })), /no valid row.*ClsPric/],
    [
      'no date anywhere',
      'day.csv',
      'SC_CODE,SC_NAME,SC_GROUP,OPEN,HIGH,LOW,CLOSE,LAST,PREVCLOSE,NO_TRADES,NO_OF_SHRS,NET_TURNOV\n1,A,A,1,1,1,1,1,1,1,1,1\n',
      /has no date/,
    ],
  ])('%s', async (_, name, text, problem) => {
    await expect(read(name, text)).rejects.toThrow(problem);
  });

  test('bytes that are no text leave nothing unprintable in the message', async () => {
    const binary = Buffer.from('\0\x01ABC\0,D\nx,y\n', 'latin1');
    await expect(readExchangeFile('x.csv', binary, ZONE)).rejects.toThrow(/; it has no header$/);
  });

  test('a published file that was cut during its download', async () => {
    await expect(readFixture('files/sec_bhavdata_full_18112024.csv')).rejects.toThrow(
      /breaks off inside its last row/,
    );
  });
});
