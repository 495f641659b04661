import { readFileSync } from 'node:fs';
import { drizzle } from 'drizzle-orm/node-postgres';
import fc from 'fast-check';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { addDays, type Day, epochOf, weekday } from '../../../src/core/days.ts';
import { RANGE_REFUSED_LINE } from '../../../src/core/errors.ts';
import { exchangeOfSegment, type Pair, pairName, SEGMENTS } from '../../../src/core/exchanges.ts';
import { secondsOfDay } from '../../../src/declaration/night-times.ts';
import {
  expectedVariants,
  QUARTER_AWAITED_DAYS,
  SCHEDULED_WEEKDAYS,
} from '../../../src/declaration/operation.ts';
import { COUNT_MISMATCH } from '../../../src/extract/doubts.ts';
import { checkLateData } from '../../../src/jobs/alerts/late-data.ts';
import { syncTradingDays } from '../../../src/jobs/responses/sync-sessions.ts';
import { readDays } from '../../../src/jobs/runs/read-coverage.ts';
import { gapRequest, readGaps } from '../../../src/jobs/runs/read-gaps.ts';
import { readStatus } from '../../../src/jobs/runs/read-status.ts';
import { readTonight } from '../../../src/jobs/runs/read-tonight.ts';
import { operationNamed } from '../../../src/operations/registry.ts';
import { readCompleteness, readProgress } from '../../../src/state/coverage/completeness.ts';
import { writeCoverage } from '../../../src/state/coverage/coverage.ts';
import { MISSING_OF } from '../../../src/state/coverage/freshness.ts';
import { takePosition } from '../../../src/state/position-sql.ts';
import type { CoverageState } from '../../../src/state/registers.ts';
import { listEmptyTradingDays } from '../../../src/state/runs/outcomes.ts';
import { bhavRow, loadBhav, newRun, newWindow } from '../../load/support.ts';
import { manualClock } from '../../sandbox/support.ts';
import { forAllAsync } from '../../support/for-all.ts';
import { backfill, openPipeline, type Pipeline, runToEnd } from '../../support/pipeline.ts';
import { serve } from '../../support/serve.ts';

const ZONE = 'Asia/Kolkata';
/** One of each kind: always with records, often without, once a week, and company by company. */
const PAIRS: readonly Pair[] = [
  { operation: 'GetBhavCopyCM', exchange: 'NSE' },
  { operation: 'GetSeriesChange', exchange: 'NSE' },
  { operation: 'GetConsolidatedPledge', exchange: 'BSE' },
  { operation: 'GetFinRatioEOD', exchange: 'BSE' },
];
const COMPANIES = ['A', 'B', 'C'];

const clock = manualClock(Date.parse('2025-09-12T23:30:00+05:30'));
let pipeline: Pipeline;

beforeAll(async () => {
  pipeline = await openPipeline({ clock, settings: { EOD_INSTRUMENTS: COMPANIES.join() } });
  await syncTradingDays(pipeline, '2024-01-01');
});

beforeEach(async () => {
  await pipeline.db.pool.query('truncate etl.coverage, etl.alerts, etl.windows, etl.runs');
});

/** What is known of one entry. */
interface Known {
  readonly pair: number;
  readonly day: Day;
  readonly instrument: string;
  readonly variant: number;
  readonly state: CoverageState;
}

const variantsOf = ({ operation }: Pair) => expectedVariants(operationNamed(operation)) ?? [];

async function cover(pair: Pair, known: readonly Omit<Known, 'pair'>[]): Promise<void> {
  const variants = variantsOf(pair);
  const coverage = new Map(
    known.map(({ day, instrument, variant, state }) => {
      const entry = { day, instrument, variant: variants[variant % variants.length] ?? '' };
      return [JSON.stringify(entry), { ...entry, state, records: state === 'loaded' ? 1 : 0 }] as const;
    }),
  );
  await writeCoverage(pipeline.db.drizzle, {
    ...pair,
    runId: 1,
    windowId: null,
    position: await takePosition(pipeline.db.drizzle),
    coverage: [...coverage.values()],
  });
}

