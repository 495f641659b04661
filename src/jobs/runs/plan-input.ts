import type { Calendar } from '../../calendar/calendar.ts';
import { reachOf, today } from '../../core/clock.ts';
import { commonDays, type Day, eachDay } from '../../core/days.ts';
import { usageError } from '../../core/errors.ts';
import { isQuarterly, type Operation, partsOf, settingFor } from '../../declaration/operation.ts';
import { largestSymbols, storedValues, symbolsOfNames } from '../../load/stored-values.ts';
import { operationNamed } from '../../operations/registry.ts';
import type { RunRequest, Target } from '../../state/request.ts';
import type { Context } from '../context.ts';
import type { PlanInput } from './planned-window.ts';
import { readCoveredRequests } from './read-covered-requests.ts';

type PlanRequest = Pick<RunRequest, 'kind' | 'instruments' | 'options' | 'live'>;

/** Far more than any ticker has; longer names would not fit into the index of the coverage table. */
const MAX_INSTRUMENT_LENGTH = 200;

/** Collects everything that the plan of a target depends on. */
export async function planInput(context: Context, request: PlanRequest, target: Target): Promise<PlanInput> {
  const { config, calendar, clock } = context;
  const operation = operationNamed(target.operation);
  const chosenInstruments =
    operation.windows.per === 'instrument' && request.instruments.length === 0
      ? await defaultInstruments(context, target.exchange)
      : request.instruments;
  const instruments = await spelledAsStored(context, target.exchange, chosenInstruments);
  const long = instruments.find((name) => name.length > MAX_INSTRUMENT_LENGTH);
  if (long !== undefined) {
    throw usageError(`"${long.slice(0, 40)}…" is not an instrument: it has ${long.length} characters`);
  }
  const reach = reachOf(clock);
  const daysInReach = reach === undefined ? target : commonDays(target, reach);
  // Quarters are requested by their names, whatever days can be requested.
  const { from, to } = daysInReach === null || isQuarterly(operation) ? target : daysInReach;
  const input = {
    operation,
    exchange: target.exchange,
    from,
    to,
    tradingDays:
      daysInReach === null ? [] : listTradingDays(calendar, operation, { ...target, ...daysInReach }),
    reach,
    instruments: [...new Set(instruments)],
    options: request.options,
    refetchFrom: target.refetchFrom,
    today: today(clock, config.EOD_TIMEZONE),
    live: request.live,
    windowDays: settingFor(config.EOD_WINDOW_DAYS, operation),
    seenParts: await storedParts(context, operation, target.exchange),
  };
  return { ...input, covered: await readCoveredRequests(context, input) };
}

/**
 * Spells instruments as the exchange does. The source finds `tcs` as well as `TCS`, but rows and coverage of both would
 * be stored beside each other. Names that no stored symbol has stay as they are: an index is called `Nifty 50`.
 */
async function spelledAsStored(
  { db }: Context,
  exchange: string,
  names: readonly string[],
): Promise<readonly string[]> {
  const unusual = names.filter((name) => name !== name.toUpperCase());
  if (unusual.length === 0) return names;
  const symbols = await symbolsOfNames(db.pool, exchange, unusual);
  return names.map((name) => symbols.get(name) ?? name);
}

/**
 * The trading days of a range. If it has none and the user requests it again, all of its days are taken as trading
 * days: the calendar may be wrong, and only the source can tell.
 */
function listTradingDays(calendar: Calendar, { windows }: Operation, target: Target): Day[] {
  const { exchange, from, to, refetchFrom } = target;
  const tradingDays = calendar.tradingDays(exchange, from, to);
  const byDay = windows.per === 'session' || windows.per === 'range';
  return tradingDays.length === 0 && refetchFrom !== null && byDay ? eachDay(from, to) : tradingDays;
}

/** The values of an operation's parts that its stored rows of an exchange have. */
async function storedParts({ db }: Context, operation: Operation, exchange: string): Promise<string[]> {
  const parts = partsOf(operation);
  if (parts === undefined) return [];
  const { name } = operation.shapes[0].table;
  return storedValues(db.pool, { name, column: parts.column, exchange });
}

/**
 * The instruments to request if an operation requests one by one and the user names none: those of EOD_INSTRUMENTS, or
 * the EOD_INSTRUMENT_LIMIT instruments with the largest turnover in the newest stored bhav copy of the exchange. Empty
 * if no bhav copy is stored.
 */
export async function defaultInstruments(
  { config, db }: Pick<Context, 'config' | 'db'>,
  exchange: string,
): Promise<readonly string[]> {
  return config.EOD_INSTRUMENTS ?? largestSymbols(db.pool, exchange, config.EOD_INSTRUMENT_LIMIT);
}
