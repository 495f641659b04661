import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import { strayDoubt } from '../../src/extract/doubts.ts';
import { checkResponse } from '../../src/extract/envelope.ts';
import type { Extracted } from '../../src/extract/index.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { forAll } from '../support/for-all.ts';
import { readAs } from './support.ts';

const NAME = 'GetTotalTradeHighlights';
const RECORD = (operationNamed(NAME).sample.response as { Value: [Record<string, unknown>] }).Value[0];

/** The row of a good response. */
const row = () => rows(readAs(NAME, [RECORD]))[0];

const rows = (read: Extracted) => read.batches.flatMap((batch) => [...batch.rows]);
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
    ['much white space before', ' '.repeat(2_000) + JSON.stringify([RECORD])],
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
    expect(rows(read)).toEqual([row()]);
    expect(read).toMatchObject({ fetched: 1, rejects: [], warnings: [], unknownFields: [] });
  });

  test.each<[string, string | object]>([
    ['{}', {}],
    ['null', 'null'],
    ['null with white space around', ' null \n'],
    ['[]', []],
    ['value null', { Value: null, Count: 0 }],
    ['value empty', { value: [] }],
    ['value an empty text', { value: '' }],
    ['only a count', { count: 0 }],
    ['only annotations', { '@odata.context': 'x', '@odata.count': 0 }],
    ['value null beside a status', { status: 'ok', value: null }],
  ])('no records: %s', (_, body) => {
    expect(readAs(NAME, body)).toEqual({
      batches: [],
      rejects: [],
      fetched: 0,
      warnings: [],
      doubts: [],
      listsAll: true,
      unknownFields: [],
    });
  });

  test('a count of fewer records, or one that is no number, is a warning', () => {
    const counts = { 0: 0, '00': '00', '-1': -1, many: 'many', object: {} };
    for (const [name, count] of Object.entries(counts)) {
      const read = readAs(NAME, { value: [RECORD], count });
      expect(read.fetched).toBe(1);
      expect(read.warnings).toEqual([`count says ${name}, the response holds 1 records`]);
    }
    expect(readAs(NAME, { value: [RECORD], count: [] }).warnings).toHaveLength(1);
    for (const count of [1, '1', null]) {
      expect(readAs(NAME, { value: [RECORD], count, '@odata.count': count }).warnings).toEqual([]);
    }
    expect(readAs(NAME, { value: [], count: 'n'.repeat(50) }).warnings).toEqual([
      `count says ${'n'.repeat(40)}, the response holds 0 records`,
    ]);
    // The envelopes around the records are one inside the other, and so are their warnings.
    const nested = readAs(NAME, { count: 0, value: { '@odata.count': 0, value: [RECORD] } });
    expect(nested.warnings).toEqual([
      '@odata.count says 0, the response holds 1 records',
      'count says 0, the response holds 1 records',
    ]);
    expect(readAs(NAME, { Foo: 1 }).warnings).toEqual([]);
  });

  test.each([
    ['an empty list', { Value: [], Count: 20 }, 'count says 20, the response holds 0 records'],
    ['no list at all', { count: 5 }, 'count says 5, the response holds 0 records'],
    ['a count as text', { value: [RECORD], count: '7' }, 'count says 7, the response holds 1 records'],
    ['the count of OData', { '@odata.count': 2, value: [RECORD] }, '@odata.count says 2'],
    ['an inner count', { count: 1, value: { count: 2, value: [RECORD] } }, 'count says 2'],
    ['an outer count', { count: 2, value: { count: 1, value: [RECORD] } }, 'count says 2'],
    ['an immense count', '{"count": 12345678901234567890}', 'count says 12345678901234567890'],
    ['the count of OData 3', { 'odata.count': '2', value: [RECORD] }, 'odata.count says 2'],
    ['a total', { TotalCount: 20, Value: [RECORD] }, 'totalcount says 20'],
    ['only a total', { TotalCount: 20 }, 'totalcount says 20'],
    [
      'a link of OData 3',
      { 'odata.metadata': 'x', 'odata.nextLink': 'https://source.invalid/2', value: [RECORD] },
      'odata.nextLink',
    ],
    ['a link of OData 2', { d: { results: [RECORD], __next: 'https://source.invalid/2' } }, '__next'],
    ['a link beside the list', { value: [RECORD], __next: 'https://source.invalid/2' }, '__next'],
    ['a link to more', { '@odata.nextLink': 'https://source.invalid/2', value: [RECORD] }, 'not followed'],
  ])('a response that says that it lacks records is none: %s', (_, body, sentence) => {
    expect(() => readAs(NAME, body)).toThrow(
      expect.objectContaining({
        kind: 'unreadable',
        cutShort: true,
        message: expect.stringMatching(new RegExp(`^the response is incomplete: .*${sentence}`)),
      }),
    );
  });

  test('a field of a record that is called as a count or a link is none', () => {
    const record = { ...RECORD, Count: 20, TotalCount: 20, 'odata.nextLink': 'x', __next: 'x' };
    for (const body of [record, [record], { value: [record] }]) {
      expect(readAs(NAME, body)).toMatchObject({
        fetched: 1,
        rejects: [],
        warnings: [expect.stringContaining('no column reads: Count, TotalCount, __next')],
      });
    }
  });

  test('a reject says its day and its instrument, as far as they can be read', () => {
    const good = { Symbol: 'TCS', SctySrs: 'EQ', TradDt: '08-29-2025', ClosePrice: 'unknown' };
    const { rejects } = readAs('GetBhavCopyCM', [
      good,
      { ...good, TradDt: '29 Aug' },
      { ...good, Symbol: '' },
    ]);
    expect(rejects.map(({ day, instrument }) => [day, instrument])).toEqual([
      ['2025-08-29', 'TCS'],
      [undefined, 'TCS'],
      ['2025-08-29', undefined],
    ]);
  });

  test('of CSV it is known whether the last line has an end', () => {
    const csv = 'Symbol,TradDt\r\nTCS,08-29-2025';
    expect(readAs('GetBhavCopyCM', csv).lastLine).toBe('open');
    expect(readAs('GetBhavCopyCM', `${csv}\r\n`).lastLine).toBe('ended');
    expect(readAs(NAME, { value: [RECORD] }).lastLine).toBeUndefined();
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

describe('responses that are no data', () => {
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
    ['a number beyond a double in a list of wrappings', '"\\"12345678901234567890\\""', 'unknown_diagnostic'],
  ])('%s: may be retried', (_, body, kind) => {
    expect(thrown(body)).toMatchObject({ kind });
  });

  test.each<[string, Buffer | string | object, object]>([
    ['nothing', '', { message: 'the response cannot be read: it is empty', cutShort: false }],
    ['white space', ' '.repeat(2_000), { message: 'the response cannot be read: it is empty' }],
    ['HTML', ' <p>', { message: 'the response cannot be read: it is an HTML page, not data' }],
    [
      'half a JSON',
      '[{"a":1},',
      {
        message: 'the response cannot be read: broken JSON, 9 characters: it ends too early',
        cutShort: true,
      },
    ],
    [
      'JSON with an error in it',
      '{"Value":[\n {"a": ""b""}]}',
      {
        message:
          'the response cannot be read: broken JSON, 26 characters: the error is at line 2, character 10',
      },
    ],
    ['text', 'Oops', { diagnostic: 'Oops' }],
    ['a text that only ends like JSON', 'x [1] "', { diagnostic: 'x [1] "' }],
    ['JSON text', '"Oops"', { diagnostic: 'Oops' }],
    ['a number', '{"value": 42}', { diagnostic: '42' }],
    ['a long number', '{"value": 12345678901234567890}', { diagnostic: '12345678901234567890' }],
    ['two messages', { Error: 'A', Detail: 'B' }, { diagnostic: 'A · B' }],
  ])('what is kept of %s', (_, body, error) => {
    expect(thrown(body)).toMatchObject(error);
  });

  test.each(['message', 'error', 'errorMessage', 'exceptionMessage', 'detail', 'Title', 'STATUS'])(
    'an object with %s is an error, unless it is an envelope of records',
    (key) => {
      expect(thrown({ [key]: 'Oops' })).toMatchObject({ kind: 'unknown_diagnostic', diagnostic: 'Oops' });
      expect(thrown({ [key]: 'Key Expired.', x: 1 })).toMatchObject({ kind: 'credential' });
      expect(thrown({ [key]: 'Key Expired.', value: '' })).toMatchObject({ kind: 'credential' });
      expect(readAs(NAME, { [key]: 'Key Expired.', value: [RECORD] })).toMatchObject({ fetched: 1 });
      expect(readAs(NAME, { [key]: 'Key Expired.', value: RECORD })).toMatchObject({ fetched: 1 });
      expect(readAs(NAME, { [key]: 42 })).toMatchObject({ fetched: 1, rejects: [{ position: 0 }] });
      expect(readAs(NAME, { [key]: 'Oops', value: [] })).toMatchObject({ fetched: 0 });
    },
  );

  test('envelopes are opened three deep', () => {
    const wrap = (levels: number): object => (levels === 0 ? [RECORD] : { value: wrap(levels - 1) });
    expect(rows(readAs(NAME, wrap(3)))).toEqual([row()]);
    expect(readAs(NAME, wrap(4))).toMatchObject({ fetched: 1, rejects: [{ position: 0 }] });
    const quote = (levels: number): string =>
      levels === 0 ? JSON.stringify([RECORD]) : JSON.stringify(quote(levels - 1));
    expect(rows(readAs(NAME, quote(3)))).toEqual([row()]);
    expect(thrown(quote(4))).toMatchObject({ kind: 'unknown_diagnostic' });
  });

  test.each<[string, string | object]>([
    ['as text', 'Key Expired.'],
    ['as a JSON string', '"Key Expired."'],
    ['as value', { value: 'Key Expired.' }],
    ['as a message', { message: 'Key Expired.' }],
    ['beside an empty value', { value: null, Error: 'Key Expired.' }],
    ['beside an empty list', { value: [], title: 'Key Expired.', status: 'x' }],
  ])('a diagnostic %s', (_, body) => {
    expect(thrown(body)).toMatchObject({ kind: 'credential', diagnostic: 'Key Expired.' });
  });

  test('the first 500 characters of an unknown text are kept', () => {
    expect(thrown('z'.repeat(5_000))).toMatchObject({ diagnostic: 'z'.repeat(500) });
  });

  test('a million levels of nesting are read without a crash, as a reject', () => {
    const levels = 1_000_000;
    const list = '['.repeat(levels) + ']'.repeat(levels);
    expect(readAs(NAME, list)).toMatchObject({ fetched: 1, rejects: [{ position: 0 }] });
    const envelopes = `${'{"value":'.repeat(levels)}1${'}'.repeat(levels)}`;
    expect(readAs(NAME, envelopes)).toMatchObject({ fetched: 1, rejects: [{ position: 0 }] });
    const record = JSON.stringify(RECORD).replace('"Total"', list);
    const read = readAs(NAME, `[${record},${JSON.stringify(RECORD)}]`);
    expect(read.rejects[0]?.problems).toEqual([{ path: 'TradeHighlights', message: 'is a list, not text' }]);
    expect(rows(read)).toEqual([row()]);
  });
});

