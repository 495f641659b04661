import { parse } from 'csv-parse/sync';
import { describe, expect, test } from 'vitest';
import { operations } from '../../src/operations/registry.ts';
import {
  type Behaviour,
  CONTRARY,
  OPEN_POINTS,
  sandboxFlags,
  sandboxOptionsFromFlags,
} from '../../src/sandbox/index.ts';
import { ask, midnight, plainRequest, range, records, type SentRecord, sandbox, textOf } from './support.ts';

const DAY = '2025-09-12';
const one = { instrumentIdentifiers: 'TCS', ...range(DAY) };

/** The records of a response of a sandbox that differs in one reading. */
const sent = async (
  behaviour: Partial<Behaviour>,
  operation: string,
  params: Readonly<Record<string, string>>,
) => records(await sandbox({ behaviour }), operation, params);

/** The first record of a bhav copy, and what another reading makes of it. */
const both = async (behaviour: Partial<Behaviour>, params: Readonly<Record<string, string>> = one) =>
  Promise.all([{}, behaviour].map(async (each) => (await sent(each, 'GetBhavCopyCM', params))[0]));

describe('flags', () => {
  /** The options of one point's flag, as typed. */
  const optionsOf = (flag: string) => {
    const [name = '', value] = flag.split(' ');
    const key = name.slice(2).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    return sandboxOptionsFromFlags({ [key]: value ?? true });
  };

  test.each(OPEN_POINTS.map((point) => [point.flag, point] as const))(
    '%s is a flag that sets its point',
    (flag, { behaviour }) => {
      expect(sandboxFlags.map((one) => one.flag.split(' ')[0])).toContain(flag.split(' ')[0]);
      expect(optionsOf(flag)).toEqual({ behaviour });
    },
  );

  test('--contrary sets all of them, and other flags take single ones back', () => {
    expect(sandboxOptionsFromFlags({ contrary: true })).toEqual({ behaviour: CONTRARY });
    const taken = { contrary: true, shapes: 'sample', trialDay: 'none' };
    expect(sandboxOptionsFromFlags(taken).behaviour).toEqual({
      ...CONTRARY,
      shapes: 'sample',
      trialDay: undefined,
    });
    for (const { behaviour } of OPEN_POINTS) expect(CONTRARY).toMatchObject(behaviour);
  });

  test('a contrary source serves every operation in every format', async () => {
    // Without the points that make some responses empty.
    const full = { trialDay: undefined, classificationByChange: false, withdrawnRatios: false };
    const source = await sandbox({ behaviour: { ...CONTRARY, ...full } });
    for (const operation of operations) {
      for (const format of ['Json', 'Xml', 'Csv', 'CsvContent']) {
        const params = { ...plainRequest(operation, 'NSE', DAY), format };
        const text = await textOf(source, operation.name, params);
        expect([operation.name, format, text.length > 100]).toEqual([operation.name, format, true]);
      }
    }
  });
});

describe('values', () => {
  test('a corporate action has the id 0, the names and the times of the published sample', async () => {
    const params = { ...range(DAY), instrumentIdentifier: 'TCS' };
    const [[plain], [other]] = await Promise.all([
      sent({ shapes: 'declared' }, 'GetConsolidatedPledge', params),
      sent({ shapes: 'declared', actionIdZero: true }, 'GetConsolidatedPledge', params),
    ]);
    expect(plain).toMatchObject({ Symbol: 'TCS', AnnouncementDate: '09-12-2025' });
    expect(plain).not.toHaveProperty('ScripId');
    expect(other).toMatchObject({
      ScripId: 'TCS',
      ScripName: plain?.CompanyName,
      ScripCode: plain?.ScripCode,
      ActionId: 0,
      ScripFaceValue: `${plain?.ScripFaceValue}.0`,
      AnnouncementDate: '09-12-2025 16:36:03',
      BcRdFrom: `${plain?.BcRdFrom} 00:00:00`,
      BcRdTo: '01-01-0001 00:00:00',
    });
    expect(other).not.toHaveProperty('Symbol');
  });

  test('a series change has the suffix of the old series, except EQ', async () => {
    const params = { exchange: 'NSE', ...range('2025-08-01', DAY) };
    const plain = await sent({}, 'GetSeriesChange', params);
    const other = await sent({ oldSeriesSuffix: true }, 'GetSeriesChange', params);
    expect(other.map(({ ScripId }) => ScripId)).toEqual(
      plain.map(({ ScripId, PrevSeries }) => (PrevSeries === 'EQ' ? ScripId : `${ScripId}.${PrevSeries}`)),
    );
    expect(new Set(other.map(({ PrevSeries }) => PrevSeries)).size).toBeGreaterThan(1);
  });

  test('src is spelled in two other ways', async () => {
    const list = await sent({ srcCodes: true }, 'GetBhavCopyCM', range(DAY));
    expect(list.slice(0, 2).map(({ Src }) => Src)).toEqual(['XBSE', 'bse']);
  });

  test('fields that mean nothing hold something, and blank ones have no key', async () => {
    const [plain, filled] = await both({ filledBlanks: true });
    const blank = { Expiry: '-', FinInstrmActlXpryDt: 0, StrikePrice: 'XX', UnderlyingPrice: '-' };
    expect(filled).toEqual({ ...plain, ...blank, OI: 0.5, OIChng: '-' });
    const [, missing] = await both({ missingKeys: true });
    expect(missing).not.toHaveProperty('StrikePrice');
    expect(Object.values(missing as SentRecord)).not.toContain(null);
    expect(plain).toMatchObject(missing as SentRecord);
    expect(Object.keys(missing as SentRecord).length).toBeLessThan(Object.keys(plain as SentRecord).length);
  });

  test('the stock price of ratios has a space in its key', async () => {
    const params = { instrumentIdentifier: 'TCS', type: 'Quarter', period: 'Latest' };
    const [record] = await sent({ spacedKeys: true }, 'GetFinancialRatios', params);
    expect(record).toHaveProperty('Stock Price');
    expect(record).not.toHaveProperty('StockPrice');
  });

  test('times in milliseconds, days in seconds, none as 0', async () => {
    const [plain, other] = await both({ epochMilliseconds: true }, { ...one, dTFormat: 'Epoch' });
    expect(other).toMatchObject({
      TradDt: Number(midnight(DAY)),
      ReceivedAt: Number(plain?.ReceivedAt) * 1_000,
      Expiry: 0,
    });
  });

  test('numbers in JSON have 15 digits, in XML and CSV all', async () => {
    const source = await sandbox({ behaviour: { shortNumbers: true } });
    const params = { instrumentIdentifier: 'TCS', date: midnight(DAY) };
    const [{ PeRatio: short } = {}] = await records(source, 'GetFinRatioEOD', params);
    const csv = await textOf(source, 'GetFinRatioEOD', { ...params, format: 'Csv' });
    const [{ PeRatio: long = '' } = {}] = parse(csv, { columns: true, trim: true }) as Record<
      string,
      string
    >[];
    expect(String(short)).not.toBe(long);
    expect(short).toBe(Number(Number(long).toPrecision(15)));
  });
});