/** What there is of each day, in plain words. */
function judgeOf(pair: Pair, known: readonly Known[]) {
  const { emptyIsNormal, windows } = operationNamed(pair.operation);
  const variants = variantsOf(pair);
  const byCompany = windows.per === 'instrument';
  const latest = new Map<string, Known>();
  for (const entry of known)
    latest.set(`${entry.day} ${entry.instrument} ${variants[entry.variant % variants.length]}`, entry);
  return (day: Day) => {
    const rows = [...latest.values()].filter((entry) => entry.day === day);
    const whole = rows.filter(({ instrument }) => instrument === '');
    const single = rows.filter(({ instrument }) => !byCompany || COMPANIES.includes(instrument));
    const entries = byCompany ? [...new Set([...whole, ...single])] : whole;
    const count = (state: CoverageState) => entries.filter((entry) => entry.state === state).length;
    const expected = byCompany ? COMPANIES.length * variants.length : 0;
    const isAwaited = 2 * count('not_published') > Math.max(entries.length, expected);
    const isStored = !isAwaited && (count('loaded') > 0 || (emptyIsNormal && count('empty') > 0));
    const responded = COMPANIES.filter((name) =>
      variants.every((_, at) =>
        single.some(
          (entry) =>
            entry.instrument === name &&
            entry.variant % variants.length === at &&
            ['loaded', 'empty', 'not_published'].includes(entry.state),
        ),
      ),
    ).length;
    const isAll =
      !byCompany ||
      responded === COMPANIES.length ||
      whole.some(({ state }) => state === 'loaded' || state === 'empty');
    const state = isAwaited
      ? 'not_published'
      : (['loaded', 'empty', 'failed', 'blocked'] as const).find((state) => count(state) > 0);
    const isSingle =
      !byCompany && single.some(({ instrument, state }) => instrument !== '' && state === 'loaded');
    return {
      isStored,
      isComplete: isStored && isAll,
      responded,
      state: state ?? (isSingle ? 'partial' : 'not_requested'),
    };
  };
}

/** The same definition in plain words, day by day. */
function modelOf(pair: Pair, known: readonly Known[], now: number) {
  const { operation, exchange } = pair;
  const { emptyIsNormal, schedule, publishedAt } = operationNamed(operation);
  const { EOD_PUBLISHED_AT: earliest, EOD_LOOKBACK_SESSIONS: lookback } = pipeline.config;
  const today = new Date(now + 5.5 * 3_600_000).toISOString().slice(0, 10);
  const time = [schedule.at, publishedAt, earliest].sort().at(-1) ?? '';
  const at = (day: Day) => 1000 * epochOf(day, secondsOfDay(time), ZONE);
  const judge = judgeOf(pair, known);
  const stored = known.map(({ day }) => day).filter((day) => judge(day).isStored);
  const first = stored.sort()[0] ?? addDays(today, -pipeline.config.EOD_HISTORY_DAYS);
  return pipeline.calendar.tradingDays(exchange, first, today).map((day) => {
    const { isStored, isComplete, responded, state } = judge(day);
    const on = SCHEDULED_WEEKDAYS[schedule.on];
    const due = at(addDays(day, on === null ? 0 : (on - weekday(day) + 7) % 7));
    const awaitedDays = Math.max(7, 2 * lookback) + (on === null ? 0 : 7);
    const mayCome = state === 'not_published' && emptyIsNormal && at(addDays(day, awaitedDays)) > now;
    const isDue = due <= now && !mayCome;
    const why = isStored ? 'partial' : state === 'not_requested' ? 'not_requested' : state;
    return {
      ...pair,
      day,
      state: isComplete ? 'complete' : isDue ? 'missing' : 'pending',
      reason: isComplete ? null : isDue ? why : 'not_published',
      detail: isStored && !isComplete ? `${responded} of ${COMPANIES.length} companies` : null,
      due,
    };
  });
}

