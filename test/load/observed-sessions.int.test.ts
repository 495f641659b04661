import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { addDays } from '../../src/core/days.ts';
import type { Context } from '../../src/jobs/context.ts';
import { planReplayOfSession } from '../../src/jobs/replay/plan-replay.ts';
import { replaySessions } from '../../src/jobs/replay/work-replay.ts';
import { syncSessions } from '../../src/jobs/runs/sync-sessions.ts';
import { differingQuestions, sumCoverage } from '../../src/load/state/coverage/sum-of-facts.ts';
import { openStore } from '../jobs/import-support.ts';
import { ask, replay, type SourceRecord } from '../jobs/replay-support.ts';
import { forAllAsync, setsOf } from '../support/for-all.ts';
import { newRun } from './support.ts';

/** Sets that are tried. */
const RUNS = 2;

/** A Saturday of a year of which no calendar file knows holidays. Each set has one of its own, three weeks apart. */
const FIRST_SATURDAY = '2027-01-09';
const DAYS_APART = 21;

const KINDS = {
  bhav: {
    operation: 'GetBhavCopyCM',
    table: 'bhavcopy_cm',
    columns: 'trade_date, symbol, instrument_full_name',
  },
  gainers: {
    operation: 'GetTop5GainersLosers',
    table: 'top_gainers_losers',
    columns: 'trade_date, scrip_code, scrip_name',
  },
  changes: {
    operation: 'GetSeriesChange',
    table: 'series_changes',
    columns: 'change_date, scrip_id, scrip_name',
  },
} as const;
type Kind = keyof typeof KINDS;

/** An answer about days that are numbered from the Saturday on. */
interface Answer {
  readonly kind: Kind;
  readonly from: number;
  readonly to: number;
  /** Days and hours from the Saturday to the call. */
  readonly called: readonly [days: number, hour: number];
  readonly microseconds: number;
  readonly sent: readonly {
    readonly day: number;
    readonly symbol: number;
    readonly value: number;
    readonly broken: boolean;
  }[];
}

/** Evenings and mornings in UTC: before and after the data of a day is published in India. */
const CALLS = [
  [0, 8],
  [0, 17],
  [1, 4],
  [2, 17],
  [4, 17],
  [6, 17],
  [9, 17],
  [13, 17],
] as const;

function recordOf(kind: Kind, day: string, { symbol, value, broken }: Answer['sent'][number]): SourceRecord {
  const [year, month, date] = day.split('-');
  const onDay = `${month}-${date}-${year}`;
  const price = broken ? 'unread' : 1;
  const name = `V${value}`;
  if (kind === 'bhav')
    return { TradDt: onDay, Symbol: `S${symbol}`, SctySrs: 'EQ', FinInstrmNm: name, ClosePrice: price };
  return kind === 'gainers'
    ? { Date: onDay, ScripCode: symbol + 1, IsLoser: false, ScripName: name, CurrentClosing: price }
    : {
        ChangeDate: onDay,
        ScripId: broken ? '' : `S${symbol}`,
        ScripName: name,
        PrevSeries: 'EQ',
        ToSeries: 'BE',
      };
}

const sentOf = fc.array(
  fc.record({
    day: fc.nat(20),
    symbol: fc.nat(5),
    value: fc.nat(2),
    broken: fc.nat(9).map((one) => one === 0),
  }),
  { maxLength: 14 },
);
const answerOf: fc.Arbitrary<Answer> = fc
  .record({
    kind: fc.constantFrom<Kind>('gainers', 'changes', 'gainers', 'changes', 'bhav'),
    from: fc.integer({ min: -9, max: 2 }),
    days: fc.nat(9),
    called: fc.constantFrom(...CALLS),
    microseconds: fc.nat(999),
    sent: sentOf,
  })
  .map(({ kind, from, days, called, sent, ...answer }) => {
    const first = Math.min(from, called[0]);
    const to = kind === 'bhav' ? first : Math.max(first, Math.min(first + days, called[0]));
    return {
      ...answer,
      kind,
      called,
      from: first,
      to,
      sent: sent.map((one) => ({ ...one, day: first + (one.day % (to - first + 1)) })),
    };
  })
  // This one proves the session.
  .filter(({ kind, from }) => kind !== 'bhav' || from !== 0);

