import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { identify, type ObservedAlias } from '../../src/load/market/instruments/identity.ts';

const blank: ObservedAlias = {
  ...{ exchange: 'NSE', symbol: '', series: 'EQ', isin: '', scripCode: 0, link: '', firstSeen: '2025-01-01' },
};
const seen = (firstSeen: string, symbol: string, changes: Partial<ObservedAlias> = {}): ObservedAlias => ({
  ...{ ...blank, firstSeen, symbol, ...changes },
});
const ids = (...aliases: ObservedAlias[]) => identify(aliases).map(({ instrumentId }) => instrumentId);

describe('on NSE', () => {
  test('a rename keeps the ISIN, a split the symbol: one instrument, named by its first ISIN', () => {
    expect(
      ids(
        seen('2025-03-01', 'C', { isin: 'INE982B01035' }),
        seen('2025-02-01', 'B', { isin: 'INE982B01027' }),
        seen('2025-01-01', 'A', { isin: 'INE982B01019' }),
        seen('2025-01-15', 'A', { isin: 'INE982B01027' }),
        seen('2025-02-15', 'C', { isin: 'INE982B01027' }),
      ),
    ).toEqual(Array(5).fill('NSE:INE982B01019'));
  });

  test('a fund that gets a new ISIN stays one, be it of another house', () => {
    expect(
      ids(
        seen('2019-10-01', 'BSLGOLDETF', { isin: 'INF209K01HT2' }),
        seen('2025-08-29', 'BSLGOLDETF', { isin: 'INF209KB18D3' }),
        seen('2019-10-01', 'NIFTYBEES', { isin: 'INF732E01011' }),
        seen('2025-08-29', 'NIFTYBEES', { isin: 'INF204KB14I2' }),
      ),
    ).toEqual(['NSE:INF209K01HT2', 'NSE:INF209K01HT2', 'NSE:INF732E01011', 'NSE:INF732E01011']);
  });

  test('shares of one issuer under two symbols are two, though their ISINs begin alike', () => {
    expect(
      ids(
        seen('2019-10-17', 'STAMPEDE', { isin: 'INE224E01028' }),
        seen('2019-10-17', 'SCAPDVR', { isin: 'INE224E01036' }),
        seen('2025-08-29', 'GATECH', { isin: 'INE224E01028', series: 'BE' }),
        seen('2025-08-29', 'GATECHDVR', { isin: 'INE224E01036', series: 'BE' }),
      ),
    ).toEqual(['NSE:INE224E01028', 'NSE:INE224E01036', 'NSE:INE224E01028', 'NSE:INE224E01036']);
  });

  test('bonds of one symbol are each one of their own, a series of them used again as well', () => {
    const found = identify([
      seen('2025-01-01', 'IRFC', { isin: 'INE053F01010' }),
      seen('2015-01-01', 'IRFC', { series: 'N1', isin: 'INE053F07014' }),
      seen('2025-01-01', 'IRFC', { series: 'N1', isin: 'INE053F07022' }),
      seen('2020-01-01', 'IRFC', { series: 'N2' }),
    ]);
    expect(found).toEqual([
      { instrumentId: 'NSE:INE053F01010', precedence: 0 },
      { instrumentId: 'NSE:INE053F07014', precedence: 1 },
      { instrumentId: 'NSE:INE053F07022', precedence: 1 },
      { instrumentId: 'NSE:IRFC/N2', precedence: 1 },
    ]);
  });

  test('T+0 and block deal lines stand beside their share, with or without its ISIN', () => {
    expect(
      identify([
        seen('2025-01-02', 'IDEA', { isin: 'INE669E01016' }),
        seen('2025-01-01', 'IDEA', { isin: 'INE669E01016', series: 'T0' }),
        seen('2025-01-03', 'IDEA', { series: 'BL' }),
        seen('2025-01-03', 'LONE', { series: 'BL', isin: 'INE000A01010' }),
      ]),
    ).toEqual([
      { instrumentId: 'NSE:INE669E01016', precedence: 0 },
      { instrumentId: 'NSE:INE669E01016/T0', precedence: 2 },
      { instrumentId: 'NSE:INE669E01016/BL', precedence: 2 },
      { instrumentId: 'NSE:INE000A01010/BL', precedence: 2 },
    ]);
  });

  test('a record without ISIN belongs to whom the symbol belonged that day', () => {
    const first = { isin: 'INE105I01012' };
    const second = { isin: 'INE0KRX01010' };
    expect(
      ids(
        seen('2015-06-01', 'SEL', first),
        seen('2025-06-02', 'SEL', second),
        seen('2010-01-04', 'SEL'),
        seen('2018-01-01', 'SEL', { series: 'BE' }),
        seen('2025-06-02', 'SEL', { series: '' }),
        seen('2018-01-01', 'OTHER'),
      ),
    ).toEqual([
      ...['NSE:INE105I01012', 'NSE:INE0KRX01010', 'NSE:INE105I01012', 'NSE:INE105I01012'],
      ...['NSE:INE0KRX01010', 'NSE:OTHER'],
    ]);
  });

  test('a listed series change joins series that nothing else joins', () => {
    const move = { link: 'x' };
    expect(
      ids(
        seen('2021-08-19', 'MRO-TEK', { series: 'XA', ...move }),
        seen('2021-08-20', 'MRO-TEK', { series: 'EQ', ...move }),
        seen('2021-08-01', 'MRO-TEK', { series: 'XA', isin: 'INE398B01018' }),
      ),
    ).toEqual(Array(3).fill('NSE:INE398B01018'));
  });
});