const TRADING_DAYS = ['2025-09-01', '2025-09-02', '2025-09-03', '2025-09-04', '2025-09-05', '2025-09-08'];
const known = fc.record({
  pair: fc.nat(PAIRS.length - 1),
  day: fc.constantFrom(...TRADING_DAYS),
  instrument: fc.constantFrom('', '', ...COMPANIES, 'another'),
  variant: fc.nat(1),
  state: fc.constantFrom<CoverageState>('loaded', 'loaded', 'empty', 'not_published', 'failed', 'blocked'),
});
/** All companies of a trading day but for some, so that most trading days are nearly complete. */
const ratios = fc.array(
  fc.record({ day: fc.constantFrom(...TRADING_DAYS), without: fc.constantFrom(null, 0, 1, 2) }),
  { maxLength: 4 },
);
const moment = fc.record({
  day: fc.constantFrom('2025-09-05', '2025-09-08', '2025-09-09', '2025-09-13', '2025-09-20'),
  time: fc.constantFrom('10:00', '21:14', '21:20', '22:30', '23:59'),
});

test('gaps, both statuses, coverage, runs, nights and alerts say what a plain model says', async () => {
  const runId = await newRun(pipeline.db);
  const drawn = [fc.array(known, { maxLength: 30 }), ratios, moment] as const;
  await forAllAsync([...drawn], { numRuns: 2 }, async (some, nights, { day: today, time }) => {
    await pipeline.db.pool.query('truncate etl.coverage, etl.alerts, etl.windows');
    const all: Known[] = [
      ...nights.flatMap(({ day, without }) =>
        COMPANIES.flatMap((instrument, at) =>
          [0, 1].map((variant) => ({
            pair: 3,
            day,
            instrument,
            variant,
            state: at === without ? ('failed' as const) : ('loaded' as const),
          })),
        ),
      ),
      ...some,
    ];
    const now = Date.parse(`${today}T${time}:00+05:30`);
    clock.moveTo(now);
    for (const [at, pair] of PAIRS.entries()) {
      // What is said of an entry later replaces what was said before only as registers do; here each is said once.
      const once = new Map(
        all
          .filter((entry) => entry.pair === at)
          .map((entry) => [
            `${entry.day} ${entry.instrument} ${entry.variant % variantsOf(pair).length}`,
            entry,
          ]),
      );
      const entries = [...once.values()];
      await cover(pair, entries);
      const model = modelOf(pair, entries, now);

      const scope = { expected: [pair], others: false };
      const tradingDays = await readCompleteness(pipeline, scope);
      expect(tradingDays).toEqual(model);

      const missing = model.filter(({ state }) => state === 'missing');
      const { gaps, total } = await readGaps(pipeline, {
        operations: [operationNamed(pair.operation)],
        exchanges: [pair.exchange],
      });
      expect(total).toBe(missing.length);
      for (const { day, reason } of missing) {
        expect(gaps.filter(({ from, to }) => from <= day && day <= to).map((gap) => gap.reason)).toEqual([
          reason,
        ]);
      }

      const span = { from: '2025-09-01', to: today };
      const judgedState = (day: Day) => judgeOf(pair, entries)(day).state;
      const past = TRADING_DAYS.filter((day) => day <= today);
      expect(await readProgress(pipeline, { expected: [pair], others: false, ...span })).toEqual([
        {
          ...pair,
          watermark: past.findLast((day) => judgedState(day) === 'loaded') ?? null,
          awaited: past.find((day) => judgedState(day) === 'not_published') ?? null,
        },
      ]);
      await newWindow(pipeline.db, runId, 'loaded', { ...pair, ...span });
      const stateOf = (day: Day) => model.find((modelled) => modelled.day === day)?.state;
      const empty = past.filter(
        (day) =>
          (judgedState(day) === 'empty' && stateOf(day) !== 'pending') ||
          (judgedState(day) === 'not_published' && stateOf(day) === 'missing'),
      );
      const notPublished = empty.filter((day) => judgedState(day) === 'not_published').length;
      const listed = (await listEmptyTradingDays(pipeline, [runId])).filter(
        (listedDay) => pairName(listedDay) === pairName(pair),
      );
      expect(listed).toEqual(
        empty.length === 0 || operationNamed(pair.operation).emptyIsNormal
          ? []
          : [{ runId, ...pair, from: empty[0], to: empty.at(-1), sessions: empty.length, notPublished }],
      );

      const due = model.filter(({ state }) => state !== 'pending');
      const last = due.at(-1);
      const hole = due.findIndex(({ state }) => state === 'missing');
      const freshness = {
        lastDue: last?.day ?? null,
        isLate: last?.state === 'missing',
        reason: last?.reason ?? null,
        detail: last?.detail ?? null,
        lastComplete: model.filter(({ state }) => state === 'complete').at(-1)?.day ?? null,
        missingSessions: due.slice(-MISSING_OF).filter(({ state }) => state === 'missing').length,
      };
      const completeTo = (hole === -1 ? due : due.slice(0, hole)).at(-1)?.day ?? null;
      const ofPair = (other: Pair) => pairName(other) === pairName(pair);
      const inStatus = (await readStatus(pipeline)).operations.find(ofPair);
      expect(inStatus).toMatchObject(freshness);
      if (hole !== -1 || model.every(({ state }) => state !== 'pending')) {
        expect(inStatus).toMatchObject({ completeTo });
      }
      expect((await readTonight(pipeline)).operations.find(ofPair)).toMatchObject(freshness);

      const [set] = await readDays(pipeline, [pair], { from: '2025-09-01', to: today });
      const kinds = new Map(set?.days.map((dayState) => [dayState.day, dayState]));
      for (const { day, state, reason } of model.filter((dayState) => dayState.day >= '2025-09-01')) {
        const shown = kinds.get(day);
        if (state === 'complete') expect(['complete', 'empty']).toContain(shown?.kind);
        else if (state === 'pending') expect(shown?.kind).toBe('pending');
        // Nothing is expected of a data set of which nothing was ever stored.
        else
          expect([
            ['missing', reason],
            ['nothing', null],
          ]).toContainEqual([shown?.kind, shown?.reason]);
      }

      await checkLateData(pipeline, 0);
      const from = addDays(today, -7);
      const recent = entries.filter(({ day }) => day >= from);
      const late = modelOf(pair, recent, now).filter(
        ({ day, state, reason, due: dueAt }) =>
          state === 'missing' &&
          reason !== 'blocked' &&
          day >= from &&
          dueAt <= now - pipeline.config.EOD_LATE_AFTER_MINUTES * 60_000,
      );
      const { rows } = await pipeline.db.pool.query<{ subject: string }>(
        "select subject from etl.alerts where kind = 'late_data' and starts_with(subject, $1) order by 1",
        [`${pairName(pair)} `],
      );
      expect(rows.map(({ subject }) => subject)).toEqual(late.map(({ day }) => `${pairName(pair)} ${day}`));
      await pipeline.db.pool.query('truncate etl.alerts');
    }
  });
}, 300_000);

