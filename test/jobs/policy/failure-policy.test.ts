import { DrizzleQueryError } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ErrorFacts, type ErrorKind, PipelineError } from '../../../src/core/errors.ts';
import {
  assessEvidence,
  backoffMs,
  decideFailure,
  decideLocalFailure,
  type FailureAction,
  failureInfo,
  longestOutageMs,
  MAX_BACKOFF_MS,
  MAX_RETRY_AFTER_MS,
  type Situation,
  waitForCallsMs,
} from '../../../src/jobs/policy/failure-policy.ts';
import { misnamedBooleans } from '../../support/boolean-names.ts';
import { forAll } from '../../support/for-all.ts';

const CONFIG = {
  EOD_ATTEMPTS: 3,
  EOD_BACKOFF_MS: 100,
  EOD_CALLS_PER_HOUR: 900,
  EOD_CONCURRENCY: 4,
  EOD_NOT_READY_BUDGET_MS: 10_000,
  EOD_NOT_READY_WAIT_MS: 50,
  EOD_OUTAGE_PATIENCE_MS: 600_000,
};

const FIRST: Situation = {
  attempt: 1,
  storeFailures: 0,
  notReadyMs: 0,
  days: 1,
  isAhead: false,
  intoHourMs: 1_800_000,
  nextHourMs: 777,
  outageMs: null,
  queue: 'nightly',
  chance: 0,
};

type Facts = { readonly [Name in keyof ErrorFacts]?: unknown };

const error = (kind: ErrorKind, facts: Facts = {}) =>
  new PipelineError('what went wrong', { ...facts, kind } as ErrorFacts);

const decide = (kind: ErrorKind, situation: Partial<Situation> = {}, facts: Facts = {}) =>
  decideFailure(error(kind, facts), { ...FIRST, ...situation }, CONFIG);

const FAIL: FailureAction = { act: 'end', state: 'failed', scope: 'window' };
const FAIL_OPERATION: FailureAction = { act: 'end', state: 'failed', scope: 'operation' };
const block = (scope: 'window' | 'older' | 'operation' | 'exchange' | 'key'): FailureAction => ({
  act: 'end',
  state: 'blocked',
  scope,
});

const leftOut = (scope: 'operation' | 'exchange'): FailureAction => ({ act: 'end', state: 'skipped', scope });
const retryAfter = (delayMs: number): FailureAction => ({ act: 'retry', delayMs });
const postpone = (delayMs: number): FailureAction => ({ act: 'postpone', delayMs });
const keep = (delayMs: number, isStoppingCalls = false): FailureAction => ({
  act: 'keep_response',
  delayMs,
  isStoppingCalls,
});
const half = (days: number): FailureAction => ({ act: 'split', days });

const WAIT_FOR_HOUR: FailureAction = { act: 'rate_limit', delayMs: 777, isHourClosed: true };
const PUT_BACK: FailureAction = { act: 'put_back' };

/** What a window may have met before, and with it each bound of the policy. */
const BOUNDS = {
  first: {},
  'last attempt': { attempt: 3 },
  'fifth attempt': { attempt: 5 },
  'budget of waiting used up': { notReadyMs: 10_000 },
  'seven days': { days: 7 },
  'source down': { outageMs: 60_000 },
  'source down, last attempt': { attempt: 3, outageMs: 596_000 },
  'source down too long': { outageMs: 600_001 },
  'source down, seven days': { days: 7, outageMs: 60_000 },
  'source down too long for a backfill': { outageMs: 60_000, queue: 'backfill' },
  'response not stored': { storeFailures: 1 },
  'response not stored three times': { storeFailures: 3 },
  'response not stored for hours': { storeFailures: 1_000 },
} as const satisfies Record<string, Partial<Situation>>;

type Bound = keyof typeof BOUNDS;

