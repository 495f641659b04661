import { expect, test } from 'vitest';
import { verificationText } from '../../src/cli/commands/state.ts';
import type { Context } from '../../src/jobs/context.ts';
import { planReplay } from '../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../src/jobs/replay/work-replay.ts';
import { digestUpTo, verify } from '../../src/load/market/digests.ts';
import { versionAt } from '../../src/load/state/loads/versions.ts';
import { openStore } from './import-support.ts';
import { ask, fetched, records, replay, type SourceRecord } from './replay-support.ts';

const NEVER = new AbortController().signal;

async function verified({ db }: Context, signal = NEVER) {
  const { version } = await versionAt(db.drizzle, null);
  return verify(db, version, signal);
}

/** An answer that fills two tables, which a rebuild folds in different parts: one has days, the other has none. */
async function loadPledges(context: Context, minute: number, more: SourceRecord = {}): Promise<void> {
  await ask(context, {
    operation: 'GetConsolidatedPledge',
    exchange: 'BSE',
    from: '2025-08-29',
    sent: [
      {
        ScripCode: 1,
        ScripId: 'ONE',
        TradeDate: '08-29-2025',
        CompanyName: 'One',
        TotalIssuedShares: 7,
        ...more,
      },
      { ScripCode: 1, ActionId: 'A1', CompanyName: 'One', ...more },
      { ScripCode: 2, ActionId: 'A2', CompanyName: 'Two' },
    ],
    calledAt: Date.UTC(2025, 8, 30, 16, minute),
    microseconds: 1,
  });
}

/** A database in which a rebuild had to write only the part of the table that has days. */
async function rebuiltInPart(): Promise<Context> {
  const context = await openStore();
  await loadPledges(context, 1);
  await loadPledges(context, 2, { CompanyName: 'Uno' });
  await digestUpTo(context.db, (await versionAt(context.db.drizzle, null)).version);
  await context.db.pool.query('update market.consolidated_pledge set total_issued_shares = 8');
  expect(await verified(context)).toMatchObject({ isIntact: false });
  await replay(context, {}, { rebuild: true });
  expect(await verified(context)).toMatchObject({ isIntact: true, differences: [], strayRows: [] });
  return context;
}

test.each([
  [
    'a cell of a table that it left as it was',
    "update market.corporate_actions set company_name = 'forged' where action_id = 'A2'",
  ],
  ['a row deleted there', "delete from market.corporate_actions where action_id = 'A2'"],
  ['a cell of a table that it wrote', 'update market.consolidated_pledge set total_issued_shares = 8'],
  ['its history', "delete from market_history.corporate_actions where action_id = 'A1'"],
])('after a rebuild that wrote some of its parts, verify finds %s', async (_, forge) => {
  const context = await rebuiltInPart();
  expect((await context.db.pool.query(forge)).rowCount).toBe(1);
  const { isIntact, differences } = await verified(context);
  expect({ isIntact, problems: [...new Set(differences.map(({ problem }) => problem))] }).toEqual({
    isIntact: false,
    problems: ['its rows are not those that it wrote'],
  });
});

test('a rebuild where nothing differs makes no new state', async () => {
  const context = await rebuiltInPart();
  const { version } = await versionAt(context.db.drizzle, null);
  await replay(context, {}, { rebuild: true });
  expect(await versionAt(context.db.drizzle, null)).toMatchObject({ version });
});

test('rows beside a rebuild that has not ended are not said to be as loaded', async () => {
  const context = await openStore();
  await loadPledges(context, 1);
  await digestUpTo(context.db, (await versionAt(context.db.drizzle, null)).version);
  await context.db.pool.query('update market.consolidated_pledge set total_issued_shares = 8');
  const runId = (await planReplay(context, {}, { rebuild: true })) ?? 0;
  const held = await context.db.pool.query(
    `update etl.windows set state = 'failed' where run_id = $1 and params ->> 'tables' not like '%consolidated_pledge%'`,
    [runId],
  );
  expect(held.rowCount).toBeGreaterThan(0);
  await workReplay(context, runId, NEVER);
  const { isIntact, differences } = await verified(context);
  expect({ isIntact, problems: differences.map(({ problem }) => problem) }).toEqual({
    isIntact: false,
    problems: [
      'a rebuild that did not end well has replaced some of its rows, so the others cannot be checked',
    ],
  });
});

test('an interrupted verification does not say that rows differ, unless it has found some', async () => {
  const context = await openStore();
  await fetched(1, records(0, 3))(context);
  const interrupted = await verified(context, AbortSignal.abort());
  expect(interrupted).toMatchObject({ isIntact: null, digest: null, differences: [] });
  const text = verificationText(interrupted, null);
  expect(text).toContain(
    '0 loads checked up to state 1: interrupted before the end, and nothing found that differs',
  );
  expect(text).not.toMatch(/not all|another than/);
  expect(verificationText({ ...interrupted, isIntact: false }, null)).toContain(
    'not all rows are as they were loaded',
  );
});
