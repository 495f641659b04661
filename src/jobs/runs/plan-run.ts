import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Calendar } from '../../calendar/calendar.ts';
import { today } from '../../core/clock.ts';
import { type Day, eachDay } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import { largestSymbols } from '../../load/market/lookups.ts';
import {
  type AnswerCount,
  countAnswers,
  instrumentsAnsweredEachDay,
  listAnswers,
} from '../../load/state/coverage.ts';
import { readRangeLimits } from '../../load/state/range-limits.ts';
import type { RunRequest, Target } from '../../load/state/run-request.ts';
import type { PlannedWindow } from '../../load/state/windows/plan.ts';
import type { Operation } from '../../operations/operation.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { Context } from '../context.ts';
import { keyHash } from '../worker/quota.ts';
import {
  type Answered,
  areAnswered,
  judgeCount,
  leavesAwaited,
  markAnswered,
  questionKey,
} from './answered.ts';
import { type PlanInput, planTargets, planWindows } from './plan-windows.ts';
import { syncSessions, unknownYears } from './sync-sessions.ts';

/** The operation whose newest file says which instruments are worth asking for one by one. */
const INSTRUMENT_LIST = 'GetBhavCopyCM';

export interface RunPlan {
  /** Made as they are read. */
  readonly windows: Iterable<PlannedWindow>;
  /** Targets that wait for the bhav copies of this run before they can be planned. */
  readonly deferred: readonly Target[];
}

/**
 * Plans every target of a request against what is covered now. Targets that ask instrument by
 * instrument wait for the bhav copies the same run is about to load, unless instruments are named.
 */
export async function planRun(context: Context, request: RunRequest): Promise<RunPlan> {
  await syncSessions(context);
  warnOfUnknownYears(context, request.targets);
  const inputs: PlanInput[] = [];
  const deferred: Target[] = [];
  const named = request.instruments.length > 0 || context.config.EOD_INSTRUMENTS !== undefined;
  const immediate = request.targets.filter(
    (target) => named || operationNamed(target.operation).windows.per !== 'instrument',
  );
  for (const target of immediate) inputs.push(await planInput(context, request, target));
  const listsComing = new Set(
    inputs
      .filter(({ operation }) => operation.name === INSTRUMENT_LIST)
      .filter(hasPending)
      .map(({ exchange }) => exchange),
  );
  for (const target of request.targets) {
    if (immediate.includes(target)) continue;
    if (listsComing.has(target.exchange)) deferred.push(target);
    else inputs.push(await planInput(context, request, target));
  }
  return { windows: planTargets(inputs), deferred };
}

function hasPending(input: PlanInput): boolean {
  for (const { state } of planWindows(input)) if (state === 'pending') return true;
  return false;
}

/** Years a calendar was found not to know: a scheduler that plans every night says so once. */
const warned = new WeakMap<Calendar, Set<string>>();

function warnOfUnknownYears({ calendar, log }: Context, targets: readonly Target[]): void {
  const before = warned.get(calendar) ?? new Set();
  warned.set(calendar, before);
  const found = targets.flatMap(({ exchange, from, to }) =>
    unknownYears({ calendar }, [exchange], { from, to }),
  );
  const years = [...new Set(found)].filter((year) => !before.has(year)).sort();
  if (years.length === 0) return;
  for (const year of years) before.add(year);
  log.warn({ years }, 'no calendar data for these years: Monday to Friday is assumed (EOD_CALENDAR_FILE)');
}

/** Plans what waited for the bhav copies of its run. */
export async function planDeferred(
  context: Context,
  request: RunRequest,
  targets: readonly Target[],
): Promise<Iterable<PlannedWindow>> {
  const inputs: PlanInput[] = [];
  for (const target of targets) inputs.push(await planInput(context, request, target));
  return planTargets(inputs);
}

type PlanRequest = Pick<RunRequest, 'instruments' | 'options' | 'live'>;

/** No ticker comes near; longer names would not fit the index of the coverage. */
const MAX_INSTRUMENT = 200;

/** All that the plan of a target depends on, gathered; for operations that ask per instrument this looks the instruments up. */
export async function planInput(context: Context, request: PlanRequest, target: Target): Promise<PlanInput> {
  const { config, calendar, clock } = context;
  const operation = operationNamed(target.operation);
  const instruments =
    operation.windows.per === 'instrument' && request.instruments.length === 0
      ? await defaultInstruments(context, target.exchange)
      : request.instruments;
  const long = instruments.find((name) => name.length > MAX_INSTRUMENT);
  if (long !== undefined) {
    throw usageError(`"${long.slice(0, 40)}…" is no instrument: it has ${long.length} characters`);
  }
  const input = {
    operation,
    exchange: target.exchange,
    from: target.from,
    to: target.to,
    sessions: sessionsOf(calendar, operation, target),
    instruments: [...new Set(instruments)],
    options: request.options,
    refetchFrom: target.refetchFrom,
    today: today(clock, config.EOD_TIMEZONE),
    live: request.live,
    windowDays: await windowDays(context, operation),
  };
  return { ...input, answered: await readAnswered(context, input) };
}