/** The action in each situation: `first` unless another is named. */
interface Row {
  /** Which of the errors of its kind. */
  readonly detail?: string;
  readonly facts?: Facts;
  readonly first: FailureAction;
  readonly others?: Partial<Record<Bound, FailureAction>>;
  /** How often it is tried in all with EOD_ATTEMPTS 1, 3 and 7 while nothing says that the source is down: once if not given. */
  readonly attempts?: readonly [number, number, number];
}

const ONCE = [1, 1, 1] as const;
const AS_SET = [1, 3, 7] as const;

const counted = { 'last attempt': FAIL, 'fifth attempt': FAIL, 'source down, last attempt': FAIL } as const;
const kept = {
  'response not stored': keep(2_000),
  'response not stored three times': keep(2_000),
  'response not stored for hours': keep(2_000),
} as const;
const waitedOut = {
  'last attempt': FAIL,
  'fifth attempt': FAIL,
  'source down': postpone(30_000),
  'source down, last attempt': postpone(30_000),
  'source down too long': FAIL_OPERATION,
  'source down, seven days': postpone(30_000),
  'source down too long for a backfill': FAIL_OPERATION,
} as const;
const halved = { 'seven days': half(4), 'source down, seven days': half(4) } as const;

/** Statuses after which a call is tried again, and those after which it is not. */
const RETRIED_STATUSES = [408, 425, 429, 500, 502, 503, 599];
const FINAL_STATUSES = [204, 301, 400, 403, 404, 407, 409, 424, 426, 428, 430, 499];

const TABLE: Readonly<Record<ErrorKind, readonly Row[]>> = {
  credential: [{ first: block('key') }],
  monthly_quota: [{ first: block('key') }],
  hourly_quota: [{ first: WAIT_FOR_HOUR }],
  not_ready: [
    {
      first: { act: 'await_data', delayMs: 50, isWaitedInWorker: true },
      others: { 'budget of waiting used up': FAIL },
    },
  ],
  no_data: [{ first: FAIL }],
  operation_blocked: [{ first: leftOut('operation') }],
  exchange_blocked: [{ first: leftOut('exchange') }],
  instrument_blocked: [{ first: block('window') }],
  range_refused: [
    { first: block('older'), others: halved },
    {
      detail: 'that names five days',
      facts: { limitDays: 5 },
      first: block('older'),
      others: {
        'seven days': { act: 'split', days: 5 },
        'source down, seven days': { act: 'split', days: 5 },
      },
    },
  ],
  bad_request: [{ first: FAIL }],
  unknown_diagnostic: [{ first: retryAfter(50), others: counted, attempts: [1, 3, 3] }],
  wrong_address: [
    {
      first: retryAfter(50),
      others: {
        'last attempt': FAIL_OPERATION,
        'fifth attempt': FAIL_OPERATION,
        'source down, last attempt': FAIL_OPERATION,
      },
      attempts: [1, 3, 3],
    },
  ],
  timeout: [{ first: retryAfter(50), others: { ...waitedOut, ...halved }, attempts: AS_SET }],
  network: [
    // It may be the first to meet an outage: as many calls as open the circuit are made whatever EOD_ATTEMPTS says.
    {
      first: retryAfter(50),
      others: { ...waitedOut, 'last attempt': retryAfter(200) },
      attempts: [5, 5, 7],
    },
    {
      detail: 'in the middle of a response',
      facts: { cutShort: true },
      first: retryAfter(50),
      others: { ...counted, ...halved },
      attempts: AS_SET,
    },
  ],
  http_status: [
    ...RETRIED_STATUSES.map((status) => ({
      detail: String(status),
      facts: { status },
      first: retryAfter(50),
      others: waitedOut,
      attempts: AS_SET,
    })),
    {
      detail: 'with Retry-After',
      facts: { status: 503, retryAfterMs: 7_000 },
      first: retryAfter(7_000),
      others: { ...waitedOut },
      attempts: AS_SET,
    },
    ...FINAL_STATUSES.map((status) => ({ detail: String(status), facts: { status }, first: FAIL })),
    { detail: 'that nobody knows', first: FAIL },
  ],
  too_large: [{ first: FAIL, others: halved }],
  unreadable: [
    { first: retryAfter(50), others: counted, attempts: AS_SET },
    {
      detail: 'that broke off',
      facts: { cutShort: true },
      first: retryAfter(50),
      others: { ...counted, ...halved },
      attempts: AS_SET,
    },
  ],
  database_unreachable: [{ first: postpone(2_000), others: kept }],
  database_cannot_store: [
    {
      first: postpone(2_000),
      others: {
        'response not stored': keep(50, true),
        'response not stored three times': keep(200, true),
        'response not stored for hours': keep(30_000, true),
      },
    },
  ],
  database_locked: [{ first: postpone(2_000), others: kept }],
  database: [{ first: FAIL }],
  defect: [{ first: FAIL, others: { 'response not stored': keep(50) } }],
  usage: [{ first: FAIL }],
  aborted: [{ first: PUT_BACK }],
};

