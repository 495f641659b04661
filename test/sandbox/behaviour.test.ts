import { describe, expect, test } from 'vitest';
import type { Behaviour } from '../../src/sandbox/index.ts';
import { notEnabled, rangeLimit } from '../support/sandbox.ts';
import { manualClock, midnight, NOW, range, sandbox, textOf } from './support.ts';

const DAY = '2025-09-12';
const SUNDAY = '2025-09-07';
const NOT_READY = 'Authentication request received. Try request data in next moment.';
const LIMITED = 'Calls per hour are limited.';
const tcs = { instrumentIdentifiers: 'TCS', ...range(DAY) };

async function sent(
  behaviour: Partial<Behaviour>,
  operation = 'GetBhavCopyCM',
  params: Record<string, string> = tcs,
) {
  return textOf(await sandbox({ behaviour }), operation, params);
}

describe('keys and envelopes', () => {
  test.each([
    ['pascal', '{"Value":[{"Symbol":"TCS","SctySrs":', '"ISIN":', '"OIChng":', '"TTQ":'],
    ['camel', '{"value":[{"symbol":"TCS","sctySrs":', '"isin":', '"oiChng":', '"ttq":'],
  ] as const)('%s', async (casing, start, ...keys) => {
    const body = await sent({ casing });
    expect(body.startsWith(start)).toBe(true);
    for (const key of keys) expect(body).toContain(key);
  });

  test('the ratios spell their acronyms as the service does', async () => {
    const body = await sent({}, 'GetFinRatioEOD', { instrumentIdentifier: 'TCS', date: midnight(DAY) });
    for (const key of ['EODClosePrice', 'EPS', 'EBIT', 'PeRatio', 'Week52High'])
      expect(body).toContain(`"${key}":`);
  });

  test('a list is under its key, empty too; ratios come bare', async () => {
    expect(await sent({})).toMatch(/^\{"Value":\[\{.*\}\]\}$/);
    expect(await sent({}, 'GetBhavCopyCM', range(SUNDAY))).toBe('{"Value":[]}');
    expect(await sent({}, 'GetFinRatioSnapshot', { instrumentIdentifier: 'TCS' })).toMatch(/^\{"Year"/);
  });
});

describe('limits and rights', () => {
  test('the first calls of each request are told that the data is not ready', async () => {
    const source = await sandbox({ behaviour: { notReady: 2 } });
    const texts: string[] = [];
    for (let i = 0; i < 3; i++) texts.push(await textOf(source, 'GetSeriesChange', range(DAY)));
    expect(texts).toEqual([NOT_READY, NOT_READY, '{"Value":[]}']);
    expect(await textOf(source, 'GetSeriesChange', range(SUNDAY))).toBe(NOT_READY);
  });

  test('a quota lasts until the next clock hour in India', async () => {
    const clock = manualClock(Date.parse('2025-09-12T22:59:59+05:30'));
    const source = await sandbox({ clock, behaviour: { callsPerHour: 2 } });
    const texts: string[] = [];
    for (let i = 0; i < 4; i++) texts.push(await textOf(source, 'GetSeriesChange', range(DAY)));
    expect(texts).toEqual(['{"Value":[]}', '{"Value":[]}', LIMITED, LIMITED]);
    clock.moveTo(Date.parse('2025-09-12T23:00:00+05:30'));
    expect(await textOf(source, 'GetSeriesChange', range(DAY))).toBe('{"Value":[]}');
    expect(source.stats()).toMatchObject({
      byHour: { '2025-09-12T22': 4, '2025-09-12T23': 1 },
      byDiagnostic: { [LIMITED]: 2 },
    });
  });

  test('ranges that are too long, or reach too far back, are refused', async () => {
    const source = await sandbox({
      behaviour: { faults: [rangeLimit('GetTotalTradeHighlights', 5)], historyDays: 30 },
    });
    const textFor = (operation: string, from: string, to: string) =>
      textOf(source, operation, range(from, to));
    expect(await textFor('GetTotalTradeHighlights', '2025-09-07', DAY)).toBe(
      'Date is out of allowed range of 5 days.',
    );
    expect(await textFor('GetTotalTradeHighlights', '2025-09-08', DAY)).toMatch(/^\{"Value":\[\{/);
    expect(await textFor('GetConsolidatedPledge', '2025-08-13', '2025-08-13')).toMatch(/^\{"Value":\[\{/);
    expect(await textFor('GetConsolidatedPledge', '2025-08-12', '2025-08-13')).toBe(
      'Date is out of allowed range.',
    );
  });

  test('faults can refuse an operation or an exchange, as if the key had no right to it', async () => {
    const disabled = 'Data for requested exchange is disabled.';
    const source = await sandbox({
      behaviour: {
        faults: [
          ...notEnabled('GetSeriesChange'),
          { kind: 'diagnostic', value: disabled, params: { exchange: 'NSE' } },
        ],
      },
    });
    expect(await textOf(source, 'GetSeriesChange', range(DAY))).toBe('Function not enabled.');
    const prices = (exchange: string) => textOf(source, 'GetBhavCopyCM', { exchange, ...range(DAY) });
    expect(await prices('NSE')).toBe(disabled);
    expect(await prices('BSE')).toMatch(/^\{"Value":\[\{/);
  });

  test('a key can expire after some calls', async () => {
    const source = await sandbox({ behaviour: { keyDiesAfter: 1 } });
    expect(await textOf(source, 'GetSeriesChange', range(DAY))).toBe('{"Value":[]}');
    expect(await textOf(source, 'GetSeriesChange', range(DAY))).toBe('Key Expired.');
  });

  test('every response can be delayed', async () => {
    const source = await sandbox({ clock: manualClock(NOW), behaviour: { delayMs: 120 } });
    const started = performance.now();
    await Promise.all([
      textOf(source, 'GetSeriesChange', range(DAY)),
      textOf(source, 'GetSeriesChange', range(DAY)),
    ]);
    expect(performance.now() - started).toBeGreaterThanOrEqual(115);
  });
});
