import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Row } from '../../../src/declaration/table.ts';
import { type FilePart, readCsvFile } from '../../../src/extract/files/read-file.ts';
import { readResponse } from '../../../src/extract/index.ts';
import { hasDuplicates } from '../../../src/load/merge/merge.ts';
import derivatives from '../../../src/operations/GetBhavCopyFO.ts';
import { raw, requestedOf, SETTINGS } from '../support.ts';

const fixture = (name: string) =>
  readFileSync(new URL(`../../fixtures/derivatives/${name}`, import.meta.url), 'utf8');
const NSE = fixture('BhavCopy_NSE_FO_0_0_0_20250312_F_0000.csv');
const BSE = fixture('BhavCopy_BSE_FO_0_0_0_20250312_F_0000.CSV');

const { table } = derivatives.shapes[0];
const partsOf = (text: string) => readCsvFile('any.csv', Buffer.from(text), SETTINGS.timeZone);
/** The only trading day of a file. */
function partOf(text: string): FilePart {
  const parts = partsOf(text);
  expect(parts).toHaveLength(1);
  return parts[0] as FilePart;
}
const keyOf = (row: Row) => table.key.map((column) => String(row[column])).join(' ');
const withoutColumn = (text: string, name: string) => {
  const at = text.slice(0, text.indexOf('\n')).split(',').indexOf(name);
  return text.replaceAll(/^.+$/gm, (line) => line.split(',').toSpliced(at, 1).join(','));
};
/** The first row of a file with other values in some columns. */
function oneRow(text: string, changes: Readonly<Record<string, string>>): string {
  const [header = '', first = ''] = text.split('\n');
  const names = header.split(',');
  return `${header}\n${first
    .split(',')
    .map((cell, at) => changes[names[at] as string] ?? cell)
    .join(',')}\n`;
}

describe("the exchanges' files of derivatives", () => {
  test.each([
    ['fo15JUN2005bhav.csv', '2005-06-15', ['', '', 'CE', 'CA']],
    ['fo24OCT2008bhav.csv', '2008-10-24', ['', '', 'PE', 'CA']],
  ])('of %s have each contract, however its header spells the type of option', (name, day, types) => {
    const part = partOf(fixture(name));
    expect(part).toMatchObject({ format: 'nse-fo-bhav', exchange: 'NFO', day, rejects: [] });
    expect([...part.rows].map((row) => row.option_type)).toEqual(types);
  });

  test.each([
    ['NFO', 'NSE', NSE, 35],
    ['BFO', 'BSE', BSE, 21],
  ])('are rows of %s, each a contract of its own', (exchange, source, text, count) => {
    const part = partOf(text);
    expect(part).toMatchObject({
      format: 'udiff',
      dataSet: 'GetBhavCopyFO',
      exchange,
      day: '2025-03-12',
      complete: true,
      rejects: [],
      also: null,
      warnings: [],
    });
    const rows = [...part.rows];
    expect(rows).toHaveLength(count);
    expect(new Set(rows.map(keyOf)).size).toBe(count);
    for (const row of rows) expect(row).toMatchObject({ exchange, source_exchange: source, segment: 'FO' });
    expect(part.unknown).toEqual(['instrument_name', 'identifier']);
  });

  test('have futures without strike and option type, and options to the paisa', () => {
    const rows = [...partOf(NSE).rows];
    expect(rows[0]).toMatchObject({
      symbol: 'NIFTY',
      instrument_type: 'IDF',
      exchange_instrument_id: 40003,
      expiry_date: '2025-03-13',
      actual_expiry_date: '2025-03-13',
      strike_price: 0,
      option_type: '',
      isin: null,
      open_interest: 4050,
      open_interest_change: -5325,
      traded_quantity: 38,
      board_lot_quantity: 75,
      trade_count: 13,
    });
    const strikes = rows.filter(({ symbol, option_type }) => symbol === 'IDEA' && option_type === 'PE');
    expect(strikes.map(({ strike_price }) => strike_price)).toEqual(['6.50', '7.15', '7.80']);
  });

  test('may be long', () => {
    const [header, ...lines] = NSE.trimEnd().split('\n');
    const many = Array.from({ length: 1_000 }, (_, day) =>
      lines.map((line) => line.replace(/,(\d+),,/, `,${day}$1,,`).replace(/\.00,(?=[CP]E)/, `.${day},`)),
    ).flat();
    const { rows, rejects } = partOf(`${[header, ...many].join('\n')}\n`);
    expect([rows.length, rejects.length]).toEqual([35_000, 0]);
  });

  test('say what a row lacks: a contract without expiry is rejected', () => {
    const [header, first, second] = NSE.split('\n');
    const { rejects, rows } = partOf(`${header}\n${first}\n${second?.replaceAll('2025-03-13', '')}\n`);
    expect(rows).toHaveLength(1);
    expect(rejects.map(({ problems }) => problems)).toEqual([[{ path: 'XpryDt', message: 'is missing' }]]);
  });

  test.each(['XpryDt', 'StrkPric', 'OptnTp'])('are refused without the column %s', (name) => {
    expect(() => partsOf(withoutColumn(NSE, name))).toThrow(`the header lacks ${name}`);
  });

  test('are refused with rows of another segment or exchange', () => {
    const cash = oneRow(NSE, { Sgmt: 'CM' }).split('\n')[1];
    expect(() => partsOf(`${NSE}${cash}\n`)).toThrow('has rows of the segments FO and CM');
    expect(() => partsOf(oneRow(NSE, { Src: 'MSE' }))).toThrow('has rows of MSE; known are BSE and NSE');
    expect(() => partsOf(oneRow(NSE, { Sgmt: 'CD' }))).toThrow('is of the segment CD; known are CM and FO');
  });

  test('may name the exchange otherwise', () => {
    expect(partOf(oneRow(BSE, { Src: 'XBSE' }))).toMatchObject({ exchange: 'BFO' });
    const [header, ...lines] = BSE.trimEnd().split('\n');
    const spelled = [header, ...lines.map((line) => line.replace(',BSE,', ',XBSE,'))].join('\n');
    expect(partOf(`${spelled}\n`).rows).toHaveLength(lines.length);
    expect(partOf(`${BSE}${lines[0]?.replace(',BSE,', ',XBSE,')}\n`).rows).toHaveLength(22);
  });
});