describe('a first look at a response', () => {
  const context = { operation: operationNamed(NAME), redact: (text: string) => text };
  const look = (text: string) => () => checkResponse(Buffer.from(text), context);
  const fill = (start: string, length: number) => start.padEnd(length, 'x');

  test('opens up to 64 KB: half a JSON and text are noticed', () => {
    expect(look(fill('{"Value":[', 65_536))).toThrowError(/broken JSON/);
    expect(look(fill('Oops', 65_536))).toThrowError(/text that is not data/);
    expect(look(JSON.stringify([RECORD]))).not.toThrow();
  });

  test('of more, only a page is noticed', () => {
    for (const start of ['<p>', '  \n<html>']) expect(look(fill(start, 65_537))).toThrowError(/HTML page/);
    for (const start of ['{"Value":[', 'Oops <p>', `${' '.repeat(1_000)}<p>`]) {
      expect(look(fill(start, 65_537))).not.toThrow();
    }
  });
});

describe('records', () => {
  test('every problem names the field as it was sent; the other records load', () => {
    const bad = { ...RECORD, Date: '02-30-2025', ScripsNo: 1.5, SharesVol: 'lots', SavedAt: {}, Extra: 1 };
    const read = readAs(NAME, [RECORD, bad, RECORD]);
    expect(rows(read)).toEqual([row(), row()]);
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
      { shares_volume_crore: 26.858792846497767 },
    ]);
    expect(rows(readAs(NAME, json('"26.85879284649776712345"')))).toMatchObject([
      { shares_volume_crore: '26.85879284649776712345' },
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

  test('a text too long for an index is rejected where it is part of the key, and only there', () => {
    const name = 'GetCircuitBreakers';
    const [good] = (operationNamed(name).sample.response as { Value: [object] }).Value;
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

  test('values that are no record, and records that fit no shape', () => {
    const read = readAs(NAME, [1, null, 'text', [RECORD], {}, { Foo: 1 }]);
    expect(read.fetched).toBe(6);
    expect(read.rejects.map(({ problems }) => problems[0]?.message)).toEqual([
      ...Array(3).fill('is not a record'),
      expect.stringMatching(/^is not a record but a list/),
      ...Array(2).fill(`fits no known shape of ${NAME}`),
    ]);
  });

  test('keys that differ in case only: the first counts, with a warning', () => {
    const read = readAs(
      NAME,
      `[{"ScripsNo": 1, "SCRIPSNO": 2, ${JSON.stringify(RECORD).slice(1).replace('"ScripsNo":4471,', '')}]`,
    );
    expect(rows(read)).toMatchObject([{ scrip_count: 1 }]);
    expect(read.warnings).toEqual(['SCRIPSNO repeats a field of the record; the first is used']);
  });

  test('__proto__ and constructor are names like any other', () => {
    const read = readAs(
      NAME,
      `[{"__proto__": {"Date": "x"}, "constructor": 1, ${JSON.stringify(RECORD).slice(1)}]`,
    );
    expect(rows(read)).toEqual([row()]);
    expect(read.unknownFields).toEqual(['__proto__', 'constructor']);
    const rejected = readAs(NAME, '{"value":[{"__proto__": {"polluted": 1}}]}').rejects[0]?.record as object;
    expect(Object.getPrototypeOf(rejected)).toBe(Object.prototype);
    expect(Object.keys(rejected)).toEqual(['__proto__']);
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
    expect(rows(read)[2]).toMatchObject({ scrip_code: 500325, action_id: '7', modify_date: null });
  });

  test('a record that names no instrument is rejected', () => {
    const action = { ActionId: 7, ScripCode: 0, Symbol: ' ' };
    expect(readAs('GetConsolidatedPledge', [action]).rejects[0]?.problems).toEqual([
      { path: '', message: 'names no instrument' },
    ]);
    const ratios = operationNamed('GetFinRatioEOD').sample.response as object;
    expect(readAs('GetFinRatioEOD', ratios, { instruments: [] }).rejects[0]?.problems[0]?.message).toBe(
      'names no instrument',
    );
  });

  test('ranks count rejected records too', () => {
    const list = (operationNamed('GetTop5GainersLosers').sample.response as { Value: [object, object] })
      .Value;
    const read = readAs('GetTop5GainersLosers', [{ ...list[0], Quantity: 'x' }, list[0], list[1]]);
    expect(rows(read)).toMatchObject([
      { rank: 2, is_loser: false },
      { rank: 1, is_loser: true },
    ]);
  });

  test('ranks are those of a day, however the response writes it', () => {
    const [gainer] = (operationNamed('GetTop5GainersLosers').sample.response as { Value: [object] }).Value;
    const written: [unknown, unknown][] = [
      [1740421800, false],
      ['1740421800000', 'False'],
      ['02-25-2025', 0],
      ['02-25-2025 00:00:00', 'false'],
    ];
    const records = written.map(([day, isLoser], at) => ({
      ...gainer,
      ScripCode: at + 1,
      Date: day,
      IsLoser: isLoser,
    }));
    expect(rows(readAs('GetTop5GainersLosers', records))).toMatchObject(
      written.map((_, at) => ({ scrip_code: at + 1, rank: at + 1, trade_date: '2025-02-25' })),
    );
  });

  test('dates as Unix seconds, nulls as the year 1', () => {
    const epoch = { ...RECORD, Date: 1740594600, ReceivedAt: '1740670322', SavedAt: -62135596800 };
    expect(rows(readAs(NAME, [epoch]))).toEqual([{ ...row(), source_saved_at: null }]);
  });
});

describe('a response that has none of the days requested', () => {
  const requested = { from: '2025-09-01', to: '2025-09-05' };
  const response = (days: readonly string[]) => ({
    Value: days.map((day) => ({
      TradeHighlights: 'Total',
      ScripsNo: 1,
      Date: `${day.slice(5)}-${day.slice(0, 4)}`,
    })),
  });
  const read = (days: readonly string[]) => readAs('GetTotalTradeHighlights', response(days), requested);
  const day = fc.integer({ min: 0, max: 30 }).map((after) => addDays('2025-08-20', after));

  test('names the day if all of its records are of one', () =>
    forAll([fc.array(day, { maxLength: 4 })], (days) => {
      const isOther = (day: string | undefined) =>
        day !== undefined && (day < requested.from || day > requested.to);
      const singleDay = new Set(days).size === 1 && isOther(days[0]) ? days[0] : undefined;
      const { doubts, rejects } = read(days);
      const strays = days.filter(isOther).length;
      expect(doubts).toEqual(strays === 0 ? [] : [strayDoubt(strays, singleDay ?? null)]);
      expect(rejects.map(({ problems: [problem] }) => problem?.message)).toEqual(
        days.filter(isOther).map((other) => `is ${other}, a day that was not requested`),
      );
    }));
});