describe('on BSE', () => {
  const bse = (firstSeen: string, symbol: string, scripCode: number, changes: Partial<ObservedAlias> = {}) =>
    seen(firstSeen, symbol, { exchange: 'BSE', series: 'B', scripCode, ...changes });

  test('the scrip code is the instrument, whatever else changes', () => {
    expect(
      identify([
        bse('2025-09-05', 'GANESHHOUC', 526367, { isin: 'INE460C01014' }),
        bse('2025-09-09', 'GANESHHOU', 526367, { isin: 'INE460C01022', series: 'A' }),
        bse('2025-09-05', 'IDEA', 532822, { isin: 'INE669E01016' }),
        bse('2025-09-05', 'IDEA#', 132822, { isin: 'INE669E01016' }),
      ]),
    ).toEqual([
      { instrumentId: 'BSE:526367', precedence: 0 },
      { instrumentId: 'BSE:526367', precedence: 0 },
      { instrumentId: 'BSE:532822', precedence: 0 },
      { instrumentId: 'BSE:132822', precedence: 2 },
    ]);
  });

  test('a record without scrip code is found by ISIN, else by symbol', () => {
    expect(
      ids(
        bse('2025-01-01', 'TCS', 532540, { isin: 'INE467B01029' }),
        bse('2025-01-01', '', 0, { isin: 'INE467B01029' }),
        bse('2025-01-01', 'TCS', 0),
        bse('2025-01-01', '', 0, { isin: 'INE000X01010' }),
        bse('2025-01-01', '', 0, { isin: 'INE000Y01010' }),
      ),
    ).toEqual(['BSE:532540', 'BSE:532540', 'BSE:532540', 'BSE:INE000X01010', 'BSE:INE000Y01010']);
  });
});

const day = fc.integer({ min: 10, max: 28 }).map((n) => `2025-01-${n}`);
const anyAlias = fc.record({
  exchange: fc.constant('NSE'),
  symbol: fc.constantFrom('', 'A', 'B', 'C'),
  series: fc.constantFrom('', 'EQ', 'BE', 'T0', 'N1'),
  isin: fc.constantFrom('', 'INE000A01011', 'INE000A01029', 'INE000B01010', 'INE000A07018'),
  scripCode: fc.constantFrom(0, 7),
  link: fc.constantFrom('', '', '', 'x'),
  firstSeen: day,
});

test('the order of aliases does not matter', () => {
  fc.assert(
    fc.property(
      fc.array(anyAlias, { minLength: 1, maxLength: 12 }).chain((list) =>
        fc.record({
          list: fc.constant(list),
          order: fc.shuffledSubarray([...list.keys()], { minLength: list.length }),
        }),
      ),
      fc.constantFrom('NSE', 'BSE'),
      ({ list, order }, exchange) => {
        const aliases = list.map((one) => ({ ...one, exchange }));
        const straight = identify(aliases);
        const mixed = identify(order.map((at) => aliases[at] as ObservedAlias));
        expect(mixed).toEqual(order.map((at) => straight[at]));
      },
    ),
  );
});