test('what failed or was not requested is missing although a company that responded has no data yet', async () => {
  const pair = PAIRS[3] as Pair;
  const responses = (state: CoverageState, names: readonly string[]) =>
    names.flatMap((instrument) =>
      [0, 1].map((variant) => ({ day: '2025-09-11', instrument, variant, state })),
    );
  const reasonOf = async () => {
    const scope = { expected: [pair], others: false, from: '2025-09-11', to: '2025-09-11' };
    return (await readCompleteness(pipeline, scope)).map(({ state, reason }) => [state, reason]);
  };
  clock.moveTo(Date.parse('2025-09-12T10:00:00+05:30'));
  await cover(pair, responses('not_published', ['A']));
  expect(await reasonOf()).toEqual([['missing', 'not_requested']]);
  await cover(pair, responses('failed', ['B', 'C']));
  expect(await reasonOf()).toEqual([['missing', 'failed']]);
  await cover(pair, responses('not_published', ['B']));
  expect(await reasonOf()).toEqual([['pending', 'not_published']]);
});

test('of many companies only those that the settings name are looked up, however many responded', async () => {
  const pair = PAIRS[3] as Pair;
  const days = ['2025-09-09', '2025-09-10', '2025-09-11'];
  const others = Array.from({ length: 1_000 }, (_, at) => `X${at}`);
  const known = days.flatMap((day) =>
    [...others, 'A', 'B'].flatMap((instrument) =>
      [0, 1].map((variant) => ({ day, instrument, variant, state: 'loaded' as const })),
    ),
  );
  await cover(pair, known);
  await pipeline.db.pool.query('vacuum analyze etl.coverage');
  clock.moveTo(Date.parse('2025-09-12T10:00:00+05:30'));
  const scope = { expected: [pair], others: false };
  const client = await pipeline.db.pool.connect();
  // Parallel workers count for themselves.
  await client.query('begin; set local max_parallel_workers_per_gather = 0');
  const rowsRead = async () =>
    (
      await client.query<{ rows: number }>(
        `select (pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))::int as rows from pg_class
          where oid = 'etl.coverage'::regclass`,
      )
    ).rows[0]?.rows ?? 0;
  const before = await rowsRead();
  const tradingDays = await readCompleteness({ ...pipeline, db: { drizzle: drizzle(client) } }, scope);
  const read = (await rowsRead()) - before;
  await client.query('rollback');
  client.release();
  expect(tradingDays.filter(({ day }) => days.includes(day)).map(({ detail }) => detail)).toEqual(
    days.map(() => '2 of 3 companies'),
  );
  expect(read).toBeLessThan(known.length / 10);
});