const bounds = Object.keys(BOUNDS) as Bound[];
const cases = (Object.keys(TABLE) as ErrorKind[]).flatMap((kind) =>
  TABLE[kind].flatMap(({ detail = '', facts = {}, first, others = {} }) =>
    bounds.map((bound) => ({ kind, detail, facts, bound, action: others[bound] ?? first })),
  ),
);

test.each(cases)('$kind $detail ($bound)', ({ kind, facts, bound, action }) => {
  expect(decide(kind, BOUNDS[bound], facts)).toEqual(action);
});

const rows = (Object.keys(TABLE) as ErrorKind[]).flatMap((kind) =>
  TABLE[kind].map(({ detail = '', facts = {}, attempts = ONCE }) => ({ kind, detail, facts, attempts })),
);

test.each(rows)('$kind $detail is tried $attempts times', ({ kind, facts, attempts }) => {
  const tries = [1, 3, 7].map((EOD_ATTEMPTS) => {
    let attempt = 1;
    const isRetried = () =>
      decideFailure(error(kind, facts), { ...FIRST, attempt }, { ...CONFIG, EOD_ATTEMPTS }).act === 'retry';
    while (attempt < 100 && isRetried()) attempt += 1;
    return attempt;
  });
  expect(tries).toEqual(attempts);
});

describe('what is no error of the source', () => {
  test('a spent budget makes the queue wait until the next hour, or until the hour is checked again', () => {
    expect(waitForCallsMs(777)).toBe(777);
    // The limit may have been raised meanwhile.
    expect(waitForCallsMs(3_000_000)).toBe(60_000);
  });

  test.each([
    ['a code', Object.assign(new Error('terminating connection'), { code: '57P01' }), 'postpone'],
    ['no code: a broken connection', new Error('Connection terminated unexpectedly'), 'postpone'],
    [
      'the code of a full disk',
      Object.assign(new Error('could not extend file'), { code: '53100' }),
      'postpone',
    ],
    ['the code of a mistake', Object.assign(new Error('no such column'), { code: '42703' }), 'end'],
  ] as const)('an error of the driver with %s, bare or as drizzle wraps it', (_what, raw, act) => {
    expect(decideFailure(raw, FIRST, CONFIG)).toMatchObject({ act });
    expect(decideFailure(new DrizzleQueryError('select 1', [], raw), FIRST, CONFIG)).toMatchObject({ act });
  });

  test.each([new TypeError('x is not a function'), new Error('no trading day'), 'thrown text'])(
    'a defect of ours fails the window, after EOD_ATTEMPTS tries to store a response that is there: %s',
    (thrown) => {
      const tries = [0, 1, 2, 3, 4].map((storeFailures) => ({ ...FIRST, storeFailures }));
      const acts = tries.map((situation) => decideFailure(thrown, situation, CONFIG).act);
      expect(acts).toEqual(['end', 'keep_response', 'keep_response', 'end', 'end']);
    },
  );
});

