import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Context } from '../../../src/jobs/context.ts';
import { planReplay } from '../../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../../src/jobs/replay/work-replay.ts';
import { buildFoldSettings } from '../../../src/jobs/responses/store-response.ts';
import { acceptWithdrawal } from '../../../src/load/accept-withdrawal.ts';
import { listWithheldWithdrawals } from '../../../src/state/withdrawals.ts';
import { randomFrom } from '../../support/chaos/random.ts';
import { cellsOf, fixture, importInto, openStore } from '../../support/import-support.ts';
import { fetched, rowsOf, type SourceRecord } from '../../support/replay-support.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { openPool } from '../support.ts';

const [HEADER = [], ...LINES] = cellsOf(fixture('bhavcopy/BhavCopy_NSE_CM_0_0_0_20250829_F_0000.csv')).slice(
  0,
  31,
);
const at = (name: string) => HEADER.indexOf(name);

const all = async (context: Context, query: string) => (await context.db.pool.query(query)).rows;
const SEEN = (table: string) =>
  `select md5(string_agg(t::text, '|' order by symbol)) as rows from ${table} t`;

test('states are shown again to the row while late responses, imports, replays and withdrawals come together', async () => {
  const context = await openStore();
  const beside = (): Context => ({ ...context, db: openPool(context.config.DATABASE_URL ?? '', 3) });
  const random = randomFrom(11);
  const pick = (below: number) => Math.floor(random() * below);
  // So that half of the responses count as later than the files, which are read now.
  const start = Math.floor((Date.now() - Date.UTC(2025, 7, 29, 16)) / 60_000) - 130;
  let minute = 0;
  /** Most rows of the day, with prices of their own. */
  const some = () => LINES.filter(() => pick(12) > 0).map((line) => ({ line, price: String(100 + pick(3)) }));
  const records = () =>
    some().map(
      ({ line, price }): SourceRecord => ({
        TradDt: '08-29-2025',
        Src: 'NSE',
        Symbol: line[at('TckrSymb')],
        SctySrs: line[at('SctySrs')],
        ClosePrice: Number(price),
        ...(pick(2) > 0 ? { SavedAt: `08-29-2025 21:0${pick(3)}:00` } : {}),
      }),
    );
  const response = async (context: Context) => {
    const whole = pick(3) > 0;
    const sent = records();
    minute += 1;
    // No two in the same minute. Every other response was fetched before others that are loaded already.
    const load = fetched(
      start + (pick(2) > 0 ? 10 * minute : 10 * (minute - 5) + 1),
      whole ? sent : sent.slice(0, 3),
    );
    await load(context, {
      instruments: whole ? [] : sent.slice(0, 3).map(({ Symbol: symbol }) => String(symbol)),
    });
  };
  const folder = temporaryFolder();
  const file = async (context: Context) => {
    const lines = some().map(({ line, price }) => line.with(at('ClsPric'), price));
    minute += 1;
    const path = join(folder, `${minute}.csv`);
    writeFileSync(path, [HEADER, ...lines].map((cells) => cells.join(',')).join('\n'));
    expect(await importInto(context, [path])).toMatchObject({ state: 'completed' });
  };
  const replayAll = async (context: Context) => {
    const runId = await planReplay(context, {});
    if (runId !== null) await workReplay(context, runId, new AbortController().signal);
  };
  const accept = async (context: Context) => {
    for (const { id } of await listWithheldWithdrawals(context.db.drizzle, 1, 1)) {
      await acceptWithdrawal(context.db, id, { by: 'me', ...buildFoldSettings(context) });
    }
  };
  const times = async (count: number, work: (context: Context) => Promise<void>) => {
    const context = beside();
    for (let done = 0; done < count; done += 1) await work(context);
  };

  let working = true;
  const samples: { readonly state: number; readonly rows: string }[] = [];
  const sample = async () => {
    const { db } = beside();
    while (working || samples.length < 500) {
      const result = await db.pool.query(
        `select market.state()::int as state, s.rows from (${SEEN('market.bhavcopy_cm')}) s`,
      );
      samples.push(result.rows[0]);
    }
  };
  const keepAccepting = async () => {
    const context = beside();
    while (working) await accept(context);
  };
  const sampling = Promise.all([sample(), keepAccepting()]);
  await Promise.all([times(10, response), times(10, response), times(4, file), times(2, replayAll)]);
  // Whether one was refused so far is chance: this one is, and it is the newest.
  await fetched(start + 10 * (minute + 1), records().slice(0, 2))(context, { instruments: [] });
  await accept(context);
  working = false;
  await sampling;

  const states = new Map<number, string>();
  for (const state of new Set(samples.map((sample) => sample.state))) {
    states.set(state, (await all(context, SEEN(`market_history.bhavcopy_cm_at(${state})`)))[0].rows);
  }
  const deviations = samples.filter(({ state, rows }) => states.get(state) !== rows);
  console.log(`${samples.length} samples of ${states.size} states, ${deviations.length} deviations`);
  expect(deviations).toEqual([]);
  expect(states.size).toBeGreaterThan(15);
  const late = await all(
    context,
    'select from etl.loads a join etl.loads b on b.state < a.state and b.position > a.position',
  );
  expect(late.length).toBeGreaterThan(5);
  const accepted = await all(context, "select from etl.withdrawals where state = 'accepted'");
  expect(accepted.length).toBeGreaterThan(0);

  // Whatever came in which order, once more nothing is written.
  const contents = async () => [await rowsOf(context, 'market'), await rowsOf(context, 'market_history')];
  const before = await contents();
  await replayAll(context);
  expect(await contents()).toEqual(before);
});