test('of more companies than are requested, no more are counted, and the trading days are the same', async () => {
  const pair = PAIRS[3] as Pair;
  const day = '2025-09-11';
  const limit = 2;
  const listed = [...COMPANIES, 'D', 'E'];
  clock.moveTo(Date.parse('2025-09-12T10:00:00+05:30'));
  const config = { ...pipeline.config, EOD_INSTRUMENTS: undefined, EOD_INSTRUMENT_LIMIT: limit };
  await loadBhav(
    pipeline.db,
    listed.map((symbol) => bhavRow({ symbol, exchange: 'BSE', trade_date: '2025-09-10' })),
  );
  const responses = fc.array(
    fc.record({
      instrument: fc.constantFrom(...listed),
      variant: fc.nat(1),
      state: fc.constantFrom<CoverageState>('loaded', 'empty', 'failed'),
    }),
    { maxLength: 6 },
  );
  const mostly = (...states: readonly CoverageState[]) =>
    fc.array(fc.constantFrom(...states), { minLength: 5, maxLength: 5 });
  const drawn = [responses, fc.oneof(mostly('loaded', 'failed'), mostly('loaded', 'not_published'))] as const;
  await forAllAsync([...drawn], { numRuns: 10 }, async (some, all) => {
    await pipeline.db.pool.query('truncate etl.coverage');
    const each = listed.flatMap((instrument, at) =>
      [0, 1].map((variant) => ({ instrument, variant, state: all[at] as CoverageState })),
    );
    const once = new Map([...each, ...some].map((entry) => [`${entry.instrument} ${entry.variant}`, entry]));
    const entries = [...once.values()].filter((_, at) => at >= some.length / 2);
    await cover(
      pair,
      entries.map((entry) => ({ ...entry, day })),
    );
    const count = (state: CoverageState) => entries.filter((entry) => entry.state === state).length;
    const isAwaited = 2 * count('not_published') > Math.max(entries.length, 2 * limit);
    const hasResponse = (entry: (typeof entries)[number]) => entry.state !== 'failed';
    const ofVariant = [0, 1].map((variant) =>
      entries
        .filter((entry) => entry.variant === variant && hasResponse(entry))
        .map(({ instrument }) => instrument),
    );
    // A trading day is complete if each variant has enough; who has a response to both is counted only where it is not.
    const responded = ofVariant[0]?.filter((name) => ofVariant[1]?.includes(name)).length;
    const { emptyIsNormal } = operationNamed(pair.operation);
    const isStored = !isAwaited && (count('loaded') > 0 || (emptyIsNormal && count('empty') > 0));
    const isAll = ofVariant.every((names) => names.length >= limit);
    const [tradingDay] = await readCompleteness(
      { ...pipeline, config },
      { expected: [pair], others: false, from: day, to: day },
    );
    expect(tradingDay).toMatchObject({
      state: isStored && isAll ? 'complete' : isAwaited ? 'pending' : 'missing',
      detail: isStored && !isAll ? `${responded} of ${limit} companies` : null,
    });
  });
  await pipeline.db.pool.query('truncate market.bhavcopy_cm');
});

