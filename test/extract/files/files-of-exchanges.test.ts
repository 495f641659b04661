import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { dayInName, FORMATS, findFormat } from '../../../src/extract/files/formats.ts';
import { type FilePart, readCsvFile } from '../../../src/extract/files/read-file.ts';
import GetCircuitBreakers from '../../../src/operations/GetCircuitBreakers.ts';
import { dataSets } from '../../../src/operations/registry.ts';

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/lists/${name}`, import.meta.url));

const read = (name: string, content: string | Buffer) =>
  readCsvFile(name, Buffer.from(content), 'Asia/Kolkata');

const facts = (parts: readonly FilePart[]) =>
  parts.map(
    ({ format, dataSet, exchange, day, rows, rejects }) =>
      `${format}: ${dataSet} ${exchange} ${day}, ${rows.length} rows, ${rejects.length} rejects`,
  );

const rowsOf = (name: string, content: string | Buffer) => [...(read(name, content)[0]?.rows ?? [])];

test('securities at a price band: both bands of one security, the day in the name, headers of all years', () => {
  const file = fixture('bh011220.csv');
  expect(facts(read('in/bh011220.csv', file))).toEqual([
    'nse-price-bands: GetCircuitBreakers NSE 2020-12-01, 204 rows, 0 rejects',
  ]);
  expect(rowsOf('bh011220.csv', file).filter(({ symbol }) => symbol === 'ARCOTECH')).toMatchObject([
    { series: 'EQ', band: 'H' },
    { series: 'EQ', band: 'L' },
  ]);
  const row = 'M&M,EQ, MAHINDRA ,H';
  for (const [name, text] of [
    ['bh04012010.csv', `SYMBOL,SR,SECURITY,HIGH/LOW,INDEX FLAG\r\n${row}, \r\n, , , , \r\n`],
    ['PR040110/Bh040110.csv', `Symbol,Series,Security,High/Low,Index Flag,\n${row},9,\n`],
    ['bh04012010 (1).csv', `SYMBOL , SERIES,SECURITY,HIGH / LOW\n${row}\n`],
  ] as const) {
    expect(facts(read(name, text)), name).toEqual([
      'nse-price-bands: GetCircuitBreakers NSE 2010-01-04, 1 rows, 0 rejects',
    ]);
    expect(rowsOf(name, text)).toMatchObject([
      { scrip_id: 'M&M', series: 'EQ', scrip_name: 'MAHINDRA', band: 'H' },
    ]);
  }
  expect(() => read('bands.csv', file)).toThrow('neither in a column nor in a name such as bh07042021.csv');
  // 9 November 2010 has two columns in another order, and 17 September 2010 further blank ones.
  for (const text of [
    'SYMBOL,SR,HIGH/LOW,SECURITY,INDEX FLAG\r\nABHISHEK,BE,H,ABHISHEK CORPORATION LTD,\r\n',
    'SYMBOL,SR,SECURITY,HIGH/LOW,,,,,,\r\nABHISHEK,BE,ABHISHEK CORPORATION LTD,H,,,,,,\r\n',
  ]) {
    expect(rowsOf('bh09112010.csv', text)).toMatchObject([
      { symbol: 'ABHISHEK', series: 'BE', scrip_name: 'ABHISHEK CORPORATION LTD', band: 'H' },
    ]);
  }
});

test('a security at a price band has the id that a response has, so that both are one row', () => {
  const { Value: records } = GetCircuitBreakers.sample.response as { Value: Record<string, string>[] };
  const lines = records.map(({ ScripId, Series, ScripName, Band }) =>
    [String(ScripId).split('.')[0], Series, ScripName, Band].join(),
  );
  const rows = rowsOf('bh070325.csv', `SYMBOL,SERIES,SECURITY,HIGH/LOW\n${lines.join('\n')}\n`);
  expect(rows.map(({ scrip_id }) => scrip_id)).toEqual(records.map(({ ScripId }) => ScripId));
  expect(records.map(({ ScripId }) => ScripId)).toContain('ABHAPOWER.ST');
});

test('a list of a day on which there is nothing to list has no rows, and is not refused', () => {
  const bands = 'SYMBOL,SERIES,SECURITY,HIGH/LOW,INDEX FLAG\n';
  expect(facts(read('bh170521.csv', bands))).toEqual([
    'nse-price-bands: GetCircuitBreakers NSE 2021-05-17, 0 rows, 0 rejects',
  ]);
  expect(facts(read('HL170521.csv', 'SECURITY,NEW,PREVIOUS,NEW_STATUS\n'))).toEqual([
    'nse-highs-lows: GetNewHL NSE 2021-05-17, 0 rows, 0 rejects',
  ]);
  const actions =
    'SERIES,SYMBOL,SECURITY,RECORD_DT,BC_STRT_DT,BC_END_DT,EX_DT,ND_STRT_DT,ND_END_DT,PURPOSE\n';
  expect(read('Bc100122.csv', actions)).toEqual([]);
  const changes = 'Symbol,Security,From Series,To Series,Change Date,Remarks\n';
  expect(read('series_change.csv', changes)).toEqual([]);
  expect(read('series_change.csv', `${changes}NIL,,,,,\n`)).toEqual([]);
  // Of prices and of participants there is no day without rows.
  const participants = fixture('fao_participant_oi_19082022.csv').toString();
  for (const [name, text] of [
    ['any.csv', participants.split('\n').slice(0, 2).join('\n')],
    ['ind_close_all_04122018.csv', 'Index Name,Index Date,Closing Index Value\n'],
    ['ind_nifty50list.csv', 'Company Name,Industry,Symbol,Series,ISIN Code\n'],
  ] as const) {
    expect(() => read(name, text), name).toThrow('contains no rows');
  }
});

test('derivatives before July 2024: contracts, units of open interest, and lakhs as rupees', () => {
  const text =
    'INSTRUMENT,SYMBOL,EXPIRY_DT,STRIKE_PR,OPTION_TYP,OPEN,HIGH,LOW,CLOSE,SETTLE_PR,CONTRACTS,VAL_INLAKH,OPEN_INT,CHG_IN_OI,TIMESTAMP,\n' +
    'FUTIDX,BANKNIFTY,30-Jun-2022,0,XX,33850,33888.65,33234,33431.4,33431.4,145086,1212748.71,2836425,212475,13-JUN-2022,\n' +
    'OPTSTK,ZYDUSLIFE,25-Aug-2022,495,PE,0,0,0,118.05,138.65,0,0,0,0,13-JUN-2022,\n';
  expect(facts(read('x.csv', text))).toEqual([
    'nse-fo-bhav: GetBhavCopyFO NFO 2022-06-13, 2 rows, 0 rejects',
  ]);
  expect(rowsOf('x.csv', text)).toMatchObject([
    {
      symbol: 'BANKNIFTY',
      instrument_type: 'IDF',
      expiry_date: '2022-06-30',
      option_type: '',
      traded_quantity: 145_086,
      turnover: '1212748.71e5',
      open_interest: 2_836_425,
      open_interest_change: 212_475,
    },
    { instrument_type: 'STO', strike_price: '495', option_type: 'PE', traded_quantity: 0 },
  ]);
  expect(read('x.csv', text)[0]?.unknown).toContain('board_lot_quantity');
});

test('series changes, also with other spellings of the header', () => {
  const expected = [
    { change_date: '2021-08-20', scrip_id: 'MRO-TEK', symbol: 'MRO-TEK', prev_series: 'EQ', to_series: 'BE' },
  ];
  expect(rowsOf('series_change.csv', fixture('series_change.csv'))).toMatchObject(expected);
  expect(
    rowsOf(
      'x.csv',
      'SYMBOL,SECURITY,FROM_SERIES,TO_SERIES,CHANGE_DATE,REMARKS,\nMRO-TEK,M,EQ,BE,20/08/2021,,\n',
    ),
  ).toMatchObject(expected);
});

test('a security that changes its series has the id that a response has: with its old series, unless it is EQ', () => {
  const rows = rowsOf(
    'series_change.csv',
    'Symbol,Security,From Series,To Series,Change Date,Remarks\nPRECISION,PRECISION METALIKS LIMITED,SM,ST,27-FEB-2025,-\nVAKRANGEE,VAKRANGEE LIMITED,EQ,BE,27-FEB-2025,-\n',
  );
  expect(rows).toMatchObject([
    { scrip_id: 'PRECISION.SM', symbol: 'PRECISION', prev_series: 'SM', to_series: 'ST' },
    { scrip_id: 'VAKRANGEE', symbol: 'VAKRANGEE', prev_series: 'EQ', to_series: 'BE' },
  ]);
});

test('lists of companies have the levels that they say; their day is that in the name, if there is one', () => {
  expect(facts(read('ind_nifty500list.csv', fixture('ind_nifty500list.csv')))).toEqual([
    'nse-constituents: GetSectoralClassification NSE 1900-01-01, 80 rows, 0 rejects',
  ]);
  expect(rowsOf('ind_nifty500list_01092025.csv', fixture('ind_nifty500list.csv'))[0]).toMatchObject({
    isin: 'INE466L01038',
    scrip_code: 0,
    allotted_from: '2025-09-01',
    symbol: '360ONE',
    sector: 'Financial Services',
    industry: null,
  });
  expect(facts(read('ListOfScrips.csv', fixture('ListOfScrips.csv')))).toEqual([
    'bse-scrips: GetSectoralClassification BSE 1900-01-01, 81 rows, 0 rejects',
  ]);
  const rows = rowsOf('ListOfScrips.csv', fixture('ListOfScrips.csv'));
  expect(rows[1]).toMatchObject({
    isin: 'INE208C01017',
    scrip_code: 500_003,
    symbol: 'AEGISLOG',
    sector: null,
    industry: 'Oil Marketing & Distribution',
  });
  expect(rows.find(({ scrip_code }) => scrip_code === 500_158)).toMatchObject({ isin: '', industry: null });
  const newer =
    'Security Code,Issuer Name,Security Id,Security Name,Status,Group,Face Value,ISIN No,Industry,Instrument,Sector Name,Industry New Name,Igroup Name,ISubgroup Name\n500002,ABB India Limited,ABB,ABB India,Active,A,2.00,INE117A01022,Heavy Electrical Equipment,Equity,Industrials,Capital Goods,Electrical Equipment,Heavy Electrical Equipment\n';
  expect(rowsOf('Equity.csv', newer)).toMatchObject([
    {
      company_name: 'ABB India Limited',
      macro_sector: 'Industrials',
      sector: 'Capital Goods',
      industry: 'Electrical Equipment',
      basic_industry: 'Heavy Electrical Equipment',
    },
  ]);
  expect(
    rowsOf('nse_industry_classification.csv', fixture('nse_industry_classification.csv')).at(-1),
  ).toMatchObject({
    basic_industry_code: 'IN120101001',
    sector_code: 'IN1201',
    macro_sector: 'Diversified',
    basic_industry: 'Diversified',
  });
});

const PLEDGES = JSON.parse(fixture('corporate-pledgedata.json').toString()) as {
  data: Record<string, string | null>[];
};

/** The same list as CSV, which has fewer columns, and another order. */
function pledgesAsCsv(): string {
  const encumbered = 'PROMOTER SHARES ENCUMBERED AS OF LAST QUARTER';
  const pledged = 'NO. OF SHARES PLEDGED IN THE DEPOSITORY SYSTEM';
  const columns = [
    ['NAME OF COMPANY', 'comName'],
    ['TOTAL NO. OF ISSUED SHARES A+B+C', 'totIssuedShares'],
    ['TOTAL PROMOTER HOLDING NO. OF SHARES (A)', 'totPromoterHolding'],
    ['TOTAL PROMOTER HOLDING % A /(A+B+C)', 'percPromoterHolding'],
    ['TOTAL PUBLIC HOLDING B', 'totPublicHolding'],
    [`${encumbered} NO. OF SHARES (X)`, 'totPromoterShares'],
    [`${pledged} NO. OF SHARES PLEDGED`, 'numSharesPledged'],
    [`${pledged} TOTAL NO. OF DEMAT SHARES`, 'totDematShares'],
    ['Values(Rs. Cr.)', 'noOfSecPledgeShare'],
    ['BROADCAST DATE', 'broadcastDt'],
  ] as const;
  const cell = (value: string | null) => (value === null ? '' : `"${value}"`);
  return [
    `\ufeff${columns.map(([name]) => `"${name}"`).join(',')}`,
    ...PLEDGES.data
      .toReversed()
      .map((record) => columns.map(([, key]) => cell(record[key] ?? null)).join(',')),
  ].join('\n');
}

test('pledges come as JSON and CSV, with the same position among companies of one name', () => {
  const json = rowsOf('corporate-pledgedata.json', fixture('corporate-pledgedata.json'));
  expect(json).toHaveLength(PLEDGES.data.length);
  expect(json.filter(({ company_name }) => company_name === 'Future Enterprises Limited')).toMatchObject([
    { ordinal: 1, trade_date: '2026-08-13', total_issued_shares: 454_930_401 },
    { ordinal: 2, total_issued_shares: 39_374_679, encumbered_last_quarter_value_crore: null },
  ]);
  expect(json.find(({ company_name }) => company_name === '20 Microns Limited')).toMatchObject({
    broadcast_at: '2026-08-13 16:32:07+05:30',
    shareholding_date: '2026-06-30',
    total_promoter_holding_percent: '45.04',
    depository_pledged_value_crore: '31.347',
    disclosed_on: '2015-03-31',
  });
  const [part] = read('CF-SAST-Pledged-Data-14-Aug-2026.csv', pledgesAsCsv());
  expect(part?.unknown).toEqual(expect.arrayContaining(['shareholding_date', 'disclosed_on']));
  // Cells of its header may end with a line end.
  const broken = pledgesAsCsv().replace(/^[^\n]*/, (header) => header.replaceAll('",', ' \n",'));
  expect(facts(read('x.csv', broken))).toEqual([
    `nse-pledges: CompanyPledges NSE 2026-08-13, ${PLEDGES.data.length} rows, 0 rejects`,
  ]);
  const known = (rows: typeof json) =>
    rows.map((row) =>
      Object.entries(row).filter(([column, value]) => value !== null && !part?.unknown.includes(column)),
    );
  expect(known([...(part?.rows ?? [])])).toEqual(known(json));
});

test('open interest of participants has its day in the title, else in the name', () => {
  const file = fixture('fao_participant_oi_19082022.csv').toString();
  const expected = ['nse-participants: GetFIIDII NSE 2022-08-19, 5 rows, 0 rejects'];
  expect(facts(read('any.csv', file))).toEqual(expected);
  const untitled = file.slice(file.indexOf('\n') + 1);
  expect(facts(read('fao_participant_oi_19082022 (2).csv', untitled))).toEqual(expected);
  const rows = rowsOf('any.csv', file);
  expect(rows.at(-1)).toMatchObject({
    client_type: 'TOTAL',
    future_stock_short: 2_847_477,
    option_stock_put_short: 913_553,
    total_long: 13_564_832,
    total_short: 13_564_832,
  });
  expect(read('any.csv', file)[0]?.unknown).toEqual([]);
  // The volumes of participants have the same columns.
  for (const [name, text] of [
    ['fao_participant_vol_19082022.csv', file.replace('Open Interest', 'Trading Volumes')],
    ['fao_participant_vol_19082022.csv', untitled],
    ['any.csv', untitled],
  ] as const) {
    expect(() => read(name, text)).toThrow('is not a file of a known format');
  }
  const quoted = file.replace(/^""(.*)"",+/, '"$1"');
  expect(facts(read('any.csv', quoted))).toEqual(expected);
});

test('index closes, deals, new highs, and securities under ban', () => {
  const index =
    'Index Name,Index Date,Open Index Value,High Index Value,Low Index Value,Closing Index Value,Points Change,Change(%),Volume,Turnover (Rs. Cr.),P/E,P/B,Div Yield\nNifty 50,03-07-2026,24500.1,24700.55,24450,24650.25,150.15,.61,300123456,29876.54,22.35,3.61,1.2\nIndia VIX,03-07-2026,-,-,-,12.5,-,-,-,-,-,-,-\n';
  expect(rowsOf('ind_close_all_03072026.csv', index)).toMatchObject([
    {
      exchange: 'NSE_IDX',
      index_code: 'Nifty 50',
      trade_date: '2026-07-03',
      close_value: '24650.25',
      change_percent: '.61',
      traded_quantity: 300123456,
      turnover: '29876.54e7',
      pe_ratio: '22.35',
      pb_ratio: '3.61',
      dividend_yield_percent: '1.2',
    },
    { index_code: 'India VIX', open_value: null, close_value: '12.5', turnover: null, pe_ratio: null },
  ]);
  // What a file lacks is not rounded in it.
  const [part] = read('ind_close_all_03072026.csv', index.replaceAll(/(?:,[^,\n]*){5}$/gm, ''));
  expect(part?.unknown).toContain('turnover');
  expect(part?.rounded).toEqual({});
  expect(read('ind_close_all_03072026.csv', index)[0]?.rounded).toEqual({ turnover: 100_000 });
  // NSE renamed its indices twice.
  for (const [names, code] of [
    [['S&P CNX Nifty', 'CNX Nifty', 'NIFTY 50'], 'Nifty 50'],
    [['CNX Midcap', 'NIFTY Midcap 100'], 'Nifty Midcap 100'],
    [['Nifty 50 Arbitrage'], 'Nifty 50 Arbitrage'],
  ] as const) {
    for (const name of names) {
      const renamed = index.replace('Nifty 50', name);
      expect(rowsOf('ind_close_all_03072026.csv', renamed)[0]).toMatchObject({
        index_code: code,
        index_name: name,
      });
    }
  }
  // A year had slashes; on three days of April 2023 the month was first, as the name of the file shows.
  for (const [name, day, expected] of [
    ['ind_close_all_05022015.csv', '05/02/2015', '2015-02-05'],
    ['ind_close_all_06042023.csv', '04-06-2023', '2023-04-06'],
    ['ind_close_all_12042023.csv', '12-04-2023', '2023-04-12'],
    ['ind_close_all_04062023.csv', '04-06-2023', '2023-06-04'],
    // Named for a holiday, it has the trading day before.
    ['ind_close_all_07042023.csv', '06-04-2023', '2023-04-06'],
    ['closes.csv', '04-06-2023', '2023-06-04'],
  ] as const) {
    expect(read(name, index.replaceAll('03-07-2026', day))[0]?.day, name).toBe(expected);
  }
  const deals =
    'Date,Symbol,Security Name,Client Name,Buy/Sell,Quantity Traded,Trade Price / Wght. Avg. Price,Remarks\n07-OCT-2026,RELIANCE,Reliance Industries Limited,A FUND,BUY,"70,00,000","1,400.50",-\n07-OCT-2026,RELIANCE,Reliance Industries Limited,B FUND,SELL,7000000,1400.50,-\n';
  expect(rowsOf('bulk.csv', deals)).toMatchObject([
    {
      deal_date: '2026-10-07',
      symbol: 'RELIANCE',
      client_name: 'A FUND',
      deal_type: 'B',
      traded_quantity: 7_000_000,
    },
    { client_name: 'B FUND', deal_type: 'S', deal_price: '1400.50' },
  ]);
  // A line with a comma too many has no client by its name; it is not one without a deal.
  const [odd] = read('bulk.csv', deals.replace('A FUND', 'A,FUND'));
  expect([odd?.rows.length, odd?.rejects.length, odd?.passedOver]).toEqual([1, 1, 0]);
  expect(read('Block-Deals-01-10-2026-to-31-10-2026.csv', deals)[0]?.dataSet).toBe('GetBlockDeals');
  expect(read('deals.csv', deals)[0]?.dataSet).toBe('GetBulkDeals');
  expect(() => read('deals.csv', deals.replaceAll(/,(?:Remarks|-)$/gm, ''))).toThrow(
    'put "bulk" or "block" into its name',
  );
  const ofBse =
    'Deal Date,Security Code,Security Name,Client Name,Deal Type *,Quantity,Price **\n07/10/2026,500325,RELIANCE,A FUND,B,7000,1400.50\n';
  expect(rowsOf('Block_07Oct2026.csv', ofBse)).toMatchObject([
    { exchange: 'BSE', deal_date: '2026-10-07', scrip_code: 500_325, deal_type: 'B', deal_price: '1400.50' },
  ]);
  const purchase =
    'Deal Date,Security Code,Company,Client Name,Deal Type,Quantity,Price\r\n09/10/2026,500325,RELIANCE,A FUND,P,7000,1400.50\r\n';
  expect(rowsOf('Bulk_09Oct2026.csv', purchase)).toMatchObject([
    { exchange: 'BSE', deal_date: '2026-10-09', symbol: 'RELIANCE', deal_type: 'B', traded_quantity: 7000 },
  ]);
  const highs = 'SECURITY,NEW,PREVIOUS,NEW_STATUS\nAcme Technologies Limited,120.00,110.00,H\n';
  expect(rowsOf('HL070826.csv', highs)).toMatchObject([
    { trade_date: '2026-08-07', scrip_name: 'Acme Technologies Limited', band: 'H', new_price: '120.00' },
  ]);
  const ban = 'Securities in Ban For Trade Date 09-JUL-2026: \r\n1,GNFC\r\nM&M\r\n';
  expect(rowsOf('fo_secban.csv', ban)).toMatchObject([
    { trade_date: '2026-07-09', symbol: 'GNFC' },
    { trade_date: '2026-07-09', symbol: 'M&M' },
  ]);
  for (const none of ['31-JUL-2026: NIL', '31-JUL-2026:NIL,', '31-July-2026: NIL']) {
    expect(facts(read('fo_secban.csv', `Securities in Ban For Trade Date ${none}\n`)), none).toEqual([
      'nse-bans: GetBannedSecurities NSE 2026-07-31, 0 rows, 0 rejects',
    ]);
  }
});

test('no header is of two formats, and each column of a format is a field', () => {
  for (const format of FORMATS) {
    const { name, wordInName: fileName = '', marks, needs, columns, dataSet } = format;
    const header = [...marks, ...needs.flat(), ...Object.keys(columns)];
    expect(findFormat(header, fileName, true)?.name).toBe(name);
    const sources = dataSets
      .filter((set) => set.name === dataSet || (dataSet === null && set.udiff !== undefined))
      .flatMap(({ shapes }) =>
        shapes[0].table.fields.flatMap((field) =>
          field.from === 'response' ? [field.source, ...(field.orElse ?? [])] : [],
        ),
      );
    expect(sources, name).toEqual(expect.arrayContaining(Object.values(columns).flat()));
  }
});

test('the day in a name is found by the pattern that a format states, whatever else it has', () => {
  for (const [pattern, name, day] of [
    ['SUMMARY (EQ)_DD-MMM-YYYY.csv', 'copy of summary (eq)_05-Feb-2021 (2).csv', '2021-02-05'],
    ['x.YYYYMMDD.csv', 'x.20210205.csv', '2021-02-05'],
    ['YYYY-MM-DD.csv', '2021-02-05.csv', '2021-02-05'],
    ['DDMMYY-to-DDMMYY.csv', '050221-to-060221.csv', null],
    ['SUMMARY.csv', 'SUMMARY.csv', null],
    ['bhDDMMYY.csv', 'bh05022021.csv', null],
  ] as const) {
    expect(dayInName(name, { files: [pattern] }), pattern).toBe(day);
  }
});