/** The bhav copy that shows that the Saturday is a session. */
const proofOf = fc
  .record({
    called: fc.constantFrom(...CALLS.slice(1)),
    sent: fc.array(fc.nat(5), { minLength: 1, maxLength: 5 }),
  })
  .map(
    ({ called, sent }): Answer => ({
      kind: 'bhav',
      from: 0,
      to: 0,
      called,
      microseconds: 0,
      sent: [...new Set(sent)].map((symbol) => ({ day: 0, symbol, value: 0, broken: false })),
    }),
  );

async function load(context: Context, saturday: string, answer: Answer): Promise<void> {
  const { kind, from, to, called, microseconds } = answer;
  const dayOf = (at: number) => addDays(saturday, at);
  await ask(context, {
    operation: KINDS[kind].operation,
    from: dayOf(from),
    to: dayOf(to),
    sent: answer.sent.map((one) => recordOf(kind, dayOf(one.day), one)),
    calledAt: Date.parse(`${dayOf(called[0])}T${String(called[1]).padStart(2, '0')}:00:00Z`),
    microseconds,
  });
}

/** What is stored of the days around a Saturday, without the numbers of loads and the moments. */
async function stored({ db }: Context, saturday: string): Promise<string[]> {
  const rows = Object.values(KINDS).map(
    ({ table, columns }) =>
      `select concat_ws(' ', '${table}', ${columns}) from market.${table} where ${columns.split(',')[0]} between $1 and $2`,
  );
  const found = await db.pool.query<{ text: string }>(
    `select text from (${rows.join(' union all ')}
     union all select concat_ws(' ', 'coverage', operation, day, state, records, diagnostic) from etl.coverage where day between $1 and $2
     union all select concat_ws(' ', 'held back', table_name, day, place, gone, rows_left, most) from etl.withdrawals
       where day between $1 and $2 and state = 'refused'
     union all select concat_ws(' ', 'reject', operation, record, resolved_at is null) from etl.rejects where from_date between $1 and $2
     union all select concat_ws(' ', 'answer', place, said, records, diagnostic, questions, is_doubted, emptied_days, is_believed)
       from etl.answers where from_date between $1 and $2) all_of(text) order by 1`,
    [addDays(saturday, -10), addDays(saturday, 5)],
  );
  return found.rows.map(({ text }) => text);
}

let learning: Context;
let knowing: Context;
beforeAll(async () => {
  [learning, knowing] = (await Promise.all([1, 2].map(() => openStore()))) as [Context, Context];
});

const signal = new AbortController().signal;

test('it makes no difference whether a bhav copy shows before or after other answers that a day is a session', async () => {
  let sets = 0;
  let changed = 0;
  await forAllAsync(
    [
      fc.uniqueArray(answerOf, {
        minLength: 2,
        maxLength: 10,
        selector: ({ called, microseconds }) => `${called} ${microseconds}`,
      }),
      proofOf,
      fc.nat(10),
      fc.nat(10),
    ],
    { numRuns: RUNS, seed: 20_270_918, endOnFailure: true },
    async (others, proof, before, until) => {
      const saturday = addDays(FIRST_SATURDAY, sets * DAYS_APART);
      sets += 1;
      const answers = others.filter(
        ({ called, microseconds }) => microseconds > 0 || called !== proof.called,
      );
      // In one database all but the bhav copy are loaded as if the day were none; then others follow.
      for (const answer of answers.slice(0, before)) await load(learning, saturday, answer);
      await load(learning, saturday, proof);
      const learnt = before + until;
      for (const answer of answers.slice(before, learnt)) await load(learning, saturday, answer);
      const unaware = await stored(learning, saturday);
      await replaySessions(learning, signal);
      if (!isDeepStrictEqual(await stored(learning, saturday), unaware)) changed += 1;
      for (const answer of answers.slice(learnt)) await load(learning, saturday, answer);
      // Another bhav copy may have shown that of a Sunday.
      await replaySessions(learning, signal);
      // In the other one it is known from the start.
      await load(knowing, saturday, proof);
      await replaySessions(knowing, signal);
      for (const answer of answers) await load(knowing, saturday, answer);
      await replaySessions(knowing, signal);
      const expected = await stored(knowing, saturday);
      expect(await stored(learning, saturday)).toEqual(expected);
      const operations = Object.values(KINDS).map(({ operation }) => operation);
      expect(await differingQuestions(learning.db.drizzle, { operations, exchange: 'NSE' }, 9)).toEqual([]);
      await replay(learning, { from: addDays(saturday, -10), to: addDays(saturday, 5) });
      expect(await stored(learning, saturday)).toEqual(expected);
    },
  );
  expect(changed).toBeGreaterThan(setsOf(RUNS) / 4);
}, 1_800_000);