test('22 of 200 companies are a gap everywhere, until they are filled', async () => {
  const night = await openPipeline({
    clock: { now: () => Date.parse('2025-09-12T23:30:00+05:30') },
    sandbox: { instrumentsPerExchange: 20 },
    settings: { EOD_INSTRUMENT_LIMIT: '6' },
  });
  const pair = { operation: 'GetFinRatioEOD', exchange: 'BSE' };
  const day = '2025-09-11';
  const options = { from: day, to: day, exchanges: ['BSE'] };
  await runToEnd(night, backfill({ ...options, operations: ['GetBhavCopyCM'] }));
  const { rows: symbols } = await night.db.pool.query<{ symbol: string }>(
    'select symbol from market.bhavcopy_cm order by turnover desc, symbol limit 2',
  );
  const instruments = symbols.map(({ symbol }) => symbol);
  await runToEnd(night, backfill({ ...options, operations: [pair.operation], instruments }));

  const scope = { operations: [operationNamed(pair.operation)], exchanges: ['BSE'], from: day, to: day };
  const gaps = await readGaps(night, scope);
  expect(gaps.gaps).toMatchObject([{ reason: 'partial', detail: '2 of 6 companies' }]);
  const { rows } = await night.db.pool.query(
    `select state, reason, responded::int, requested::int, share::float8 from etl.completeness
      where operation = 'GetFinRatioEOD' and day = '${day}'`,
  );
  // The view has the settings of the migration: as many companies as there are.
  expect(rows).toEqual([{ state: 'missing', reason: 'partial', responded: 2, requested: 20, share: 0.1 }]);
  const [set] = await readDays(night, [pair], { from: day, to: day });
  expect(set?.days).toMatchObject([{ kind: 'missing', reason: 'partial', detail: '2 of 6 companies' }]);
  const page = await (
    await fetch(`${(await serve(night, ['web'])).url}/coverage/GetFinRatioEOD/BSE?year=2025`)
  ).text();
  expect(page).toContain('2 of 6 companies');
  await checkLateData(night, 0);
  const alerts = await night.db.pool.query(
    "select message from etl.alerts where subject like 'GetFinRatioEOD BSE 2025-09-11'",
  );
  expect(alerts.rows).toMatchObject([{ message: expect.stringContaining('2 of 6 companies') }]);

  expect(await runToEnd(night, gapRequest(gaps.gaps))).toMatchObject({ state: 'completed', requests: 8 });
  expect(await readGaps(night, scope)).toMatchObject({ gaps: [], total: 0 });
});

test('who only imports is not late; what was imported is looked at from its first to its last trading day', async () => {
  const keyless = { ...pipeline, config: { ...pipeline.config, EOD_ACCESS_KEY: undefined } };
  clock.moveTo(Date.parse('2025-09-20T23:30:00+05:30'));
  const [bhav] = PAIRS as [Pair];
  await cover(
    bhav,
    ['2025-09-01', '2025-09-02', '2025-09-04'].map((day) => ({
      day,
      instrument: '',
      variant: 0,
      state: 'loaded',
    })),
  );
  const { operations } = await readStatus(keyless);
  expect(operations).toMatchObject([
    { ...bhav, isLate: false, missingSessions: 1, completeTo: '2025-09-02', lastComplete: '2025-09-04' },
  ]);
  expect((await readTonight(keyless)).operations.map(pairName)).toEqual(['GetBhavCopyCM NSE']);
  const { url } = await serve(keyless, ['web']);
  const page = await (await fetch(url)).text();
  expect(page).toContain('1 trading day of 1 data set is missing');
  // What only a key brings is out of sight.
  for (const text of ['gaps fill', 'Calls this hour', '>Next<', 'eod up']) expect(page).not.toContain(text);
  const inYear = async (year: number) => (await fetch(`${url}/coverage?year=${year}`)).text();
  expect(await inYear(2025)).toContain('3 complete, 1 missing; complete to 2025-09-02, latest 2025-09-04');
  await checkLateData(keyless, 0);
  expect((await pipeline.db.pool.query('select from etl.alerts')).rowCount).toBe(0);
  expect(await readGaps(keyless, {})).toMatchObject({
    gaps: [{ from: '2025-09-03', to: '2025-09-03' }],
    total: 1,
  });
  // Where there is no source, nothing is beyond its history.
  clock.moveTo(Date.parse('2026-09-20T23:30:00+05:30'));
  const scope = {
    operations: [operationNamed(bhav.operation)],
    exchanges: ['NSE'],
    from: '2025-09-01',
    to: '2025-09-04',
  };
  const reasonOf = async (who: Pipeline) => (await readGaps(who, scope)).gaps.map(({ reason }) => reason);
  expect([await reasonOf(keyless), await reasonOf(pipeline)]).toEqual([['not_imported'], ['beyond_history']]);
  clock.moveTo(Date.parse('2025-09-20T23:30:00+05:30'));
  // Once a key was used, another process of the same installation, which has none, expects what is scheduled.
  await pipeline.db.pool.query(
    `insert into etl.runs (kind, state, requested_by, request, from_date, to_date) values ('nightly', 'completed', 'test', '{}', now(), now())`,
  );
  expect((await readTonight(keyless)).operations.length).toBeGreaterThan(5);
  await pipeline.db.pool.query('truncate etl.runs cascade');
});