test.each([
  ['7.15', '7.25', false],
  ['100', '1000', false],
  ['0.10', '0.01', false],
  ['7.50', '7.5', true],
  ['7.00', '7', true],
  ['0.00', '', true],
  ['70', '7e1', true],
  ['70', '70', true],
])('strikes %s and %s: may they be one contract? %s', (strike, otherStrike, expected) => {
  const at = (strike: string) => oneRow(NSE, { StrkPric: strike, OptnTp: 'CE' });
  const { rows } = partOf(`${at(strike)}${at(otherStrike).split('\n')[1]}\n`);
  expect(hasDuplicates(table, rows)).toBe(expected);
});

describe('the response', () => {
  const requested = requestedOf(derivatives);
  const [record] = (derivatives.sample.response as { Value: Record<string, unknown>[] }).Value;
  const read = (changes: Readonly<Record<string, unknown>>) => {
    const response = raw({ Value: [{ ...record, ...changes }] });
    const { batches, rejects } = readResponse(derivatives, requested, response, SETTINGS);
    expect(rejects).toEqual([]);
    return [...(batches[0]?.rows ?? [])][0] as Row;
  };

  test('is the same row as the line of the file, whether it has the number of the contract or not', () => {
    const line = [...partOf(BSE).rows].find(
      (row) => row.expiry_date === '2025-03-25' && row.symbol === 'SENSEX' && row.option_type === '',
    );
    for (const changes of [
      {},
      { FinInstrmId: 0 },
      { FinInstrmId: null, FinInstrmTp: '' },
      { OptionType: 'FF' },
      { OptionType: 'XX', StrikePrice: null },
    ]) {
      expect(keyOf(read(changes)), JSON.stringify(changes)).toBe(keyOf(line as Row));
    }
  });

  test('distinguishes options whose number is missing', () => {
    const contract = { FinInstrmId: 0, FinInstrmTp: 'IDO', StrikePrice: 74000, OptionType: 'CE' };
    const rows = [contract, { ...contract, OptionType: 'PE' }, { ...contract, StrikePrice: 74100 }].map(
      (changes) => read(changes),
    );
    expect(new Set(rows.map(keyOf)).size).toBe(3);
    expect(rows[0]).toMatchObject({ identifier: 'IF_SENSEX_25MAR2025_FF_0', strike_price: 74000 });
  });
});

test('the table has its partitions and days by the trading day, and names no instruments', () => {
  expect(table).toMatchObject({ dateColumn: 'trade_date', partitioned: true, names: [] });
});