const anyError = fc
  .record({
    kind: fc.constantFrom(...(Object.keys(TABLE) as ErrorKind[])),
    cutShort: fc.boolean(),
    status: fc.option(fc.integer({ min: 100, max: 999 }), { nil: undefined }),
    retryAfterMs: fc.option(fc.integer({ min: 0, max: 1e12 }), { nil: undefined }),
    limitDays: fc.option(fc.integer({ min: 0, max: 10_000 }), { nil: undefined }),
    diagnostic: fc.option(fc.string(), { nil: undefined }),
  })
  .map(({ kind, cutShort, status, retryAfterMs, limitDays, diagnostic }) =>
    error(kind, {
      cutShort,
      ...(status === undefined ? {} : { status }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(limitDays === undefined ? {} : { limitDays }),
      ...(diagnostic === undefined ? {} : { diagnostic }),
    }),
  );

const anySituation: fc.Arbitrary<Situation> = fc.record({
  attempt: fc.integer({ min: 1, max: 100 }),
  storeFailures: fc.integer({ min: 0, max: 2_000 }),
  notReadyMs: fc.integer({ min: 0, max: 1e9 }),
  days: fc.integer({ min: 1, max: 4_000 }),
  isAhead: fc.boolean(),
  intoHourMs: fc.integer({ min: 0, max: 3_600_000 }),
  nextHourMs: fc.integer({ min: 0, max: 3_602_000 }),
  outageMs: fc.option(fc.integer({ min: 0, max: 1e9 })),
  queue: fc.constantFrom('nightly', 'backfill'),
  chance: fc.double({ min: 0, max: 1, noNaN: true }),
});

const anyConfig = fc.record({
  EOD_ATTEMPTS: fc.integer({ min: 1, max: 50 }),
  EOD_BACKOFF_MS: fc.integer({ min: 1, max: 600_000 }),
  EOD_CALLS_PER_HOUR: fc.integer({ min: 1, max: 1_000_000 }),
  EOD_CONCURRENCY: fc.integer({ min: 1, max: 64 }),
  EOD_NOT_READY_BUDGET_MS: fc.integer({ min: 10, max: 86_400_000 }),
  EOD_NOT_READY_WAIT_MS: fc.integer({ min: 10, max: 600_000 }),
  EOD_OUTAGE_PATIENCE_MS: fc.integer({ min: 1_000, max: 86_400_000 }),
});

const anythingElse = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.constantFrom(null, undefined, true, Symbol('thrown')),
  fc.string().map((code) => ({ code })),
  fc.string().map((message) => new Error(message)),
  fc.string().map((message) => new RangeError(message)),
);