test('a pair that is not scheduled and never had a record is not expected; one that is scheduled is', async () => {
  clock.moveTo(Date.parse('2025-09-12T23:30:00+05:30'));
  const [scheduled] = PAIRS as [Pair];
  const byHand = { ...scheduled, exchange: 'NYSE' };
  const failed = { day: '2025-09-11', instrument: '', variant: 0, state: 'failed' } as const;
  await cover(scheduled, [failed]);
  await cover(byHand, [failed, { ...failed, day: '2025-09-10', state: 'empty' }]);
  const everywhere = async () => {
    const { operations } = await readStatus(pipeline);
    const { operations: tradingDays } = await readTonight(pipeline);
    const { gaps } = await readGaps(pipeline, {});
    const server = await serve(pipeline, ['web']);
    const pages = await Promise.all(
      ['/', '/coverage'].map(async (path) => (await fetch(server.url + path)).text()),
    );
    return { pages, pairs: [operations, tradingDays, gaps].map((list) => list.map(pairName)) };
  };
  for (const has of [false, true]) {
    if (has) await cover(byHand, [{ ...failed, day: '2025-09-09', state: 'loaded' }]);
    const { pairs, pages } = await everywhere();
    for (const names of pairs) expect(names).toContain(pairName(scheduled));
    const [status, tonight] = pairs;
    for (const names of [status, tonight]) expect(names?.includes(pairName(byHand))).toBe(has);
    expect(pages.map((page) => page.includes('NYSE'))).toEqual([has, has]);
  }
  await checkLateData(pipeline, 0);
  const { rows } = await pipeline.db.pool.query<{ subject: string }>('select subject from etl.alerts');
  expect(rows.map(({ subject }) => subject)).toContain(`${pairName(scheduled)} ${failed.day}`);
  expect(JSON.stringify(rows)).not.toContain('NYSE');
});

test('the database follows the calendar of the same exchange as the code, and reads the same lines', async () => {
  const file = readFileSync(
    new URL('../../../migrations/repeatable/completeness.sql', import.meta.url),
    'utf8',
  );
  expect(file).toContain(`~* '${RANGE_REFUSED_LINE}'`);
  expect(file).toContain(`~ '${COUNT_MISMATCH}: '`);
  expect(file).toContain(`'quarters' THEN ${QUARTER_AWAITED_DAYS}\n`);
  const codes = ['BSE', 'NSE', ...Object.keys(SEGMENTS), 'NYSE'];
  const { rows } = await pipeline.db.pool.query<{ code: string; exchange: string }>(
    'select code, etl.exchange_of_segment(code) as exchange from unnest($1::text[]) as code',
    [codes],
  );
  expect(rows).toEqual(codes.map((code) => ({ code, exchange: exchangeOfSegment(code) })));
});
