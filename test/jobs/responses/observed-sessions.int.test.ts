import { expect, test } from 'vitest';
import { loadCalendar } from '../../../src/calendar/calendar.ts';
import { learnTradingDays } from '../../../src/jobs/responses/sync-sessions.ts';
import { gapRequest, readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { readStatus } from '../../../src/jobs/runs/read-status.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { testDatabase } from '../../support/database.ts';
import { backfill, openPipeline, runToEnd } from '../../support/pipeline.ts';
import { openSandbox } from '../../support/sandbox.ts';

test('a bhav copy of a closed day makes it a trading day, which other operations lack until the gap is filled', async () => {
  const saturday = '2025-09-06';
  const calendar = loadCalendar();
  calendar.learn([{ exchange: 'NSE', day: saturday }]);
  const sandbox = await openSandbox({ calendar, instrumentsPerExchange: 20 });
  const { url } = await testDatabase();
  const settings = { EOD_HISTORY_DAYS: '10000' };
  const pipeline = await openPipeline({ databaseUrl: url, sourceUrl: sandbox.url, settings });
  const other = await openPipeline({ databaseUrl: url, sourceUrl: sandbox.url, settings });
  const days = { exchanges: ['NSE'], from: saturday, to: saturday };
  const prices = { ...days, operations: ['GetBhavCopyCM'] };
  expect(await runToEnd(pipeline, backfill(prices))).toMatchObject({ requests: 0 });
  // A response about days on both sides of it says nothing of a closed day.
  const changes = {
    operations: ['GetSeriesChange'],
    exchanges: ['NSE'],
    from: '2025-09-01',
    to: '2025-09-09',
  };
  expect(await runToEnd(pipeline, backfill(changes))).toMatchObject({ requests: 1 });
  const operations = ['GetBhavCopyCM', 'GetCircuitBreakers', 'GetSeriesChange'].map(operationNamed);
  const gaps = () => readGaps(other, { operations, exchanges: ['NSE'], from: saturday, to: '2025-09-07' });
  expect(await gaps()).toMatchObject({ total: 0, observed: [] });

  // Requested by force, a closed day without data stays closed.
  const sunday = { ...prices, from: '2025-09-07', to: '2025-09-07', force: true };
  expect(await runToEnd(pipeline, backfill(sunday))).toMatchObject({ requests: 1, fetched: 0 });
  const report = await runToEnd(pipeline, backfill({ ...prices, force: true }));
  expect(report).toMatchObject({ state: 'completed', requests: 1 });
  expect(report.inserted).toBeGreaterThan(10);
  expect(pipeline.calendar.kindOf('NSE', saturday)).toBe('special');
  expect(pipeline.calendar.isTradingDay('BSE', saturday)).toBe(false);
  expect(pipeline.calendar.isTradingDay('NSE', '2025-09-07')).toBe(false);
  expect(other.calendar.isTradingDay('NSE', saturday)).toBe(false);
  await learnTradingDays(other);
  expect(other.calendar.isTradingDay('NSE', saturday)).toBe(true);

  const missing = await gaps();
  const lacking = { exchange: 'NSE', from: saturday, to: saturday, sessions: 1, reason: 'not_requested' };
  expect(missing.gaps).toMatchObject([
    { operation: 'GetCircuitBreakers', ...lacking },
    { operation: 'GetSeriesChange', ...lacking },
  ]);
  expect(missing.observed).toEqual([{ exchange: 'NSE', day: saturday }]);
  expect((await readStatus(other)).observedSessions).toEqual([{ exchange: 'NSE', day: saturday }]);
  const filled = await runToEnd(other, gapRequest(missing.gaps));
  expect(filled).toMatchObject({ kind: 'gap_fill', state: 'completed', requests: 2 });
  expect((await gaps()).total).toBe(0);
});