describe('whatever happens', () => {
  test('something is decided, and no delay is longer than its bound', () =>
    forAll([anyError, anySituation, anyConfig], { numRuns: 2_000 }, (failure, situation, config) => {
      const action = decideFailure(failure, situation, config);
      // Actions are logged as they are.
      expect(misnamedBooleans(action)).toEqual([]);
      switch (action.act) {
        case 'retry': {
          const longestOutage = longestOutageMs(config, situation.queue);
          const isPauseRequested = failure.retryAfterMs !== undefined;
          const longest = isPauseRequested ? Math.min(MAX_RETRY_AFTER_MS, longestOutage) : MAX_BACKOFF_MS;
          expect(action.delayMs).toBeLessThanOrEqual(longest);
          const noConnection = failure.kind === 'network' && !failure.cutShort;
          expect(situation.attempt).toBeLessThan(Math.max(config.EOD_ATTEMPTS, noConnection ? 5 : 1));
          break;
        }
        case 'postpone':
          expect(action.delayMs).toBeLessThanOrEqual(30_000);
          break;
        case 'await_data': {
          const left = config.EOD_NOT_READY_BUDGET_MS - situation.notReadyMs;
          expect(action.delayMs).toBeGreaterThan(0);
          expect(action.delayMs).toBeLessThanOrEqual(
            Math.min(left, Math.max(60_000, config.EOD_NOT_READY_WAIT_MS)),
          );
          break;
        }
        case 'rate_limit':
          expect(action.delayMs).toBe(Math.min(situation.nextHourMs, 60_000));
          break;
        case 'split':
          expect(action.days).toBeGreaterThanOrEqual(1);
          expect(action.days).toBeLessThan(situation.days);
          break;
        case 'keep_response':
          expect(situation.storeFailures).toBeGreaterThan(0);
          if (failure.kind === 'defect') expect(situation.storeFailures).toBeLessThan(config.EOD_ATTEMPTS);
          else expect(action.delayMs).toBeLessThanOrEqual(30_000);
          expect(action.isStoppingCalls).toBe(failure.kind === 'database_cannot_store');
          break;
        case 'put_back':
          expect(failure.kind).toBe('aborted');
          break;
        case 'skip':
          expect([failure.kind, situation.isAhead]).toEqual(['range_refused', true]);
          break;
        case 'end':
          expect(['failed', 'blocked', 'skipped']).toContain(action.state);
      }
    }));

  test('no call is made again because Postgres could not store the response', () =>
    forAll([anySituation, anyConfig], (situation, config) => {
      const kinds = (Object.keys(TABLE) as ErrorKind[]).filter((kind) => kind.startsWith('database'));
      for (const kind of [...kinds, 'defect' as const]) {
        const { act } = decideFailure(error(kind), { ...situation, storeFailures: 1 }, config);
        expect(['keep_response', 'end']).toContain(act);
      }
    }));

  test('anything thrown is decided on and described', () =>
    forAll([anythingElse, anySituation], (thrown, situation) => {
      expect(decideFailure(thrown, situation, CONFIG).act).toMatch(/^(postpone|keep_response|end)$/);
      expect(assessEvidence(thrown, situation.days)).toEqual({ source: 'unknown', key: 'unknown' });
      expect(typeof failureInfo(thrown).error).toBe('string');
    }));

  test('a window ends: every wait that does not count has a bound of its own', () => {
    const late = { notReadyMs: 1e9, attempt: 1e6, outageMs: 1e9 };
    for (const kind of Object.keys(TABLE) as ErrorKind[]) {
      // These wait for something else than the source: the turn of the hour, Postgres, our own start. An operation is
      // replaced once a week.
      if (kind.startsWith('database_') || ['hourly_quota', 'aborted'].includes(kind)) continue;
      expect(decide(kind, late), kind).toMatchObject({ act: 'end' });
    }
  });
});

describe('work that calls nobody', () => {
  const outage = new Error('Connection terminated unexpectedly');

  test('ends, unless only Postgres or this process was unreachable', () => {
    for (const kind of Object.keys(TABLE) as ErrorKind[]) {
      const expected = kind.startsWith('database_') ? postpone(2_000) : kind === 'aborted' ? PUT_BACK : FAIL;
      expect(decideLocalFailure(error(kind)), kind).toEqual(expected);
    }
    expect(decideLocalFailure(outage)).toEqual(postpone(2_000));
    expect(decideLocalFailure(new TypeError('x is not a function'))).toEqual(FAIL);
  });
});

describe('a refusal for the quota of the hour', () => {
  const refused = (intoHourMs: number) =>
    decideFailure(
      error('hourly_quota'),
      { ...FIRST, intoHourMs, nextHourMs: 3_600_000 - intoHourMs },
      CONFIG,
    );

  test('closes the hour, unless it has just turned: then the hour of the source may not have', () => {
    expect(refused(300_000)).toEqual({ act: 'rate_limit', delayMs: 60_000, isHourClosed: true });
    expect(refused(299_999)).toEqual({ act: 'rate_limit', delayMs: 60_000, isHourClosed: false });
    expect(refused(3_590_000)).toEqual({ act: 'rate_limit', delayMs: 10_000, isHourClosed: true });
  });
});

