import { eq, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import type { Preparing } from '../../../src/postgres/prepared.ts';
import { type Transaction, transaction } from '../../../src/postgres/transaction.ts';
import { RUN_STATES, type RunState, WINDOW_STATES, type WindowState } from '../../../src/state/request.ts';
import {
  abandonRun,
  acceptKeyInRun,
  cancelRun,
  finishRun,
  pauseRun,
  RUN_TRANSITIONS,
  reopenRun,
  reserveRunId,
  insertRun as startRun,
  stopRuns,
} from '../../../src/state/runs/runs.ts';
import { runs, windows } from '../../../src/state/schema/work.ts';
import type { CallLimit } from '../../../src/state/source/call-budget.ts';
import { noteSourceFailed, noteSourceResponded } from '../../../src/state/source/source-state.ts';
import { claimWindow, unclaimWindow } from '../../../src/state/windows/claim.ts';
import {
  insertFileWindows,
  insertWindows,
  type PlannedWindow,
  reserveWindowIds,
} from '../../../src/state/windows/plan.ts';
import { moveWindows, WINDOW_TRANSITIONS } from '../../../src/state/windows/transitions.ts';
import {
  cancelWindows,
  endingWindow,
  endWindows,
  releaseWindow,
  reopenWindows,
  skipWindow,
  splitWindow,
  startWindow,
} from '../../../src/state/windows/windows.ts';
import { testDatabase } from '../../support/database.ts';
import { waitFor } from '../../support/wait-for.ts';

let database: Database;
let db: NodePgDatabase & Preparing;
beforeAll(async () => {
  database = openDatabase({ url: (await testDatabase()).url });
  db = database.drizzle;
});
afterAll(() => database.close());

const DAY = '2025-09-08';
const FAILURE = { error: 'what went wrong' };

const PERMIT: CallLimit = {
  keyHash: 'key',
  now: Date.parse('2025-09-08T12:00:00Z'),
  hour: Date.parse('2025-09-08T11:30:00Z'),
  downCalledBefore: Date.parse('2025-09-08T11:59:30Z'),
  openingFailures: 5,
  limit: 1_000_000,
  backfillLimit: 1_000_000,
  leftoverLimit: 1_000_000,
};

const COUNTS = {
  fetched: 0,
  inserted: 0,
  updated: 0,
  unchanged: 0,
  stale: 0,
  duplicate: 0,
  rejected: 0,
  withdrawn: 0,
};

async function insertRun(state: RunState): Promise<number> {
  const rows = await db
    .insert(runs)
    .values({
      kind: 'backfill',
      state,
      requested_by: 'test',
      request: {},
      from_date: DAY,
      to_date: DAY,
      is_key_accepted: true,
    })
    .returning({ id: runs.id });
  return rows[0]?.id ?? 0;
}

/** Each window makes a request of its own: of two with the same request only one may be running. */
let requestCount = 0;

async function insertWindow(runId: number, state: WindowState, lostWorkers = 0): Promise<number> {
  const rows = await db
    .insert(windows)
    .values({
      run_id: runId,
      operation: 'GetBhavCopyCM',
      exchange: 'NSE',
      from_date: DAY,
      to_date: DAY,
      instruments: [`I${++requestCount}`],
      state,
      attempts: 3,
      requests: 2,
      lost_workers: lostWorkers,
      error: 'as before',
    })
    .returning({ id: windows.id });
  return rows[0]?.id ?? 0;
}

async function rowOf(table: 'runs' | 'windows', id: number): Promise<Record<string, unknown>> {
  const result = await database.pool.query<{ row: Record<string, unknown> }>(
    `select to_jsonb(t) as row from etl.${table} t where id = $1`,
    [id],
  );
  return result.rows[0]?.row ?? {};
}

/** The states a table may hold, as its constraint says. */
async function statesOf(constraint: string): Promise<string[]> {
  const result = await db.execute<{ definition: string }>(
    sql`select pg_get_constraintdef(oid) as definition from pg_constraint where conname = ${constraint}`,
  );
  return [...(result.rows[0]?.definition ?? '').matchAll(/'(\w+)'::text/g)].map(
    (match) => match[1] as string,
  );
}

const stored = { error: null, counts: COUNTS, bytes: 1, warnings: [], suspicious: null, unsettled: null };

const store = (state: 'loaded' | 'empty' | 'failed') => (windowId: number) =>
  endingWindow(db, windowId, { ...stored, state });

type Statement = (windowId: number, runId: number) => Promise<unknown>;

/** Every statement that changes the state of a window, by the transition it makes and the state it ends in. */
const WINDOW_STATEMENTS: Readonly<
  Record<
    Exclude<keyof typeof WINDOW_TRANSITIONS, 'plan' | 'import'>,
    readonly (readonly [WindowState, string, Statement])[]
  >
> = {
  claim: [
    ['running', 'claimWindow', (id) => claimWindow(db, id, PERMIT)],
    ['running', 'startWindow', (id) => startWindow(db, id)],
  ],
  release: [
    ['pending', 'releaseWindow', (id) => releaseWindow(db, id, FAILURE, { act: 'retry' })],
    ['pending', 'unclaimWindow', (id) => unclaimWindow(db, { id, attempts: 3 }, PERMIT)],
  ],
  store: [
    ['loaded', 'endingWindow', store('loaded')],
    ['empty', 'endingWindow', store('empty')],
    ['failed', 'endingWindow', store('failed')],
  ],
  end: [
    ['failed', 'endWindows', (id, runId) => endWindows(db, { runId, windowId: id }, 'failed', FAILURE)],
    ['blocked', 'endWindows', (_id, runId) => endWindows(db, { runId }, 'blocked', FAILURE)],
    ['failed', 'endWindows', (id) => endWindows(db, { windowId: id }, 'failed', FAILURE)],
    ['skipped', 'endWindows', (id) => endWindows(db, { windowId: id }, 'skipped', FAILURE)],
  ],
  skip: [['skipped', 'skipWindow', (id) => skipWindow(db, id, 'why')]],
  split: [['split', 'splitWindow', (id) => splitWindow(db, id, [{ from: DAY, to: DAY }])]],
  cancel: [['cancelled', 'cancelWindows', (_id, runId) => cancelWindows(db, runId, 'why')]],
  reopen: [['pending', 'reopenWindows', (_id, runId) => reopenWindows(db, runId, true)]],
};

/** Every statement that writes new windows, by the transition it makes and the state they begin in. */
const NEW_WINDOWS: readonly (readonly [
  'plan' | 'import',
  WindowState,
  string,
  (runId: number) => Promise<unknown>,
])[] = [
  ['plan', 'pending', 'insertWindows', (id) => insertWindows(db, id, [planned('pending')])],
  ['plan', 'skipped', 'insertWindows', (id) => insertWindows(db, id, [planned('skipped')])],
  [
    'plan',
    'pending',
    'splitWindow',
    async (id) => {
      await splitWindow(db, await insertWindow(id, 'running'), [{ from: DAY, to: DAY }]);
      await db.execute(sql`delete from etl.windows where run_id = ${id} and parent_id is null`);
    },
  ],
  [
    'import',
    'running',
    'insertFileWindows',
    async (id) =>
      insertFileWindows(db, id, {
        ids: await reserveWindowIds(db, 1),
        file: 'a.csv',
        hash: null,
        parts: [{ operation: 'GetBhavCopyCM', exchange: 'NSE', from: DAY, to: DAY, params: {} }],
      }),
  ],
];

const planned = (state: PlannedWindow['state']): PlannedWindow => ({
  operation: 'GetBhavCopyCM',
  exchange: 'NSE',
  from: DAY,
  to: DAY,
  instruments: [],
  params: {},
  variant: '',
  filtered: false,
  state,
  reason: null,
});

const windowCases = (Object.keys(WINDOW_STATEMENTS) as (keyof typeof WINDOW_STATEMENTS)[]).flatMap(
  (transition) =>
    WINDOW_STATEMENTS[transition].flatMap(([to, name, statement]) =>
      WINDOW_STATES.map((from) => ({ transition, name, from, to, statement })),
    ),
);

test('a statement with a state that its transition does not list does not compile', () => {
  const chosen = sql`false`;
  const statements = [
    // @ts-expect-error `release` leads to `pending` alone.
    () => moveWindows(db, 'release', { state: 'loaded' }, chosen),
    // @ts-expect-error `end` leads to `failed` or `blocked`.
    () => moveWindows(db, 'end', { state: 'pending', error: 'why' }, chosen),
    // @ts-expect-error SQL could be any state.
    () => moveWindows(db, 'skip', { state: sql`'loaded'` }, chosen),
    // @ts-expect-error a transition says where it leads.
    () => moveWindows(db, 'skip', { error: 'why' }, chosen),
    // @ts-expect-error a response is not stored as `skipped`.
    () => endingWindow(db, 0, { ...stored, state: 'skipped' }),
  ];
  expect(statements).toHaveLength(5);
});

describe('a window', () => {
  test('knows the states that its table may hold', async () => {
    expect((await statesOf('windows_state')).sort()).toEqual([...WINDOW_STATES].sort());
  });

  test.each(windowCases)(
    '$name: from $from to $to, where that is a transition',
    async ({ transition, from, to, statement }) => {
      const { from: begins, to: ends } = WINDOW_TRANSITIONS[transition];
      expect(ends).toContain(to);
      const runId = await insertRun('running');
      const windowId = await insertWindow(runId, from);
      await db.execute(sql`delete from etl.source_state`);
      const before = await rowOf('windows', windowId);
      await statement(windowId, runId);
      const after = await rowOf('windows', windowId);
      if ((begins as readonly string[]).includes(from)) expect(after.state).toBe(to);
      else expect(after).toEqual(before);
      // Nothing is written for a window that was not split.
      const children = await db.$count(windows, sql`parent_id = ${windowId}`);
      expect(children).toBe(after.state === 'split' && from !== 'split' ? 1 : 0);
    },
  );

  test.each(NEW_WINDOWS)('begins by the transition %s as %s: %s', async (transition, state, _name, write) => {
    const { from, to } = WINDOW_TRANSITIONS[transition];
    expect(from).toEqual([]);
    expect(to).toContain(state);
    const runId = await insertRun('running');
    await write(runId);
    const written = await db.select({ state: windows.state }).from(windows).where(eq(windows.run_id, runId));
    expect(written).toEqual([{ state }]);
  });

  test('has a statement for every transition, and no other state than these follow it', () => {
    const all: [string, WindowState[]][] = Object.entries(WINDOW_STATEMENTS).map(
      ([transition, statements]) => [transition, statements.map(([to]) => to)],
    );
    for (const [transition, state] of NEW_WINDOWS) all.push([transition, [state]]);
    expect(new Set(all.map(([transition]) => transition))).toEqual(new Set(Object.keys(WINDOW_TRANSITIONS)));
    for (const transition of new Set(all.map(([name]) => name))) {
      const states = [...new Set(all.filter(([name]) => name === transition).flatMap(([, to]) => to))].sort();
      const listed = [...WINDOW_TRANSITIONS[transition as keyof typeof WINDOW_TRANSITIONS].to].sort();
      expect(states).toEqual(listed);
    }
  });

  test.each(['paused', 'completed', 'failed', 'cancelled'] as const)(
    'is not started while its run is %s',
    async (state) => {
      const windowId = await insertWindow(await insertRun(state), 'pending');
      expect(await claimWindow(db, windowId, PERMIT)).toEqual({ outcome: 'gone' });
      expect(await startWindow(db, windowId)).toBe(false);
      expect(await rowOf('windows', windowId)).toMatchObject({ state: 'pending', attempts: 3, requests: 2 });
    },
  );
});

test.each(['running', 'paused'] as const)(
  'a window that fails while its run is %s ends, and waits for no other worker',
  async (state) => {
    const runId = await insertRun(state);
    const windowId = await insertWindow(runId, 'running');
    expect(await endWindows(db, { runId, windowId }, 'failed', FAILURE)).toMatchObject([{ id: windowId }]);
    expect(await rowOf('windows', windowId)).toMatchObject({ state: 'failed', error: FAILURE.error });
  },
);

describe('a claim', () => {
  const HOURS = 3_600_000;
  const hoursAgo = (hours: number) => new Date(PERMIT.now - hours * HOURS).toISOString();

  test.each([
    ['a night of 17 hours', 'nightly', 17, null, 1, 0, 'claimed'],
    ['what is left of a night after 19 hours', 'nightly', 19, null, 1, 0, 'spent'],
    ['the same while its share lasts', 'nightly', 19, null, 0, 1, 'claimed'],
    ['an old night that was resumed', 'nightly', 40, 1, 1, 0, 'claimed'],
    ['a backfill of any age', 'backfill', 1, null, 1, 1, 'spent'],
  ] as const)(
    '%s has the calls of its kind',
    async (name, kind, age, resumed, limit, leftoverLimit, outcome) => {
      const runId = await insertRun('running');
      const times = { started_at: hoursAgo(age), resumed_at: resumed === null ? null : hoursAgo(resumed) };
      await db
        .update(runs)
        .set({ kind, ...times })
        .where(eq(runs.id, runId));
      const windowId = await insertWindow(runId, 'pending');
      // A key of its own, so that neither its trial nor its hour is of another case.
      const permit = { ...PERMIT, keyHash: name, limit, backfillLimit: 0, leftoverLimit };
      expect((await claimWindow(db, windowId, permit)).outcome).toBe(outcome);
    },
  );

  const fresh = async () => {
    await db.execute(sql`delete from etl.source_state`);
    await db.execute(sql`delete from etl.call_budget`);
  };
  const calls = async () => {
    const result = await db.execute<{ calls: number }>(sql`select calls from etl.call_budget`);
    return result.rows[0]?.calls ?? 0;
  };

  test('counts the attempt, the call and the budget together', async () => {
    await fresh();
    const runId = await insertRun('running');
    const windowId = await insertWindow(runId, 'pending');
    expect(await claimWindow(db, windowId, PERMIT)).toMatchObject({
      outcome: 'claimed',
      window: {
        isFirst: false,
        id: windowId,
        runId,
        operation: 'GetBhavCopyCM',
        from: DAY,
        to: DAY,
        attempts: 4,
      },
    });
    expect(await rowOf('windows', windowId)).toMatchObject({
      state: 'running',
      requests: 3,
      lost_workers: 0,
    });
    expect(await calls()).toBe(1);
  });

  test('that is undone leaves everything as it was, the budget too', async () => {
    await fresh();
    const windowId = await insertWindow(await insertRun('running'), 'pending');
    const before = await rowOf('windows', windowId);
    expect(await claimWindow(db, windowId, PERMIT)).toMatchObject({ outcome: 'claimed' });
    await unclaimWindow(db, { id: windowId, attempts: 4 }, PERMIT);
    expect(await rowOf('windows', windowId)).toEqual({ ...before, started_at: expect.anything() });
    expect(await calls()).toBe(0);
  });

  test('that is undone after another worker has claimed the window leaves it to that one', async () => {
    await fresh();
    const windowId = await insertWindow(await insertRun('running'), 'pending');
    for (const _ of ['a worker that seems lost', 'the one that replaces it']) {
      expect(await claimWindow(db, windowId, PERMIT)).toMatchObject({ outcome: 'claimed' });
    }
    const before = await rowOf('windows', windowId);
    await unclaimWindow(db, { id: windowId, attempts: 4 }, PERMIT);
    expect(await rowOf('windows', windowId)).toEqual(before);
    expect(await calls()).toBe(1);
  });

  test('puts back an idle window that makes the same request, and no other', async () => {
    await fresh();
    const paused = await insertRun('paused');
    const ask = async (id: number, instrument: string, trade: string) =>
      db.execute(
        sql`update etl.windows set instruments = array[${instrument}::text], params = jsonb_build_object('trade', ${trade}::text) where id = ${id}`,
      );
    const others: number[] = [];
    for (const [instrument, trade] of [
      ['A', '1'],
      ['A', '2'],
      ['B', '1'],
    ] as const) {
      const id = await insertWindow(paused, 'running');
      await ask(id, instrument, trade);
      others.push(id);
    }
    const windowId = await insertWindow(await insertRun('running'), 'pending');
    await ask(windowId, 'A', '1');
    expect(await claimWindow(db, windowId, PERMIT)).toEqual({ outcome: 'waits' });
    const states = await Promise.all(others.map(async (id) => (await rowOf('windows', id)).state));
    expect(states).toEqual(['pending', 'running', 'running']);
    expect(await claimWindow(db, windowId, PERMIT)).toMatchObject({ outcome: 'claimed' });
  });

  test('that the budget does not allow changes nothing', async () => {
    await fresh();
    const windowId = await insertWindow(await insertRun('running'), 'pending');
    const before = await rowOf('windows', windowId);
    for (const backfillLimit of [0, 1]) {
      const outcomes: string[] = [];
      for (let call = 0; call <= backfillLimit; call++) {
        const other = await insertWindow(await insertRun('running'), 'pending');
        const claimed = call < backfillLimit ? other : windowId;
        outcomes.push((await claimWindow(db, claimed, { ...PERMIT, backfillLimit })).outcome);
      }
      expect(outcomes.at(-1)).toBe('spent');
    }
    expect(await rowOf('windows', windowId)).toEqual(before);
    expect(await calls()).toBe(1);
  });

  test('of a run in which the key was not accepted yet is that of its first open window', async () => {
    await fresh();
    const runId = await insertRun('running');
    await db.execute(sql`update etl.runs set is_key_accepted = false where id = ${runId}`);
    const [first, second] = [await insertWindow(runId, 'pending'), await insertWindow(runId, 'pending')];
    expect(await claimWindow(db, second, PERMIT)).toEqual({ outcome: 'gone' });
    expect(await claimWindow(db, first, PERMIT)).toMatchObject({ window: { isFirst: true } });
    expect(await acceptKeyInRun(db, runId)).toBe(true);
    expect(await acceptKeyInRun(db, runId)).toBe(false);
    expect(await claimWindow(db, second, PERMIT)).toMatchObject({ window: { isFirst: false } });
  });

  test('while the source is down waits for half a minute after any other, and of several one goes on', async () => {
    await fresh();
    const runId = await insertRun('running');
    const ids: number[] = [];
    for (const _ of 'abcd') ids.push(await insertWindow(runId, 'pending'));
    for (let failed = 1; failed <= 5; failed++) await noteSourceFailed(db, PERMIT, 'no response');
    const claims = (now: number) =>
      Promise.all(ids.map((id) => claimWindow(db, id, { ...PERMIT, now, downCalledBefore: now - 30_000 })));
    const outcomes = async (now: number) => (await claims(now)).map(({ outcome }) => outcome).sort();
    expect(await outcomes(PERMIT.now + 29_999)).toEqual(['down', 'down', 'down', 'down']);
    expect(await outcomes(PERMIT.now + 30_000)).toEqual(['claimed', 'down', 'down', 'down']);
    await noteSourceResponded(db, PERMIT.keyHash, false);
    expect(await outcomes(PERMIT.now + 30_001)).toEqual(['claimed', 'claimed', 'claimed', 'claimed']);
  });

  test('of a window that is still running counts the worker it lost', async () => {
    await fresh();
    const windowId = await insertWindow(await insertRun('running'), 'pending');
    for (const lostWorkers of [0, 1, 2]) {
      expect(await claimWindow(db, windowId, PERMIT)).toMatchObject({
        outcome: 'claimed',
        window: { lostWorkers },
      });
    }
    expect(await rowOf('windows', windowId)).toMatchObject({ attempts: 6, requests: 5, lost_workers: 2 });
    expect(await calls()).toBe(3);
  });
});

type RunStatement = (runId: number) => Promise<unknown>;

/** Every statement that changes the state of a run. */
const RUN_STATEMENTS: Readonly<
  Record<
    Exclude<keyof typeof RUN_TRANSITIONS, 'start'>,
    readonly (readonly [RunState, string, RunStatement])[]
  >
> = {
  pause: [['paused', 'pauseRun', (id) => pauseRun(db, id, 'a test')]],
  finish: [
    ['completed', 'finishRun', (id) => finishRun(db, id)],
    ['failed', 'finishRun', (id) => finishRun(db, id, { state: 'failed', error: 'why' })],
    ['cancelled', 'abandonRun', (id) => abandonRun(db, id, 'why')],
  ],
  cancel: [['cancelled', 'cancelRun', (id) => cancelRun(db, id, 'why')]],
  reopen: [['running', 'reopenRun', (id) => reopenRun(db, id)]],
};

const runCases = (Object.keys(RUN_STATEMENTS) as (keyof typeof RUN_STATEMENTS)[]).flatMap((transition) =>
  RUN_STATEMENTS[transition].flatMap(([to, name, statement]) =>
    RUN_STATES.map((from) => ({ transition, name, from, to, statement })),
  ),
);

describe('a run', () => {
  test('knows the states that its table may hold', async () => {
    expect((await statesOf('runs_state')).sort()).toEqual([...RUN_STATES].sort());
  });

  test.each(runCases)(
    '$name: from $from to $to, where that is a transition',
    async ({ transition, from, to, statement }) => {
      const { from: begins, to: ends } = RUN_TRANSITIONS[transition];
      expect(ends).toContain(to);
      const runId = await insertRun(from);
      const before = await rowOf('runs', runId);
      await statement(runId);
      const after = await rowOf('runs', runId);
      if ((begins as readonly string[]).includes(from)) expect(after.state).toBe(to);
      else expect(after).toEqual(before);
    },
  );

  test('has a statement for every transition', () => {
    for (const [transition, statements] of Object.entries(RUN_STATEMENTS)) {
      const states = [...new Set(statements.map(([to]) => to))].sort();
      const listed = [...RUN_TRANSITIONS[transition as keyof typeof RUN_TRANSITIONS].to].sort();
      expect(states).toEqual(listed);
    }
  });

  test('begins as its table of transitions says', async () => {
    const id = await reserveRunId(db);
    await startRun(db, { id, kind: 'backfill', requestedBy: 'test', request: {}, from: DAY, to: DAY });
    const { state } = await rowOf('runs', id);
    expect(RUN_TRANSITIONS.start).toMatchObject({ from: [], to: [state] });
  });

  test('does not finish while a window of it is open', async () => {
    for (const state of ['pending', 'running'] as const) {
      const runId = await insertRun('running');
      await insertWindow(runId, state);
      const before = await rowOf('runs', runId);
      expect(await finishRun(db, runId)).toBeNull();
      expect(await rowOf('runs', runId)).toEqual(before);
    }
  });

  test('that is cancelled takes its open windows along, and leaves those that have ended', async () => {
    const runId = await insertRun('paused');
    const open = await insertWindow(runId, 'running');
    const loaded = await insertWindow(runId, 'loaded');
    expect(await cancelRun(db, runId, 'why')).toBe(true);
    expect(await rowOf('windows', open)).toMatchObject({ state: 'cancelled', error: 'why' });
    expect(await rowOf('windows', loaded)).toMatchObject({ state: 'loaded' });
  });

  test('whose key is refused pauses those with something left, and not one of which all windows have ended', async () => {
    const refused = await insertRun('running');
    await insertWindow(refused, 'running');
    const open = await insertRun('running');
    await insertWindow(open, 'pending');
    const ending = await insertRun('running');
    await insertWindow(ending, 'blocked');
    await transaction(database, (tx) => stopRuns(tx, refused, 'the key was refused'));
    expect(await rowOf('runs', open)).toMatchObject({ state: 'paused' });
    expect(await rowOf('runs', ending)).toMatchObject({ state: 'running' });
    expect(await finishRun(db, ending)).toMatchObject({ state: 'failed' });
  });

  test('that has ended is not cancelled, and its windows stay as they are', async () => {
    const runId = await insertRun('failed');
    const windowId = await insertWindow(runId, 'pending');
    expect(await cancelRun(db, runId, 'why')).toBe(false);
    expect(await rowOf('windows', windowId)).toMatchObject({ state: 'pending' });
  });
});

describe('windows are locked in the order of their ids, whatever their order on disk', () => {
  const statements: Readonly<
    Record<string, (tx: Transaction, runId: number, last: number) => Promise<unknown>>
  > = {
    cancelRun: (tx, runId) => cancelRun(tx, runId, 'cancelled by hand'),
    reopenRun: (tx, runId) => reopenRun(tx, runId),
    'endWindows of a run': (tx, runId) => endWindows(tx, { runId }, 'blocked', FAILURE),
    'endWindows of an exchange': (tx) => endWindows(tx, { exchange: 'NSE' }, 'blocked', FAILURE),
  };

  test.each(Object.keys(statements))('by %s', async (name) => {
    await db.execute(sql`update etl.runs set state = 'completed'`);
    const runId = await insertRun(name === 'reopenRun' ? 'failed' : 'running');
    const ids: number[] = [];
    for (const _ of 'abc') {
      ids.push(await insertWindow(runId, name === 'reopenRun' ? 'failed' : 'pending'));
    }
    const [first, second, third] = ids as [number, number, number];
    // From now on its row is the last one on disk.
    await db.execute(sql`update etl.windows set error = null where id = ${first}`);
    const blocker = await database.pool.connect();
    await blocker.query('begin');
    await blocker.query('select from etl.windows where id = $1 for update', [second]);
    const blocked = transaction(database, (tx) => statements[name]?.(tx, runId, third) as Promise<unknown>);
    await waitFor(
      async () =>
        (
          await db.execute(sql`select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid()`)
        ).rowCount === 1,
    );
    const free = await db.execute<{ id: number }>(
      sql`select id::int from etl.windows where run_id = ${runId} order by id for update skip locked`,
    );
    expect(free.rows.map(({ id }) => id)).toEqual([third]);
    await blocker.query('rollback');
    blocker.release();
    await blocked;
  });
});
