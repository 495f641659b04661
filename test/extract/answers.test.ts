import { describe, expect, test } from 'vitest';
import type { Extracted } from '../../src/extract/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { readAs } from './support.ts';

const NAME = 'GetTotalTradeHighlights';
const RECORD = (operationNamed(NAME).sample.answer as { Value: [Record<string, unknown>] }).Value[0];
const ROW = readAs(NAME, [RECORD]).batches[0]?.rows[0];

const rows = (read: Extracted) => read.batches.flatMap((batch) => batch.rows);
const thrown = (body: Buffer | string | object, name = NAME) => {
  try {
    return readAs(name, body);
  } catch (error) {
    return error;
  }
};

describe('envelopes', () => {
  test.each<[string, Buffer | string | object]>([
    ['value', { value: [RECORD], count: 1 }],
    ['Value', { Value: [RECORD] }],
    ['VALUE', { COUNT: 1, VALUE: [RECORD] }],
    ['with extra keys', { '@odata.context': 'x', status: 'ok', value: [RECORD] }],
    ['a single object as value', { Value: RECORD }],
    ['a bare object', RECORD],
    ['a bare list', [RECORD]],
    ['a byte order mark', `\ufeff${JSON.stringify({ Value: [RECORD] })}`],
    ['UTF-16, little end first', Buffer.from(`\ufeff${JSON.stringify({ Value: [RECORD] })}`, 'utf16le')],
    [
      'UTF-16, big end first',
      Buffer.from(`\ufeff${JSON.stringify({ Value: [RECORD] })}`, 'utf16le').swap16(),
    ],
    ['JSON inside a JSON string', JSON.stringify(JSON.stringify({ Value: [RECORD] }))],
    ['white space around', ` \r\n ${JSON.stringify([RECORD], null, 2)}\n\n`],
    [
      'keys in camelCase',
      [Object.fromEntries(Object.entries(RECORD).map(([k, v]) => [k[0]?.toLowerCase() + k.slice(1), v]))],
    ],
    [
      'keys in upper case',
      [Object.fromEntries(Object.entries(RECORD).map(([k, v]) => [k.toUpperCase(), v]))],
    ],
  ])('%s', (_, body) => {
    const read = readAs(NAME, body);
    expect(rows(read)).toEqual([ROW]);
    expect(read).toMatchObject({ fetched: 1, rejects: [], warnings: [], unknownFields: [] });
  });

  test.each<[string, string | object]>([
    ['{}', {}],
    ['null', 'null'],
    ['[]', []],
    ['value null', { Value: null, Count: 0 }],
    ['value empty', { value: [] }],
    ['value an empty text', { value: '' }],
    ['only a count', { count: 0 }],
  ])('no records: %s', (_, body) => {
    expect(readAs(NAME, body)).toEqual({
      batches: [],
      rejects: [],
      fetched: 0,
      warnings: [],
      unknownFields: [],
    });
  });

  test('a wrong count is a warning', () => {
    for (const count of [2, '7', -1, 'many', {}, []]) {
      const read = readAs(NAME, { value: [RECORD], count });
      expect(read.fetched).toBe(1);
      expect(read.warnings).toHaveLength(1);
    }
    expect(readAs(NAME, '{"count": 12345678901234567890}').warnings).toEqual([
      'count says 12345678901234567890, the answer holds 0 records',
    ]);
    expect(readAs(NAME, { count: 2, value: [RECORD] })).toMatchObject({ fetched: 1, lacksRecords: true });
    for (const count of [0, 1, null, 'many']) {
      expect(readAs(NAME, { count, value: [RECORD] }).lacksRecords).toBeUndefined();
    }
    expect(readAs(NAME, { count: 5 }).warnings).toEqual(['count says 5, the answer holds 0 records']);
  });

  test('a fact, whose own field is called value, is a record', () => {
    const fact = { Label: 'EPS', Value: '12.50', Key: 'eps', Decimals: 2, UnitId: 'INR', Description: null };
    for (const body of [fact, [fact], { value: [fact] }, { Value: fact }]) {
      expect(rows(readAs('GetFinRatioEOD', body))).toMatchObject([
        { fact_key: 'eps', label: 'EPS', value: '12.50', value_number: '12.50', decimals: 2, symbol: 'TCS' },
      ]);
    }
    const [row] = rows(readAs('GetFinRatioEOD', { label: 'EPS', value: null }));
    expect(row).toMatchObject({ fact_key: 'EPS', value: null, value_number: null });
  });
});

