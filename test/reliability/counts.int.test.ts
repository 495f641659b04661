import { describe, expect, test } from 'vitest';
import { readCompleteness } from '../../src/state/coverage/completeness.ts';
import { startServer } from '../support/http-server.ts';
import { coverageRows, openSetup, windowsOf } from './support.ts';

/**
 * A count that is larger than the number of records: the response may have been cut, or the count means something else.
 */

const DAY = '2025-09-10';
const REQUESTED = { from: DAY, to: DAY, operations: ['GetTotalTradeHighlights'], exchanges: ['BSE'] };

const record = (label: string) => ({
  TradeHighlights: label,
  ScripsNo: 4471,
  TradesNo: 2802025,
  SharesVol: 43.87,
  TurnoverRsCr: 4179,
  Date: '09-10-2025',
  ReceivedAt: '09-10-2025 21:02:02',
  SavedAt: '09-10-2025 21:02:02',
});

/** Loads the day from a source that gives these responses in turn, the last one for ever. */
async function load(bodies: readonly object[], settings: Readonly<Record<string, string>> = {}) {
  let calls = 0;
  const sourceUrl = await startServer((_request, response) => {
    response.end(JSON.stringify(bodies[Math.min(calls, bodies.length - 1)]));
    calls += 1;
  });
  const setup = await openSetup({ sourceUrl, settings });
  const report = await setup.run(REQUESTED);
  const [window] = await windowsOf(setup, report.runId);
  const [coverage] = await coverageRows(setup);
  const [missing] = await readCompleteness(setup, {
    expected: [{ operation: 'GetTotalTradeHighlights', exchange: 'BSE' }],
    others: false,
    from: DAY,
    to: DAY,
  });
  const { rows: stored } = await setup.db.pool.query<{ label: string }>(
    'select trade_highlight as label from market.total_trade_highlights order by 1',
  );
  const suspicious = await setup.db.pool.query<{ suspicious: string | null }>(
    'select suspicious from etl.windows where suspicious is not null',
  );
  return {
    setup,
    report,
    window,
    coverage,
    missing,
    stored: stored.map(({ label }) => label),
    suspicious: suspicious.rows.map((row) => row.suspicious),
    calls: () => calls,
  };
}

describe('a response that states more records than it has', () => {
  test('is refused once; if the same comes again, its rows are loaded, and the day is not complete', async () => {
    const loaded = await load([{ count: 9, Value: [record('Total'), record('A')] }]);
    const text = 'count_mismatch: count says 9, the response holds 2 records';
    expect(loaded.calls()).toBe(2);
    expect(loaded.window).toMatchObject({ state: 'loaded', fetched: 2 });
    expect(loaded.stored).toEqual(['A', 'Total']);
    expect(loaded.coverage).toMatchObject({ state: 'failed', records: 2 });
    expect(loaded.coverage?.diagnostic).toContain(text);
    expect(loaded.missing).toMatchObject({ reason: 'count_mismatch' });
    expect(loaded.missing?.detail).toContain(text);
    expect(loaded.suspicious).toEqual([expect.stringContaining('EOD_COUNT=ignore')]);
  });

  test('is refused as long as others come: it was cut', async () => {
    const cut = (records: number) => ({
      count: 9,
      Value: Array.from({ length: records }, (_, at) => record(`R${at}`)),
    });
    const loaded = await load([cut(1), cut(2), cut(3), cut(4), cut(5), cut(6), cut(7), cut(8)], {
      EOD_ATTEMPTS: '3',
    });
    expect(loaded.calls()).toBe(3);
    expect(loaded.window).toMatchObject({ state: 'failed' });
    expect(loaded.window?.error).toContain('count says 9, the response holds 3 records');
    expect(loaded.stored).toEqual([]);
  });

  test('a whole response after a cut one is complete', async () => {
    const whole = [record('Total'), record('A')];
    const loaded = await load([
      { count: 2, Value: whole.slice(0, 1) },
      { count: 2, Value: whole },
    ]);
    expect(loaded).toMatchObject({ stored: ['A', 'Total'], suspicious: [], missing: { reason: null } });
  });

  test('withdraws nothing', async () => {
    const whole = { Value: [record('Total'), record('A'), record('B')] };
    const part = { count: 3, Value: [record('Total'), record('A')] };
    const { setup, calls } = await load([whole, part]);
    await setup.run({ ...REQUESTED, force: true });
    expect(calls()).toBe(3);
    const { rows } = await setup.db.pool.query('select 1 from market.total_trade_highlights');
    expect(rows).toHaveLength(3);
  });

  test('an empty list with a count is no empty day, however often it comes', async () => {
    const loaded = await load([{ Count: 7, Value: [] }]);
    expect(loaded.window).toMatchObject({ state: 'failed' });
    expect(loaded.window?.error).toContain('count says 7, the response holds 0 records');
    expect(loaded.missing).toMatchObject({ reason: 'count_mismatch' });
  });

  test('with EOD_COUNT=ignore, the count means nothing', async () => {
    const loaded = await load([{ count: 9, Value: [record('Total')] }], { EOD_COUNT: 'ignore' });
    expect(loaded.calls()).toBe(1);
    expect(loaded).toMatchObject({ stored: ['Total'], suspicious: [], missing: { reason: null } });
    expect(loaded.coverage).toMatchObject({ state: 'loaded' });
  });
});
