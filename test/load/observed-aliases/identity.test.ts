import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { identify, type ObservedAlias } from '../../../src/load/observed-aliases/identity.ts';
import { forAll } from '../../support/for-all.ts';

const blank: ObservedAlias = {
  exchange: 'NSE',
  symbol: '',
  series: 'EQ',
  isin: '',
  scripCode: 0,
  link: '',
  firstSeen: '2025-01-01',
};
const observed = (
  firstSeen: string,
  symbol: string,
  changes: Partial<ObservedAlias> = {},
): ObservedAlias => ({
  ...blank,
  firstSeen,
  symbol,
  ...changes,
});
const ids = (...aliases: ObservedAlias[]) => identify(aliases).map(({ instrumentId }) => instrumentId);

describe('on NSE', () => {
  test('a rename keeps the ISIN, a split the symbol: one instrument, named by its first ISIN', () => {
    expect(
      ids(
        observed('2025-03-01', 'C', { isin: 'INE982B01035' }),
        observed('2025-02-01', 'B', { isin: 'INE982B01027' }),
        observed('2025-01-01', 'A', { isin: 'INE982B01019' }),
        observed('2025-01-15', 'A', { isin: 'INE982B01027' }),
        observed('2025-02-15', 'C', { isin: 'INE982B01027' }),
      ),
    ).toEqual(Array(5).fill('NSE:INE982B01019'));
  });

  test('a fund that gets a new ISIN is the same instrument, even with the ISIN of another fund house', () => {
    expect(
      ids(
        observed('2019-10-01', 'BSLGOLDETF', { isin: 'INF209K01HT2' }),
        observed('2025-08-29', 'BSLGOLDETF', { isin: 'INF209KB18D3' }),
        observed('2019-10-01', 'NIFTYBEES', { isin: 'INF732E01011' }),
        observed('2025-08-29', 'NIFTYBEES', { isin: 'INF204KB14I2' }),
      ),
    ).toEqual(['NSE:INF209K01HT2', 'NSE:INF209K01HT2', 'NSE:INF732E01011', 'NSE:INF732E01011']);
  });

  test('shares of one issuer under two symbols are two, though their ISINs begin alike', () => {
    expect(
      ids(
        observed('2019-10-17', 'STAMPEDE', { isin: 'INE224E01028' }),
        observed('2019-10-17', 'SCAPDVR', { isin: 'INE224E01036' }),
        observed('2025-08-29', 'GATECH', { isin: 'INE224E01028', series: 'BE' }),
        observed('2025-08-29', 'GATECHDVR', { isin: 'INE224E01036', series: 'BE' }),
      ),
    ).toEqual(['NSE:INE224E01028', 'NSE:INE224E01036', 'NSE:INE224E01028', 'NSE:INE224E01036']);
  });

  test('a symbol that was given up by a listed change means another share from then on', () => {
    const change = { link: 'DTIL to DPTL', series: '' };
    const aliases = [
      observed('2010-07-25', 'DTIL', change),
      observed('2010-07-26', 'DPTL', change),
      observed('2005-01-01', 'DTIL'),
      observed('2012-01-01', 'DPTL'),
      observed('2021-07-01', 'DTIL'),
    ];
    expect(ids(...aliases)).toEqual(['NSE:DTIL', 'NSE:DTIL', 'NSE:DTIL', 'NSE:DTIL', 'NSE:DTIL@2010-07-26']);
    // Once the ISIN of the later one is known, it is that, also on the days before.
    expect(ids(...aliases, observed('2024-07-08', 'DTIL', { isin: 'INE341R01014' })).slice(2)).toEqual([
      'NSE:DTIL',
      'NSE:DTIL',
      'NSE:INE341R01014',
      'NSE:INE341R01014',
    ]);
  });

  test('a listed change of the symbol keeps the share, there and back', () => {
    expect(
      new Set(
        ids(
          observed('2010-01-01', 'A'),
          observed('2010-12-31', 'A', { link: '1', series: '' }),
          observed('2011-01-01', 'B', { link: '1', series: '' }),
          observed('2011-06-01', 'B'),
          observed('2011-12-31', 'B', { link: '2', series: '' }),
          observed('2012-01-01', 'A', { link: '2', series: '' }),
          observed('2013-01-01', 'A'),
        ),
      ).size,
    ).toBe(1);
  });

  describe('a symbol that a listed change gave up', () => {
    const change = (from: string, to: string, lastDay: string, firstDay: string) => [
      observed(lastDay, from, { link: `${from} to ${to}`, series: '' }),
      observed(firstDay, to, { link: `${from} to ${to}`, series: '' }),
    ];
    const symbolChange = change('A', 'B', '2010-07-25', '2010-07-26');

    test.each([
      ['2010-07-25', 'NSE:A'],
      ['2010-07-26', 'NSE:A@2010-07-26'],
      ['2010-07-27', 'NSE:A@2010-07-26'],
    ])('means on %s %s', (day, id) => {
      expect(ids(observed(day, 'A'), ...symbolChange)[0]).toBe(id);
      expect(ids(observed(day, 'A'), ...symbolChange.toReversed())[0]).toBe(id);
    });

    test('is not its earlier owner any more, whose ISIN is known', () => {
      const isin = 'INE000A01011';
      const owner = observed('2005-01-01', 'A', { isin });
      expect(ids(owner, ...symbolChange, observed('2021-07-01', 'A'))).toEqual([
        ...Array(3).fill(`NSE:${isin}`),
        'NSE:A@2010-07-26',
      ]);
    });

    test('is its later owner from that day on, whose ISIN is seen on that day or later', () => {
      const isin = 'INE000B01010';
      for (const day of ['2010-07-26', '2024-07-08']) {
        const owner = observed(day, 'A', { isin });
        for (const without of ['2010-07-26', '2021-07-01', '2025-01-01']) {
          expect(ids(owner, ...symbolChange, observed(without, 'A'))).toEqual([
            `NSE:${isin}`,
            'NSE:A',
            'NSE:A',
            `NSE:${isin}`,
          ]);
        }
        expect(ids(owner, ...symbolChange, observed('2005-01-01', 'A')).at(-1)).toBe('NSE:A');
      }
    });

    test('means another share after each change, in whatever order they are listed', () => {
      const again = change('A', 'C', '2015-03-01', '2015-03-02');
      const times = [observed('2009-01-01', 'A'), observed('2012-01-01', 'A'), observed('2016-01-01', 'A')];
      for (const changes of [
        [...symbolChange, ...again],
        [...again, ...symbolChange],
      ]) {
        expect(ids(...times, ...changes).slice(0, 3)).toEqual([
          'NSE:A',
          'NSE:A@2010-07-26',
          'NSE:A@2015-03-02',
        ]);
      }
      expect(ids(...again, ...symbolChange)).toEqual([
        'NSE:A@2010-07-26',
        'NSE:A@2010-07-26',
        'NSE:A',
        'NSE:A',
      ]);
    });

    test('may be taken over by a change on the same day', () => {
      const identities = ids(
        ...symbolChange,
        ...change('C', 'A', '2010-07-25', '2010-07-26'),
        observed('2011-01-01', 'A'),
      );
      expect(identities).toEqual(['NSE:A', 'NSE:A', 'NSE:C', 'NSE:C', 'NSE:C']);
    });
  });

  test.each<[string, ObservedAlias[]]>([
    [
      'a move between series',
      [observed('2010-07-25', 'A', { link: 'x' }), observed('2010-07-26', 'A', { link: 'x', series: 'BE' })],
    ],
    [
      'names that are linked, but not as of two days that follow each other',
      [observed('2010-07-25', 'A', { link: 'x' }), observed('2010-07-27', 'B', { link: 'x' })],
    ],
    [
      'three names of one link',
      [
        observed('2010-07-25', 'A', { link: 'x' }),
        observed('2010-07-26', 'B', { link: 'x' }),
        observed('2010-07-27', 'C', { link: 'x' }),
      ],
    ],
    [
      'a link to a record without symbol',
      [
        observed('2010-07-25', 'A', { link: 'x' }),
        observed('2010-07-26', '', { link: 'x', isin: 'INE000A01011' }),
      ],
    ],
    ['names of two days that nothing links', [observed('2010-07-25', 'A'), observed('2010-07-26', 'B')]],
  ])('%s: the symbol is not given up', (_, aliases) => {
    const [first, ...others] = ids(...aliases, observed('2021-01-01', 'A', { link: 'later' }));
    expect(others.at(-1)).toBe(first);
  });

  test('the series that a share left by a listed move remains its own', () => {
    const move = { link: 'x' };
    expect(
      ids(
        observed('2021-08-19', 'A', { series: 'XA', ...move }),
        observed('2021-08-20', 'A', { series: 'EQ', ...move }),
        observed('2022-01-01', 'A', { series: 'XA' }),
        observed('2022-01-01', 'A', { series: 'BE' }),
      ),
    ).toEqual(Array(4).fill('NSE:A/XA'));
  });

  test('two changes that are not linked to each other are of two instruments', () => {
    expect(
      ids(
        observed('2010-07-25', 'A', { link: '1' }),
        observed('2010-07-26', 'B', { link: '1' }),
        observed('2010-07-25', 'C', { link: '2' }),
        observed('2010-07-26', 'D', { link: '2' }),
        observed('2010-07-26', 'E'),
      ),
    ).toEqual(['NSE:A', 'NSE:A', 'NSE:C', 'NSE:C', 'NSE:E']);
  });

  test('bonds of one symbol are an instrument each, also where their series is used again', () => {
    const identities = identify([
      observed('2025-01-01', 'IRFC', { isin: 'INE053F01010' }),
      observed('2015-01-01', 'IRFC', { series: 'N1', isin: 'INE053F07014' }),
      observed('2025-01-01', 'IRFC', { series: 'N1', isin: 'INE053F07022' }),
      observed('2020-01-01', 'IRFC', { series: 'N2' }),
    ]);
    expect(identities).toEqual([
      { instrumentId: 'NSE:INE053F01010', precedence: 0 },
      { instrumentId: 'NSE:INE053F07014', precedence: 1 },
      { instrumentId: 'NSE:INE053F07022', precedence: 1 },
      { instrumentId: 'NSE:IRFC/N2', precedence: 1 },
    ]);
  });

  test('T+0 and block deal lines belong to their share, with or without its ISIN', () => {
    expect(
      identify([
        observed('2025-01-02', 'IDEA', { isin: 'INE669E01016' }),
        observed('2025-01-01', 'IDEA', { isin: 'INE669E01016', series: 'T0' }),
        observed('2025-01-03', 'IDEA', { series: 'BL' }),
        observed('2025-01-03', 'LONE', { series: 'BL', isin: 'INE000A01010' }),
      ]),
    ).toEqual([
      { instrumentId: 'NSE:INE669E01016', precedence: 0 },
      { instrumentId: 'NSE:INE669E01016/T0', precedence: 2 },
      { instrumentId: 'NSE:INE669E01016/BL', precedence: 2 },
      { instrumentId: 'NSE:INE000A01010/BL', precedence: 2 },
    ]);
  });

  test('a record without ISIN belongs to the instrument that had the symbol that day', () => {
    const first = { isin: 'INE105I01012' };
    const second = { isin: 'INE0KRX01010' };
    expect(
      ids(
        observed('2015-06-01', 'SEL', first),
        observed('2025-06-02', 'SEL', second),
        observed('2010-01-04', 'SEL'),
        observed('2018-01-01', 'SEL', { series: 'BE' }),
        observed('2025-06-02', 'SEL', { series: '' }),
        observed('2018-01-01', 'OTHER'),
      ),
    ).toEqual([
      'NSE:INE105I01012',
      'NSE:INE0KRX01010',
      'NSE:INE105I01012',
      'NSE:INE105I01012',
      'NSE:INE0KRX01010',
      'NSE:OTHER',
    ]);
  });

  test.each(['', 'EQ', 'BE', 'BZ', 'SM', 'ST', 'SZ', 'IV', 'RR'])(
    'series "%s" is that of a share or fund',
    (series) => {
      const isin = 'INE000A01011';
      expect(
        identify([observed('2025-01-02', 'A', { isin, series }), observed('2025-01-01', 'A', { series })]),
      ).toEqual([
        { instrumentId: 'NSE:INE000A01011', precedence: 0 },
        { instrumentId: 'NSE:INE000A01011', precedence: 0 },
      ]);
    },
  );

  test.each(['T0', 'BL', 'IL'])(
    'series %s is a second line of its share, found by ISIN, else by symbol',
    (series) => {
      expect(
        identify([
          observed('2024-01-01', 'OLD', { isin: 'INE000A01011' }),
          observed('2025-01-01', 'OLD', { isin: 'INE000A01029' }),
          observed('2025-02-01', 'NEW', { isin: 'INE000A01029', series }),
          observed('2025-02-01', 'OLD', { series }),
        ]).slice(2),
      ).toEqual([
        { instrumentId: `NSE:INE000A01011/${series}`, precedence: 2 },
        { instrumentId: `NSE:INE000A01011/${series}`, precedence: 2 },
      ]);
    },
  );

  test('a second line does not decide whose a symbol is', () => {
    expect(
      ids(
        observed('2024-01-01', 'X', { series: 'BL', isin: 'INE111A01011' }),
        observed('2025-01-01', 'X', { isin: 'INE222B01010' }),
        observed('2024-06-01', 'X'),
      ),
    ).toEqual(['NSE:INE222B01010/BL', 'NSE:INE222B01010', 'NSE:INE222B01010']);
  });

  test('records without a symbol are distinguished by ISIN, and are of the first precedence', () => {
    expect(
      identify([
        observed('2025-01-01', '', { isin: 'INE000A01011' }),
        observed('2025-01-01', '', { isin: 'INE000A01029', series: 'N1' }),
      ]),
    ).toEqual([
      { instrumentId: 'NSE:INE000A01011', precedence: 0 },
      { instrumentId: 'NSE:INE000A01029', precedence: 0 },
    ]);
  });

  test('two owners of a symbol on one day stay two; a record of that day without ISIN goes to the later in order', () => {
    const first = observed('2025-01-01', 'A', { isin: 'INE000A01011' });
    const second = observed('2025-01-01', 'A', { isin: 'INE000B01010' });
    const without = observed('2025-01-01', 'A', { series: 'BE' });
    expect(ids(first, second, without)).toEqual(['NSE:INE000A01011', 'NSE:INE000B01010', 'NSE:INE000B01010']);
    expect(ids(second, first, without)).toEqual(['NSE:INE000B01010', 'NSE:INE000A01011', 'NSE:INE000B01010']);
  });

  test('the days of the owners count, whatever their order', () => {
    expect(
      ids(
        observed('2025-06-02', 'SEL', { isin: 'INE0KRX01010' }),
        observed('2015-06-01', 'SEL', { isin: 'INE105I01012' }),
        observed('2018-01-01', 'SEL'),
        observed('2010-01-01', 'SEL', { series: 'BE' }),
      ).slice(2),
    ).toEqual(['NSE:INE105I01012', 'NSE:INE105I01012']);
  });

  test('a listed series change joins series that nothing else joins', () => {
    const move = { link: 'x' };
    expect(
      ids(
        observed('2021-08-19', 'MRO-TEK', { series: 'XA', ...move }),
        observed('2021-08-20', 'MRO-TEK', { series: 'EQ', ...move }),
        observed('2021-08-01', 'MRO-TEK', { series: 'XA', isin: 'INE398B01018' }),
      ),
    ).toEqual(Array(3).fill('NSE:INE398B01018'));
  });
});