describe('what is no data', () => {
  test.each<[string, Buffer | string | object, string]>([
    ['nothing', '', 'unreadable'],
    ['white space', ' \r\n ', 'unreadable'],
    ['HTML', '<!doctype html><p>Calls per hour are limited.', 'unreadable'],
    ['half a JSON', '{"Value":[{"Date":"02-27', 'unreadable'],
    ['invalid UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'unreadable'],
    ['half a UTF-16 character', Buffer.from([0xff, 0xfe, 0x00, 0xd8]), 'unreadable'],
    ['unknown text', 'Something broke.', 'unknown_diagnostic'],
    ['an unknown text as JSON', '"Something broke."', 'unknown_diagnostic'],
    ['an empty JSON string', '""', 'unreadable'],
    ['a bare number', '42', 'unknown_diagnostic'],
    ['a number beyond a double as value', '{"value": 12345678901234567890}', 'unknown_diagnostic'],
    ['a number as value', { value: 42 }, 'unknown_diagnostic'],
    ['an unknown error object', { Message: 'An error has occurred.' }, 'unknown_diagnostic'],
  ])('%s: worth another try', (_, body, kind) => {
    expect(thrown(body)).toMatchObject({ kind, retryable: true });
  });

  test.each<[string, string | object]>([
    ['as text', 'Key Expired.'],
    ['as a JSON string', '"Key Expired."'],
    ['as value', { value: 'Key Expired.' }],
    ['as a message', { message: 'Key Expired.' }],
    ['beside an empty value', { value: null, Error: 'Key Expired.' }],
    ['beside an empty list', { value: [], title: 'Key Expired.', status: 'x' }],
  ])('a diagnostic %s', (_, body) => {
    expect(thrown(body)).toMatchObject({ kind: 'credential', retryable: false, diagnostic: 'Key Expired.' });
  });

  test('the first 500 characters of an unknown text are kept', () => {
    expect(thrown('z'.repeat(5_000))).toMatchObject({ diagnostic: 'z'.repeat(500) });
  });

  test('absurd nesting neither crashes nor passes', () => {
    const levels = 1_000_000;
    const list = '['.repeat(levels) + ']'.repeat(levels);
    expect(readAs(NAME, list)).toMatchObject({ fetched: 1, rejects: [{ position: 0 }] });
    const envelopes = `${'{"value":'.repeat(levels)}1${'}'.repeat(levels)}`;
    expect(readAs(NAME, envelopes)).toMatchObject({ fetched: 1, rejects: [{ position: 0 }] });
    const record = JSON.stringify(RECORD).replace('"Total"', list);
    const read = readAs(NAME, `[${record},${JSON.stringify(RECORD)}]`);
    expect(read.rejects[0]?.problems).toEqual([{ path: 'TradeHighlights', message: 'is a list, not text' }]);
    expect(rows(read)).toEqual([ROW]);
  });
});

describe('records', () => {
  test('every problem is told with the path as sent; good neighbours load', () => {
    const bad = { ...RECORD, Date: '02-30-2025', ScripsNo: 1.5, SharesVol: 'lots', SavedAt: {}, Extra: 1 };
    const read = readAs(NAME, [RECORD, bad, RECORD]);
    expect(rows(read)).toEqual([ROW, ROW]);
    expect(read).toMatchObject({ fetched: 3, unknownFields: ['Extra'] });
    expect(read.rejects).toEqual([
      {
        position: 1,
        record: bad,
        problems: [
          { path: 'Date', message: '"02-30-2025" is not a date that exists' },
          { path: 'ScripsNo', message: '1.5 is not a whole number' },
          { path: 'SharesVol', message: '"lots" is not a number' },
          { path: 'SavedAt', message: 'is an object, not a date' },
        ],
      },
    ]);
  });

  test('required, absent and key parts', () => {
    const { Date: date, TradeHighlights: label, ...rest } = RECORD;
    expect(rows(readAs(NAME, [{ ...rest, Date: date, tradeHighlights: ' ' }]))).toMatchObject([
      { trade_highlight: '' },
    ]);
    for (const missing of [{}, { Date: null }, { date: '01-01-0001' }, { DATE: '' }]) {
      const { rejects } = readAs(NAME, [{ ...rest, ...missing, TradeHighlights: label }]);
      expect(rejects[0]?.problems).toEqual([
        { path: expect.stringMatching(/^date$/i), message: 'is missing' },
      ]);
    }
  });

  test('numbers that would lose digits are rejected, not rounded; as text they keep every digit', () => {
    const json = (value: string) => `[${JSON.stringify(RECORD).replace('43.87', value)}]`;
    expect(rows(readAs(NAME, json('26.858792846497767')))).toMatchObject([
      { shares_volume: 26.858792846497767 },
    ]);
    expect(rows(readAs(NAME, json('"26.85879284649776712345"')))).toMatchObject([
      { shares_volume: '26.85879284649776712345' },
    ]);
    for (const token of ['26.85879284649776712345', '1e400', '9007199254740993']) {
      expect(readAs(NAME, json(token)).rejects).toMatchObject([
        {
          record: { SharesVol: token },
          problems: [
            { path: 'SharesVol', message: `${token} has more digits than can be read without loss` },
          ],
        },
      ]);
    }
  });

  test('a text too long for an index is refused where it is part of the key, and only there', () => {
    const name = 'GetCircuitBreakers';
    const [good] = (operationNamed(name).sample.answer as { Value: [object] }).Value;
    const long = 'ए'.repeat(201);
    const read = readAs(name, [
      { ...good, ScripId: long },
      { ...good, ScripName: long, Series: long.slice(1) },
    ]);
    expect(read.rejects).toMatchObject([
      {
        position: 0,
        problems: [{ path: 'ScripId', message: expect.stringContaining('too long for a key') }],
      },
    ]);
    expect(rows(read)).toMatchObject([{ scrip_name: long, series: long.slice(1) }]);
  });

  test('what is no record, and what fits no shape', () => {
    const read = readAs(NAME, [1, null, 'text', [RECORD], {}, { Foo: 1 }]);
    expect(read.fetched).toBe(6);
    expect(read.rejects.map(({ problems }) => problems[0]?.message)).toEqual([
      ...Array(4).fill('is not a record'),
      ...Array(2).fill(`fits no known shape of ${NAME}`),
    ]);
  });

  test('keys that differ in case only: the first counts, with a warning', () => {
    const read = readAs(
      NAME,
      `[{"ScripsNo": 1, "SCRIPSNO": 2, ${JSON.stringify(RECORD).slice(1).replace('"ScripsNo":4471,', '')}]`,
    );
    expect(rows(read)).toMatchObject([{ scrip_count: 1 }]);
    expect(read.warnings).toEqual(['SCRIPSNO repeats a field of the record; the first counts']);
  });

  test('__proto__ and its kind are names like any other', () => {
    const read = readAs(
      NAME,
      `[{"__proto__": {"Date": "x"}, "constructor": 1, ${JSON.stringify(RECORD).slice(1)}]`,
    );
    expect(rows(read)).toEqual([ROW]);
    expect(read.unknownFields).toEqual(['__proto__', 'constructor']);
    const refused = readAs(NAME, '{"value":[{"__proto__": {"polluted": 1}}]}').rejects[0]?.record as object;
    expect(Object.getPrototypeOf(refused)).toBe(Object.prototype);
    expect(Object.keys(refused)).toEqual(['__proto__']);
    expect({}).not.toHaveProperty('polluted');
  });

  test('the sample shape and the declared shape go to their own tables', () => {
    const action = { ScripCode: 500325, ActionId: 7, Symbol: 'RELIANCE', PurposeCode: 'BN ', ModifyDate: '' };
    const category = { CorporateActiontype: 'Bonus issue', PurposeCode: 'BN ' };
    const read = readAs('GetCorporateActionsCategories', [category, action, category]);
    expect(read.batches.map(({ table, rows }) => [table.name, rows.length])).toEqual([
      ['corporate_action_categories', 2],
      ['corporate_actions', 1],
    ]);
    expect(read.batches[1]?.rows[0]).toMatchObject({ scrip_code: 500325, action_id: '7', modify_date: null });
  });

  test('a record that names no instrument is refused', () => {
    const action = { ActionId: 7, ScripCode: 0, Symbol: ' ' };
    expect(readAs('GetConsolidatedPledge', [action]).rejects[0]?.problems).toEqual([
      { path: '', message: 'names no instrument' },
    ]);
    const ratios = operationNamed('GetFinRatioEOD').sample.answer as object;
    expect(readAs('GetFinRatioEOD', ratios, { instruments: [] }).rejects[0]?.problems[0]?.message).toBe(
      'names no instrument',
    );
  });

  test('ranks count refused records too', () => {
    const list = (operationNamed('GetTop5GainersLosers').sample.answer as { Value: [object, object] }).Value;
    const read = readAs('GetTop5GainersLosers', [{ ...list[0], Quantity: 'x' }, list[0], list[1]]);
    expect(rows(read)).toMatchObject([
      { rank: 2, is_loser: false },
      { rank: 1, is_loser: true },
    ]);
  });

  test('dates as Unix seconds, nulls as the year 1', () => {
    const epoch = { ...RECORD, Date: 1740594600, ReceivedAt: '1740670322', SavedAt: -62135596800 };
    expect(rows(readAs(NAME, [epoch]))).toEqual([{ ...ROW, source_saved_at: null }]);
  });
});