describe('a response that is not ready', () => {
  const decide = (notReadyMs: number, config: Partial<typeof CONFIG> = {}) =>
    decideFailure(
      error('not_ready'),
      { ...FIRST, notReadyMs },
      { ...CONFIG, EOD_NOT_READY_WAIT_MS: 3_000, EOD_NOT_READY_BUDGET_MS: 900_000, ...config },
    );
  const again = (delayMs: number, isWaitedInWorker: boolean) => ({
    act: 'await_data',
    delayMs,
    isWaitedInWorker,
  });

  test('is requested again after 3 s, then each time after as long as before in all, up to a minute', () => {
    const pauses: number[] = [];
    let waited = 0;
    for (let next = decide(0); next.act === 'await_data'; next = decide(waited)) {
      pauses.push(next.delayMs);
      waited += next.delayMs;
    }
    expect(pauses.slice(0, 7)).toEqual([3_000, 3_000, 6_000, 12_000, 24_000, 48_000, 60_000]);
    expect(pauses.slice(7, -1).every((pause) => pause === 60_000)).toBe(true);
    expect([pauses.length, waited]).toEqual([20, 900_000]);
    expect(decide(waited)).toEqual(FAIL);
  });

  test('is waited for by its worker for as long as a call of the hour is worth', () => {
    // 900 calls an hour among 4: one each 16 s.
    expect(decide(12_000)).toEqual(again(12_000, true));
    expect(decide(16_000)).toEqual(again(16_000, true));
    expect(decide(16_001)).toEqual(again(16_001, false));
    expect(decide(0, { EOD_CALLS_PER_HOUR: 7_200, EOD_CONCURRENCY: 4 })).toEqual(again(3_000, false));
  });
});

describe('Retry-After', () => {
  const decide = (retryAfterMs: number, queue: Situation['queue'], outageMs: number) =>
    decideFailure(
      error('http_status', { status: 503, retryAfterMs }),
      { ...FIRST, queue },
      { ...CONFIG, EOD_OUTAGE_PATIENCE_MS: outageMs },
    );

  test('is followed, for an hour at most and no longer than the run waits for a source that is down', () => {
    expect(decide(7_000, 'nightly', 86_400_000)).toEqual(retryAfter(7_000));
    expect(decide(86_400_000, 'nightly', 86_400_000)).toEqual(retryAfter(3_600_000));
    expect(decide(86_400_000, 'nightly', 60_000)).toEqual(retryAfter(60_000));
    expect(decide(86_400_000, 'backfill', 600_000)).toEqual(retryAfter(10_000));
  });
});

test('the pause before a counted attempt doubles, with half of it left to chance, up to five minutes', () => {
  forAll(
    [
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 600_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    ],
    (attempt, base, chance) => {
      const full = Math.min(300_000, base * 2 ** (attempt - 1));
      const pause = backoffMs(attempt, base, chance);
      expect(pause).toBeGreaterThanOrEqual(Math.floor(full / 2));
      expect(pause).toBeLessThanOrEqual(Math.ceil(full));
    },
  );
  expect([1, 2, 3].map((attempt) => backoffMs(attempt, 100, 0))).toEqual([50, 100, 200]);
});

