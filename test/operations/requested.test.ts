import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/core/config.ts';
import { defaultOperations, fileSets, operations } from '../../src/operations/index.ts';
import { requestedOperations, scheduledPairs, settingWithout } from '../../src/operations/requested.ts';
import { forAll } from '../support/for-all.ts';

const namesRequested = (EOD_OPERATIONS?: string) =>
  requestedOperations(loadConfig(EOD_OPERATIONS === undefined ? {} : { EOD_OPERATIONS })).map(
    ({ name }) => name,
  );

const DEFAULTS = defaultOperations.map(({ name }) => name).sort();
const without = (...names: string[]) => DEFAULTS.filter((name) => !names.includes(name));

describe('EOD_OPERATIONS', () => {
  test.each<[string | undefined, readonly string[]]>([
    [undefined, DEFAULTS],
    ['default', DEFAULTS],
    ['default,GetBhavCopyFO', [...DEFAULTS, 'GetBhavCopyFO'].sort()],
    ['default,-GetSeriesChange', without('GetSeriesChange')],
    ['-GetSeriesChange,default', without('GetSeriesChange')],
    [' Default , getbhavcopyfo, - GetSeriesChange ', [...without('GetSeriesChange'), 'GetBhavCopyFO'].sort()],
    ['GetIndexDetail', ['GetIndexDetail']],
    // Twice, and by default too.
    ['GetBhavCopyCM,default,GetBhavCopyCM,bhavcopy_cm', DEFAULTS],
    // By table, which may be that of several.
    ['market.bhavcopy_fo', ['GetBhavCopyFO']],
    ['default,-financial_ratios', without('GetFinRatioEOD', 'GetFinRatioSnapshot', 'GetFinancialRatios')],
    ['default,GetBhavCopyFO,-GetBhavCopyFO', DEFAULTS],
  ])('%j', (text, names) => {
    expect(namesRequested(text)).toEqual(names);
  });

  test.each([
    [
      'GetBhavcopy',
      'EOD_OPERATIONS: unknown operation "GetBhavcopy"; did you mean GetBhavCopyCM?',
      'list_operations',
    ],
    ['defualt', 'EOD_OPERATIONS: unknown operation "defualt"; did you mean default?', 'list_operations'],
    [
      'default,-GetSerieChange',
      'unknown operation "GetSerieChange"; did you mean GetSeriesChange?',
      'list_operations',
    ],
    ['default,xyzzy', /^EOD_OPERATIONS: unknown operation "xyzzy"$/, 'list_operations'],
    ['default,GetBulkDeals', 'EOD_OPERATIONS: Bulk deals, bulk_deals is never requested', 'import_files'],
    ['default,-deliveries', 'EOD_OPERATIONS: Deliveries, deliveries is never requested', 'import_files'],
    ['CorporateEvents', 'is never requested, but computed from other data', undefined],
    [
      '-GetSeriesChange',
      'leaves out GetSeriesChange, which it does not name: write default,-GetSeriesChange',
      undefined,
    ],
    ['default,-GetBhavCopyFO', 'leaves out GetBhavCopyFO, which it does not name: remove it', undefined],
    ['GetBhavCopyFO,-default', /leaves out GetBhavCopyCM, .*, which it does not name: remove it/, undefined],
    ['default,-default', 'EOD_OPERATIONS leaves nothing to request: name an operation', undefined],
    [',', 'EOD_OPERATIONS leaves nothing to request: name an operation', undefined],
  ])('%j is refused', (text, message, remedy) => {
    const error = (() => {
      try {
        return namesRequested(text);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toMatchObject({
      kind: 'usage',
      message: expect.stringMatching(message instanceof RegExp ? message : ''),
    });
    if (typeof message === 'string') expect((error as Error).message).toContain(message);
    expect((error as { remedy?: unknown }).remedy).toBe(remedy);
  });

  test('of any names requests those that it names and does not leave out, in any order and case', () => {
    const names = operations.map(({ name }) => name);
    forAll(
      [fc.subarray(names), fc.subarray(DEFAULTS), fc.boolean(), fc.infiniteStream(fc.nat())],
      (chosen, leftOut, upper, order) => {
        const items = ['default', ...chosen, ...leftOut.map((name) => `-${name}`)]
          .map((item) => ({ item: upper ? item.toUpperCase() : item, at: order.next().value as number }))
          .sort((a, b) => a.at - b.at);
        const expected = names.filter(
          (name) => (DEFAULTS.includes(name) || chosen.includes(name)) && !leftOut.includes(name),
        );
        const text = items.map(({ item }) => item).join();
        if (expected.length === 0) expect(() => namesRequested(text)).toThrow('leaves nothing to request');
        else expect(namesRequested(text)).toEqual(expected);
      },
    );
  });
});

test('a setting that is to leave out an operation requests the others; if it was the only one, the others by default', () => {
  const names = operations.map(({ name }) => name);
  forAll(
    [fc.subarray(names, { minLength: 1 }), fc.subarray(DEFAULTS), fc.boolean(), fc.nat()],
    (chosen, leftOut, isDefault, at) => {
      const items = isDefault ? ['default', ...chosen, ...leftOut.map((name) => `-${name}`)] : chosen;
      const config = { EOD_OPERATIONS: items };
      const before = isDefault
        ? names.filter(
            (name) => (DEFAULTS.includes(name) || chosen.includes(name)) && !leftOut.includes(name),
          )
        : chosen;
      if (before.length === 0) return;
      const name = before[at % before.length] as string;
      const others = before.filter((other) => other !== name);
      const expected = others.length > 0 ? others : without(name);
      expect(namesRequested(settingWithout(config, name))).toEqual([...expected].sort());
    },
  );
  const advise = (setting: string, name: string) =>
    settingWithout(loadConfig({ EOD_OPERATIONS: setting }), name);
  expect(advise('default', 'GetSeriesChange')).toBe('default,-GetSeriesChange');
  expect(advise('default,-GetSeriesChange', 'GetBhavCopyCM')).toBe('default,-GetSeriesChange,-GetBhavCopyCM');
  expect(advise('GetBhavCopyCM,GetSeriesChange', 'GetBhavCopyCM')).toBe('GetSeriesChange');
  expect(advise('GetBhavCopyCM', 'GetBhavCopyCM')).toBe('default,-GetBhavCopyCM');
});

test('what is requested is requested for the exchanges of the settings', () => {
  const config = loadConfig({
    EOD_OPERATIONS: 'GetBhavCopyCM,GetBhavCopyFO,GetIndexDetail',
    EOD_EXCHANGES: 'BSE',
    EOD_OPERATION_EXCHANGES: 'bhavcopy_fo=NFO',
  });
  expect(scheduledPairs(config).map(({ operation, exchange }) => `${operation} ${exchange}`)).toEqual([
    'GetBhavCopyCM BSE',
    'GetBhavCopyFO NFO',
    'GetIndexDetail BSE_IDX',
  ]);
});

test('files fill what is never requested, and no operation is among them', () => {
  expect(fileSets.filter(({ name }) => operations.some((operation) => operation.name === name))).toEqual([]);
});
