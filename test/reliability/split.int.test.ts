import { describe, expect, test } from 'vitest';
import { mostly } from '../support/pipeline.ts';
import { rangeLimit } from '../support/sandbox.ts';
import { calendar, expectWhole, HIGHLIGHTS, MONTH, span } from './split-support.ts';
import { accountsOf, coverageRows, openSetup, windowsOf } from './support.ts';

describe.each(mostly('postgres'))('a range that is refused with its limit (queue on %s)', (backend) => {
  test('is split to that many days, each time', async () => {
    const setup = await openSetup({
      backend,
      settings: { EOD_CONCURRENCY: '1' },
      behaviour: { faults: [rangeLimit('GetTotalTradeHighlights', 5)] },
    });
    const report = await setup.run({ ...HIGHLIGHTS, from: '2025-07-14' });
    const windows = await windowsOf(setup, report.runId);
    const wide = windows.filter(({ parent }) => parent === null);
    const pieces = windows.filter(({ parent }) => parent !== null);
    expect(report).toMatchObject({ state: 'completed', windows: { loaded: pieces.length } });
    expect(wide.map(({ state, requests }) => [state, requests])).toEqual([
      ['split', 1],
      ['split', 1],
    ]);
    expect(pieces.every((piece) => span(piece) <= 5 && piece.requests === 1)).toBe(true);
    for (const parent of wide) {
      expectWhole(
        pieces.filter((piece) => piece.parent === parent.id),
        parent,
      );
    }
    expect(setup.sandbox.stats().byDiagnostic).toEqual({ 'Date is out of allowed range of 5 days.': 2 });
    await accountsOf(setup, report);
  });
});

test('the first day too old for the source blocks all waiting windows of older days: they cost no call', async () => {
  const setup = await openSetup({ settings: { EOD_CONCURRENCY: '1' }, behaviour: { historyDays: 20 } });
  const report = await setup.run({ ...MONTH, operations: ['GetBhavCopyCM'], exchanges: ['BSE'] });
  const tradingDays = calendar.tradingDays('BSE', MONTH.from, MONTH.to);
  const reached = tradingDays.filter((day) => day >= '2025-08-23');
  expect(report).toMatchObject({
    state: 'failed',
    requests: reached.length + 1,
    windows: { loaded: reached.length, blocked: tradingDays.length - reached.length, failed: 0 },
  });
  const line = 'Date is out of allowed range.';
  const coverage = (await coverageRows(setup)).filter(({ state }) => state !== 'holiday');
  expect(coverage.map(({ day, state, diagnostic }) => [day, state, diagnostic])).toEqual(
    tradingDays.map((day) => (reached.includes(day) ? [day, 'loaded', null] : [day, 'blocked', line])),
  );
  await accountsOf(setup, report);
});