describe('a range that is too much', () => {
  test('always gets shorter, down to one day, which is refused for good', () => {
    const range = (limitDays: number) => error('range_refused', { limitDays });
    for (let days = 64; days > 1; ) {
      const next = decideFailure(range(days), { ...FIRST, days }, CONFIG);
      expect(next).toMatchObject({ act: 'split' });
      const shorter = next.act === 'split' ? next.days : 0;
      expect(shorter).toBeLessThan(days);
      days = shorter;
    }
    expect(decideFailure(range(1), FIRST, CONFIG)).toEqual(block('older'));
  });

  test('is requested in parts down to a day, whatever length is named: it may go too far back', () => {
    const thirty = (days: number) => decide('range_refused', { days }, { limitDays: 30 });
    expect(thirty(90)).toEqual({ act: 'split', days: 30 });
    expect(thirty(30)).toEqual(half(15));
    expect(thirty(15)).toEqual(half(8));
    expect(thirty(1)).toEqual(block('older'));
  });

  test('of days to come ends without a response, unless a shorter length is named', () => {
    const ahead = (days: number, limitDays: number) =>
      decide('range_refused', { days, isAhead: true }, { limitDays });
    expect(ahead(30, 5)).toEqual({ act: 'split', days: 5 });
    const skipped = { act: 'skip', reason: 'the source does not serve days to come' };
    for (const days of [30, 5, 1]) expect(ahead(days, 30)).toEqual(skipped);
    expect(decide('range_refused', { days: 30, isAhead: true })).toEqual(skipped);
  });
});

describe('what a failed call says of the source and of the key', () => {
  const diagnosed = { diagnostic: 'A line of the source.' };
  test.each([
    ['credential', diagnosed, 1, 'success', 'refused'],
    ['credential', {}, 1, 'success', 'refused'],
    ['monthly_quota', diagnosed, 1, 'success', 'accepted'],
    ['hourly_quota', diagnosed, 1, 'success', 'accepted'],
    ['not_ready', diagnosed, 1, 'success', 'accepted'],
    ['no_data', diagnosed, 1, 'success', 'accepted'],
    ['operation_blocked', diagnosed, 1, 'success', 'accepted'],
    ['exchange_blocked', diagnosed, 1, 'success', 'accepted'],
    ['instrument_blocked', diagnosed, 1, 'success', 'accepted'],
    ['range_refused', diagnosed, 30, 'success', 'accepted'],
    ['bad_request', diagnosed, 1, 'success', 'accepted'],
    ['bad_request', {}, 1, 'success', 'unknown'],
    ['unknown_diagnostic', diagnosed, 1, 'success', 'unknown'],
    ['timeout', {}, 1, 'failure', 'unknown'],
    ['timeout', {}, 2, 'unknown', 'unknown'],
    ['network', {}, 1, 'failure', 'unknown'],
    ['network', {}, 2, 'failure', 'unknown'],
    ['network', { cutShort: true }, 1, 'success', 'unknown'],
    ['wrong_address', {}, 1, 'unknown', 'unknown'],
    ['http_status', { status: 503 }, 1, 'failure', 'unknown'],
    ['http_status', { status: 429 }, 1, 'failure', 'unknown'],
    ['http_status', { status: 404 }, 1, 'success', 'unknown'],
    ['too_large', {}, 1, 'success', 'unknown'],
    ['unreadable', {}, 1, 'success', 'unknown'],
    ['database', {}, 1, 'unknown', 'unknown'],
    ['database_unreachable', {}, 1, 'unknown', 'unknown'],
    ['database_locked', {}, 1, 'unknown', 'unknown'],
    ['database_cannot_store', {}, 1, 'unknown', 'unknown'],
    ['defect', {}, 1, 'unknown', 'unknown'],
    ['usage', {}, 1, 'unknown', 'unknown'],
    ['aborted', {}, 1, 'unknown', 'unknown'],
  ] as const)('%s %o over %i days: %s, %s', (kind, facts, days, source, key) => {
    expect(assessEvidence(error(kind, facts), days)).toEqual({ source, key });
  });
});

test("what is kept of a failure is the sentence, and the source's own line where there is one", () => {
  const refused = new PipelineError('refused', { kind: 'credential', diagnostic: 'Key Expired.' });
  expect(failureInfo(refused)).toEqual({ error: 'refused', diagnostic: 'Key Expired.' });
  expect(failureInfo('text')).toEqual({ error: 'text' });
});