describe('on BSE', () => {
  const bse = (firstSeen: string, symbol: string, scripCode: number, changes: Partial<ObservedAlias> = {}) =>
    observed(firstSeen, symbol, { exchange: 'BSE', series: 'B', scripCode, ...changes });

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

  test('an ISIN with several scrip codes means the one seen first, then the smallest; never a second line', () => {
    const isin = 'INE000A01011';
    const idOf = (...coded: ObservedAlias[]) => ids(bse('2025-09-09', '', 0, { isin }), ...coded)[0];
    expect(idOf(bse('2025-02-01', 'B', 500002, { isin }), bse('2025-01-01', 'A', 500003, { isin }))).toBe(
      'BSE:500003',
    );
    expect(idOf(bse('2025-01-01', 'B', 500003, { isin }), bse('2025-01-01', 'A', 500002, { isin }))).toBe(
      'BSE:500002',
    );
    expect(idOf(bse('2024-01-01', 'A#', 100003, { isin }), bse('2025-01-01', 'A', 500003, { isin }))).toBe(
      'BSE:500003',
    );
    expect(idOf(bse('2024-01-01', '#A', 500001, { isin }), bse('2025-01-01', 'A', 500003, { isin }))).toBe(
      'BSE:500001',
    );
    expect(idOf(bse('2024-01-01', 'A', 0, { isin }), bse('2025-01-01', 'A', 500003, { isin }))).toBe(
      'BSE:500003',
    );
  });

  test('a record with neither code, ISIN nor symbol belongs to nobody else', () => {
    expect(ids(bse('2025-01-01', 'A', 500001), bse('2025-01-01', '', 0))).toEqual(['BSE:500001', 'BSE:']);
  });

  test('scrip codes are compared whole', () => {
    expect(ids(bse('2025-01-01', 'A', 12345671), bse('2025-01-02', 'A', 12345672))).toEqual([
      'BSE:12345671',
      'BSE:12345672',
    ]);
  });

  test('a second line has its own scrip code, also before its share was seen', () => {
    expect(
      ids(
        bse('2024-01-01', 'IDEA#', 132822),
        bse('2025-01-01', 'IDEA#', 0),
        bse('2025-01-01', 'IDEA', 532822),
      ),
    ).toEqual(['BSE:132822', 'BSE:132822', 'BSE:532822']);
  });
});

