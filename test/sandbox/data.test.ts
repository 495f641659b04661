import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterEach, describe, expect, test } from 'vitest';
import { range, sandbox, textOf } from './support.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const FIXTURES = join(ROOT, 'test/fixtures/bhavcopy');

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'sandbox-data-'));
  folders.push(made);
  return made;
}

/** UDiFF column → key of the live response, for every column that is passed on. */
const KEYS: Readonly<Record<string, string>> = {
  Sgmt: 'Sgmt',
  Src: 'Src',
  FinInstrmTp: 'FinInstrmTp',
  FinInstrmId: 'FinInstrmId',
  ISIN: 'ISIN',
  TckrSymb: 'Symbol',
  SctySrs: 'SctySrs',
  StrkPric: 'StrikePrice',
  OptnTp: 'OptionType',
  FinInstrmNm: 'FinInstrmNm',
  OpnPric: 'OpenPrice',
  HghPric: 'HighPrice',
  LwPric: 'LowPrice',
  ClsPric: 'ClosePrice',
  LastPric: 'LastPrice',
  PrvsClsgPric: 'PrevClosePrice',
  UndrlygPric: 'UnderlyingPrice',
  SttlmPric: 'SttlmPric',
  OpnIntrst: 'OI',
  ChngInOpnIntrst: 'OIChng',
  TtlTradgVol: 'TTQ',
  TtlTrfVal: 'TtlTrfVal',
  TtlNbOfTxsExctd: 'TotalTradesNo',
  SsnId: 'SsnId',
  NewBrdLotQty: 'NewBrdLotQty',
};
const TEXT = ['Sgmt', 'Src', 'FinInstrmTp', 'ISIN', 'TckrSymb', 'SctySrs', 'OptnTp', 'FinInstrmNm', 'SsnId'];
const EMPTY = ['""', 'null', '"01-01-0001"'];
const DATES = {
  TradDt: 'TradDt',
  BizDt: 'BizDt',
  XpryDt: 'Expiry',
  FininstrmActlXpryDt: 'FinInstrmActlXpryDt',
};

/** The value of a key as the characters of the JSON text of one record. */
function tokens(object: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const match of object.matchAll(/"(\w+)":("(?:[^"\\]|\\.)*"|[^,}]+)/g))
    found.set(match[1] as string, match[2] as string);
  return found;
}

const american = (day: string) =>
  day === '' ? '01-01-0001' : `${day.slice(5, 7)}-${day.slice(8)}-${day.slice(0, 4)}`;

async function expectEqualToFile(directory: string, file: string): Promise<number> {
  const rows = parse(readFileSync(join(directory, file), 'utf8'), {
    columns: true,
    bom: true,
    trim: true,
  }) as Record<string, string>[];
  const [{ Src: exchange = '', TradDt: day = '' } = {}] = rows;
  const source = await sandbox({ dataDir: directory });
  const body = await textOf(source, 'GetBhavCopyCM', { exchange, ...range(day) });
  const objects = body.slice('{"Value":['.length, -2).split(/(?<=\}),(?=\{)/);
  expect(objects).toHaveLength(rows.length);
  for (const [at, row] of rows.entries()) {
    const sent = tokens(objects[at] as string);
    const expected = new Map<string, string>();
    for (const [column, key] of Object.entries(KEYS)) {
      const text = row[column] ?? '';
      expected.set(key, TEXT.includes(column) ? JSON.stringify(text) : text === '' ? 'null' : text);
    }
    for (const [column, key] of Object.entries(DATES)) expected.set(key, `"${american(row[column] ?? '')}"`);
    sent.delete('ReceivedAt');
    sent.delete('SavedAt');
    // What the file does not have is empty.
    for (const [key, value] of sent) if (!expected.has(key) && EMPTY.includes(value)) sent.delete(key);
    const differing = [...expected].filter(([key, value]) => sent.get(key) !== value);
    if (sent.size === expected.size && differing.length === 0) continue;
    // Compared as a whole only where they differ, to show how: there are thousands of rows.
    expect(Object.fromEntries(sent), `row ${at}`).toEqual(Object.fromEntries(expected));
  }
  return rows.length;
}

const files = readdirSync(FIXTURES).filter((name) => /\.csv$/i.test(name));

test.each(files)('serves %s to the digit', async (file) => {
  expect(await expectEqualToFile(FIXTURES, file)).toBeGreaterThan(50);
});

describe('a data directory', () => {
  test('reads quoted names and keeps unusual figures as they are', async () => {
    const data = folder();
    const [header = '', row = ''] = readFileSync(join(FIXTURES, files[0] as string), 'utf8').split(/\r?\n/);
    const cells = row.split(',');
    const column = (name: string) => header.split(',').indexOf(name);
    cells[column('FinInstrmNm')] = '"A ""B"", C & SONS"';
    cells[column('ClsPric')] = '123456789012345.6789';
    cells[column('LastPric')] = '007.50';
    writeFileSync(join(data, 'one.csv'), `\ufeff${header}\n${cells.join(',')}`);
    const source = await sandbox({ dataDir: data });
    const body = await textOf(source, 'GetBhavCopyCM', range(cells[column('TradDt')] as string));
    const sent = tokens(body);
    expect(sent.get('FinInstrmNm')).toBe(JSON.stringify('A "B", C & SONS'));
    expect(sent.get('ClosePrice')).toBe('123456789012345.6789');
    // Not a JSON number: sent as text rather than changed.
    expect(sent.get('LastPrice')).toBe('"007.50"');
  });

  test('refuses what it cannot use, naming it', async () => {
    const start = (data: string) => sandbox({ dataDir: data });
    const [first = ''] = files;
    const twice = folder();
    copyFileSync(join(FIXTURES, first), join(twice, 'a.csv'));
    copyFileSync(join(FIXTURES, first), join(twice, 'b.csv'));
    await expect(start(twice)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringMatching(/b\.csv.*a\.csv/),
    });
    const wrong = folder();
    writeFileSync(join(wrong, 'other.csv'), 'SYMBOL,SERIES\nTCS,EQ\n');
    await expect(start(wrong)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringContaining('other.csv'),
    });
    const broken = folder();
    writeFileSync(join(broken, 'broken.csv'), 'TradDt,Src,TckrSymb\n2025-09-09,BSE\n');
    await expect(start(broken)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringContaining('broken.csv'),
    });
    const zipped = folder();
    writeFileSync(join(zipped, 'day.zip'), 'PK');
    await expect(start(zipped)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringContaining('unpack'),
    });
    await expect(start(join(zipped, 'nowhere'))).rejects.toMatchObject({ kind: 'usage' });
  });
});