/** A range of days up to a Sunday, with nothing of the Saturday. */
const RANGE: Answer = { kind: 'changes', from: -5, to: 1, called: [9, 17], microseconds: 1, sent: [] };
const PROOF: Answer = {
  kind: 'bhav',
  from: 0,
  to: 0,
  called: [0, 17],
  microseconds: 0,
  sent: [{ day: 0, symbol: 1, value: 0, broken: false }],
};

const changesOn = async ({ db }: Context, day: string) =>
  (
    await db.pool.query(
      `select state from etl.coverage where operation = 'GetSeriesChange' and exchange = 'NSE' and day = $1`,
      [day],
    )
  ).rows;

test('a replay because of a session goes on if its process is gone', async () => {
  const context = await openStore();
  const replays = async () =>
    (
      await context.db.pool.query(
        `select s.day::text, r.state from etl.sessions s left join etl.runs r on r.id = s.replay_run_id where s.kind = 'observed' order by day`,
      )
    ).rows;
  await load(context, FIRST_SATURDAY, RANGE);
  await load(context, FIRST_SATURDAY, PROOF);
  expect(await changesOn(context, FIRST_SATURDAY)).toEqual([]);
  const runId = await planReplayOfSession(context, { exchange: 'NSE', day: FIRST_SATURDAY });
  expect(await replays()).toEqual([{ day: FIRST_SATURDAY, state: 'running' }]);
  // The process that planned it is gone.
  await replaySessions(context, signal);
  expect(runId).not.toBeNull();
  expect(await replays()).toEqual([{ day: FIRST_SATURDAY, state: 'completed' }]);
  expect(await changesOn(context, FIRST_SATURDAY)).toEqual([{ state: 'empty' }]);
});

test('a worker that learns of a session later than others replays what it has stored meanwhile', async () => {
  const context = await openStore();
  const other = await openStore(context.config.DATABASE_URL);
  await syncSessions(other);
  await load(context, FIRST_SATURDAY, PROOF);
  await replaySessions(context, signal);
  await load(other, FIRST_SATURDAY, RANGE);
  expect(await changesOn(context, FIRST_SATURDAY)).toEqual([]);
  await replaySessions(other, signal);
  expect(await changesOn(context, FIRST_SATURDAY)).toEqual([{ state: 'empty' }]);
  const runs = async () =>
    (await context.db.pool.query(`select from etl.runs where kind = 'replay'`)).rowCount;
  const before = await runs();
  await replaySessions(context, signal);
  await replaySessions(other, signal);
  expect(await runs()).toBe(before);
});

test('any number of processes that learn of a session, and have stored nothing since, have it replayed once', async () => {
  const context = await openStore();
  const url = context.config.DATABASE_URL;
  const others = await Promise.all([1, 2, 3].map(() => openStore(url)));
  for (const other of others) await syncSessions(other);
  await load(context, FIRST_SATURDAY, RANGE);
  await load(context, FIRST_SATURDAY, PROOF);
  for (const one of [context, ...others]) await replaySessions(one, signal);
  const { rowCount } = await context.db.pool.query(`select from etl.runs where kind = 'replay'`);
  expect(rowCount).toBe(1);
  expect(await changesOn(context, FIRST_SATURDAY)).toEqual([{ state: 'empty' }]);
});

test('a sum of facts that does not come to rest is an error that is tried again, and not a silent end', async () => {
  const { db } = await openStore();
  await db.pool.query(`
    create function lose() returns trigger language plpgsql as 'begin return null; end';
    create trigger lose before insert on etl.coverage for each row execute function lose()`);
  const runId = await newRun(db);
  await db.pool.query(
    `insert into etl.answers (place, run_id, window_id, operation, exchange, from_date, to_date, instruments, params, variant,
       is_filtered, called_on, fetched_at, content_type, said, records)
     select clock_timestamp(), $1, 0, 'GetSeriesChange', 'NSE', '2025-01-01', '2025-01-01', '{}', '{}', '', false, '2025-01-01', now(), null, 'empty', 0`,
    [runId],
  );
  const asked = { operations: ['GetSeriesChange'], exchange: 'NSE', days: null };
  await expect(sumCoverage(db.drizzle, asked)).rejects.toMatchObject({ kind: 'database_locked' });
});