// Few days, so that many are the same or follow each other.
const day = fc.integer({ min: 10, max: 15 }).map((n) => `2025-01-${n}`);
const anyAlias = fc.record({
  exchange: fc.constant('NSE'),
  symbol: fc.constantFrom('', 'A', 'B', 'C'),
  series: fc.constantFrom('', 'EQ', 'BE', 'T0', 'N1'),
  isin: fc.constantFrom('', 'INE000A01011', 'INE000A01029', 'INE000B01010', 'INE000A07018'),
  scripCode: fc.constantFrom(0, 7),
  link: fc.constantFrom('', '', '', 'x', 'y', 'z'),
  firstSeen: day,
});

test('the order of aliases does not matter', () =>
  forAll(
    [
      fc.array(anyAlias, { minLength: 1, maxLength: 12 }).chain((list) =>
        fc.record({
          list: fc.constant(list),
          order: fc.shuffledSubarray([...list.keys()], { minLength: list.length }),
        }),
      ),
      fc.constantFrom('NSE', 'BSE'),
    ],
    ({ list, order }, exchange) => {
      const aliases = list.map((alias) => ({ ...alias, exchange }));
      const straight = identify(aliases);
      const mixed = identify(order.map((at) => aliases[at] as ObservedAlias));
      expect(mixed).toEqual(order.map((at) => straight[at]));
    },
  ));
