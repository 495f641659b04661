import { expect, test } from 'vitest';
import { verificationText } from '../../src/cli/commands/state.ts';
import type { Context } from '../../src/jobs/context.ts';
import { planReplay } from '../../src/jobs/replay/plan-replay.ts';
import { workReplay } from '../../src/jobs/replay/work-replay.ts';
import { digestUpTo, verify } from '../../src/load/market/digests.ts';
import { versionAt } from '../../src/load/state/loads/versions.ts';
import { operationNamed } from '../../src/operations/registry.ts';
import { openStore } from './import-support.ts';
import { ask, DAY, fetched, records, replay, type SourceRecord } from './replay-support.ts';

const ratios = operationNamed('GetFinRatioEOD').sample.response as SourceRecord;

const NEVER = new AbortController().signal;

async function verified({ db }: Context, signal = NEVER) {
  const { version } = await versionAt(db.drizzle, null);
  return verify(db, version, signal);
}

/** A response that fills two tables, which a rebuild folds in different parts: one has days, the other has none. */
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

test('up to a state from before a rebuild, verify finds what the rebuild covers', async () => {
  const context = await rebuiltInPart();
  await context.db.pool.query("delete from market.corporate_actions where action_id = 'A2'");
  const { isIntact, state, checkedTo, digest } = await verify(context.db, 1, NEVER);
  expect({ isIntact, state, digest }).toEqual({
    isIntact: false,
    state: 1,
    digest: await digestUpTo(context.db, 1),
  });
  expect(checkedTo).toBe((await versionAt(context.db.drizzle, null)).version);
});

test('the part of a rebuild with some companies covers none of the others', async () => {
  const context = await openStore();
  for (const [at, company] of ['TCS', 'INFY'].entries()) {
    await ask(context, {
      operation: 'GetFinRatioEOD',
      from: DAY,
      instruments: [company],
      variant: 'eod/Standalone',
      params: { natureOfReport: 'Standalone' },
      sent: [{ ...ratios, Symbol: company }],
      calledAt: Date.UTC(2025, 7, 30, 16),
      microseconds: at,
    });
  }
  await digestUpTo(context.db, (await versionAt(context.db.drizzle, null)).version);
  const forge = (symbol: string) =>
    context.db.pool.query('update market.financial_ratios set eps = 1 where symbol = $1', [symbol]);
  for (const symbol of ['TCS', 'INFY']) expect((await forge(symbol)).rowCount).toBe(1);
  // As if there were so many companies that they are two parts, of which the second failed.
  const runId = (await planReplay(context, {}, { rebuild: true })) ?? 0;
  const ofRatios = "run_id = $1 and params ->> 'tables' like '%financial_ratios%'";
  await context.db.pool.query(
    `insert into etl.windows (run_id, operation, exchange, from_date, to_date, instruments, params, variant, state)
     select run_id, operation, exchange, from_date, to_date, '{TCS}', params, variant, 'failed' from etl.windows where ${ofRatios}`,
    [runId],
  );
  await context.db.pool.query(
    `update etl.windows set instruments = '{INFY}' where ${ofRatios} and state = 'pending'`,
    [runId],
  );
  await workReplay(context, runId, NEVER);
  const { differences } = await verified(context);
  expect(differences.map(({ state }) => state)).toContain(1);
});

test('a replay of some days of an emptied table covers no others', async () => {
  const context = await openStore();
  await fetched(1, records(0, 3))(context);
  await fetched(1, records(0, 3, { TradDt: '08-28-2025' }))(context, { day: '2025-08-28' });
  await digestUpTo(context.db, (await versionAt(context.db.drizzle, null)).version);
  await context.db.pool.query('truncate market.bhavcopy_cm, market_history.bhavcopy_cm');
  await replay(context, { from: DAY, to: DAY });
  const { differences } = await verified(context);
  expect(differences.map(({ from }) => from)).toEqual(['2025-08-28']);
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