/**
 * The sessions of a range. Closed days alone, asked for again by hand, are asked for as they are:
 * the calendar may be wrong, and only the source knows.
 */
function sessionsOf(calendar: Calendar, { windows }: Operation, target: Target): Day[] {
  const { exchange, from, to, refetchFrom } = target;
  const sessions = calendar.sessions(exchange, from, to);
  const byDay = windows.per === 'session' || windows.per === 'range';
  return sessions.length === 0 && refetchFrom !== null && byDay ? eachDay(from, to) : sessions;
}

/** The configured length of a window, or the operation's own, as far as the source allows it. */
async function windowDays({ config, db }: Context, operation: Operation): Promise<number | undefined> {
  if (operation.windows.per !== 'range') return undefined;
  const wanted = config.EOD_WINDOW_DAYS[operation.name] ?? operation.windows.days;
  const limits = await readRangeLimits(db.drizzle, keyHash(config.EOD_ACCESS_KEY ?? ''));
  return Math.min(wanted, limits.get(operation.name) ?? wanted);
}

/** What is known of the very days and instruments that the plan asks about: coverage grows with every night. */
async function readAnswered({ db }: Context, input: Omit<PlanInput, 'answered'>) {
  const { operation, refetchFrom } = input;
  const { windows } = operation;
  const days =
    windows.per === 'instrument'
      ? windows.asks(input).map(({ to }) => to)
      : windows.per === 'once'
        ? [input.today]
        : input.sessions;
  const asked = {
    operation: operation.name,
    exchange: input.exchange,
    days: days.filter((day) => refetchFrom === null || day < refetchFrom),
    instruments: operation.request.instruments === 'none' ? [] : input.instruments,
    // A day that should hold records and was empty is worth asking again.
    states: operation.emptyIsNormal ? (['loaded', 'empty', 'not_published'] as const) : (['loaded'] as const),
  };
  const answered = new Map<string, Answered>();
  const some: AnswerCount[] = [];
  for (const count of await countAnswers(db.drizzle, asked)) {
    const who = judgeCount(operation, asked.instruments.length, count);
    if (who === 'all') answered.set(questionKey(count.day, count.variant), who);
    if (who === 'some') some.push(count);
  }
  for (const [key, bits] of await readWho(db.drizzle, operation, asked, some)) answered.set(key, bits);
  return answered;
}

/** So many instruments and days are listed at once, which are some megabytes. */
const LISTED = 100_000;

/**
 * Who has an answer, to questions that only some instruments have one to. Most often a few instruments are new among thousands
 * that have an answer to each: these are found together, and only the others are listed day by day.
 */
async function readWho(
  db: NodePgDatabase,
  operation: Operation,
  asked: Parameters<typeof listAnswers>[1],
  questions: readonly AnswerCount[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  const days = [...new Set(questions.map(({ day }) => day))].sort();
  if (days.length === 0) return new Map();
  const places = new Map(asked.instruments.map((name, place) => [name, place]));
  const placesOf = (names: readonly string[]) => names.map((name) => places.get(name) as number);
  const always = new Map<string, Uint8Array>();
  for (const variant of new Set(questions.map((question) => question.variant))) {
    always.set(variant, new Uint8Array((places.size + 7) >> 3));
  }
  for (const { variant, instruments } of await instrumentsAnsweredEachDay(db, { ...asked, days })) {
    markAnswered(always.get(variant), placesOf(instruments));
  }
  const answered = new Map(
    questions.map(({ day, variant }) => [
      questionKey(day, variant),
      Uint8Array.from(always.get(variant) ?? []),
    ]),
  );
  const leaving = new Set(
    questions
      .filter((question) => leavesAwaited(operation, question))
      .map(({ day, variant }) => questionKey(day, variant)),
  );
  const rest = asked.instruments.filter((_, place) =>
    [...always.values()].some((bits) => !areAnswered(bits, place, place + 1)),
  );
  const atOnce = Math.max(1, Math.floor(LISTED / rest.length));
  for (let at = 0; rest.length > 0 && at < days.length; at += atOnce) {
    const listed = { ...asked, days: days.slice(at, at + atOnce), instruments: rest };
    for (const { day, variant, awaited, instruments } of await listAnswers(db, listed)) {
      const key = questionKey(day, variant);
      if (!awaited || leaving.has(key)) markAnswered(answered.get(key), placesOf(instruments));
    }
  }
  return answered;
}

/**
 * Which instruments to ask for where an operation asks one by one and nobody named any: those of
 * EOD_INSTRUMENTS, or else the EOD_INSTRUMENT_LIMIT with the largest turnover in the newest stored
 * bhav copy of the exchange. Empty where no bhav copy is stored.
 */
export async function defaultInstruments(
  { config, db }: Pick<Context, 'config' | 'db'>,
  exchange: string,
): Promise<readonly string[]> {
  return config.EOD_INSTRUMENTS ?? largestSymbols(db.pool, exchange, config.EOD_INSTRUMENT_LIMIT);
}