describe('formats', () => {
  test('CSV has its columns in another order, and quotes around dates only', async () => {
    const source = await sandbox({ behaviour: { csvUnquoted: true } });
    const params = { ...range(DAY), sector: 'Oil, Gas & Consumable Fuels', format: 'Csv' };
    const [header = '', row = ''] = (await textOf(source, 'GetSectoralClassification', params)).split('\r\n');
    expect(header).toMatch(/^SavedAt,ReceivedAt,BasicIndustry,.*,ISIN$/);
    expect(row).toContain(',Oil, Gas & Consumable Fuels,');
    expect(row).toMatch(/^"09-12-2025 /);
    const bhavcopy = await textOf(source, 'GetBhavCopyCM', { ...one, format: 'Csv' });
    expect(bhavcopy).toContain(',STK,BSE,CM,');
  });

  test('XML has its values in attributes, as in the published samples', async () => {
    const source = await sandbox({ behaviour: { xmlAttributes: true } });
    const xml = (operation: string, params: Readonly<Record<string, string>>) =>
      textOf(source, operation, { ...params, format: 'Xml' });
    expect(await xml('GetSeriesChange', { exchange: 'NSE', ...range('2025-08-01', DAY) })).toMatch(
      /<SeriesChange><Value><SeriesChangeItem ChangeDate="\d\d-\d\d-2025" ScripId="/,
    );
    expect(await xml('GetTotalTradeHighlights', range(DAY))).toMatch(
      /<TotalTradeHighlight Date="09-12-2025" ReceivedAt="[^"]*" SavedAt="[^"]*"><TradeHighlights>Total</,
    );
    expect(await xml('GetFinRatioEOD', { instrumentIdentifier: 'TCS', date: midnight(DAY) })).toMatch(
      /<FinResultFrEod xmlns="clr-namespace:[^"]*" Year="\d+"[^<]*\/>$/,
    );
    expect(await xml('GetSeriesChange', range('2025-09-07'))).toMatch(/<SeriesChange><Value><\/Value>/);
  });
});

describe('requests', () => {
  test('names and values of parameters match in any case', async () => {
    const source = await sandbox({ behaviour: { anyCase: true }, accessKey: 'Key' });
    const query = new URLSearchParams({
      ACCESSKEY: 'Key',
      Exchange: 'bse',
      FROM: range(DAY).from,
      To: range(DAY).to,
      dtformat: 'string',
      Format: 'json',
    });
    const url = `${source.url}/GetTotalTradeHighlights?${query}`;
    expect(await (await fetch(url)).text()).toMatch(/^\{"Value":\[\{/);
    const seen = await (await fetch(`${source.url}/_sandbox/requests`)).text();
    expect(seen).not.toContain('Key');
    const strict = await sandbox({ accessKey: 'Key' });
    expect(await (await fetch(url.replace(source.url, strict.url))).text()).toMatch(/^Access Denied/);
  });

  test('a day is served only if it is requested from its first to its last second', async () => {
    const source = await sandbox({ behaviour: { exactTimes: true } });
    const { from, to } = range(DAY);
    const rows = async (params: Readonly<Record<string, string>>) =>
      (await records(source, 'GetTotalTradeHighlights', params)).length;
    expect(await rows({ from, to })).toBeGreaterThan(0);
    expect(await rows({ from, to: from })).toBe(0);
    expect(await rows({ from, to: String(Number(to) - 1) })).toBe(0);
    expect(await rows({ from: String(Number(from) + 1), to })).toBe(0);
    expect((await ask(await sandbox(), 'GetTotalTradeHighlights', { from, to: from })).status).toBe(200);
  });
});
