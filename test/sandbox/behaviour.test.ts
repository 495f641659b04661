import { parse } from 'csv-parse/sync';
import { describe, expect, test } from 'vitest';
import { operations } from '../../src/operations/registry.ts';
import type { Behaviour } from '../../src/sandbox/index.ts';
import { responseFields } from '../../src/sandbox/response/record.ts';
import { ask, manualClock, midnight, NOW, plainRequest, range, records, sandbox, textOf } from './support.ts';

const DAY = '2025-09-12';
const SUNDAY = '2025-09-07';
const NOT_READY = 'Authentication request received. Try request data in next moment.';
const LIMITED = 'Calls per hour are limited.';
const one = { instrumentIdentifiers: 'TCS', ...range(DAY) };

async function sent(
  behaviour: Partial<Behaviour>,
  operation = 'GetBhavCopyCM',
  params: Record<string, string> = one,
) {
  return textOf(await sandbox({ behaviour }), operation, params);
}

describe('keys and envelopes', () => {
  test.each([
    ['pascal', '{"Value":[{"Symbol":"TCS","SctySrs":', '"ISIN":', '"OIChng":', '"TTQ":'],
    ['camel', '{"value":[{"symbol":"TCS","sctySrs":', '"isin":', '"oiChng":', '"ttq":'],
    ['upper', '{"VALUE":[{"SYMBOL":"TCS","SCTYSRS":', '"ISIN":', '"OICHNG":', '"TTQ":'],
    ['lower', '{"value":[{"symbol":"TCS","sctysrs":', '"isin":', '"oichng":', '"ttq":'],
    ['mixed', '{"vAlUe":[{"sYmBoL":"TCS","sCtYsRs":', '"iSiN":', '"oIcHnG":', '"tTq":'],
  ] as const)('%s', async (casing, start, ...keys) => {
    const body = await sent({ casing });
    expect(body.startsWith(start)).toBe(true);
    for (const key of keys) expect(body).toContain(key);
  });

  test('acronyms of the ratios', async () => {
    const body = await sent({}, 'GetFinRatioEOD', { instrumentIdentifier: 'TCS', date: midnight(DAY) });
    for (const key of ['EODClosePrice', 'EPS', 'EBIT', 'PeRatio', 'Week52High'])
      expect(body).toContain(`"${key}":`);
  });

  test.each([
    ['value', /^\{"Value":\[\{.*\}\]\}$/, '{"Value":[]}'],
    ['count', /^\{"Count":1,"Value":\[\{.*\}\]\}$/, '{"Count":0,"Value":[]}'],
    ['wrong-count', /^\{"Count":2,"Value":\[\{.*\}\]\}$/, '{"Count":1,"Value":[]}'],
    ['null-when-empty', /^\{"Value":\[\{.*\}\]\}$/, '{"Value":null}'],
    ['missing-when-empty', /^\{"Value":\[\{.*\}\]\}$/, '{}'],
    ['bare-list', /^\[\{.*\}\]$/, '[]'],
    ['bare-object', /^\{"Symbol".*\}$/, '{"Value":[]}'],
  ] as const)('%s', async (envelope, pattern, empty) => {
    expect(await sent({ envelope })).toMatch(pattern);
    expect(await sent({ envelope }, 'GetBhavCopyCM', range(SUNDAY))).toBe(empty);
  });

  test('ratios come bare unless an envelope is chosen', async () => {
    const requested = { instrumentIdentifier: 'TCS' };
    expect(await sent({}, 'GetFinRatioSnapshot', requested)).toMatch(/^\{"Year"/);
    expect(await sent({ envelope: 'value' }, 'GetFinRatioSnapshot', requested)).toMatch(
      /^\{"Value":\[\{"Year"/,
    );
  });
});

describe('formats', () => {
  test('dates as epoch seconds', async () => {
    const source = await sandbox();
    const [row] = await records(source, 'GetBhavCopyCM', { ...one, dTFormat: 'Epoch' });
    expect(row).toMatchObject({ TradDt: Number(midnight(DAY)), Expiry: null });
    expect(row?.ReceivedAt).toBeGreaterThan(Number(midnight(DAY)) + 21 * 3600);
  });

  test.each(['Csv', 'CsvContent'] as const)('%s says what Json says', async (format) => {
    const source = await sandbox();
    for (const operation of operations) {
      const params = plainRequest(operation, 'NSE', DAY);
      const json = await records(source, operation.name, params);
      const response = await ask(source, operation.name, { ...params, format });
      const text = await response.text();
      expect(response.headers.get('content-type')).toBe(
        format === 'Csv' ? 'text/plain; charset=utf-8' : 'text/csv; charset=utf-8',
      );
      const [header = [], ...rows] = parse(text, { relax_column_count: true }) as string[][];
      expect(rows).toHaveLength(json.length);
      for (const [at, row] of rows.entries()) {
        const record = json[at] ?? {};
        for (const [position, key] of header.slice(0, row.length).entries()) {
          const value = record[key];
          const expected =
            value === null || value === undefined
              ? ''
              : typeof value === 'boolean'
                ? value
                  ? 'True'
                  : 'False'
                : String(value).trim();
          expect(row[position]?.trim(), `${operation.name} ${key}`).toBe(expected);
        }
      }
    }
  });

  test('CSV quotes dates, pads text, and the highlights’ header names more than its rows hold', async () => {
    const source = await sandbox();
    const text = await textOf(source, 'GetTotalTradeHighlights', { ...range(DAY), format: 'Csv' });
    const [header = '', row = ''] = text.split('\r\n');
    expect(header.endsWith('ReceivedAt,SavedAt,ReceivedAt,SavedAt')).toBe(true);
    expect(row.split(',').length).toBe(header.split(',').length - 2);
    expect(row).toContain('"09-12-2025",Total       ,');
  });

  test('byte order mark, content type, compression', async () => {
    const marked = await ask(await sandbox({ behaviour: { bom: true } }), 'GetBhavCopyCM', one);
    expect(Buffer.from(await marked.arrayBuffer()).subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]));
    const type = async (
      contentType: Behaviour['contentType'],
      operation: string,
      params: Record<string, string>,
    ) =>
      (await ask(await sandbox({ behaviour: { contentType } }), operation, params)).headers
        .get('content-type')
        ?.split(';')[0];
    expect(await type('spec', 'GetBhavCopyCM', one)).toBe('text/plain');
    expect(await type('spec', 'GetCircuitBreakers', { date: midnight(DAY) })).toBe('application/json');
    expect(await type('spec', 'GetSeriesChange', range(DAY))).toBe('application/json');
    expect(await type('json', 'GetBhavCopyCM', one)).toBe('application/json');
    expect(await type('text', 'GetSeriesChange', range(DAY))).toBe('text/plain');
    const encoding = async (gzip: boolean) =>
      (await ask(await sandbox({ behaviour: { gzip } }), 'GetBhavCopyCM', range(DAY))).headers.get(
        'content-encoding',
      );
    expect([await encoding(true), await encoding(false)]).toEqual(['gzip', null]);
  });
});

test.each(
  operations
    .filter((operation) => operation.shapes.length > 1)
    .map((operation) => [operation.name, operation] as const),
)('the declared shape of %s', async (name, operation) => {
  const source = await sandbox({ instrumentsPerExchange: 500, behaviour: { shapes: 'declared' } });
  const requested = {
    ...plainRequest(operation, 'BSE', DAY),
    ...(operation.request.dates === 'range' ? range('2025-09-01', DAY) : {}),
  };
  const found = await records(source, name, requested);
  const shape = operation.shapes.at(-1) ?? operation.shapes[0];
  const names = responseFields(shape.table).map((field) => field.source.toLowerCase());
  const required = names.filter(
    (field) => shape.table.name === 'corporate_actions' || !['receivedat', 'savedat'].includes(field),
  );
  expect(found.length).toBeGreaterThan(0);
  for (const record of found) {
    expect(
      Object.keys(record)
        .map((key) => key.toLowerCase())
        .sort(),
    ).toEqual([...required].sort());
  }
});

describe('limits and rights', () => {
  test('the first calls of each request are given not ready', async () => {
    const source = await sandbox({ behaviour: { notReady: 2 } });
    const responses: string[] = [];
    for (let i = 0; i < 3; i++) responses.push(await textOf(source, 'GetSeriesChange', range(DAY)));
    expect(responses).toEqual([NOT_READY, NOT_READY, '{"Value":[]}']);
    expect(await textOf(source, 'GetSeriesChange', range(SUNDAY))).toBe(NOT_READY);
  });

  test('a quota lasts until the next clock hour in India', async () => {
    const clock = manualClock(Date.parse('2025-09-12T22:59:59+05:30'));
    const source = await sandbox({ clock, behaviour: { callsPerHour: 2 } });
    const responses: string[] = [];
    for (let i = 0; i < 4; i++) responses.push(await textOf(source, 'GetSeriesChange', range(DAY)));
    expect(responses).toEqual(['{"Value":[]}', '{"Value":[]}', LIMITED, LIMITED]);
    clock.moveTo(Date.parse('2025-09-12T23:00:00+05:30'));
    expect(await textOf(source, 'GetSeriesChange', range(DAY))).toBe('{"Value":[]}');
    expect(source.stats()).toMatchObject({
      byHour: { '2025-09-12T22': 4, '2025-09-12T23': 1 },
      byDiagnostic: { [LIMITED]: 2 },
    });
  });

  test('ranges', async () => {
    const source = await sandbox({
      behaviour: { maxRangeDays: { GetSeriesChange: 1, GetTotalTradeHighlights: 5 }, historyDays: 30 },
    });
    const requested = (operation: string, from: string, to: string) =>
      textOf(source, operation, range(from, to));
    expect(await requested('GetSeriesChange', '2025-09-11', DAY)).toBe(
      'Date is out of allowed range of 1 day.',
    );
    expect(await requested('GetTotalTradeHighlights', '2025-09-07', DAY)).toBe(
      'Date is out of allowed range of 5 days.',
    );
    expect(await requested('GetTotalTradeHighlights', '2025-09-08', DAY)).toMatch(/^\{"Value":\[\{/);
    expect(await requested('GetConsolidatedPledge', '2025-08-13', '2025-08-13')).toMatch(/^\{"Value":\[\{/);
    expect(await requested('GetConsolidatedPledge', '2025-08-12', '2025-08-13')).toBe(
      'Date is out of allowed range.',
    );
  });

  test('rights that the key does not have', async () => {
    const source = await sandbox({
      behaviour: {
        disabledOperations: ['GetSeriesChange'],
        disabledExchanges: ['NSE'],
        demoInstruments: ['TCS'],
      },
    });
    expect(await textOf(source, 'GetSeriesChange', range(DAY))).toBe('Function not enabled.');
    expect(await textOf(source, 'GetBhavCopyCM', { exchange: 'NSE', ...range(DAY) })).toBe(
      'Data for requested exchange is disabled.',
    );
    expect(await textOf(source, 'GetFinRatioSnapshot', { instrumentIdentifier: 'INFY' })).toBe(
      'Instrument is not allowed for Demo key.',
    );
    expect(await textOf(source, 'GetFinRatioSnapshot', { instrumentIdentifier: 'TCS' })).toMatch(/^\{"Year"/);
  });

  test('a key that dies', async () => {
    const source = await sandbox({ behaviour: { keyDiesAfter: 1 } });
    expect(await textOf(source, 'GetSeriesChange', range(DAY))).toBe('{"Value":[]}');
    expect(await textOf(source, 'GetSeriesChange', range(DAY))).toBe('Key Expired.');
  });

  test('a delay', async () => {
    const source = await sandbox({ clock: manualClock(NOW), behaviour: { delayMs: 120 } });
    const started = performance.now();
    await Promise.all([
      textOf(source, 'GetSeriesChange', range(DAY)),
      textOf(source, 'GetSeriesChange', range(DAY)),
    ]);
    expect(performance.now() - started).toBeGreaterThanOrEqual(115);
    expect(source.stats().maxConcurrent).toBe(2);
  });
});
