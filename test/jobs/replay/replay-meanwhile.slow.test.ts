import { expect } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import { planReplay } from '../../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../../src/jobs/replay/work-replay.ts';
import { readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { setsOf } from '../../support/for-all.ts';
import { openStore, test } from '../../support/import-support.ts';
import { fetched, records } from '../../support/replay-support.ts';
import { shuffled } from '../../support/shuffled.ts';

const DAYS = ['2025-08-18', '2025-08-19', '2025-08-20', '2025-08-21', '2025-08-22', '2025-08-25'];
const LOADERS = 4;

/** Three responses about each day: the first, a correction, and one that lists a row less and another more. */
function responses() {
  return DAYS.flatMap((day, nth) => {
    const [year, month, date] = day.split('-');
    const of = (from: number, to: number, ClosePrice: number, minute: number) => {
      const saved = `${month}-${date}-${year} 21:${String(minute).padStart(2, '0')}:00`;
      return records(from, to, { TradDt: `${month}-${date}-${year}`, ClosePrice, SavedAt: saved });
    };
    return [of(0, 40, 1, 1), of(0, 40, 2, 2), of(1, 41, 2, 2)].map((sent, at) => {
      const load = fetched(nth + at * DAYS.length, sent);
      return (context: Context) => load(context, { day });
    });
  });
}

async function contents(context: Context) {
  const rows = async (text: string) => (await context.db.pool.query({ text, rowMode: 'array' })).rows;
  return {
    rows: await rows(
      'select trade_date::text, symbol, close_price::text, source_saved_at::text from market.bhavcopy_cm order by 1, 2',
    ),
    coverage: await rows('select day::text, instrument, state, records::int from etl.coverage order by 1, 2'),
    gaps: await readGaps(context, {
      operations: [operationNamed('GetBhavCopyCM')],
      exchanges: ['NSE'],
      from: DAYS[0],
      to: DAYS.at(-1),
    }),
  };
}

test.each([false, true])(
  'a replay leaves what loads beside it leave, as if all were loaded in order; of emptied tables: %s',
  async (emptied) => {
    const ordered = await openStore();
    for (const load of responses()) await load(ordered);
    const expected = await contents(ordered);
    expect(expected.rows).toHaveLength(DAYS.length * 40);
    for (let seed = 1; seed <= setsOf(2); seed += 1) {
      const context = await openStore();
      const waiting = shuffled(responses(), seed);
      for (const load of waiting.splice(0, 6 + (seed % 5))) await load(context);
      if (emptied) {
        await context.db.pool.query('truncate market.bhavcopy_cm, market_history.bhavcopy_cm');
      }
      const loader = async () => {
        for (let load = waiting.pop(); load !== undefined; load = waiting.pop()) await load(context);
      };
      const replayAll = async () => {
        const runId = await planReplay(context, {});
        if (runId !== null) await workReplay(context, runId, new AbortController().signal);
      };
      await Promise.all([...Array.from({ length: LOADERS }, loader), replayAll()]);
      expect({ seed, ...(await contents(context)) }).toEqual({ seed, ...expected });
    }
  },
);
